"""Chunks promise exact buckets in few bytes, the same bytes each time, and one error for whatever is not a chunk."""

from __future__ import annotations

import json
import math
import random
import zlib
from array import array
from dataclasses import replace
from pathlib import Path
from typing import Any

import error_algebra as bounds
import jsonschema
import pytest
from cut_buckets import cut_by_time

from sluicegate.format import chunk as chunks
from sluicegate.format.bucket import FIELDS, LATE, ORDERED, UNKNOWN, Bucket, Builder, merge
from sluicegate.format.chunk import Chunk, Readings, columns, decode, encode

ROOT = Path(__file__).parents[3]
CASES = ROOT / "tests/cases/chunks"
SCHEMAS = {n: json.loads((ROOT / f"docs/schema/chunk-{n}.schema.json").read_text()) for n in (1, 2, 3)}
INCARNATION = "0006282d3d4b8c00"
ROUNDED = ("pre_low", "pre_high"), ("log_pre_low", "log_pre_high")
KEY = "0123456789abcdef0123456789abcdef"
FIELDS_2 = tuple(name for name in FIELDS if name != "doubt")
OLD_FIELDS = tuple(name for name in FIELDS_2 if name not in UNKNOWN)


def stream(
    seed: int, count: int, *, mean: int = 6, at_hand: float = 1.0, first: int = 0, back: float = 0.05, decimals: int = 2
) -> Chunk:
    """Random buckets with gaps, repeated and backward times; with probability `at_hand` with their single readings.

    Gaps are added up whatever their signs, as they were when the committed documents were written.
    """
    rng = random.Random(seed)
    time, value = 1_600_000_000_000_000, 20.0
    builder = Builder(value, first)
    buckets: list[Bucket] = []
    readings: list[Readings | None] = []
    for _ in range(count):
        times, values, gap = array("q"), array("d"), 0
        for _ in range(1 + int(rng.expovariate(1 / mean))):
            time += -7_000_000 if rng.random() < back else rng.choice([0, 60_000_000, 60_000_000, 61_000_001])
            value = round(value + rng.gauss(0, 0.3), decimals)
            gap += rng.choice([0, 0, 0, 0, 3, -1])
            builder.add(value, time)
            times.append(time)
            values.append(value)
        buckets.append(builder.close()._replace(gap=gap))
        readings.append((times, values) if rng.random() < at_hand else None)
    return Chunk("edge/1", "weather.temp", INCARNATION, 20.0, buckets, readings, {"uptime_s": 12, "a": "ß"})


def doubted(chunk: Chunk, seed: int, often: float = 0.3) -> Chunk:
    """The chunk with some buckets in doubt, of each some readings or all; its readings as they are."""
    rng = random.Random(seed)
    buckets = []
    for bucket in chunk.buckets:
        doubt = rng.choice([bucket.n, rng.randint(0, bucket.n)]) if rng.random() < often else 0
        buckets.append(Bucket(**fields(bucket) | {"doubt": doubt}))
    return replace(chunk, buckets=buckets)


def fields(bucket: Bucket) -> dict[str, Any]:
    """A bucket's fields by name."""
    return {name: getattr(bucket, name) for name in FIELDS}


def same_bucket(got: Bucket, want: Bucket) -> bool:
    """Equal in every field, the prefix sums rounded outward by at most a float32's step."""
    exact = all(alike(getattr(got, name), getattr(want, name)) for name in FIELDS if name not in sum(ROUNDED, ()))
    return exact and all(outward(got, want, low, high) for low, high in ROUNDED)


def alike(a: float, b: float) -> bool:
    """Equal, or both not known."""
    return a == b or (math.isnan(a) and math.isnan(b))


def outward(got: Bucket, want: Bucket, low: str, high: str) -> bool:
    """Bounds that are as wide or a little wider, or not known in both."""
    (a, b), (c, d) = ((getattr(bucket, low), getattr(bucket, high)) for bucket in (want, got))
    step = 2.0**-22 * max(abs(a), abs(b)) + 2.0**-148 if want.n > 1 else 0.0
    return alike(a, c) and alike(b, d) if want.n == 1 or math.isnan(a) else a - step <= c <= a and b <= d <= b + step


def older(bucket: Bucket) -> Bucket:
    """A bucket as it was before format 2: what that added is not known."""
    return Bucket.unpack(bucket.pack()[:168])


def older_chunk(chunk: Chunk) -> Chunk:
    """A chunk of such buckets."""
    return replace(chunk, buckets=[older(bucket) for bucket in chunk.buckets])


