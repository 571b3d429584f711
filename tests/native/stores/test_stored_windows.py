"""A window with a store is the window without one: every small size, pages of 2 to 16 partials, reopened anywhere."""

from __future__ import annotations

import gc
import random
from array import array
from pathlib import Path
from typing import Any

import pytest
from exact_windows import ALL
from file_stores import couchbase_lite
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sluicegate as sg
from sluicegate.errors import (
    BusyError,
    ConfigurationError,
    CorruptPageError,
    ForeignSnapshotError,
    StoreError,
)
from sluicegate.stores import Key, Memory, Plan, SQLite, stored_core

ENGINES = [engine for engine in stored_core.ENGINES if engine in sg.ENGINES]
SUMS = {"sum": sg.sum(), "max": sg.max(), "first": sg.first()}


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """Each engine that has a stored form."""
    return str(request.param)


def pair(aggregates: Any, policy: Any, plan: Plan, **options: Any) -> tuple[sg.Window, sg.Window, Memory]:
    """The same window in a store and in memory."""
    store = Memory(plan)
    stored = sg.Window(aggregates, policy=policy, store=store, **options)
    return stored, sg.Window(aggregates, policy=policy, **options), store


def shape(window: sg.Window) -> list[tuple[Any, ...]]:
    """All leaves, with their results."""
    return [(b.count, b.results) for b in window.buckets()]


def agree(stored: sg.Window, plain: sg.Window) -> None:
    """Bit for bit the same answers and leaves, and both whole."""
    assert stored.query() == plain.query()
    assert (len(stored), stored.accepted, stored.readings) == (len(plain), plain.accepted, plain.readings)
    stored.verify()
    for part in ("rest", "total"):
        ours, theirs = (getattr(window._core, part)() for window in (stored, plain))
        assert bool(ours) == bool(theirs)
        assert not ours or stored._core.lower(ours) == plain._core.lower(theirs)


@pytest.mark.parametrize("shift", [1, 2, 3])
def test_every_window_size(engine: str, shift: int) -> None:
    """Count windows of sizes up to 70 fill and slide over pages of 2, 4 and 8: levels cross pages at every offset."""
    for size in [*range(1, 20), 31, 32, 33, 47, 63, 64, 65, 70]:
        stored, plain, store = pair(SUMS, sg.policies.count(size), Plan(shift, 3), engine=engine)
        source = random.Random(size)
        for i in range(2 * size + 40):
            value = source.gauss(0.0, 1.0)
            stored.insert(value)
            plain.insert(value)
            assert stored.query() == plain.query()
            if i % 13 == 0:
                agree(stored, plain)
        assert shape(stored) == shape(plain)
        stored.flush()
        leaf_pages = [key for key in store.rows if key.level == 0]
        assert len(leaf_pages) <= (size >> shift) + 2 + 3 + 2, "what has left is deleted"
        stored.close()


class Leave:
    """Evicts as many of the oldest readings as it is told."""

    monotone = True

    def __init__(self) -> None:
        self.keep = 10**9

    def __call__(self, total: Any, old: Any) -> bool:
        """Whether the readings after `old` are at least those to keep."""
        return bool(total.count - old.count >= self.keep)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 9, 16, 33, 64, 99])
def test_every_eviction_length(engine: str, size: int) -> None:
    """Any number of readings leaves at once, all of them too, from the store, and filling goes on."""
    for length in range(0, size + 2, 1 if size < 20 else 5):
        rules = Leave(), Leave()
        policies = [sg.policies.custom(rule, monotone=True, label="leave") for rule in rules]
        stored = sg.Window(SUMS, policy=policies[0], engine=engine, store=Memory(Plan(1 + size % 3, 2)))
        plain = sg.Window(SUMS, policy=policies[1], engine=engine)
        for step in range(size + 20):
            for rule in rules:
                rule.keep = size + 1 - length if step == size else 10**9
            for window in (stored, plain):
                window.insert(float(step * 31 % 17) / 3.0)
            assert stored.query() == plain.query()
        agree(stored, plain)
        stored.close()


