"""MQTT 3.1.1 and 5 packets to and from bytes: every length is checked before it is believed.

Source: OASIS MQTT 3.1.1 and MQTT 5.0, sections 2 and 3. Only what a QoS-1 broker on loopback needs is here; anything
else in a packet is read past, never guessed at.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from enum import IntEnum

LARGEST_PACKET = 1 << 20  # bytes; announced to MQTT 5 clients, and the most that is ever buffered for one packet


class Kind(IntEnum):
    """The packet types a client and this broker exchange."""

    CONNECT, CONNACK, PUBLISH, PUBACK = 1, 2, 3, 4
    SUBSCRIBE, SUBACK, UNSUBSCRIBE, UNSUBACK = 8, 9, 10, 11
    PINGREQ, PINGRESP, DISCONNECT = 12, 13, 14


class Reason(IntEnum):
    """MQTT 5 reason codes in use."""

    OK = 0x00
    WITH_WILL = 0x04
    NO_SUBSCRIBERS = 0x10
    NO_SUBSCRIPTION = 0x11
    MALFORMED = 0x81
    PROTOCOL_ERROR = 0x82
    UNSUPPORTED_VERSION = 0x84
    BAD_CLIENT_ID = 0x85
    BAD_AUTH_METHOD = 0x8C
    TAKEN_OVER = 0x8E
    BAD_FILTER = 0x8F
    BAD_TOPIC = 0x90
    TOO_LARGE = 0x95
    QUOTA = 0x97
    QOS = 0x9B


class RefusedError(Exception):
    """The peer sent what MQTT forbids or this broker does not do: answer with the reason and hang up."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


# Property identifier → how its value is laid out (MQTT 5, section 2.2.2.2).
_LAYOUT = {
    **dict.fromkeys((0x01, 0x17, 0x19, 0x24, 0x25, 0x28, 0x29, 0x2A), "byte"),
    **dict.fromkeys((0x13, 0x21, 0x22, 0x23), "short"),
    **dict.fromkeys((0x02, 0x11, 0x18, 0x27), "long"),
    0x0B: "varint",
    **dict.fromkeys((0x03, 0x08, 0x09, 0x12, 0x15, 0x16, 0x1A, 0x1C, 0x1F), "blob"),
    0x26: "pair",
}
SESSION_EXPIRY, AUTH_METHOD, RECEIVE_MAXIMUM, MAXIMUM_QOS, RETAIN_AVAILABLE = 0x11, 0x15, 0x21, 0x24, 0x25
ASSIGNED_ID, SERVER_KEEP_ALIVE, LARGEST, SHARED_AVAILABLE, IDENTIFIERS_AVAILABLE = 0x12, 0x13, 0x27, 0x2A, 0x29


@dataclass(slots=True)
class Message:
    """What is published: its topic as UTF-8 bytes, and the properties an MQTT 5 subscriber gets back unchanged."""

    topic: bytes
    payload: bytes
    qos: int
    properties: bytes = b""
    retain: bool = False


@dataclass(slots=True)
class Connect:
    """A CONNECT, read: `version` is 4 (3.1.1) or 5, `expiry` in seconds (None: never)."""

    client: str
    version: int
    clean: bool
    keep_alive: int
    expiry: int | None
    receive_maximum: int
    largest: int
    will: Message | None


