"""paho's client with a receive buffer, bounded packets and a list of messages; nothing that a peer sends raises.

Eight of paho 2.2's private methods are overridden (the minor version is pinned for that): `_packet_read` takes messages
that lie whole in the buffer, as many as there are, and leaves each other packet to paho; `_sock_recv` reads 64 KiB at
a time, refuses what a broker may not send before it is read, and cuts a payload that is larger than allowed while it
arrives; `_sock_send` notes why it failed; `_packet_handle` ends a connection where paho cannot read a packet;
`_handle_connack` keeps our keepalive where the broker wants none; `_handle_publish` puts a message into a list instead
of building paho's; `_handle_pubrel` ends what came at QoS 2, which paho leaves to who acknowledges by hand;
`_create_socket_connection` gives the system a name as it is. `reconnect` forgets what an old connection left half read.
"""

from __future__ import annotations

import contextlib
import logging
import socket
from collections.abc import Iterable
from itertools import count, takewhile
from typing import Any, NoReturn

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode

from sluicegate.format.packets import publish_of, publishes
from sluicegate_agent.identity.habits import LAST_ID
from sluicegate_agent.lean import tls
from sluicegate_agent.link.barrier import Barrier
from sluicegate_agent.link.packets import PUBACK, PUBLISH, unexpected
from sluicegate_agent.link.reasons import reason_of
from sluicegate_agent.messages import Message

log = logging.getLogger("sluicegate.mqtt")

RECEIVE = 65536
#: Bytes of payloads that are taken at once, beyond the last one.
HELD = 256 * 1024
_QUICKACK = getattr(socket, "TCP_QUICKACK", None)  # Linux alone has it
_LONGEST_HEAD = 65536 + 1024  # the longest topic and some properties beside the payload


def _send_at_once(_client: paho.Client, _userdata: Any, sock: Any) -> None:
    """Let nothing small wait in the kernel: an answer would, until the broker has acknowledged the PUBACKs before."""
    if sock.family in (socket.AF_INET, socket.AF_INET6):
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _acknowledge_at_once(sock: Any) -> None:
    """Let a broker go on that sends nothing small before what it sent last is acknowledged (Mosquitto by default).

    What comes next would be up to 40 ms late. Linux forgets the wish, so it is said after each read.
    """
    if sock is not None and _QUICKACK is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)


