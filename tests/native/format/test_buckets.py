"""The bucket record promises exact counts and extremes, an associative merge, and the same bits compiled and pure."""

from __future__ import annotations

import functools
import importlib
import math
import pickle
import random
from array import array
from types import ModuleType
from typing import Any

import buckets_twin as pure
import pytest

from sluicegate.format import _bucket as compiled
from sluicegate.format import record

Reading = tuple[float, int, int, int]  # value, time, gap, doubt


@pytest.fixture(params=[compiled, pure], ids=["compiled", "pure"])
def implementation(request: pytest.FixtureRequest) -> Any:
    """The promise holds for the compiled bucket and for its twin."""
    return request.param


def stream(seed: int, n: int, *, back: float = 0.0) -> list[Reading]:
    """Readings with repeated values and times; with probability `back` a time goes back."""
    rng = random.Random(seed)
    time, readings = 1_000, []
    for _ in range(n):
        time += rng.choice([0, 1, 5]) if rng.random() >= back else -rng.randrange(1, 9)
        value = rng.choice([rng.uniform(-5, 5), float(rng.randrange(-3, 4)), 0.0, -0.0])
        value = abs(value) + 0.5 if seed % 3 else value  # else no geometric mean
        readings.append((value, time, rng.choice([0, 0, 0, 2, -1]), int(rng.random() < 0.2)))
    return readings


def folded(module: ModuleType, readings: list[Reading], first: int = 0, center: float = 1.5) -> Any:
    """The bucket a builder makes of the readings."""
    builder = module.Builder(center, first)
    for reading in readings:
        builder.add(*reading)
    return builder.close()


def tree(module: ModuleType, readings: list[Reading], rng: random.Random, first: int = 0, center: float = 1.5) -> Any:
    """The bucket a random merge tree makes of the readings."""
    if len(readings) == 1:
        value, time, gap, doubt = readings[0]
        return record.Bucket.single(value, time, center, first, gap, doubt=doubt)
    cut = rng.randrange(1, len(readings))
    left = tree(module, readings[:cut], rng, first, center)
    return module.merge(left, tree(module, readings[cut:], rng, first + cut, center))


def gap_of(gaps: list[int]) -> int:
    """Of some readings: what came late counts only where nothing else is missing, or it would hide that."""
    return sum(gap for gap in gaps if gap > 0) or sum(gaps)


def is_torn(gaps: list[int]) -> bool:
    """Whether some came late beside a loss: which readings told it is not known any more."""
    return min(gaps) < 0 < max(gaps)


def expected(readings: list[Reading], first: int, center: float) -> dict[str, Any]:
    """The record by its definition, recomputed from the readings."""
    values, times = [r[0] for r in readings], [r[1] for r in readings]
    prefixes = [math.fsum(x - center for x in values[:k]) for k in range(1, len(values))]
    record: dict[str, Any] = {
        "first": first,
        "n": len(values),
        "t_first": min(times),
        "t_last": max(times),
        "total": math.fsum(x - center for x in values),
        "pre_low": min(prefixes, default=math.inf),
        "pre_high": max(prefixes, default=-math.inf),
        "x_first": values[0],
        "x_last": values[-1],
        "gap": gap_of([r[2] for r in readings]),
        "doubt": sum(r[3] for r in readings),
        "flags": int(times == sorted(times) and not is_torn([r[2] for r in readings])),
    }
    for name, extreme in (("low", min(values)), ("high", max(values))):
        at = [i for i, x in enumerate(values) if x == extreme]
        record |= {name: extreme, f"{name}_o_first": first + at[0], f"{name}_o_last": first + at[-1]}
        record |= {f"{name}_t_first": min(times[i] for i in at), f"{name}_t_last": max(times[i] for i in at)}
        pick, none = (min, math.inf) if name == "low" else (max, -math.inf)
        record |= {f"{name}_n": len(at), f"{name}_pre": pick(values[: at[0]], default=none)}
        record |= {f"{name}_suf": pick(values[at[-1] + 1 :], default=none)}
    mean = math.fsum(values) / len(values)
    return record | {"m2": math.fsum((x - mean) ** 2 for x in values)} | expected_logs(values, center)


