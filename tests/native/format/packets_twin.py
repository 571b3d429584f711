"""Messages of MQTT out of a buffer: the readable twin of `sluicegate.format.packets`."""

from __future__ import annotations

from typing import Any

Parts = tuple[str, bytes, int, int, int, bool, bool]
_BEYOND = 1 << 62


def publish_of(command: int, packet: bytes | bytearray, version_5: bool, length: int) -> Parts | None:
    """Topic, payload, packet id, QoS, whole size where it was cut, DUP and RETAIN of a PUBLISH after its fixed header.

    It may be cut short of its `length`. None where it breaks the protocol, or its head is not whole.
    """
    qos, end = (command >> 1) & 3, min(len(packet), length)
    if len(packet) < 2 or qos > 2:
        return None
    at = 2 + int.from_bytes(packet[:2], "big")
    topic, packet_id = bytes(packet[2:at]), int.from_bytes(packet[at : at + 2], "big") if qos else 0
    at += 2 if qos else 0
    if version_5:
        properties, at = _number(packet[:end], at)
        at += properties
    if at > end or (qos and not packet_id):
        return None
    whole = length - at if length > len(packet) else 0
    flags = bool(command & 8), bool(command & 1)
    return topic.decode(errors="replace"), bytes(packet[at:]), packet_id, qos, whole, *flags


def publishes(
    data: bytes,
    at: int,
    version_5: bool,
    longest: int,
    most: int,
    room: int,
    kind: Any,
) -> tuple[list[Any], int, bool]:
    """The messages that lie whole in `data` from a place on, where they end, and whether the last packet was none.

    Each is a `kind` of `publish_of`'s parts. They end at the first packet that is no PUBLISH, not whole or longer than
    `longest`; after `most` messages, or as their payloads are at least `room` bytes.
    """
    found: list[Any] = []
    while at + 2 <= len(data) and data[at] & 0xF0 == 0x30 and len(found) < most and room > 0:
        length, begin = _number(data, at + 1)
        if length > longest or begin + length > len(data):
            break
        parts = publish_of(data[at], data[begin : begin + length], version_5, length)
        at = begin + length
        if parts is None:
            return found, at, True
        room -= len(parts[1])
        found.append(tuple.__new__(kind, parts))
    return found, at, False


def _number(data: bytes | bytearray, at: int) -> tuple[int, int]:
    """A variable byte integer and where it ends; beyond all bounds where these bytes have none."""
    value = 0
    for place, byte in enumerate(data[at : at + 4]):
        value |= (byte & 127) << (7 * place)
        if byte < 128:
            return value, at + place + 1
    return 0, _BEYOND
