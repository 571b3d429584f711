"""The bucket record promises exact counts and extremes, an associative merge, and the same bits compiled and pure."""

from __future__ import annotations

import importlib
import math
import os
import pickle
import random
import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest

from sluicegate import _buckets as compiled
from sluicegate.reference import buckets as pure

Reading = tuple[float, int, int]  # value, time, gap


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
        readings.append((value, time, rng.choice([0, 0, 0, 2, -1])))
    return readings


def folded(module: ModuleType, readings: list[Reading], first: int = 0, center: float = 1.5) -> Any:
    """The bucket a builder makes of the readings."""
    builder = module.Builder(center, first)
    for value, time, gap in readings:
        builder.add(value, time, gap)
    return builder.close()


def tree(module: ModuleType, readings: list[Reading], rng: random.Random, first: int = 0, center: float = 1.5) -> Any:
    """The bucket a random merge tree makes of the readings."""
    if len(readings) == 1:
        value, time, gap = readings[0]
        return module.Bucket.single(value, time, center, first, gap)
    cut = rng.randrange(1, len(readings))
    left = tree(module, readings[:cut], rng, first, center)
    return module.merge(left, tree(module, readings[cut:], rng, first + cut, center))


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
        "gap": sum(r[2] for r in readings),
        "flags": int(times == sorted(times)),
    }
    for name, extreme in (("low", min(values)), ("high", max(values))):
        at = [i for i, x in enumerate(values) if x == extreme]
        record |= {name: extreme, f"{name}_o_first": first + at[0], f"{name}_o_last": first + at[-1]}
        record |= {f"{name}_t_first": min(times[i] for i in at), f"{name}_t_last": max(times[i] for i in at)}
    return record


SUMS = {"total", "pre_low", "pre_high"}


@pytest.mark.parametrize("back", [0.0, 0.2])
def test_a_folded_bucket_is_its_definition(implementation: ModuleType, back: float) -> None:
    """Every field is what the page defines, for in-order and out-of-order readings, built or merged in any tree."""
    rng = random.Random(7)
    for seed in range(150):
        readings = stream(seed, rng.randrange(1, 24), back=back)
        want = expected(readings, 40, 1.5)
        for got in (folded(implementation, readings, 40), tree(implementation, readings, rng, 40)):
            got.verify()
            for name, value in want.items():
                near = pytest.approx(value, abs=1e-9) if name in SUMS else value
                assert getattr(got, name) == near, (seed, name)


def test_compiled_and_pure_agree_to_the_bit() -> None:
    """The same calls give the same 168 bytes, built and merged in the same tree."""
    for seed in range(200):
        readings = stream(seed, 1 + seed % 40, back=0.1 * (seed % 2))
        assert folded(compiled, readings).pack() == folded(pure, readings).pack()
        trees = [tree(module, readings, random.Random(seed)).pack() for module in (compiled, pure)]
        assert trees[0] == trees[1]


def test_pack_is_168_little_endian_bytes_and_comes_back(implementation: ModuleType) -> None:
    """The layout is the page's, whatever the machine, and unpack and pickle restore it."""
    bucket = folded(implementation, stream(3, 9), first=2)
    data = bucket.pack()
    assert len(data) == 168
    assert data[:16] == (2).to_bytes(8, "little") + (9).to_bytes(8, "little")
    assert implementation.Bucket.unpack(data) == bucket
    assert pickle.loads(pickle.dumps(bucket)) == bucket  # noqa: S301 - our own bytes
    assert hash(implementation.Bucket.unpack(data)) == hash(bucket)


def test_field_names_are_the_page_s_in_its_order() -> None:
    """Compiled and pure name the same fields in the same order, and the constructor takes them by name."""
    assert compiled.FIELDS == pure.FIELDS
    bucket = folded(compiled, stream(5, 6))
    fields = {name: getattr(bucket, name) for name in pure.FIELDS}
    assert compiled.Bucket(**fields) == bucket
    assert repr(pure.Bucket(**fields)) == repr(bucket)


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
    readings = [(s * 2.0**960, i, 0) for i, s in enumerate([1, -1, 1, 1, 1, -1])]
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
    for i, (value, time, gap) in enumerate(readings):
        other = implementation.Builder.restore(one.state())
        for builder, out in ((one, closed), (other, again)):
            builder.add(value, time, gap)
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
    with pytest.raises(ValueError, match="168 bytes"):
        implementation.Bucket.unpack(b"short")
    for state in (b"", b"JUNK" + builder.state()[4:], builder.state() + b"x"):
        with pytest.raises(ValueError, match="not a builder's state"):
            implementation.Builder.restore(state)


def test_verify_finds_every_damaged_field(implementation: ModuleType) -> None:
    """A record with one field out of place is refused by unpack, whichever field it is."""
    bucket = folded(implementation, [(1.0, 10, 0), (3.0, 20, 0), (-2.0, 30, 0), (0.5, 40, 0)], first=4)
    damage = {"first": -1, "n": 0, "t_first": 41, "t_last": 9, "total": math.nan, "pre_low": math.inf, "flags": 4}
    damage |= {"low": 2.0, "high": 0.75, "x_first": 9.0, "x_last": -9.0, "pre_high": -math.inf, "gap": 2**62}
    damage |= {"low_o_first": 3, "low_o_last": 8, "high_o_first": 0, "low_t_first": 5, "high_t_last": 99}
    for name, value in damage.items():
        fields = {field: getattr(bucket, field) for field in pure.FIELDS} | {name: value}
        with pytest.raises(ValueError, match="bucket at ordinal"):
            implementation.Bucket.unpack(pure.Bucket(**fields).pack())


@pytest.mark.parametrize(("value", "module"), [("1", "sluicegate.reference.buckets"), ("0", "sluicegate._buckets")])
def test_the_environment_picks_the_twin(value: str, module: str) -> None:
    """SLUICEGATE_PURE=1 gives the readable twin, anything else the compiled module."""
    code = "from sluicegate.buckets import Bucket; print(Bucket.__module__)"
    environment = os.environ | {"SLUICEGATE_PURE": value}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == module


def test_public_names_are_exported() -> None:
    """The public path carries what architecture.md names."""
    public = importlib.import_module("sluicegate.buckets")
    assert set(public.__all__) >= {"Bucket", "Builder", "merge"}