def expected_logs(values: list[float], center: float) -> dict[str, Any]:
    """The logarithms' fields by their definition."""
    if min(values) <= 0.0:
        return dict.fromkeys(("log_total", "log_pre_low", "log_pre_high"), math.nan)
    logs = [math.log(x) - (math.log(center) if center > 0 else 0.0) for x in values]
    prefixes = [math.fsum(logs[:k]) for k in range(1, len(logs))]
    low, high = min(prefixes, default=math.inf), max(prefixes, default=-math.inf)
    return {"log_total": math.fsum(logs), "log_pre_low": low, "log_pre_high": high}


LOGS = {"log_total", "log_pre_low", "log_pre_high"}
SUMS = {"total", "pre_low", "pre_high", "m2"} | LOGS


@pytest.mark.parametrize("back", [0.0, 0.2])
def test_a_folded_bucket_is_its_definition(implementation: ModuleType, back: float) -> None:
    """Every field is what the page defines, for in-order and out-of-order readings, built or merged in any tree."""
    rng = random.Random(7)
    for seed in range(150):
        readings, center = stream(seed, rng.randrange(1, 24), back=back), rng.choice([1.5, -2.0])
        want = expected(readings, 40, center)
        assert set(want) == set(record.FIELDS)
        for got in (folded(implementation, readings, 40, center), tree(implementation, readings, rng, 40, center)):
            got.verify()
            for name, value in want.items():
                near = pytest.approx(value, abs=1e-9, nan_ok=True) if name in SUMS else value
                assert getattr(got, name) == near, (seed, name)


def test_compiled_and_pure_agree_to_the_bit() -> None:
    """The same calls give the same 256 bytes, built and merged in the same tree."""
    for seed in range(200):
        readings = stream(seed, 1 + seed % 40, back=0.1 * (seed % 2))
        assert folded(compiled, readings).pack() == folded(pure, readings).pack()
        trees = [tree(module, readings, random.Random(seed)).pack() for module in (compiled, pure)]
        assert trees[0] == trees[1]


def test_pack_is_256_little_endian_bytes_and_comes_back(implementation: ModuleType) -> None:
    """The layout is the page's, whatever the machine, and unpack and pickle restore it."""
    bucket = folded(implementation, stream(3, 9), first=2)
    data = bucket.pack()
    assert len(data) == 256
    assert data[:16] == (2).to_bytes(8, "little") + (9).to_bytes(8, "little")
    assert record.Bucket.unpack(data) == bucket
    assert pickle.loads(pickle.dumps(bucket)) == bucket  # noqa: S301 - our own bytes
    assert hash(record.Bucket.unpack(data)) == hash(bucket)


def test_field_names_are_the_page_s_in_its_order() -> None:
    """The compiled bucket has the fields in their order, and the constructor takes them by name."""
    bucket = folded(compiled, stream(5, 6))
    fields = {name: getattr(bucket, name) for name in record.FIELDS}
    assert tuple(fields.values()) == tuple(bucket)
    assert record.Bucket(**fields) == bucket
    unlike = record.Bucket(**fields) != bucket
    assert not unlike
    assert record.Bucket(**fields | {"n": 7}) != bucket


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 2.0**961])
def test_a_value_that_cannot_be_summed_is_refused_and_changes_nothing(implementation: ModuleType, value: float) -> None:
    """NaN, infinities and values over 2^960 raise and leave the builder as it was."""
    builder = implementation.Builder(0.0)
    builder.add(1.0, 10)
    before = builder.state()
    with pytest.raises(ValueError, match=r"2\^960"):
        builder.add(value, 11)
    with pytest.raises(ValueError, match=r"2\^960"):
        implementation.Builder(value)
    assert builder.state() == before


def test_the_greatest_values_still_sum_to_finite_numbers(implementation: ModuleType) -> None:
    """Values of ±2^960 keep every sum finite, so verify passes."""
    readings = [(s * 2.0**960, i, 0, 0) for i, s in enumerate([1, -1, 1, 1, 1, -1])]
    folded(implementation, readings, center=-(2.0**960)).verify()


@pytest.mark.parametrize(("time", "gap"), [(2**62, 0), (0, 2**62), (2**70, 0)])
def test_times_and_gaps_that_would_overflow_are_refused(implementation: ModuleType, time: int, gap: int) -> None:
    """A time or gap beyond ±2^61 raises OverflowError before anything is folded."""
    builder = implementation.Builder(0.0)
    with pytest.raises(OverflowError):
        builder.add(1.0, time, gap)
    assert builder.next == 0
    assert builder.bucket is None