@pytest.mark.parametrize("at_hand", [0.0, 0.5, 1.0])
def test_every_bucket_comes_back(at_hand: float) -> None:
    """Fields to the bit, P⁻ and P⁺ outward, gap and flags also where the bucket is stored as its readings."""
    for seed in range(40):
        chunk = stream(seed, 1 + seed, at_hand=at_hand, mean=1 + seed % 9, first=seed * 1000, decimals=seed % 16)
        back = decode(encode(chunk))
        assert (back.device, back.stream, back.incarnation) == (chunk.device, chunk.stream, chunk.incarnation)
        assert (back.center, back.health) == (chunk.center, chunk.health)
        assert all(same_bucket(g, w) for g, w in zip(back.buckets, chunk.buckets, strict=True))
        for got, want, bucket in zip(back.readings, chunk.readings, chunk.buckets, strict=True):
            assert got is None or got == want or bucket.n == 1


def test_a_window_over_decoded_buckets_still_holds_the_exact_result() -> None:
    """Prefix sums rounded outward only widen an interval: every cut of a sent bucket still contains its readings."""
    for seed in range(60):
        whole = stream(seed, 1, mean=12, back=0.0, decimals=seed % 12)
        bucket, singles = whole.buckets[0], whole.readings[0]
        assert singles is not None
        sent = decode(encode(Chunk("d", "s", INCARNATION, 20.0, [bucket], [None]))).buckets[0]
        for begin in range(bucket.t_first, bucket.t_last + 1, 10_000_000):
            held = [x for t, x in zip(*singles, strict=True) if t >= begin]
            got = bounds.mean_interval(bounds.Inside(), cut_by_time(sent, 20.0, begin, None), 20.0)
            assert got.low <= math.fsum(held) / len(held) <= got.high


def test_the_flags_and_gaps_of_the_sample_are_worth_the_name() -> None:
    """The random chunks above do hold late and unordered buckets and gaps of both signs."""
    buckets = [bucket for seed in range(40) for bucket in stream(seed, 1 + seed).buckets]
    assert {bucket.flags for bucket in buckets} == {0, ORDERED, LATE, ORDERED | LATE}
    assert min(bucket.gap for bucket in buckets) < 0 < max(bucket.gap for bucket in buckets)


def test_columns_are_what_decode_gives_with_readings_as_rows() -> None:
    """Row by row: a bucket stored whole is its fields, one stored as readings is its readings folded one by one."""
    for seed in range(30):
        document = encode(stream(seed, 20, at_hand=seed % 3 / 2, mean=3))
        got = columns(document)
        chunk = decode(document)
        rows = []
        for bucket, singles in zip(chunk.buckets, chunk.readings, strict=True):
            if singles is None:
                rows.append(fields(bucket))
                continue
            for i, (time, value) in enumerate(zip(*singles, strict=True)):
                gap, flags = bucket.gap if i == 0 else 0, ORDERED | bucket.flags & LATE
                rows.append(fields(Bucket.single(value, time, chunk.center, bucket.first + i, gap, flags)))
        for name in FIELDS:
            assert all(alike(a, b) for a, b in zip(got[name], [row[name] for row in rows], strict=True)), name
        assert got["id"] == chunks.document_id(chunk)
        assert got["readings"] == sum(bucket.n for bucket in chunk.buckets)
        ends = {"t_first": min(got["t_first"]), "t_last": max(got["t_last"])}
        assert got["totals"] == ends | {name: sum(got[name]) for name in ("gap", "doubt")}


def test_singles_are_stored_where_they_are_smaller_and_buckets_where_not() -> None:
    """Few decimal readings a bucket: as readings; many a bucket: as buckets; a single reading is always one."""
    assert all(decode(encode(stream(1, 40, mean=2))).readings)
    large = decode(encode(stream(2, 20, mean=400)))
    assert not any(singles for singles, bucket in zip(large.readings, large.buckets, strict=True) if bucket.n > 1)
    alone = stream(3, 9, mean=1, at_hand=0.0)
    assert [r is not None for r in decode(encode(alone)).readings] == [b.n == 1 for b in alone.buckets]


def test_readings_that_are_not_the_bucket_s_are_not_stored() -> None:
    """Where the readings at hand do not fold into the bucket the bucket is what counts."""
    chunk = stream(4, 6, mean=5, back=0.0)
    for singles in chunk.readings:
        assert singles is not None
        singles[1][-1] += 1.0
    back = decode(encode(chunk))
    assert all(same_bucket(g, w) for g, w in zip(back.buckets, chunk.buckets, strict=True))


def test_readings_of_a_bucket_merged_in_another_order_still_are() -> None:
    """A bucket merged from two differs from its fold only in the rounding of sums; its readings are taken."""
    chunk = stream(5, 2, mean=20, back=0.0, decimals=6)
    merged = merge(*chunk.buckets)
    (times, values), (more_times, more_values) = (singles for singles in chunk.readings if singles)
    both = times + more_times, values + more_values
    whole = Chunk(chunk.device, chunk.stream, INCARNATION, 20.0, [merged], [both])
    back = decode(encode(whole)).buckets[0]
    assert (back.n, back.low, back.high, back.gap) == (merged.n, merged.low, merged.high, merged.gap)
    assert back.total == pytest.approx(merged.total, abs=1e-9)


