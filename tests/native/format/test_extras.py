"""Extras promise exact slots by name, merged alike on every machine, and one error for whatever is not one."""

from __future__ import annotations

import base64
import json
import math
import random
import zlib
from array import array
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import parts_twin as twin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sluicegate as sg
from sluicegate.bounds import least_squares
from sluicegate.format import attached
from sluicegate.format.bucket import Bucket, Builder, merge
from sluicegate.format.chunk import MAX_PAYLOAD, Chunk, ChunkError, _crc32, columns, decode, encode
from sluicegate.format.extras import ExtraError, extra, name_for
from sluicegate.format.packing import inflated
from sluicegate.monoids import comoments, hll, kll
from sluicegate.monoids.layout import Component

ROOT = Path(__file__).parents[3]
CASES = ROOT / "tests/cases/chunks/format-4"
SCHEMA = json.loads((ROOT / "docs/schema/chunk-4.schema.json").read_text())
NAMES = ("line", "area", "quantiles(16)", "distinct_count(8)", "top_k(3)", "count_min(16,2)", "bloom_filter(256,3)")
INCARNATION = "0006282d3d4b8c00"


def readings(seed: int, count: int, back: float = 0.0) -> tuple[array[float], array[int]]:
    """Values of which some come again, at uneven times of which a share goes back."""
    rng = random.Random(seed)
    time, times, values = 1_600_000_000_000_000, array("q"), array("d")
    for _ in range(count):
        time += -5_000_000 if rng.random() < back else rng.randrange(3) * 1_000_000
        times.append(time)
        values.append(round(rng.gauss(20, 3), 1))
    return values, times


def carried(seed: int, buckets: int = 6, each: int = 40) -> Chunk:
    """Buckets without their single readings, each with all extras but the last one's line."""
    builder, found, extras = Builder(20.0), list[Bucket](), {name: list[bytes | None]() for name in NAMES}
    values, times = readings(seed, buckets * each)
    for at in range(0, len(values), each):
        some = values[at : at + each], times[at : at + each]
        for value, time in zip(*some, strict=True):
            builder.add(value, time)
        found.append(builder.close())
        for name in NAMES:
            kind = extra(name)
            assert kind is not None
            extras[name].append(kind.fold(*some))
    extras["line"][-1] = None
    return Chunk("edge/1", "weather.temp", INCARNATION, 20.0, found, [None] * buckets, None, None, extras)


@pytest.mark.parametrize("name", NAMES)
@given(st.integers(0, 10**6), st.integers(1, 80), st.data())
@settings(max_examples=25)
def test_folded_and_merged_as_the_twin_does(name: str, seed: int, count: int, data: st.DataObject) -> None:
    """Whatever is folded and joined gives the twin's bytes, and fits the bucket of the readings."""
    values, times = readings(seed, count, 0.1)
    kind = extra(name)
    assert kind is not None
    other = twin.SlotFold(Component(kind.op, 0, 0, kind.options))
    cut = data.draw(st.integers(0, count - 1))
    whole = kind.fold(values, times)
    assert whole == other.fold(values, times)
    if cut:
        a, b = (kind.fold(values[some], times[some]) for some in (slice(0, cut), slice(cut, None)))
        whole = kind.combine(a, b)
        assert whole == other.combine(a, b)
    kind.check(whole, count, min(times), max(times))