def test_a_builder_continues_from_its_state(implementation: ModuleType) -> None:
    """Restored at every step it closes the very buckets of the uninterrupted one, LATE flags included."""
    readings = stream(11, 60, back=0.1)
    closed: list[Any] = []
    again: list[Any] = []
    one = implementation.Builder(2.0, 5)
    for i, reading in enumerate(readings):
        other = implementation.Builder.restore(one.state())
        for builder, out in ((one, closed), (other, again)):
            builder.add(*reading)
            if i % 7 == 6:
                out.append(builder.close())
        assert other.state() == one.state()
    assert closed == again
    assert any(bucket.flags & pure.LATE for bucket in closed)
    assert implementation.Builder.restore(one.state()).next == 65


def test_late_marks_buckets_that_open_with_an_older_reading(implementation: ModuleType) -> None:
    """LATE is set by the first reading of a bucket alone, and survives merging; ORDERED then falls."""
    builder = implementation.Builder(0.0)
    builder.add(1.0, 100)
    on_time = builder.close()
    builder.add(2.0, 50)
    late = builder.close()
    assert (on_time.flags, late.flags) == (pure.ORDERED, pure.ORDERED | pure.LATE)
    assert implementation.merge(on_time, late).flags == pure.LATE
    assert builder.newest == 100


def test_misuse_is_told(implementation: ModuleType) -> None:
    """Merging buckets that do not follow, closing nothing, foreign states and short records raise ValueError."""
    bucket, builder = folded(implementation, stream(1, 3)), implementation.Builder(0.0)
    with pytest.raises(ValueError, match="does not follow"):
        implementation.merge(bucket, bucket)
    with pytest.raises(ValueError, match="no bucket is open"):
        builder.close()
    with pytest.raises(ValueError, match="256 bytes, older ones 248 or 168"):
        record.Bucket.unpack(b"short")
    for state in (b"", b"JUNK" + builder.state()[4:], builder.state() + b"x"):
        with pytest.raises(ValueError, match="not a builder's state"):
            implementation.Builder.restore(state)


def test_verify_finds_every_damaged_field(implementation: ModuleType) -> None:
    """A record with one field out of place is refused by unpack, whichever field it is."""
    bucket = folded(implementation, [(1.0, 10, 0, 0), (3.0, 20, 0, 1), (-2.0, 30, 0, 0), (0.5, 40, 0, 0)], first=4)
    damage = {"first": -1, "n": 0, "t_first": 41, "t_last": 9, "total": math.nan, "pre_low": math.inf, "flags": 4}
    damage |= {"low": 2.0, "high": 0.75, "x_first": 9.0, "x_last": -9.0, "pre_high": -math.inf, "gap": 2**62}
    damage |= {"low_o_first": 3, "low_o_last": 8, "high_o_first": 0, "low_t_first": 5, "high_t_last": 99}
    damage |= {"m2": -1.0, "low_n": 2, "high_n": 0, "log_total": 1.0, "log_pre_low": 0.0, "log_pre_high": math.inf}
    damage |= {"doubt": 5}
    damage |= {"low_pre": -2.0, "low_suf": 0.75, "high_pre": 1.5, "high_suf": -3.0}
    assert set(damage) >= set(record.UNKNOWN)
    for name, value in damage.items():
        fields = {field: getattr(bucket, field) for field in record.FIELDS} | {name: value}
        with pytest.raises(ValueError, match="bucket at ordinal"):
            record.Bucket.unpack(record.Bucket(**fields).pack())


def test_a_doubt_is_one_or_none_and_never_less(implementation: ModuleType) -> None:
    """Another doubt of a reading is refused and changes nothing; negative doubt in a record is damage."""
    builder = implementation.Builder(0.0)
    builder.add(1.0, 10, 0, 1)
    before = builder.state()
    for doubt in (-1, 2):
        with pytest.raises(ValueError, match=f"doubt {doubt}"):
            builder.add(1.0, 11, 0, doubt)
        with pytest.raises(ValueError, match=f"doubt {doubt}"):
            record.Bucket.single(1.0, 11, 0.0, 0, doubt=doubt)
    assert builder.state() == before
    with pytest.raises(ValueError, match="bucket at ordinal 0 of 1 readings: its fields contradict"):
        record.Bucket.unpack(before[29:-8] + (-1).to_bytes(8, "little", signed=True))