Steps = st.lists(
    st.tuples(st.floats(-9, 9), st.one_of(st.integers(0, 5), st.integers(-20, 60), st.just(300))), max_size=150
)
Policies = st.one_of(
    st.integers(1, 60).map(sg.policies.count),
    st.integers(1, 200).map(sg.policies.time),
    st.tuples(st.integers(1, 30), st.integers(1, 30)).map(lambda nh: sg.policies.count(nh[0], hop=nh[1])),
    st.integers(1, 60).map(lambda n: sg.policies.count(n, up_to="max")),
    st.floats(0, 9).map(lambda width: sg.policies.delta(None, width)),
    st.floats(1, 40).map(lambda limit: sg.policies.total(None, limit)),
    st.just(sg.policies.newer_than_maximum()),
)
Buckets: Any = st.sampled_from(
    [[], [], [sg.SumLike(atol=5.0)], [sg.MaxLike(staircase=False)], [sg.SumLike(error=0.2), sg.Hop()]]
)


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    Steps, Policies, Buckets, st.integers(1, 4), st.integers(1, 4), st.sets(st.integers(0, 149), max_size=3), st.data()
)
def test_random_streams(
    steps: list[tuple[float, int]],
    policy: Any,
    histograms: Any,
    shift: int,
    every: int,
    reopened: set[int],
    data: st.DataObject,
) -> None:
    """Any stream, policy, histogram and page size, reopened anywhere: the same bits as in memory."""
    simple = isinstance(policy, sg.policies.Count | sg.policies.Time)
    highest = getattr(policy, "up_to", None) or (histograms and isinstance(histograms[0], sg.MaxLike))
    histograms = [each for each in histograms if simple and (policy.hop > 1 or not isinstance(each, sg.Hop))]
    histograms = [] if highest and not isinstance(([*histograms, None])[0], sg.MaxLike) else histograms
    engine = data.draw(st.sampled_from(ENGINES))
    stored, plain, store = pair(
        {"max": sg.max()} if highest else ALL, policy, Plan(shift, every), histograms=histograms, engine=engine
    )
    time = 0
    for i, (value, tick) in enumerate(steps):
        time += abs(tick) if isinstance(policy, sg.policies.Time) else tick  # in a store late ones stay where they came
        stored.insert(value, time)
        plain.insert(value, time)
        assert stored.query() == plain.query()
        if i in reopened:
            stored.close()
            store = store.reopen()
            stored = sg.Window.open(store)
            agree(stored, plain)
    agree(stored, plain)
    if not histograms:
        assert stored.query(bounds=True) == plain.query(bounds=True)
    assert shape(stored) == shape(plain)
    stored.close()


def test_batches_give_the_same_as_readings(engine: str) -> None:
    """insert_many with results, over several slices and pages of 512, gives the columns of the window in memory."""
    source = random.Random(3)
    values = [source.gauss(5.0, 2.0) for _ in range(6_000)]
    stored, plain, _ = pair(SUMS, sg.policies.count(1_700), Plan(), engine=engine)
    for begin in range(0, len(values), 2_001):
        batch = values[begin : begin + 2_001]
        assert stored.insert_many(batch) == plain.insert_many(batch)
    assert stored.insert_many(values, results=False) is None
    plain.insert_many(values, results=False)
    agree(stored, plain)


KERNELS: dict[str, Any] = {
    "sum": {"s": sg.sum()}, "max": {"m": sg.max()}, "min": {"m": sg.min()}, "moments": {"v": sg.std()},
    "logs": {"g": sg.geometric_mean()}, "any": {"s": sg.sum(), "first": sg.first(), "run": sg.longest_run()},
}  # fmt: skip


@pytest.mark.parametrize("kernel", KERNELS)
def test_blocks_that_stay_within_their_pages(engine: str, kernel: str) -> None:
    """Batches of any length through pages of 2 to 32, by one or by hops: what is taken at once has the same bits."""
    source = random.Random(kernel)
    for shift, size, hop in [
        (1, 9, 1),
        (2, 13, 1),
        (3, 40, 1),
        (3, 41, 7),
        (4, 137, 1),
        (4, 90, 3),
        (5, 200, 1),
        (5, 64, 1),
    ]:
        stored, plain, _ = pair(KERNELS[kernel], sg.policies.count(size, hop=hop), Plan(shift, 3), engine=engine)
        for length in (33, 1, 100, 9, 2 * size, 31):
            values = [source.uniform(0.5, 9.0) for _ in range(length)]
            results = source.random() < 0.5
            found, expected = (w.insert_many(values, results=results) or {} for w in (stored, plain))
            for name, column in found.items():  # sums and moments of a long batch are within rounding
                within = 1e-12 if kernel in ("sum", "moments") else 0.0
                assert column.tolist() == pytest.approx(expected[name].tolist(), rel=within, abs=0.0)
            agree(stored, plain)
        assert shape(stored) == shape(plain)
        stored.close()


