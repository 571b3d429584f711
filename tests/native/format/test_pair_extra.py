"""Readings of two values: moments by their definition, however handed over; a document brings every slot back."""

from __future__ import annotations

import json
import random
import zlib
from array import array
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.format.bucket import LARGEST, Bucket, Builder
from sluicegate.format.chunk import Chunk, ChunkError, columns, decode, encode
from sluicegate.format.extras import ExtraError, extra
from sluicegate.format.pairs import PAIR, Moments, Pair, PairColumn, combine, unpack

ROOT = Path(__file__).parents[3]
CASES = ROOT / "tests/cases/chunks/format-5"
SCHEMA = json.loads((ROOT / "docs/schema/chunk-5.schema.json").read_text())
PLACE = "edge/1", "weather.temp", "0006282d3d4b8c00"


def column(seed: int, count: int) -> PairColumn:
    """Readings whose second value follows the first one, more or less."""
    rng, found = random.Random(seed), PairColumn()
    for _ in range(count):
        x = round(rng.gauss(20, 3), 1)
        found.append(Pair(x, round(80 - 2 * x + rng.gauss(0, 4), 1)))
    return found


def folded(values: PairColumn, *cuts: int) -> bytes:
    """The moments of a column that is handed over in pieces."""
    moments, begin = Moments(), 0
    for end in (*sorted(cuts), len(values)):
        moments.add(values, begin, end)
        begin = end
    return moments.pack()


def exact(values: PairColumn) -> tuple[Fraction, Fraction, Fraction]:
    """Σ of squared deviations of each, and of their products, as the definition has them."""
    xs, ys, n = [Fraction(x) for x in array("d", values)], [Fraction(y) for y in values.seconds], len(values)
    mean_x, mean_y = sum(xs) / n, sum(ys) / n
    xy = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
    return sum((x - mean_x) ** 2 for x in xs), sum((y - mean_y) ** 2 for y in ys), xy


@given(st.integers(0, 10**6), st.integers(1, 60), st.data())
@settings(max_examples=50)
def test_moments_are_those_of_the_readings(seed: int, count: int, data: st.DataObject) -> None:
    """In pieces, continued from bytes, or merged from two: the definition; in pieces even the same bytes."""
    values, cut = column(seed, count), data.draw(st.integers(0, count))
    whole = folded(values)
    assert folded(values, cut) == whole
    parts = [whole]
    if 0 < cut < count:
        again = Moments(folded(values[:cut]))
        again.add(values, cut, count)
        assert again.pack() == whole
        parts.append(combine(folded(values[:cut]), folded(values[cut:])))
    for part in parts:
        n, x, y, low, high, *_, xx, yy, xy = unpack(part)
        assert (n, x, y) == (count, values[0], values[0].second)
        assert (low, high) == (min(values.seconds), max(values.seconds))
        assert [xx, yy, xy] == pytest.approx([float(each) for each in exact(values)], rel=1e-9, abs=1e-9)
        kind = extra(PAIR)
        assert kind is not None
        kind.check(part, count, 0, 1)


def test_a_column_is_cut_and_joined_with_its_second_values() -> None:
    """As an array is; a window takes it as rows of two."""
    values = column(1, 9)
    assert [(x, x.second) for x in values[::4]] == [(values[at], values.seconds[at]) for at in (0, 4, 8)]
    assert (values[-1], values[-1].second) == (values[8], values.seconds[8])
    joined = values[:4]
    joined += values[4:]
    assert (joined, joined.seconds) == (values, values.seconds)
    assert values.rows().tolist() == [list(each) for each in zip(values, values.seconds, strict=True)]
    assert PairColumn().rows().nbytes == 0


def test_beyond_float64_nothing_is_known_and_nothing_breaks() -> None:
    """Squares that overflow: infinite moments, a product that is not known, in the same bits, and no refusal."""
    values = PairColumn([LARGEST, -LARGEST, LARGEST, 0.0], [LARGEST, -LARGEST, -LARGEST, 1.0])
    kind = extra(PAIR)
    assert kind is not None
    kind.check(folded(values), 4, 0, 1)
    assert kind.slots(folded(values))[7:9] == (float("inf"),) * 2


@pytest.mark.parametrize("at", range(10))
def test_a_part_that_contradicts_its_bucket_is_refused(at: int) -> None:
    """Another count, an extreme that its first value exceeds, no number: an ExtraError."""
    kind, slots = extra(PAIR), unpack(folded(column(2, 12)))
    assert kind is not None
    slots[at] = float("nan")
    with pytest.raises(ExtraError):
        kind.check(array("d", slots).tobytes(), 12, 0, 1)
    with pytest.raises(ExtraError):
        kind.check(folded(column(2, 12)), 11, 0, 1)


def carried(seed: int, sizes: tuple[int, ...]) -> Chunk:
    """Buckets of so many readings, each with the moments of its two values; the last but one has none."""
    builder, buckets, parts = Builder(20.0), list[Bucket](), list[bytes | None]()
    for place, size in enumerate(sizes):
        values = column(seed + place, size)
        for i, value in enumerate(array("d", values)):
            builder.add(value, 1_600_000_000_000_000 + 1_000_000 * (place * 100 + i))
        buckets.append(builder.close())
        parts.append(folded(values))
    parts[-2] = None
    return Chunk(*PLACE, 20.0, buckets, [None] * len(sizes), None, None, {PAIR: parts})


SIZES = {"alone": (1, 1, 1), "whole": (12, 8, 30), "mixed": (1, 16, 1, 5, 1)}


@pytest.mark.parametrize("name", SIZES)
def test_format_5_is_frozen(name: str) -> None:
    """A bucket of one reading is stored as that and has a part all the same; where all are whole, format 4 says it."""
    golden, chunk = (CASES / f"{name}.json").read_bytes(), carried(7, SIZES[name])
    back, parsed = decode(golden), json.loads(golden)
    assert (back.extras, back.skipped) == (chunk.extras, ())
    assert parsed["format"] == (4 if name == "whole" else 5)
    told = columns(golden)["extras"][PAIR]
    assert told == {b.first: part for b, part in zip(chunk.buckets, chunk.extras[PAIR], strict=True) if part}
    if parsed["format"] == 5:
        jsonschema.Draft202012Validator(SCHEMA).validate(parsed)
    if "ng" not in zlib.ZLIB_RUNTIME_VERSION:
        assert encode(back) == encode(chunk) == golden


def test_single_readings_at_hand_do_not_say_it() -> None:
    """A bucket of several with its readings and a pair is stored whole; what readings say is left out as ever."""
    chunk, line = carried(3, (6, 1, 4, 1)), extra("line")
    assert line is not None
    readings = []
    for b in chunk.buckets:
        values = array("d", [b.x_first] * b.n) if b.n == 1 else None
        readings.append((array("q", [b.t_first]), values) if values else None)
    extras = chunk.extras | {"line": [line.fold(r[1], r[0]) if r else None for r in readings]}
    back = decode(encode(replace(chunk, readings=readings, extras=extras)))
    assert back.extras == {PAIR: chunk.extras[PAIR]}
    short = replace(chunk, extras={PAIR: [chunk.extras[PAIR][3], *chunk.extras[PAIR][1:]]})
    with pytest.raises(ChunkError, match="contradicts"):
        encode(short)