@pytest.mark.parametrize("size", [168, 248])
def test_an_older_record_has_no_doubt_and_takes_on_its_neighbour_s(implementation: ModuleType, size: int) -> None:
    """Rows and open buckets of an older store are read, merged and built upon; only new readings add doubt."""
    new = folded(implementation, [(2.0, 20, 0, 1), (3.0, 30, 0, 0)], 1)
    old = record.Bucket.unpack(folded(implementation, [(1.0, 10, 0, 0)]).pack()[:size])
    assert (old.doubt, new.doubt, implementation.merge(old, new).doubt) == (0, 1, 1)
    builder = implementation.Builder(1.5)
    builder.add(2.0, 10)
    again = implementation.Builder.restore({168: b"SGB1", 248: b"SGB2"}[size] + builder.state()[4 : 29 + size])
    again.add(2.5, 11, 0, 1)
    assert (again.bucket.n, again.bucket.doubt) == (2, 1)


def older(bucket: Any) -> bytes:
    """The record of 168 bytes, as it was before m2."""
    return bytes(bucket.pack()[:168])


def test_a_record_of_168_bytes_is_read_and_what_it_lacks_stays_unknown(implementation: ModuleType) -> None:
    """Old rows and old builders go on; merged, nothing is made up: a field is right or not known."""
    rng, known = random.Random(2), 0
    for seed in range(300):
        readings = [(round(value), *rest) for value, *rest in stream(seed, rng.randrange(2, 24))]
        readings = [(value, time, gap, 0) for value, time, gap, _ in readings]
        cut = rng.randrange(1, len(readings))
        parts = [folded(implementation, readings[:cut]), folded(implementation, readings[cut:], cut)]
        old = rng.randrange(2)
        parts[old] = record.Bucket.unpack(older(parts[old]))
        assert all(
            getattr(parts[old], name) == pytest.approx(value, nan_ok=True) for name, value in record.UNKNOWN.items()
        )
        got = record.Bucket.unpack(implementation.merge(*parts).pack())
        for name, value in expected(readings, 0, 1.5).items():
            if name in record.UNKNOWN and getattr(got, name) == pytest.approx(record.UNKNOWN[name], nan_ok=True):
                assert name.startswith(("low_", "high_", "log_")) or name == "m2"
                continue
            known += name in record.UNKNOWN
            near = pytest.approx(value, abs=1e-9, nan_ok=True) if name in SUMS else value
            assert getattr(got, name) == near, (seed, name)
        assert math.isnan(got.m2)
        assert math.isnan(got.log_total)
    assert known > 300


def test_compiled_and_pure_agree_on_older_records() -> None:
    """The twin keeps the same things unknown, to the bit."""
    for seed in range(100):
        readings = [(value, time, gap, 0) for value, time, gap, _ in stream(seed, 2 + seed % 20)]
        packed = []
        for module in (compiled, pure):
            a = record.Bucket.unpack(older(folded(module, readings[:1])))
            b = folded(module, readings[1:], 1)
            c = folded(module, readings, 1 + len(readings[1:]))
            merged = module.merge(module.merge(a, b), c), module.merge(c, folded(module, readings, c.first + c.n))
            packed.append([fields.pack() for fields in merged])
        assert packed[0] == packed[1]


@pytest.mark.parametrize("cuts", [1, 2, 7])
def test_packed_records_merge_as_buckets_do(implementation: ModuleType, cuts: int) -> None:
    """The same bytes, an older record among them too; those that do not follow, or are none, are refused."""
    readings = [(value, time, gap, 0) for value, time, gap, _ in stream(cuts, 20)]
    parts = [folded(implementation, readings[i : i + cuts], i) for i in range(0, 20, cuts)]
    packed = [older(parts[0]), *(part.pack() for part in parts[1:])]
    parts[0] = record.Bucket.unpack(packed[0])
    assert implementation.merge_packed(packed) == functools.reduce(implementation.merge, parts).pack()
    assert implementation.merge_packed(packed[1:2]) == packed[1]
    with pytest.raises(ValueError, match="does not follow"):
        implementation.merge_packed([packed[1], packed[1]])
    with pytest.raises(ValueError, match="256 bytes"):
        implementation.merge_packed([packed[1], packed[0][:-1]])


def test_a_builder_s_older_state_goes_on(implementation: ModuleType) -> None:
    """A state with a record of 168 bytes is restored; another length of record is refused."""
    builder = implementation.Builder(1.5)
    builder.add(2.0, 10)
    state = builder.state()
    old = b"SGB1" + state[4:-88]
    again = implementation.Builder.restore(old)
    assert (again.next, again.bucket.n, again.bucket.low_n) == (1, 1, -1)
    for wrong in (b"SGB1" + state[4:], b"SGB2" + old[4:], b"SGB3" + state[4:-8]):
        with pytest.raises(ValueError, match="not a builder's state"):
            implementation.Builder.restore(wrong)