def test_a_document_is_of_the_oldest_format_that_can_say_what_it_holds() -> None:
    """Readings, and buckets of which nothing more is known, stay format 1; whole buckets are format 2."""
    chunk = stream(22, 6, mean=40, at_hand=0.0)
    for one, version in ((chunk, 2), (older_chunk(chunk), 1), (stream(1, 40, mean=2), 1)):
        parsed = json.loads(encode(one))
        assert (parsed["format"], parsed["codec"]) == (version, f"columns-{version}")


def test_what_is_known_of_some_buckets_only_comes_back() -> None:
    """Old buckets, new ones and those merged from both travel in one document, each with what it knows."""
    for seed in range(60):
        rng, whole = random.Random(seed), stream(seed, 24, mean=5, at_hand=0.3, back=0.02)
        mixed = [older(bucket) if rng.random() < 0.5 else bucket for bucket in whole.buckets]
        pairs = [merge(a, b) for a, b in zip(mixed[::2], mixed[1::2], strict=True)]
        chunk = replace(whole, buckets=pairs, readings=[None] * len(pairs))
        back = decode(encode(chunk)).buckets
        assert all(same_bucket(g, w) for g, w in zip(back, pairs, strict=True))
        some = [name for name in UNKNOWN for bucket in back if not alike(getattr(bucket, name), UNKNOWN[name])]
        assert 0 < len(some) < len(UNKNOWN) * len(back)


def test_readings_at_hand_make_an_old_bucket_known() -> None:
    """A bucket of an older store, stored as its readings, comes back as their fold with nothing unknown."""
    chunk = stream(1, 40, mean=2, back=0.0)
    back = decode(encode(older_chunk(chunk)))
    assert all(same_bucket(g, w) for g, w in zip(back.buckets, chunk.buckets, strict=True))


def test_no_document_says_of_a_single_reading_what_the_reading_says() -> None:
    """A bucket of one has no columns of format 2: it costs what it cost."""
    chunk = stream(3, 9, mean=0.01, at_hand=0.0)
    assert all(bucket.n == 1 for bucket in chunk.buckets)
    assert encode(chunk) == encode(older_chunk(chunk))


def test_the_same_chunk_gives_the_same_bytes() -> None:
    """Sending again is harmless: encode is a function of the chunk, and of what decode makes of it."""
    for seed in range(10):
        chunk = stream(seed, 30, at_hand=0.5)
        assert encode(chunk) == encode(stream(seed, 30, at_hand=0.5))
        assert encode(decode(encode(chunk))) == encode(chunk)


def test_extreme_values_and_negative_zero_come_back() -> None:
    """±2^960, subnormals and −0.0, times at ±2^61 µs."""
    values = [2.0**960, -(2.0**960), 5e-324, -0.0, 0.0, 1.0]
    times = [-(2**61), -1, 0, 1, 2, 2**61]
    builder = Builder(-(2.0**960), 7)
    for value, time in zip(values, times, strict=True):
        builder.add(value, time)
    bucket = builder.close()
    for readings in (None, (array("q", times), array("d", values))):
        back = decode(encode(Chunk("d", "s", INCARNATION, -(2.0**960), [bucket], [readings])))
        assert same_bucket(back.buckets[0], bucket)


@pytest.mark.parametrize(
    ("chunk", "version"),
    [
        (stream(1, 20), 1),
        (stream(1, 20, at_hand=0.0), 2),
        (doubted(stream(1, 20), 1), 3),
        (replace(stream(1, 20), key=KEY), 3),
        (replace(doubted(stream(1, 20, at_hand=0.0), 1), key=KEY), 3),
    ],
    ids=["readings", "whole", "doubt", "key", "both"],
)
def test_real_documents_fit_the_schema(chunk: Chunk, version: int) -> None:
    """The JSON Schema 2020-12 accepts what encode writes, and refuses it without a field or with a wrong one."""
    parsed = json.loads(encode(chunk))
    assert parsed["format"] == version
    validator = jsonschema.Draft202012Validator(SCHEMAS[version])
    validator.check_schema(SCHEMAS[version])
    validator.validate(parsed)
    assert not any(jsonschema.Draft202012Validator(SCHEMAS[n]).is_valid(parsed) for n in SCHEMAS if n != version)
    for key in parsed:
        if key != "health" and not (key == "key" and parsed["codec"] == "columns-3"):
            assert not validator.is_valid({k: v for k, v in parsed.items() if k != key}), key
            assert not validator.is_valid(parsed | {key: []}), key