@dataclass(slots=True)
class Body:
    """A cursor over one packet's body that refuses to read past its end."""

    data: bytes
    at: int = 0
    version: int = 5
    properties: dict[int, int | bytes] = field(default_factory=dict)

    def take(self, count: int) -> bytes:
        """The next `count` bytes."""
        end = self.at + count
        if end > len(self.data):
            raise RefusedError(Reason.MALFORMED, f"packet ends {end - len(self.data)} bytes early")
        piece, self.at = self.data[self.at : end], end
        return piece

    def number(self, size: int) -> int:
        """A big-endian unsigned number of `size` bytes."""
        return int.from_bytes(self.take(size), "big")

    def varint(self) -> int:
        """A variable byte integer: seven bits a byte, at most four bytes."""
        value = 0
        for shift in (0, 7, 14, 21):
            byte = self.number(1)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise RefusedError(Reason.MALFORMED, "variable byte integer longer than four bytes")

    def blob(self) -> bytes:
        """Bytes behind a two-byte length."""
        return self.take(self.number(2))

    def text(self) -> str:
        """A UTF-8 string behind a two-byte length."""
        try:
            return self.blob().decode()
        except UnicodeDecodeError as error:
            raise RefusedError(Reason.MALFORMED, f"string is not UTF-8: {error}") from None

    def read_properties(self) -> bytes:
        """Read an MQTT 5 property list into `properties`; returns its bytes as they came (3.1.1: none)."""
        self.properties = {}
        if self.version < 5 or self.at == len(self.data):
            return b""
        length = self.varint()
        start, end = self.at, self.at + length
        if end > len(self.data):
            raise RefusedError(Reason.MALFORMED, "property list is longer than its packet")
        while self.at < end:
            self._property()
        if self.at != end:
            raise RefusedError(Reason.MALFORMED, "a property crosses the end of its list")
        return self.data[start:end]

    def _property(self) -> None:
        key = self.varint()
        match _LAYOUT.get(key):
            case "byte":
                self.properties[key] = self.number(1)
            case "short":
                self.properties[key] = self.number(2)
            case "long":
                self.properties[key] = self.number(4)
            case "varint":
                self.properties[key] = self.varint()
            case "blob":
                self.properties[key] = self.blob()
            case "pair":
                self.blob(), self.blob()
            case _:
                raise RefusedError(Reason.MALFORMED, f"unknown property 0x{key:02x}")

    def value(self, key: int, default: int) -> int:
        """A numeric property, or `default` where the packet has none."""
        found = self.properties.get(key, default)
        return found if isinstance(found, int) else default


def split(buffer: bytearray) -> tuple[int, bytes] | None:
    """Take one whole packet off the buffer's start: its first byte and body. None: more bytes are needed."""
    length, shift, at = 0, 0, 1
    while True:
        if at >= len(buffer):
            return None
        byte = buffer[at]
        length |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            break
        if shift > 21:
            raise RefusedError(Reason.MALFORMED, "packet length takes more than four bytes")
    if length > LARGEST_PACKET:
        raise RefusedError(Reason.TOO_LARGE, f"packet of {length} bytes is over {LARGEST_PACKET}")
    if len(buffer) < at + length:
        return None
    first, body = buffer[0], bytes(buffer[at : at + length])
    del buffer[: at + length]
    return first, body


def read_connect(data: bytes) -> Connect:
    """A CONNECT's fields (MQTT 5, section 3.1)."""
    body = Body(data)
    if body.blob() != b"MQTT":
        raise RefusedError(Reason.UNSUPPORTED_VERSION, "protocol name is not MQTT")
    body.version = body.number(1)
    if body.version not in (4, 5):
        raise RefusedError(Reason.UNSUPPORTED_VERSION, f"protocol level {body.version} is neither 4 (3.1.1) nor 5")
    flags, keep_alive = body.number(1), body.number(2)
    if flags & 1:
        raise RefusedError(Reason.MALFORMED, "the reserved connect flag is set")
    clean = bool(flags & 2)
    body.read_properties()
    if AUTH_METHOD in body.properties:
        raise RefusedError(Reason.BAD_AUTH_METHOD, "enhanced authentication is not offered")
    receive_maximum = body.value(RECEIVE_MAXIMUM, 65535)
    largest = body.value(LARGEST, 268_435_460)
    if not receive_maximum or not largest:
        raise RefusedError(Reason.PROTOCOL_ERROR, "Receive Maximum and Maximum Packet Size must not be 0")
    expiry: int | None = body.value(SESSION_EXPIRY, 0) if body.version == 5 else (0 if clean else None)
    client = body.text()
    will = _will(body, flags) if flags & 4 else None
    return Connect(client, body.version, clean, keep_alive, None if expiry == 0xFFFFFFFF else expiry,
                   receive_maximum, largest, will)  # fmt: skip


def _will(body: Body, flags: int) -> Message:
    body.read_properties()  # will properties: a delay is not kept, the will goes out at once
    qos = (flags >> 3) & 3
    if qos > 1:
        raise RefusedError(Reason.QOS, "will at QoS 2; this broker speaks 0 and 1")
    return Message(_topic(body), body.blob(), qos, retain=bool(flags & 32))