def test_squares_beyond_a_float_are_not_known(implementation: ModuleType) -> None:
    """Values of ±2^960 have no m2; a constant stream's is 0, and a tiny spread far from 0 is not lost."""
    bucket = folded(implementation, [(2.0**960, 1, 0, 0), (-(2.0**960), 2, 0, 0), (1.0, 3, 0, 0)])
    bucket.verify()
    assert math.isnan(bucket.m2)
    assert folded(implementation, [(7.25, i, 0, 0) for i in range(50)]).m2 == 0.0
    far = [(1e9 + i % 2, i, 0, 0) for i in range(100)]
    assert folded(implementation, far, center=1e9).m2 == pytest.approx(25.0, rel=1e-12)


def test_public_names_are_exported() -> None:
    """The public path carries what format.md names."""
    public = importlib.import_module("sluicegate.format.bucket")
    assert set(public.__all__) >= {"Bucket", "Builder", "merge"}


@pytest.mark.parametrize("seed", range(60))
def test_a_run_is_folded_as_its_readings_one_after_the_other(implementation: Any, seed: int) -> None:
    """It stops where a bucket has its readings, or where the next one is too old or too late for it; the same bits."""
    rng = random.Random(seed)
    readings, most, span = stream(seed, 80, back=0.1), rng.randrange(1, 12), rng.randrange(1, 40)
    values, times = array("d", [each[0] for each in readings]), array("q", [each[1] for each in readings])
    one, run = implementation.Builder(1.5), implementation.Builder(1.5)
    closed, at = [], 0
    gap, doubt = rng.choice([0, 3, -1]), rng.randrange(2)
    for place, (value, time) in enumerate(zip(values, times, strict=True)):
        if one.n and (time < one.times[1] or time - one.times[0] >= span):
            closed.append(one.close())
        one.add(value, time, 0 if place else gap, doubt)
        if one.n >= most:
            closed.append(one.close())
    while at < len(values):
        at = run.add_run(values, times, at, 0 if at else gap, doubt, most, span)
        if run.n >= most or at < len(values):
            bucket = closed.pop(0)
            assert run.close_packed() == (bucket.first, bucket.n, bucket.flags, bucket.pack())
    assert not closed
    assert run.state() == one.state()


@pytest.mark.parametrize("seed", range(60))
def test_whole_buckets_are_those_that_runs_would_fill(implementation: Any, seed: int) -> None:
    """With their readings beside them; what fills none is left as it was."""
    rng = random.Random(seed)
    readings, most, span = stream(seed, rng.randrange(60), back=0.1), rng.randrange(1, 12), rng.randrange(1, 40)
    values, times = array("d", [each[0] for each in readings]), array("q", [each[1] for each in readings])
    whole, run, begin = implementation.Builder(1.5), implementation.Builder(1.5), rng.randrange(len(values) + 1)
    rest, found = whole.add_buckets(values, times, begin, 3, 0, most, span)
    at = begin
    for *bucket, singles in found:
        end = run.add_run(values, times, at, 0 if at > begin else 3, 0, most, span)
        assert (*bucket,) == run.close_packed()
        assert singles == times[at:end].tobytes() + values[at:end].tobytes()
        at = end
    assert (rest, whole.n, whole.state()) == (at, 0, run.state())
    assert run.add_run(values, times, rest, 0, 0, most, span) == len(values)
    assert run.n < most


def test_columns_that_belong_to_no_run_are_refused(implementation: Any) -> None:
    """Rather than read beyond their end; and no bucket is closed where none is open."""
    builder, values, times = implementation.Builder(0.0), array("d", [1.0, 2.0]), array("q", [1, 2])
    for columns in ((values, times[:1]), (times, values), (values, array("i", [1, 2]))):
        with pytest.raises(ValueError, match="as many times"):
            builder.add_run(*columns, 0, 0, 0, 9, 9)
    for begin in (-1, 3):
        with pytest.raises(ValueError, match="a place among them"):
            builder.add_run(values, times, begin, 0, 0, 9, 9)
    with pytest.raises(ValueError, match="no bucket is open"):
        builder.close_packed()
    builder.add(1.0, 1)
    with pytest.raises(ValueError, match="a bucket is open"):
        builder.add_buckets(values, times, 0, 0, 0, 9, 9)
