"""The compiled reading of a payload promises what its definition says: the same bits, and the same refusals."""

from __future__ import annotations

import random
from typing import Any

import pytest
import unpacking_twin

from sluicegate.format import payload, unpacking
from sluicegate.format.bucket import UNKNOWN, Bucket, Builder, merge
from sluicegate.format.unpacking import PackingError


def random_buckets(rng: random.Random) -> list[Bucket]:
    """Of every kind: constants, unordered and negative ones, some that do not say what codec 2 adds."""
    level, digits = rng.choice([(20.0, 2), (-3.0, 1), (0.0, 15), (1e9, 0)])
    builder, now, out = Builder(level), rng.randrange(10**15), []
    for _ in range(rng.randrange(1, 40)):
        constant = rng.random() < 0.2
        for _ in range(rng.randrange(2, 12)):
            now += rng.choice([0, 1_000_000, 10**7]) + rng.randrange(-500, 500) * (rng.random() < 0.3)
            builder.add(level if constant else round(level + rng.gauss(0, 3), digits), now, rng.choice([0, 0, 3]))
        out.append(builder.close())
    if len(out) > 3 and rng.random() < 0.5:
        out[1:3] = [merge(out[1], out[2])]
    if rng.random() < 0.4:
        out = [one._replace(**UNKNOWN) if rng.random() < 0.3 else one for one in out]
    if rng.random() < 0.3:
        out = [one._replace(doubt=rng.randrange(one.n)) for one in out]
    return out


def packed(rng: random.Random) -> tuple[bytes, int, int, int]:
    """(payload, buckets, first ordinal, codec) of random buckets."""
    buckets = random_buckets(rng)
    none: list[Any] = [None] * len(buckets)
    codec = payload.codec_of(buckets, none)
    return b"".join(payload.pack_body(buckets, none)), len(buckets), buckets[0].first, codec


def read(monkeypatch: pytest.MonkeyPatch, by: Any, data: bytes, *head: int) -> Any:
    """The columns as bytes; None where they are refused."""
    for name in ("Reader", "unpack_ints", "unpack_floats", "unpack_whole"):
        monkeypatch.setattr(payload, name, getattr(by, name))
    try:
        body = payload.unpack_body(data, *head)
    except PackingError:
        return None
    told = {name: column.tobytes() for name, column in sorted(body.whole.items())}
    return told, body.n.tobytes(), body.gap.tobytes(), body.doubt.tobytes(), body.kinds.tobytes()


@pytest.mark.parametrize("seed", range(60))
def test_columns_are_those_of_the_definition(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bit for bit, whatever the buckets are."""
    data, *head = packed(random.Random(seed))
    found = read(monkeypatch, unpacking, data, *head)
    assert found is not None
    assert found == read(monkeypatch, unpacking_twin, data, *head)


@pytest.mark.parametrize("seed", range(40))
def test_damaged_columns_are_refused_as_by_definition(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever bytes are changed, cut off or added: the same numbers, or refused by both."""
    rng = random.Random(seed)
    data, *head = packed(rng)
    refused = 0
    for _ in range(60):
        wrong = bytearray(data)
        for _ in range(rng.choice([1, 1, 3])):
            wrong[rng.randrange(len(wrong))] = rng.choice([0, 1, 5, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        wrong = wrong[: rng.randrange(1, len(wrong))] if rng.random() < 0.1 else wrong
        wrong += b"\x00" * (rng.random() < 0.05)
        found = read(monkeypatch, unpacking, bytes(wrong), *head)
        assert found == read(monkeypatch, unpacking_twin, bytes(wrong), *head)
        refused += found is None
    assert refused > 10