def test_they_say_what_the_readings_are() -> None:
    """Beside the definition: moments in whole numbers, an integral, ranks, a set, the greatest, occurrences."""
    values, times = readings(3, 300)
    parts, slots = {}, {}
    for name in NAMES:
        kind = extra(name)
        assert kind is not None
        parts[name] = kind.all_of([kind.fold(values[i : i + 50], times[i : i + 50]) for i in range(0, 300, 50)])
        slots[name] = kind.slots(parts[name])
    slope = sg.slope(per="1s")
    told = comoments.slope(slots["line"], slope.options[0])
    assert told == pytest.approx(least_squares.exactly(slope, [float(t) for t in times], values, told).low, rel=1e-9)
    held = math.fsum(x * (b - a) for x, a, b in zip(values, times, times[1:], strict=False))
    assert slots["area"][0] + slots["area"][1] == pytest.approx(held, rel=1e-12)
    sketch, ordered = kll.of_slots(16, slots["quantiles(16)"]), sorted(values)
    for rank in (0.1, 0.5, 0.9):
        found = sketch.quantile(rank)
        assert found is not None
        share = sum(x <= found for x in ordered) / 300
        assert abs(share - rank) <= sketch.error + 0.1  # equal values
    different = {*values}
    count, area = slots["distinct_count(8)"][0], parts["distinct_count(8)"][8:].ljust(256, b"\0")
    assert hll.answer(8, count, area)[0] == pytest.approx(len(different), rel=0.3)
    assert list(slots["top_k(3)"][1::2]) == ordered[:-4:-1]
    counts = sg.monoids.results.CountMin(16, 2, slots["count_min(16,2)"])
    assert all(counts.most(x) >= values.count(x) for x in different)
    filled = sg.monoids.results.BloomFilter(parts["bloom_filter(256,3)"].ljust(32, b"\0"), 3)
    assert all(filled.might_contain(x) for x in different)


@pytest.mark.parametrize(
    ("monoid", "name"),
    [(sg.slope(), "line"), (sg.intercept(), "line"), (sg.time_weighted_mean(), "area"), (sg.mean(), None),
     (sg.quantiles(k=64), "quantiles(64)"), (sg.quantiles(k=4096), None),
     (sg.distinct_count(lg_k=10), "distinct_count(10)"), (sg.top_k(5), "top_k(5)"),
     (sg.count_min(64, 2), "count_min(64,2)"), (sg.bloom_filter(1024), "bloom_filter(1024,4)")],
)  # fmt: skip
def test_an_aggregate_names_its_extra(monoid: sg.Monoid, name: str | None) -> None:
    """What an aggregate is answered from has a name by which it is found again."""
    assert name_for(monoid) == name
    assert name is None or extra(name) is not None


@pytest.mark.parametrize(
    "name", ["", "mode", "line(1)", "quantiles", "quantiles(7)", "quantiles(64,2)", "top_k(05)", "a" * 65, "top_k(5) "]
)
def test_what_is_not_known_is_no_extra(name: str) -> None:
    """Names of a later version, and such as nobody writes, have no meaning."""
    assert extra(name) is None


def test_a_document_brings_every_slot_back() -> None:
    """encode and decode: the parts bit for bit, the document of format 4, its schema content; twice the same bytes."""
    chunk = carried(1)
    document = encode(chunk)
    back = decode(document)
    assert (back.extras, back.skipped) == (dict(sorted(chunk.extras.items())), ())
    assert encode(back) == document == encode(carried(1))
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(document))
    told = columns(document)["extras"]
    assert told["area"] == {b.first: part for b, part in zip(chunk.buckets, chunk.extras["area"], strict=True)}
    assert chunk.buckets[-1].first not in told["line"]


def test_without_extras_not_a_byte_changes() -> None:
    """Names that no bucket has, and buckets that are stored as their readings, leave a document of the older format."""
    chunk = carried(2)
    plain = replace(chunk, extras={})
    assert encode(replace(chunk, extras={"line": [None] * 6})) == encode(plain)
    values, times = readings(2, 240)
    each = [(times[i : i + 40], values[i : i + 40]) for i in range(0, 240, 40)]
    assert encode(replace(chunk, readings=each)) == encode(replace(plain, readings=each))


def test_one_that_is_not_known_is_passed_over_and_named() -> None:
    """A later version's extra: the rest is read, and the reader says which it skipped."""
    parsed = json.loads(encode(carried(3)))
    parsed["extras"]["mode(3)"] = base64.b64encode(b"whatever").decode()
    parsed["crc32"] = _crc32(parsed, inflated("its data", parsed["data"], MAX_PAYLOAD))
    document = json.dumps(parsed).encode()
    assert decode(document).skipped == columns(document)["skipped"] == ("mode(3)",)
    assert decode(document).extras == decode(encode(carried(3))).extras


def _deflated(data: bytes) -> str:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return base64.b64encode(packer.compress(data) + packer.flush()).decode()


