"""paho's client with a receive buffer, bounded payloads and a list of messages.

Three of paho 2.2's private methods are overridden (the minor version is pinned for that): `_sock_recv` reads 64 KiB at
a time and cuts a payload that is larger than allowed while it arrives, `_handle_publish` puts a message into a list
instead of building paho's, and `reconnect` forgets what an old connection left half read.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode

from sluicegate_agent.messages import Message

RECEIVE = 65536
_PUBLISH, _PUBACK = 0x30, 0x40
_LONGEST_HEAD = 65536 + 1024  # the longest topic and some properties beside the payload


class Client(paho.Client):
    """paho's client with a receive buffer, bounded payloads and a plain list (`inbox`) of messages."""

    def __init__(self, payload_limit: int, **options: Any) -> None:
        self._buffer = b""
        self._at = 0
        self._cap = payload_limit + _LONGEST_HEAD
        self.inbox: list[Message] = []
        self.held = 0
        super().__init__(CallbackAPIVersion.VERSION2, manual_ack=True, reconnect_on_failure=False, **options)

    @property
    def buffered(self) -> bool:
        """Whether bytes wait that select() cannot see: here, or inside the TLS layer."""
        sock: Any = self.socket()
        return self._at < len(self._buffer) or (isinstance(sock, ssl.SSLSocket) and sock.pending() > 0)

    def reconnect(self) -> MQTTErrorCode:
        """Connect again, with nothing left of the old connection's bytes."""
        self._buffer, self._at = b"", 0
        return super().reconnect()

    def _sock_recv(self, bufsize: int) -> bytes:
        if self._at >= len(self._buffer):
            self._buffer, self._at = b"", 0
            self._buffer = super()._sock_recv(RECEIVE)
        piece = self._buffer[self._at : self._at + bufsize]
        self._at += len(piece)
        return piece if self._in_packet["remaining_length"] <= self._cap else self._cut(piece)

    def _cut(self, piece: bytes) -> bytes:
        """Hand on what still fits, but at least the one byte paho needs to go on; count the rest as read."""
        packet = self._in_packet
        if not packet["have_remaining"] or packet["command"] & 0xF0 != _PUBLISH:
            return piece
        del packet["packet"][self._cap :]
        handed = piece[: max(self._cap - len(packet["packet"]), 1)]
        packet["to_process"] -= len(piece) - len(handed)
        return handed

    def _handle_publish(self) -> MQTTErrorCode:
        command, packet = self._in_packet["command"], self._in_packet["packet"]
        message = parse_publish(command, packet, self._protocol == paho.MQTTv5, self._in_packet["remaining_length"])
        if message is None:
            return MQTTErrorCode.MQTT_ERR_PROTOCOL
        self.inbox.append(message)
        self.held += len(message.payload)
        return MQTTErrorCode.MQTT_ERR_SUCCESS

    def take(self) -> list[Message]:
        """The messages that arrived since the last call."""
        messages, self.inbox, self.held = self.inbox, [], 0
        return messages

    def acknowledge(self, packet_ids: Iterable[int]) -> None:
        """Queue the PUBACKs of many messages as one write of paho's own (partial writes, TLS)."""
        packet = b"".join(b"\x40\x02" + packet_id.to_bytes(2, "big") for packet_id in packet_ids)
        if packet:
            self._packet_queue(_PUBACK, packet, 0, 1)


def parse_publish(command: int, packet: bytes | bytearray, version_5: bool, length: int) -> Message | None:
    """A PUBLISH packet after its fixed header, perhaps cut short of its `length`; None where it breaks the protocol."""
    qos = (command >> 1) & 3
    if len(packet) < 2 or qos > 1:
        return None
    at = 2 + int.from_bytes(packet[:2], "big")
    topic = bytes(packet[2:at])
    packet_id = int.from_bytes(packet[at : at + 2], "big") if qos else 0
    at += 2 if qos else 0
    if version_5:
        at = _after_properties(packet, at)
    if at > length or (qos and not packet_id):
        return None
    whole = length - at if length > len(packet) else 0
    return Message(topic.decode(errors="replace"), bytes(packet[at:]), packet_id, qos, whole)


def _after_properties(packet: bytes | bytearray, at: int) -> int:
    """Where the payload begins: after a variable byte integer and as many bytes; past everything if it is malformed."""
    size = 0
    for place in range(4):
        if at + place >= len(packet):
            break
        size |= (packet[at + place] & 127) << (7 * place)
        if packet[at + place] < 128:
            return at + place + 1 + size
    return 1 << 62
