"""Messages out of a buffer are the same compiled and pure, and nothing is read beyond the bytes that are there."""

from __future__ import annotations

from typing import Any, NamedTuple

import packets_twin as pure
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.format import packets as compiled

BOTH = pytest.mark.parametrize("implementation", [compiled, pure], ids=["compiled", "pure"])


class Kind(NamedTuple):
    """What a message is made into."""

    topic: str
    payload: bytes
    packet_id: int
    qos: int
    whole: int
    dup: bool
    retain: bool


def packet(
    topic: bytes, payload: bytes, packet_id: int = 1, *, qos: int = 1, flags: int = 0, properties: bytes | None = None
) -> bytes:
    """A PUBLISH, of MQTT 5 where it has properties."""
    body = len(topic).to_bytes(2, "big") + topic + (packet_id.to_bytes(2, "big") if qos else b"")
    body += b"" if properties is None else bytes([len(properties)]) + properties
    length, size = len(body + payload), b""
    while length > 127:
        size, length = size + bytes([length & 127 | 128]), length >> 7
    return bytes([0x30 | qos << 1 | flags]) + size + bytes([length]) + body + payload


PACKETS = st.builds(
    packet,
    st.sampled_from([b"a", b"a", b"a/b", b"\xff\x00", b""]),
    st.binary(max_size=9) | st.just(b"x" * 200),
    st.integers(0, 3),
    qos=st.integers(0, 3),
    flags=st.sampled_from([0, 1, 8, 9]),
    properties=st.none() | st.binary(max_size=3),
)


@given(
    data=st.lists(PACKETS, max_size=6).map(b"".join) | st.binary(max_size=40).map(lambda data: b"\x32" + data),
    cut=st.integers(0, 20),
    at=st.integers(0, 3),
    version_5=st.booleans(),
    longest=st.sampled_from([5, 100, 1 << 28]),
    most=st.sampled_from([0, 1, 3, 99]),
    room=st.sampled_from([0, 5, 1 << 20]),
)
def test_both_read_the_same(
    data: bytes, cut: int, at: int, version_5: bool, longest: int, most: int, room: int
) -> None:
    """Whatever comes, cut anywhere; nothing is raised."""
    asked = data[: len(data) - cut], at, version_5, longest, most, room, Kind
    assert compiled.publishes(*asked) == pure.publishes(*asked)


@given(
    body=st.binary(max_size=30) | PACKETS.map(lambda whole: whole[2:]),
    command=st.integers(0x30, 0x3F),
    version_5=st.booleans(),
    more=st.sampled_from([0, 1, 1000]),
)
def test_both_read_the_same_packet(body: bytes, command: int, version_5: bool, more: int) -> None:
    """Also one that is cut short of its length."""
    asked = command, version_5, len(body) + more
    found = compiled.publish_of(command, body, *asked[1:])
    assert (
        found == pure.publish_of(command, body, *asked[1:]) == compiled.publish_of(command, bytearray(body), *asked[1:])
    )


@BOTH
def test_messages_are_as_they_were_sent(implementation: Any) -> None:
    """Topics that follow each other too, alike or the longer of one beginning; up to what is no message."""
    sent = [
        packet(b"a", b"1", 7),
        packet(b"a", b"2", 8, flags=9),
        packet(b"ab", b"", 9),
        packet(b"a", b"z" * 300, qos=0),
    ]
    found, at, is_broken = implementation.publishes(b"".join(sent) + b"\xd0\x00", 0, False, 1 << 20, 99, 1 << 20, Kind)
    assert found == [
        Kind("a", b"1", 7, 1, 0, False, False),
        Kind("a", b"2", 8, 1, 0, True, True),
        Kind("ab", b"", 9, 1, 0, False, False),
        Kind("a", b"z" * 300, 0, 0, 0, False, False),
    ]
    assert (at, is_broken, type(found[0])) == (len(b"".join(sent)), False, Kind)


@BOTH
def test_it_ends_at_a_message_that_is_none(implementation: Any) -> None:
    """QoS 3, or packet id 0 in a message that is acknowledged."""
    for broken in (packet(b"a", b"1", qos=3), packet(b"a", b"1", 0)):
        found, at, is_broken = implementation.publishes(packet(b"a", b"1") + broken, 0, False, 99, 99, 99, Kind)
        assert (len(found), at, is_broken) == (1, len(packet(b"a", b"1") + broken), True)