@pytest.mark.parametrize("kind", ["sqlite", "couchbase-lite"])
def test_over_a_file(engine: str, kind: str, tmp_path: Path) -> None:
    """The same through a file, closed and opened again three times."""
    kept = SQLite if kind == "sqlite" else couchbase_lite()
    source, policy = random.Random(4), sg.policies.count(700)
    stored = sg.Window(SUMS, policy=policy, engine=engine, store=kept(tmp_path / "w.db", Plan(4, 5)))
    plain = sg.Window(SUMS, policy=policy, engine=engine)
    for _ in range(3):
        for window, values in zip((stored, plain), [[source.random() for _ in range(1_500)]] * 2, strict=True):
            window.insert_many(values, results=False)
        stored.close()
        stored = sg.Window.open(kept(tmp_path / "w.db", Plan(9, 5)))
        agree(stored, plain)
    stored.close()


def test_memory_stays_logarithmic() -> None:
    """Ten times the window, the same partials in memory, give or take a tier."""
    held = []
    for size in (2_000, 20_000):
        window = sg.Window({"sum": sg.sum()}, policy=sg.policies.count(size), store=Memory(Plan(4, 8)))
        window.insert_many([1.0] * (2 * size), results=False)
        assert window.query()["sum"] == float(size)
        held.append(window.footprint.bytes if hasattr(window._engine, "blocks") else 0)
        assert len(window._core.engine_object.levels()) <= 4
        window.close()


# opening


def test_open_knows_the_window() -> None:
    """Aggregates, policy, histograms and center come from the store; what is given besides is checked."""
    store = Memory()
    made = sg.Window(
        {"mean": sg.mean("t"), "spread": sg.std("t", ddof=1), "peak": sg.max("p")},
        policy=sg.policies.time("1h", hop="1min"),
        histograms=[sg.SumLike(error=0.1, of=["mean"])], center={"t": 20.0, "p": 1.0}, store=store,
    )  # fmt: skip
    for i in range(100):
        made.insert({"t": 20.0 + i % 7, "p": 1.0 + i % 3}, i * 10**6)
    before = made.query()
    made.close()
    opened = sg.Window.open(store := store.reopen())
    assert opened.query() == before
    assert opened.center == (20.0, 1.0)
    assert opened._policy == sg.policies.time("1h", hop="1min")
    opened.close()
    with pytest.raises(ForeignSnapshotError):
        sg.Window.open(store := store.reopen(), policy=sg.policies.time("2h"))
    with pytest.raises(ForeignSnapshotError):
        sg.Window.open(store, {"mean": sg.mean()})
    sg.Window.open(store, policy=sg.policies.time("1h", hop="1min")).close()


def test_a_callable_policy_has_to_be_given() -> None:
    """Code is never stored: opening asks for it, and another one's name does not pass."""

    def rule(total: Any, old: Any) -> bool:
        return bool(total.count > 10)

    def other(total: Any, old: Any) -> bool:
        return True

    store = Memory(Plan(2, 1))
    window = sg.Window(SUMS, policy=rule, store=store)
    for i in range(50):
        window.insert(float(i))
    before = window.query()
    window.close()
    with pytest.raises(ConfigurationError, match="callable"):
        sg.Window.open(store := store.reopen())
    with pytest.raises(ForeignSnapshotError):
        sg.Window.open(store, policy=other)
    opened = sg.Window.open(store, policy=rule)
    assert opened.query() == before
    assert all(b"rule" not in value or b"lambda" not in value for value in store.rows.values())