def _topic(body: Body) -> bytes:
    topic = body.text()
    if not topic or any(mark in topic for mark in "+#\0"):
        raise RefusedError(Reason.BAD_TOPIC, f"topic {topic!r} cannot be published to")
    return topic.encode()


def read_publish(first: int, data: bytes, version: int) -> tuple[Message, int]:
    """A PUBLISH: the message and its packet id (0 at QoS 0)."""
    body, qos = Body(data, version=version), (first >> 1) & 3
    if qos > 1:
        raise RefusedError(Reason.QOS, "PUBLISH at QoS 2; this broker speaks 0 and 1")
    topic = _topic(body)
    packet = body.number(2) if qos else 0
    if qos and not packet:
        raise RefusedError(Reason.PROTOCOL_ERROR, "packet id 0")
    properties = body.read_properties()
    return Message(topic, data[body.at :], qos, properties, bool(first & 1)), packet


def read_filters(data: bytes, version: int, *, options: bool) -> tuple[int, list[tuple[str, int]]]:
    """A SUBSCRIBE's or (`options` false) an UNSUBSCRIBE's packet id and its filters, each with the QoS asked for."""
    body = Body(data, version=version)
    packet = body.number(2)
    body.read_properties()
    filters = []
    while body.at < len(data):
        name = body.text()
        filters.append((name, body.number(1) & 3 if options else 0))
    if not filters or not packet:
        raise RefusedError(Reason.PROTOCOL_ERROR, "no topic filter, or packet id 0")
    return packet, filters


def packet(kind: Kind, body: bytes, flags: int = 0) -> bytes:
    """A packet with its fixed header."""
    return bytes((kind << 4 | flags,)) + varint(len(body)) + body


def varint(value: int) -> bytes:
    """A variable byte integer."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def publish(message: Message, packet_id: int, version: int, *, dup: bool = False) -> bytes:
    """A PUBLISH to a subscriber."""
    head = (
        struct.pack(">H", len(message.topic)) + message.topic + (struct.pack(">H", packet_id) if message.qos else b"")
    )
    middle = varint(len(message.properties)) + message.properties if version == 5 else b""
    flags = dup << 3 | message.qos << 1 | message.retain
    return packet(Kind.PUBLISH, head + middle + message.payload, flags)


def puback(packet_id: int, version: int, reason: Reason = Reason.OK) -> bytes:
    """A PUBACK; its reason exists in MQTT 5 only."""
    return packet(Kind.PUBACK, struct.pack(">H", packet_id) + (bytes((reason,)) if version == 5 and reason else b""))


def connack(version: int, reason: Reason = Reason.OK, *, present: bool = False, assigned: str = "") -> bytes:
    """A CONNACK that says what this broker does not do."""
    if version < 5:
        old = {Reason.OK: 0, Reason.UNSUPPORTED_VERSION: 1, Reason.BAD_CLIENT_ID: 2}.get(reason, 3)
        return packet(Kind.CONNACK, bytes((present, old)))
    limits = bytes((MAXIMUM_QOS, 1, SHARED_AVAILABLE, 0, IDENTIFIERS_AVAILABLE, 0, LARGEST))
    limits += struct.pack(">I", LARGEST_PACKET)
    if assigned:
        limits += bytes((ASSIGNED_ID,)) + struct.pack(">H", len(assigned)) + assigned.encode()
    return packet(Kind.CONNACK, bytes((present, reason)) + varint(len(limits)) + limits)


def acknowledge(kind: Kind, packet_id: int, version: int, reasons: list[int]) -> bytes:
    """A SUBACK or UNSUBACK: one reason a filter (a 3.1.1 UNSUBACK carries none)."""
    middle = b"\0" if version == 5 else b""
    codes = b"" if kind is Kind.UNSUBACK and version < 5 else bytes(reasons)
    return packet(kind, struct.pack(">H", packet_id) + middle + codes)


def disconnect(reason: Reason) -> bytes:
    """An MQTT 5 DISCONNECT from the broker."""
    return packet(Kind.DISCONNECT, bytes((reason, 0)))