@pytest.mark.parametrize(
    ("extras", "reason"),
    [([], "object"), ({}, "object"), ({"": "AA=="}, "names"), ({"line": 1}, "string"), ({"line": "***"}, "damaged"),
     ({"line": _deflated(b"")}, "cut short"), ({"line": _deflated(bytes(10**7))}, "inflates"),
     ({f"x{i}": "AA==" for i in range(17)}, "object"), ({"line": _deflated(b"\0\4\0")}, "contradicts|ends at|length")],
)  # fmt: skip
def test_what_is_no_extra_is_refused(extras: Any, reason: str) -> None:
    """Damaged, oversized or contradicting: ChunkError, by both readers, before memory is taken for it."""
    parsed = json.loads(encode(carried(4)))
    parsed["extras"] = extras
    if isinstance(extras, dict):
        parsed["crc32"] = _crc32(parsed, inflated("its data", parsed["data"], MAX_PAYLOAD))
    for read in (decode, columns):
        with pytest.raises(ChunkError, match=reason):
            read(json.dumps(parsed).encode())


def test_a_changed_extra_is_known_by_the_crc() -> None:
    """One name's string for another's: the document is damaged."""
    parsed = json.loads(encode(carried(5)))
    parsed["extras"]["area"] = parsed["extras"]["line"]
    with pytest.raises(ChunkError, match="crc32"):
        decode(json.dumps(parsed).encode())


@given(st.integers(0, 10**6), st.sampled_from(NAMES), st.data())
@settings(max_examples=150)
def test_damaged_slots_are_refused_or_harmless(seed: int, name: str, data: st.DataObject) -> None:
    """Any byte of a part changed: refused, or still such that it merges and is read without going out of its room."""
    kind = extra(name)
    assert kind is not None
    values, times = readings(seed, 30)
    whole = bytearray(kind.fold(values, times))
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] ^= data.draw(st.integers(1, 255))
    try:
        kind.check(bytes(whole), 30, times[0], times[-1])
    except ExtraError:
        return
    kind.slots(kind.combine(bytes(whole), kind.fold(values, times)))


def test_the_writer_refuses_what_is_not_of_its_bucket() -> None:
    """A part of other readings, a name nobody knows, too many names: said before a document is made."""
    chunk = carried(6)
    for extras in ({"line": [chunk.extras["line"][1], *chunk.extras["line"][1:]]}, {"mode": chunk.extras["line"]},
                   {"line": chunk.extras["line"][1:]}):  # fmt: skip
        with pytest.raises(ChunkError):
            encode(replace(chunk, extras=extras))
    placed = [(b.n, b.t_first, b.t_last) for b in chunk.buckets]
    with pytest.raises(ExtraError, match="at most 16"):
        attached.pack({f"top_k({i})": chunk.extras["top_k(3)"] for i in range(1, 18)}, placed)


def merged() -> Chunk:
    """Pairs of buckets made one, and their extras alike."""
    chunk = carried(8, 8)
    pairs = [merge(a, b) for a, b in zip(chunk.buckets[::2], chunk.buckets[1::2], strict=True)]
    extras = {}
    for name, parts in chunk.extras.items():
        kind = extra(name)
        assert kind is not None
        joined = zip(parts[::2], parts[1::2], strict=True)
        extras[name] = [kind.combine(a, b) if a is not None and b is not None else None for a, b in joined]
    return replace(chunk, buckets=pairs, readings=[None] * 4, extras=extras)


GOLDEN = {"all": lambda: carried(7), "merged": merged, "one": lambda: replace(
    carried(9), key="0123456789abcdef0123456789abcdef", extras={"area": carried(9).extras["area"]})}  # fmt: skip


@pytest.mark.parametrize("name", GOLDEN)
def test_format_4_is_frozen(name: str) -> None:
    """The committed documents are read as ever, and written again byte for byte; another deflate may pack otherwise."""
    golden = (CASES / f"{name}.json").read_bytes()
    chunk = GOLDEN[name]()
    back = decode(golden)
    assert json.loads(golden)["format"] == 4
    assert back.extras == dict(sorted(chunk.extras.items()))
    if "ng" not in zlib.ZLIB_RUNTIME_VERSION:
        assert encode(back) == encode(chunk) == golden
