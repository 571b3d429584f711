"""Hostile payloads for any format: good ones with bytes flipped, cut, doubled and put together."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

#: Bytes that begin something long in one format or another.
_HEADS = (
    *(b"\xdd\xff\xff\xff\xff", b"\xdf\x7f\xff\xff\xff", b"\xc6\xff\xff\xff\xff", b"\xff" * 9, b"[" * 40, b'="', b"\\"),
    *(b"\x9b\x7f" + b"\xff" * 7, b"\x5b\x00\x00\x00\x01\x00\x00\x00\x00", b"\x80" * 11, b"\x12\xff\xff\xff\xff\x0f"),
)


def hostile(good: Sequence[bytes], count: int, seed: int) -> Iterator[bytes]:
    """`count` payloads, each a few changes away from a good one."""
    chance = random.Random(seed)
    for _ in range(count):
        payload = bytearray(chance.choice(good))
        for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
            _change(payload, chance, good)
        yield bytes(payload[:4096])


def _change(payload: bytearray, chance: random.Random, good: Sequence[bytes]) -> None:
    at = chance.randrange(len(payload) + 1)
    kind = chance.randrange(6)
    if kind == 0 and payload:
        payload[at % len(payload)] ^= 1 << chance.randrange(8)
    elif kind == 1:
        del payload[at : at + chance.randrange(1, 9)]
    elif kind == 2:
        payload[at:at] = chance.randbytes(chance.randrange(1, 5))
    elif kind == 3:
        payload[at:at] = chance.choice(_HEADS)
    elif kind == 4:
        other = chance.choice(good)
        payload[at:] = other[chance.randrange(len(other) + 1) :]
    else:
        del payload[at:]
