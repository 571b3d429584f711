"""One client's connection: packets in, packets out, flow control both ways. Garbage ends it, and only it."""

from __future__ import annotations

import asyncio
import struct
from typing import TYPE_CHECKING, cast

from sluicegate_demo.broker import packets
from sluicegate_demo.broker.faults import Fault, Step
from sluicegate_demo.broker.packets import Connect, Kind, Message, Reason, RefusedError
from sluicegate_demo.broker.session import FILTERS, Session, well_formed

if TYPE_CHECKING:
    from sluicegate_demo.broker.server import Broker

PATIENCE = 10.0  # seconds a client has to send its CONNECT


class LinkCutError(Exception):
    """A planned fault took the connection away in the middle of a step."""


class Connection(asyncio.Protocol):
    """Reads while it may: a full subscriber or a stall stops reading, so the sender's TCP window fills and it waits."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.session: Session | None = None
        self._hello: Connect | None = None
        self._buffer = bytearray()
        self._pending: tuple[int, bytes] | None = None
        self._held: set[str] = set()
        self._choked = self._closed = False
        self._will: Message | None = None

    @property
    def client(self) -> str:
        """The client id, empty before CONNECT."""
        return self._hello.client if self._hello else ""

    # what the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Give the client a while to say who it is."""
        self._transport = cast(asyncio.Transport, transport)
        self._loop = asyncio.get_running_loop()
        self._seen = self._loop.time()
        if not self.broker.admit(self):
            self.close()
        self._watch(PATIENCE)

    def data_received(self, data: bytes) -> None:
        """Work off whole packets."""
        self._seen = self._loop.time()
        self._buffer += data
        self._work()

    def pause_writing(self) -> None:
        """The client reads slowly: send it no more for now."""
        self._choked = True

    def resume_writing(self) -> None:
        """The client caught up."""
        self._choked = False
        self.pump()

    def connection_lost(self, error: Exception | None) -> None:
        """Keep the session as long as it asked to be kept, and publish the will if the client did not say goodbye."""
        self._closed = True
        self.broker.left(self, self._will)

    def close(self, reason: Reason | None = None) -> None:
        """Hang up, saying why where MQTT 5 lets us."""
        if reason is not None and self._hello and self._hello.version == 5 and not self._closed:
            self._transport.write(packets.disconnect(reason))
        self._closed = True
        self._transport.close()

    # reading

    def _work(self) -> None:
        try:
            while not self._held and not self._gone and (frame := self._pending or packets.split(self._buffer)):
                self._pending = None
                self._handle(*frame)
            self.pump()
        except RefusedError as error:
            self.broker.counts["refused"] += 1
            self._refuse(error)
        except LinkCutError:
            self._closed = True
            self._transport.abort()

    def _refuse(self, error: RefusedError) -> None:
        if self._hello is None:
            self._transport.write(packets.connack(5, error.reason))
        self.close(error.reason)

    def _handle(self, first: int, data: bytes) -> None:
        kind = first >> 4
        if (kind == Kind.CONNECT) == (self._hello is not None):
            raise RefusedError(Reason.PROTOCOL_ERROR, "the first packet, and only it, must be CONNECT")
        match kind:
            case Kind.CONNECT:
                self._connect(packets.read_connect(data))
            case Kind.PUBLISH:
                self._publish(first, data)
            case Kind.PUBACK:
                self._puback(data)
            case Kind.SUBSCRIBE:
                self._subscribe(data)
            case Kind.UNSUBSCRIBE:
                self._unsubscribe(data)
            case Kind.PINGREQ:
                self._transport.write(packets.packet(Kind.PINGRESP, b""))
            case Kind.DISCONNECT:
                self._goodbye(data)
            case _:
                raise RefusedError(Reason.PROTOCOL_ERROR, f"packet type {kind} has no place here")

    def _connect(self, hello: Connect) -> None:
        assigned = ""
        if not hello.client:
            if hello.version < 5 and not hello.clean:
                self._transport.write(packets.connack(hello.version, Reason.BAD_CLIENT_ID))
                return self.close()
            assigned = hello.client = self.broker.new_client_id()
        self._hello, self._will = hello, hello.will
        self._fault("connect")
        self.session, present = self.broker.open_session(self, hello)
        self._transport.write(packets.connack(hello.version, present=present, assigned=assigned))
        if hello.keep_alive:
            self._watch(hello.keep_alive * 1.5)
        return None

    def _publish(self, first: int, data: bytes) -> None:
        message, packet = packets.read_publish(first, data, self._version)
        if full := self.broker.first_full(message.topic, self.session):
            self._pending = first, data
            self._hold("full")
            return full.when_room(lambda: self._release("full"))
        self._fault("receive")
        taken = self.broker.route(message)
        if packet:
            self._fault("keep")
            reason = Reason.OK if taken else Reason.NO_SUBSCRIBERS
            self._transport.write(packets.puback(packet, self._version, reason))
        return None

    def _puback(self, data: bytes) -> None:
        session = self._open
        self._fault("acknowledge")
        if len(data) < 2:
            raise RefusedError(Reason.MALFORMED, "PUBACK without a packet id")
        key = "acknowledged" if session.acknowledged(struct.unpack_from(">H", data)[0]) else "acknowledged_again"
        self.broker.counts[key] += 1

    def _subscribe(self, data: bytes) -> None:
        self._fault("subscribe")
        packet, filters = packets.read_filters(data, self._version, options=True)
        reasons = [self._take_filter(name, min(qos, 1)) for name, qos in filters]
        self._transport.write(packets.acknowledge(Kind.SUBACK, packet, self._version, reasons))
        self.broker.subscribed(self._open, [name for name, _ in filters])

    def _take_filter(self, name: str, qos: int) -> int:
        held = self._open.filters
        if not well_formed(name):
            return Reason.BAD_FILTER if self._version == 5 else 0x80
        if len(held) >= FILTERS and name not in held:
            return Reason.QUOTA if self._version == 5 else 0x80
        held[name] = qos
        return qos

    def _unsubscribe(self, data: bytes) -> None:
        packet, filters = packets.read_filters(data, self._version, options=False)
        gone = [self._open.filters.pop(name, None) for name, _ in filters]
        reasons: list[int] = [Reason.NO_SUBSCRIPTION if qos is None else Reason.OK for qos in gone]
        self._transport.write(packets.acknowledge(Kind.UNSUBACK, packet, self._version, reasons))
        self.broker.subscribed(self._open, [])

    def _goodbye(self, data: bytes) -> None:
        body = packets.Body(data, version=self._version)
        reason = body.number(1) if data and self._version == 5 else 0
        body.read_properties()
        if self._open.expiry != 0:
            expiry = body.value(packets.SESSION_EXPIRY, -1)
            self._open.expiry = {-1: self._open.expiry, 0xFFFFFFFF: None}.get(expiry, expiry)
        if reason != Reason.WITH_WILL:
            self._will = None
        self.close()

    # writing

    def pump(self) -> None:
        """Send what the session holds, as far as Receive Maximum and the client's reading allow."""
        session, hello = self.session, self._hello
        if session is None or hello is None:
            return
        try:
            while not (self._choked or self._gone or "stall" in self._held):
                if (entry := session.take(hello.receive_maximum)) is None:
                    break
                self._deliver(hello, *entry)
        except LinkCutError:
            self._closed = True
            self._transport.abort()
        session.wake()

    def _deliver(self, hello: Connect, message: Message, packet: int, again: bool) -> None:
        due = self._fault("deliver")
        data = packets.publish(message, packet, hello.version, dup=again)
        if len(data) > hello.largest:
            self._open.acknowledged(packet)
            self.broker.counts["too_large_for_subscriber"] += 1
            return
        self._transport.write(data)
        self.broker.counts["redelivered" if again else "delivered"] += 1
        if due is not None and due.action == "duplicate" and packet:
            self._transport.write(packets.publish(message, packet, hello.version, dup=True))

    # holding, watching, failing

    @property
    def _gone(self) -> bool:
        return self._closed or self._transport.is_closing()

    @property
    def _version(self) -> int:
        return self._hello.version if self._hello else 5

    @property
    def _open(self) -> Session:
        if self.session is None:
            raise RefusedError(Reason.PROTOCOL_ERROR, "no session yet")
        return self.session

    def _hold(self, why: str) -> None:
        self._held.add(why)
        self._transport.pause_reading()

    def _release(self, why: str) -> None:
        self._held.discard(why)
        if not self._held and not self._closed:
            self._seen = self._loop.time()
            self._transport.resume_reading()
            self._work()

    def _watch(self, seconds: float) -> None:
        self._loop.call_later(seconds, self._check, seconds)

    def _check(self, seconds: float) -> None:
        """Hang up on a client that went silent; one that this broker holds back is not silent."""
        patience = self._hello.keep_alive * 1.5 if self._hello else PATIENCE
        if self._closed or patience != seconds:
            return
        silent = self._loop.time() - self._seen
        if silent >= seconds and not self._held:
            self._closed = True
            self._transport.abort()
        else:
            self._watch(seconds)

    def _fault(self, step: Step) -> Fault | None:
        fault = self.broker.faults.at(step, self.client)
        if fault is None or fault.action == "duplicate":
            return fault
        if fault.action == "stall":
            self._hold("stall")
            self._loop.call_later(fault.seconds, self._release, "stall")
            return fault
        if fault.action == "forget":
            self.broker.forget(self.client)
        raise LinkCutError
