"""What is known of a message, and the digests it is known by."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from hashlib import blake2b
from itertools import chain
from typing import NamedTuple

from sluicegate_agent.identity.epoch import TIMELESS
from sluicegate_agent.messages import Decoded, Message

DIGEST = 16


class Verdict(Enum):
    """What is known of a message.

    NEW and UNDECIDABLE count, WAITS is decided by a later one, the others are refused, each with its own counter.
    """

    NEW = "new"
    UNDECIDABLE = "undecidable"
    WAITS = "waits"
    DUPLICATE = "duplicate"
    BEYOND_HORIZON = "beyond_horizon"
    SEQUENCE_CONFLICT = "sequence_conflict"
    SEQUENCE_JUMP = "sequence_jump"


class Released(NamedTuple):
    """A message that waited under `number` in the table `held`, and what it turned out to be."""

    number: int
    verdict: Verdict
    doubt: int = 0


class Found(NamedTuple):
    """The verdict on a message, 1 where it cannot be told from a repeat, and what waited and is decided by it."""

    verdict: Verdict
    doubt: int = 0
    released: tuple[Released, ...] = ()


def digest_of(message: Message) -> bytes:
    """128 bits over topic and payload; the lengths are unambiguous because no topic contains a zero byte."""
    return blake2b(message.topic.encode() + b"\0" + message.payload, digest_size=DIGEST).digest()


def content_of(message: Message, decoded: Decoded, *, timed: bool) -> int:
    """Four bytes of what a numbered message says, at least 2 and no TIMELESS: these say what is not known of it.

    Its time and readings where it has a time of its own: what a gateway adds to the same reading is no other reading.
    Else its payload.
    """
    said = repr((decoded.time_us, decoded.readings)).encode() if timed and decoded.readings else message.payload
    return _four_bytes(said)


def contents_of(streams: Iterable[tuple[str, str]], times: array[int], values: Sequence[array[float]]) -> array[int]:
    """The same of messages with a time and one value a stream (stream, path) each, given as columns."""
    form = form_of(streams)
    return array("I", [_four_bytes((form % said).encode()) for said in said_of(times, values)])


def said_of(times: array[int], values: Sequence[array[float]]) -> Iterator[tuple[float, ...]]:
    """What goes into the places of a form, message by message."""
    return zip(times, *chain.from_iterable((times, column) for column in values), strict=True)


def form_of(streams: Iterable[tuple[str, str]]) -> str:
    """What such a message says, with places for its time, and for the time and the value of each stream."""
    told = ", ".join(f"({stream!r}".replace("%", "%%") + ", %d, %r)" for stream, _ in streams)
    return f"(%d, [{told}])"


def content_in(form: str, said: tuple[float, ...]) -> int:
    """The same of one message."""
    return _four_bytes((form % said).encode())


def _four_bytes(said: bytes) -> int:
    return max(2, int.from_bytes(blake2b(said, digest_size=4).digest(), "little") % TIMELESS)
