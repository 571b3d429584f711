"""MQTT 3.1.1 and 5 on the wire, as far as a sensor and a proxy need it: packets split, a few made, a few read."""

from __future__ import annotations

from typing import NamedTuple

CONNECT, CONNACK, PUBLISH, PUBACK, SUBACK, PINGREQ, DISCONNECT = 1, 2, 3, 4, 9, 12, 14


def _length(size: int) -> bytes:
    """A variable byte integer."""
    out = bytearray()
    while True:
        size, digit = divmod(size, 128)
        out.append(digit | (128 if size else 0))
        if not size:
            return bytes(out)


def _text(text: str | bytes) -> bytes:
    data = text.encode() if isinstance(text, str) else text
    return len(data).to_bytes(2, "big") + data


def connect(client: str) -> bytes:
    """A clean 3.1.1 session with a keepalive of an hour: rumqttd takes none without."""
    body = _text("MQTT") + b"\x04\x02\x0e\x10" + _text(client)
    return bytes([CONNECT << 4]) + _length(len(body)) + body


def publish(topic: bytes, payload: bytes, packet: int, *, retain: bool = False, again: bool = False) -> bytes:
    """A message of QoS 1 as 3.1.1 has it."""
    body = _text(topic) + packet.to_bytes(2, "big") + payload
    return bytes([PUBLISH << 4 | 2 | retain | again << 3]) + _length(len(body)) + body


class Packets:
    """Bytes in, whole packets out as they came, however the network cuts them."""

    def __init__(self) -> None:
        self._kept = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The packets that are whole now."""
        self._kept += data
        found, at, kept = [], 0, self._kept
        while len(kept) - at >= 2:
            size, shift, head = 0, 0, at + 1
            while head < len(kept):
                digit = kept[head]
                size |= (digit & 127) << shift
                head, shift = head + 1, shift + 7
                if digit < 128:
                    break
            else:
                break
            if len(kept) < head + size:
                break
            found.append(bytes(kept[at : head + size]))
            at = head + size
        del kept[:at]
        return found


class Published(NamedTuple):
    """What a PUBLISH says."""

    topic: bytes
    payload: bytes
    packet: int
    qos: int


def body_of(packet: bytes) -> int:
    """Where a packet's body begins."""
    at = 1
    while packet[at] >= 128:
        at += 1
    return at + 1


def published(packet: bytes, version: int) -> Published:
    """Topic, payload, packet id (0 at QoS 0) and QoS of a PUBLISH."""
    at, qos = body_of(packet), packet[0] >> 1 & 3
    end = at + 2 + int.from_bytes(packet[at : at + 2], "big")
    topic, number = packet[at + 2 : end], 0
    if qos:
        number, end = int.from_bytes(packet[end : end + 2], "big"), end + 2
    if version == 5:
        size, shift = 0, 0
        while True:
            digit = packet[end]
            size, shift, end = size | (digit & 127) << shift, shift + 7, end + 1
            if digit < 128:
                break
        end += size
    return Published(topic, packet[end:], number, qos)


def packet_id(packet: bytes) -> int:
    """The id of a PUBACK or SUBACK."""
    at = body_of(packet)
    return int.from_bytes(packet[at : at + 2], "big")