def test_stores_are_not_shared_and_not_overwritten() -> None:
    """A store that holds a window begins no other; a store in use opens no second; a dropped window lets go."""
    store = Memory()
    window = sg.Window(SUMS, policy=sg.policies.count(3), store=store)
    with pytest.raises(ConfigurationError, match="holds a window already"):
        sg.Window(SUMS, policy=sg.policies.count(3), store=store)
    with pytest.raises(StoreError, match="another window"):
        sg.Window.open(store)
    window.insert(1.0)
    window.flush()
    del window
    gc.collect()
    again = sg.Window.open(store)
    assert again.query()["sum"] == 1.0
    with pytest.raises(ConfigurationError, match="holds no window"):
        sg.Window.open(Memory())


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"engine": "recalc"}, "in memory"),
        ({"histograms": [sg.Constrained(8)]}, "constrained footprint"),
        ({"engine": "nonsense"}, "expected one of"),
    ],
)
def test_what_has_no_stored_form(options: Any, reason: str) -> None:
    """Engines in memory and level eviction are refused with the reason, before the store is touched."""
    store = Memory()
    with pytest.raises(ConfigurationError, match=reason):
        sg.Window(SUMS, policy=sg.policies.count(9), store=store, **options)
    assert not store.rows


def test_windows_without_a_store() -> None:
    """Nothing to flush or close: said, not ignored."""
    window = sg.Window(SUMS, policy=sg.policies.count(9))
    for call in (window.flush, window.close):
        with pytest.raises(ConfigurationError, match="no store"):
            call()


def test_after_close() -> None:
    """A closed window takes no call any more, and says so."""
    window = sg.Window(SUMS, policy=sg.policies.count(9), store=Memory(Plan(1, 1)))
    window.insert(1.0)
    window.close()
    for call in (window.flush, window.close, window.query, window.verify, lambda: window.insert(1.0)):
        with pytest.raises(StoreError, match="closed"):
            call()
    with pytest.raises(StoreError, match="closed"):
        window.insert_many([1.0] * 4)


@pytest.mark.parametrize("every", [1, 2, 3])
def test_a_callable_policy_has_had_its_say_in_every_manifest(every: int) -> None:
    """Whenever the process ends, what opens is a window after a reading and its evictions, not in between."""

    def rule(total: Any, old: Any) -> bool:
        return bool(total.count > 9)

    store = Memory(Plan(1, every))
    window = sg.Window(SUMS, policy=rule, store=store)
    for i in range(60):
        window.insert(float(i))
        window._core._pager.flush(window._core._next - 1)
        survivor = Memory(store.plan)
        survivor.rows = dict(store.rows)
        opened = sg.Window.open(survivor, policy=rule)
        assert len(opened) == min(opened.accepted, 9)
        opened.close()


def test_a_policy_may_not_meddle() -> None:
    """A policy that inserts into its own window, flushes or closes it is told so."""
    store = Memory(Plan(1, 1))
    window: sg.Window

    def rule(total: Any, old: Any) -> bool:
        for call in (lambda: window.insert(1.0), window.flush, window.close):
            with pytest.raises(BusyError):
                call()
        return bool(total.count > 3)

    window = sg.Window(SUMS, policy=rule, store=store)
    for i in range(10):
        window.insert(float(i))
    assert len(window) == 3


def test_a_foreign_manifest_is_data_only() -> None:
    """A description that names what is not Sluicegate's own opens nothing."""
    from sluicegate.stores import manifest

    store = Memory()
    sg.Window(SUMS, policy=sg.policies.count(9), store=store).close()
    found, row = manifest.newest(store.reopen()) or (None, 0)
    assert found is not None
    for old, new in (
        (b'"Count"', b'"system"'),
        (b'"Count"', b'"Custom"'),
        (b'"limit"', b'"rulez"'),
        (b'"kind"', b'"kinds"'),
    ):
        assert old in found.description
        forged = found._replace(description=found.description.replace(old, new))
        again = store.reopen()
        again.put([(Key(-1, row), manifest.encode(forged))])
        with pytest.raises(CorruptPageError, match="description"):
            sg.Window.open(again)
        again.put([(Key(-1, row), manifest.encode(found))])


def test_a_window_in_a_store_evicts_by_its_policy() -> None:
    """What left by hand would be back after a crash, so it is refused; nothing has changed."""
    window = sg.Window(sg.sum(), policy=sg.policies.count(3), store=Memory(Plan(4, 8)))
    window.insert_many(array("d", [1.0, 2.0, 3.0, 4.0, 5.0]), results=False)
    before = window.query()
    with pytest.raises(ConfigurationError, match="in a store"):
        window.evict()
    assert window.query() == before
    window.close()