class Client(paho.Client):
    """paho's client with a receive buffer, bounded packets and a plain list (`inbox`) of at most about `most` messages.

    `why`: what ended the connection, where more is known than that it ended. `awaited`: subscriptions that wait for
    their SUBACK; `left`: topics unsubscribed from that wait for their UNSUBACK.
    """

    def __init__(self, payload_limit: int, **options: Any) -> None:
        self._buffer = b""
        self._at = 0
        self._cap = payload_limit + _LONGEST_HEAD
        self.inbox: list[Message] = []
        self.held, self.most = 0, 1 << 30
        self.why = ""
        self.awaited = self.left = 0
        self._asked_keepalive: int | None = None
        self.barrier = Barrier()
        super().__init__(CallbackAPIVersion.VERSION2, manual_ack=True, reconnect_on_failure=False, **options)
        self.on_socket_open = _send_at_once

    @property
    def buffered(self) -> bool:
        """Whether bytes wait that select() cannot see: here, or inside the TLS layer."""
        sock: Any = self.socket()
        return self._at < len(self._buffer) or (isinstance(sock, tls().SSLSocket) and sock.pending() > 0)

    def reconnect(self) -> MQTTErrorCode:
        """Connect again, with nothing left of the old connection's bytes."""
        self._drop_buffer()
        self.why, self.awaited, self.left = "", 0, 0
        self.barrier = Barrier()
        if self._asked_keepalive is None:
            self._asked_keepalive = self._keepalive
        self._keepalive = self._asked_keepalive  # a broker's wish is for its own connection
        return super().reconnect()

    def subscribe_under(self, least: int, topics: list[tuple[str, Any]]) -> None:
        """Subscribe under the first packet id from `least` on that is free; later ones go on where they were.

        RabbitMQ numbers what it sends from this id on (3.10: the greater of both). With another one each time its ids
        look like ids that go on over connections, and a message that was never seen like a repeat of an old one.
        """
        last = self._last_mid
        self._last_mid = next(mid for mid in count(least - 1) if mid + 1 not in self._out_messages)
        self.awaited = len(topics)
        self.subscribe(topics)
        self._last_mid = max(last, self._last_mid)

    def publish(self, *message: Any, **options: Any) -> paho.MQTTMessageInfo:
        """Under any packet id but 1, which is the SUBSCRIBE's: one under way may last into the next connection."""
        if not 0 < self._last_mid < LAST_ID:
            self._last_mid = 1
        return super().publish(*message, **options)

    def hang_up(self) -> None:
        """Close the socket at once; nothing of the connection is left."""
        self._sock_close()
        self._drop_buffer()

    def _drop_buffer(self) -> None:
        self._buffer, self._at = b"", 0

    def ask(self, generation: int) -> None:
        """Ping after the PUBACKs of a commit: the answer shows that the broker has taken them."""
        if self.barrier.ask(generation, is_out=self._ping_t != 0):
            self._send_pingreq()

    def _handle_pingresp(self) -> MQTTErrorCode:
        found = super()._handle_pingresp()
        if self.barrier.answered():
            self._send_pingreq()
        return found

    @property
    def has_room(self) -> bool:
        """Whether the inbox takes more before it is emptied."""
        return len(self.inbox) < self.most and self.held < HELD

    def _create_socket_connection(self) -> socket.socket:
        """Of a name in ASCII its bytes: for a text Python loads the tables of all others (0.4 MiB)."""
        if self._get_proxy() or not self._host.isascii():
            return super()._create_socket_connection()
        address: Any = self._host.encode(), self._port
        return socket.create_connection(address, self._connect_timeout, (self._bind_address, self._bind_port))

    def _packet_read(self) -> MQTTErrorCode:
        if self.is_connected() and not self._in_packet["command"]:
            try:
                self._fill()
            except BlockingIOError:
                return MQTTErrorCode.MQTT_ERR_AGAIN
            except OSError:
                return MQTTErrorCode.MQTT_ERR_CONN_LOST
            begin = self._at
            found = self._take_whole()
            if found or self._at > begin:
                with self._msgtime_mutex:
                    self._last_bytes_received = paho.time_func()
                return found
        return super()._packet_read()

    def _take_whole(self) -> MQTTErrorCode:
        """Messages from the buffer's place on, up to the first packet that is none, or not whole, or too large."""
        room = self.most - len(self.inbox), HELD - self.held
        found = publishes(self._buffer, self._at, self._protocol == paho.MQTTv5, self._cap, *room, Message)
        messages, self._at, is_broken = found
        self.inbox += messages
        self.held += sum([len(message.payload) for message in messages])
        return self._unreadable() if is_broken else MQTTErrorCode.MQTT_ERR_SUCCESS

    def _fill(self) -> None:
        """Have something in the buffer: where it was all taken, what has come since. Raises OSError."""
        if self._at >= len(self._buffer):
            self._drop_buffer()
            try:
                self._buffer = super()._sock_recv(RECEIVE)
            except OSError as error:
                self._note(error)
                raise
            _acknowledge_at_once(self.socket())

    def _sock_recv(self, bufsize: int) -> bytes:
        packet = self._in_packet
        if packet["have_remaining"] and not packet["packet"]:
            self._check_head()
        self._fill()
        piece = self._buffer[self._at : self._at + bufsize]
        self._at += len(piece)
        return piece if packet["remaining_length"] <= self._cap else self._cut(piece)

    def _sock_send(self, buf: bytes | bytearray) -> int:
        try:
            return super()._sock_send(buf)
        except OSError as error:
            if not isinstance(error, BlockingIOError):
                # A broker that wants a certificate says so and closes: our first write then fails, its word is unread.
                with contextlib.suppress(BlockingIOError, ConnectionError):
                    self._last_word()
                self._note(error)
            raise

    def _last_word(self) -> None:
        try:
            super()._sock_recv(1)
        except tls().SSLError as error:
            self._note(error)

    def _note(self, error: OSError) -> None:
        """Keep what went wrong; that the other side closed is no reason."""
        if not isinstance(error, BlockingIOError | ConnectionError) and not self.why:
            self.why = reason_of(error)

    def _check_head(self) -> None:
        """Before a packet's body is read: whether it may come now, and be so long."""
        why = unexpected(
            self._in_packet["command"],
            self._in_packet["remaining_length"],
            version_5=self._protocol == paho.MQTTv5,
            connected=self.is_connected(),
            asked=self.awaited,
            left=self.left,
            sent=len(self._out_messages),
        )
        if why:
            self._refuse(f"it sent {why}; is it an MQTT broker?")

    def _refuse(self, why: str) -> NoReturn:
        self.why = self.why or why
        raise ConnectionAbortedError(why)

    def _packet_handle(self) -> MQTTErrorCode:
        """What a packet says, taken; an error instead of an exception for one that cannot be read."""
        try:
            self._check_head()
            return super()._packet_handle()
        except Exception as error:
            # Whatever paho trips over in a peer's bytes: the connection ends, the agent does not.
            log.debug("a packet that could not be read", exc_info=True)
            self.why = self.why or f"it sent a packet that cannot be read ({type(error).__name__}: {error})"
            return MQTTErrorCode.MQTT_ERR_PROTOCOL

    def _handle_connack(self) -> MQTTErrorCode:
        found = super()._handle_connack()
        if self._asked_keepalive and not 0 < self._keepalive <= self._asked_keepalive:
            self._keepalive = self._asked_keepalive  # else a connection that is half open would never be noticed
        return found

    def _cut(self, piece: bytes) -> bytes:
        """Hand on what still fits, but at least the one byte paho needs to go on; count the rest as read."""
        packet = self._in_packet
        if not packet["have_remaining"] or packet["command"] & 0xF0 != PUBLISH:
            return piece
        del packet["packet"][self._cap :]
        handed = piece[: max(self._cap - len(packet["packet"]), 1)]
        packet["to_process"] -= len(piece) - len(handed)
        return handed

    def _handle_publish(self) -> MQTTErrorCode:
        command, packet = self._in_packet["command"], self._in_packet["packet"]
        message = parse_publish(command, packet, self._protocol == paho.MQTTv5, self._in_packet["remaining_length"])
        if message is None:
            return self._unreadable()
        self.inbox.append(message)
        self.held += len(message.payload)
        return MQTTErrorCode.MQTT_ERR_SUCCESS

    def _handle_pubrel(self) -> MQTTErrorCode:
        """What came at QoS 2 is durable since its PUBREC: the broker may forget it, however often it asks.

        There are no more packet ids than LAST_ID: who reads no answers may not have us keep more.
        """
        if len(self._out_packet) > LAST_ID:
            self._refuse("it sent more PUBRELs than there are packet ids")
        return self._send_pubcomp(int.from_bytes(self._in_packet["packet"][:2], "big"))

    def _unreadable(self) -> MQTTErrorCode:
        self.why = "it sent a PUBLISH that cannot be read"
        return MQTTErrorCode.MQTT_ERR_PROTOCOL

    def take(self) -> list[Message]:
        """The messages that arrived since the last call."""
        messages, self.inbox, self.held = self.inbox, [], 0
        return messages

    def acknowledge(self, messages: Iterable[tuple[int, int]]) -> None:
        """Queue the PUBACKs, or PUBRECs, of (packet id, QoS) as one write of paho's own (partial writes, TLS)."""
        packet = b"".join(
            (b"\x40\x02" if qos == 1 else b"\x50\x02") + packet_id.to_bytes(2, "big") for packet_id, qos in messages
        )
        if packet:
            self._packet_queue(PUBACK, packet, 0, 1)


def parse_publish(command: int, packet: bytes | bytearray, version_5: bool, length: int) -> Message | None:
    """A PUBLISH packet after its fixed header, perhaps cut short of its `length`; None where it breaks the protocol."""
    parts = publish_of(command, packet, version_5, length)
    if parts is None and version_5 and length > len(packet):
        parts = publish_of(command, _without_properties(command, packet, length), version_5, length)
    return None if parts is None else Message(*parts)


def _without_properties(command: int, packet: bytes | bytearray, length: int) -> bytes:
    """The head of a packet that was cut among its properties, as if it had none: to be acknowledged, and no more.

    Else the broker would send it again on each connection, for ever. Empty where they end beyond the packet.
    """
    at = 2 + int.from_bytes(packet[:2], "big") + 2 * bool(command & 0x06)
    digits = list(takewhile(lambda digit: digit > 127, packet[at : at + 3]))
    coded = [*digits, *packet[at + len(digits) : at + len(digits) + 1]]
    size = sum((digit & 127) << 7 * place for place, digit in enumerate(coded))
    return bytes(packet[:at]) + b"\0" if coded and coded[-1] < 128 and at + len(coded) + size <= length else b""