GOLDEN = {
    "readings": lambda: stream(21, 12, mean=3),
    "buckets": lambda: stream(22, 6, mean=40, at_hand=0.0),
    "mixed": lambda: stream(23, 10, mean=3, at_hand=0.5, first=5_000_000),
    "one": lambda: Chunk("d", "s", INCARNATION, 1.5, [Bucket.single(1.5, 1, 1.5, 0)], [None]),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_format_1_is_frozen(name: str) -> None:
    """The committed documents are read as ever, and written again byte for byte; another deflate may pack otherwise."""
    golden = (CASES / f"{name}.json").read_bytes()
    chunk = GOLDEN[name]()
    back = decode(golden)
    whole = [older(b) if r is None and b.n > 1 else b for b, r in zip(chunk.buckets, back.readings, strict=True)]
    assert all(same_bucket(g, w) for g, w in zip(back.buckets, whole, strict=True))
    assert (CASES / f"{name}.columns").read_text() == listed(columns(golden), OLD_FIELDS)
    if "ng" not in zlib.ZLIB_RUNTIME_VERSION:
        assert encode(back) == encode(older_chunk(chunk)) == golden


GOLDEN_2 = {
    "buckets": lambda: stream(22, 6, mean=40, at_hand=0.0),
    "mixed": lambda: stream(23, 10, mean=12, at_hand=0.5, first=5_000_000),
    "merged": lambda: merged_with_older(stream(24, 12, mean=9, at_hand=0.0)),
}


def merged_with_older(chunk: Chunk) -> Chunk:
    """Pairs of an old bucket and a new one, made one, as an older Sluicegate did: it netted what came late."""
    pairs = [
        merge(older(a)._replace(gap=0), b._replace(gap=0))._replace(gap=a.gap + b.gap)
        for a, b in zip(chunk.buckets[::2], chunk.buckets[1::2], strict=True)
    ]
    return replace(chunk, buckets=pairs, readings=[None] * len(pairs))


@pytest.mark.parametrize("name", GOLDEN_2)
def test_format_2_is_frozen(name: str) -> None:
    """The same promise for the committed documents of format 2."""
    golden = (CASES / f"format-2/{name}.json").read_bytes()
    chunk = GOLDEN_2[name]()
    back = decode(golden)
    assert json.loads(golden)["format"] == 2
    assert all(same_bucket(g, w) for g, w in zip(back.buckets, chunk.buckets, strict=True))
    assert (CASES / f"format-2/{name}.columns").read_text() == listed(columns(golden), FIELDS_2)
    if "ng" not in zlib.ZLIB_RUNTIME_VERSION:
        assert encode(back) == encode(chunk) == golden


GOLDEN_3 = {
    "readings": lambda: replace(stream(21, 12, mean=3), key=KEY),
    "buckets": lambda: doubted(stream(22, 6, mean=40, at_hand=0.0), 1, 0.7),
    "mixed": lambda: replace(doubted(stream(23, 10, mean=3, at_hand=0.5, first=5_000_000), 2, 0.7), key=KEY),
    "one": lambda: Chunk("d", "s", INCARNATION, 1.5, [Bucket.single(1.5, 1, 1.5, 0, doubt=1)], [None], None, KEY),
}


@pytest.mark.parametrize("name", GOLDEN_3)
def test_format_3_is_frozen(name: str) -> None:
    """The same promise for the committed documents of format 3: doubt, and the key of the place."""
    golden = (CASES / f"format-3/{name}.json").read_bytes()
    chunk = GOLDEN_3[name]()
    back = decode(golden)
    assert (json.loads(golden)["format"], back.key) == (3, chunk.key)
    assert all(same_bucket(g, w) for g, w in zip(back.buckets, chunk.buckets, strict=True))
    assert (CASES / f"format-3/{name}.columns").read_text() == listed(columns(golden), FIELDS)
    if "ng" not in zlib.ZLIB_RUNTIME_VERSION:
        assert encode(back) == encode(chunk) == golden


def listed(got: dict[str, Any], names: tuple[str, ...]) -> str:
    """The columns as text, floats in hexadecimal."""
    lines = []
    for name in names:
        values = [x.hex() if isinstance(x, float) else str(x) for x in got[name]]
        lines.append(f"{name} {' '.join(values)}\n")
    return "".join(lines)


def test_the_page_s_example_is_a_real_document() -> None:
    """docs/reference/format.md shows a document that is read as it says: one reading of 1.5 at 1 µs."""
    page = (ROOT / "docs/reference/format.md").read_text()
    example = page.split("```json\n")[1].split("```")[0].strip()
    got = columns(example.encode())
    assert (list(got["t_first"]), list(got["x_first"])) == ([1], [1.5])
