"""A store that fails, is slow, loses writes or gives wrong bytes: what is raised, and the window is right after it."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

import pytest
from fault_stores import Corrupting, DiedError, Failing, Losing
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import some

import sluicegate as sg
from sluicegate.errors import CorruptPageError, StoreError
from sluicegate.stores import Key, Memory, Plan, stored_core

ENGINES = [engine for engine in stored_core.ENGINES if engine in sg.ENGINES]
SUMS = {"sum": sg.sum(), "max": sg.max(), "first": sg.first()}


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """Each engine that has a stored form."""
    return str(request.param)


def values(count: int, seed: int = 1) -> list[float]:
    """Whole numbers, so sums are exact however they are combined."""
    source = random.Random(seed)
    return [float(source.randrange(-50, 50)) for _ in range(count)]


def plain_of(readings: list[float], policy: Any) -> sg.Window:
    """The window in memory after these readings."""
    window = sg.Window(SUMS, policy=policy)
    window.insert_many(readings, results=False)
    return window


def shape(window: sg.Window) -> list[Any]:
    """All leaves' results."""
    return [bucket.results for bucket in window.buckets()]


def _copy(store: Memory) -> Memory:
    survivor = Memory(store.plan)
    survivor.rows = dict(store.rows)
    return survivor


def insert_until_error(window: sg.Window, readings: list[float]) -> int:
    """How many of the readings were taken before StoreError."""
    for i, value in enumerate(readings):
        try:
            window.insert(value)
        except StoreError:
            return i
    return len(readings)


def test_put_fails_then_works(engine: str) -> None:
    """While nothing can be written a bounded number of pages waits; then readings are refused, with nothing changed."""
    store, policy, readings = Failing(Plan(2, 4)), sg.policies.count(600), values(3_000)
    window = sg.Window(SUMS, policy=policy, engine=engine, store=store)
    store.fails = {"put"}
    taken = insert_until_error(window, readings)
    assert 160 * 4 <= taken <= 256 * 4
    for _ in range(2):
        before = window.query(), len(window), window.accepted
        with pytest.raises(StoreError, match="put fails on purpose"):
            window.insert(readings[taken])
        assert (window.query(), len(window), window.accepted) == before
    assert window.query() == plain_of(readings[:taken], policy).query()
    with pytest.raises(StoreError, match="put fails on purpose"):
        window.flush()
    store.fails = set()
    for value in readings[taken:]:
        window.insert(value)
    window.verify()
    assert shape(window) == shape(plain_of(readings, policy))
    window.close()
    assert sg.Window.open(store.reopen()).query() == plain_of(readings, policy).query()


def test_a_batch_that_fails_in_the_middle(engine: str) -> None:
    """insert_many says by `accepted` how many readings are in; going on from there gives what no failure would have."""
    store, policy, readings = Failing(Plan(2, 4)), sg.policies.count(600), values(3_000)
    window = sg.Window(SUMS, policy=policy, engine=engine, store=store)
    window.insert_many(readings[:700], results=False)
    window.flush()
    store.fails = {"put"}
    with pytest.raises(StoreError, match="put fails"):
        window.insert_many(readings[700:])
    assert 700 < window.accepted < 700 + 256 * 4
    assert window.query() == plain_of(readings[: window.accepted], policy).query()
    store.fails = {"get"}
    with pytest.raises(StoreError, match="get fails"):
        window.insert_many(readings[window.accepted :])
    store.fails = set()
    window.insert_many(readings[window.accepted :], results=False)
    assert shape(window) == shape(plain_of(readings, policy))
    window.verify()


def test_a_result_that_could_not_be_had_is_not_made_up() -> None:
    """A page that cannot be read once only, in the middle of a batch with results: StoreError, not a wrong column."""

    class Once(Failing):
        left = 1

        def get(self, keys: Any) -> list[bytes | None]:
            if threading.get_ident() != caller:
                return [None] * len(keys)  # nothing is read ahead
            if "once" in self.fails and self.left:
                self.left -= 1
                raise StoreError("once")
            return super().get(keys)

    caller = threading.get_ident()
    store, policy, readings = Once(Plan(2, 4)), sg.policies.count(600), values(3_000)
    window = sg.Window(SUMS, policy=policy, store=store)
    window.insert_many(readings[:1_000], results=False)
    window.flush()  # what still waits for the store is not read from it
    store.fails = {"once"}
    with pytest.raises(StoreError, match="once"):
        window.insert_many(readings[1_000:1_500])
    assert 1_000 < window.accepted <= 1_500
    assert window.query() == plain_of(readings[: window.accepted], policy).query()
    store.left = 1
    window.insert_many(readings[window.accepted :], results=False)  # without results there is nothing to make up
    assert shape(window) == shape(plain_of(readings, policy))


@pytest.mark.parametrize("policy", [sg.policies.count(600), sg.policies.time(600), sg.policies.count(600, hop=300)])
def test_get_fails_then_works(engine: str, policy: Any) -> None:
    """While a page cannot be read no answer is given and no reading taken; then all is as if nothing had happened."""
    store, readings = Failing(Plan(2, 4)), values(4_000)
    window = sg.Window(SUMS, policy=policy, engine=engine, store=store)
    for i, value in enumerate(readings[:1_000]):
        window.insert(value, i)
    store.fails = {"get"}
    failed = 0
    while not failed and window.accepted < 1_600:
        try:
            window.insert(readings[window.accepted], window.accepted)
        except StoreError:
            failed = window.accepted
    assert failed, "the pages at the head were never needed"
    for call in (window.query, window.buckets, window.flush, window.snapshot, lambda: window.insert(0.0, failed)):
        with pytest.raises(StoreError, match="get fails"):
            call()
    assert window.accepted == failed
    store.fails = set()
    plain = sg.Window(SUMS, policy=policy)
    for i in range(failed):
        plain.insert(readings[i], i)
    assert window.query() == plain.query()
    for i in range(failed, len(readings)):
        window.insert(readings[i], i)
        plain.insert(readings[i], i)
        assert window.query() == plain.query()
    assert shape(window) == shape(plain)
    window.verify()


def test_get_fails_in_a_bulk_eviction(engine: str) -> None:
    """A page on the way down cannot be read: nothing leaves until it can be, then all that should."""
    store, policy, readings = Failing(Plan(2, 4)), sg.policies.time(10_000), values(3_000)
    window, plain = sg.Window(SUMS, policy=policy, engine=engine, store=store), sg.Window(SUMS, policy=policy)
    for i, value in enumerate(readings):
        window.insert(value, i)
        plain.insert(value, i)
    store.fails = {"get"}
    window.insert(7.0, 11_500)
    plain.insert(7.0, 11_500)
    with pytest.raises(StoreError, match="get fails"):
        window.query()
    store.fails = set()
    assert window.query() == plain.query()
    assert len(window) == len(plain) == 1_500 - 1 + 1
    window.verify()


def test_a_callable_policy_while_get_fails(engine: str) -> None:
    """The policy is not asked about what cannot be had; it decides with the next reading."""
    store, readings = Failing(Plan(1, 2)), values(900)

    def rule(total: Any, old: Any) -> bool:
        return bool(total.count > 300)

    window, plain = sg.Window(SUMS, policy=rule, engine=engine, store=store), sg.Window(SUMS, policy=rule)
    for value in readings[:400]:
        window.insert(value)
        plain.insert(value)
    store.fails = {"get"}
    while window.accepted < 700:
        try:
            window.insert(readings[window.accepted])
        except StoreError:
            break
        plain.insert(readings[plain.accepted])
    assert window.accepted < 700
    store.fails = set()
    while window.accepted < 900:
        window.insert(readings[window.accepted])
    while plain.accepted < 900:
        plain.insert(readings[plain.accepted])
    assert window.query() == plain.query()
    window.verify()


def test_delete_fails_then_works() -> None:
    """Pages that have left stay until they can be deleted; the window does not wait for that."""
    store, policy, readings = Failing(Plan(2, 4)), sg.policies.count(100), values(2_000)
    window = sg.Window(SUMS, policy=policy, store=store)
    store.fails = {"delete"}
    for value in readings:
        try:
            window.insert(value)
        except StoreError:
            store.fails = set()
            window.insert(value)
    assert window.query() == plain_of(readings, policy).query()
    store.fails = set()
    window.flush()
    window.close()
    assert len([key for key in store.rows if key.level == 0]) <= 60


def test_beginning_and_opening_fail_then_work() -> None:
    """A store that fails at first is free for the next attempt, even while the error is being handled."""
    store, policy = Failing(Plan(2, 1)), sg.policies.count(30)
    store.fails = {"put"}
    try:
        sg.Window(SUMS, policy=policy, store=store)
    except StoreError:
        store.fails = set()
        window = sg.Window(SUMS, policy=policy, store=store)
    window.insert_many(values(200), results=False)
    window.close()
    again = Failing(Plan(2, 1))
    again.rows, again.fails = store.rows, {"put"}
    try:
        sg.Window.open(again)
    except StoreError:
        again.fails = set()
        opened = sg.Window.open(again)
    assert opened.query() == plain_of(values(200), policy).query()


def test_sync_fails_then_works() -> None:
    """flush says that it is not durable, and the manifest before it stays good."""
    store, policy, readings = Failing(Plan(2, 10**6)), sg.policies.count(100), values(300)
    window = sg.Window(SUMS, policy=policy, store=store)
    window.insert_many(readings[:200], results=False)
    window.flush()
    store.fails = {"sync"}
    window.insert_many(readings[200:], results=False)
    with pytest.raises(StoreError, match="sync fails"):
        window.flush()
    store.fails = set()
    window.flush()
    assert sg.Window.open(_copy(store)).query() == plain_of(readings, policy).query()


@pytest.mark.parametrize("how", ["bit", "short", "none", "empty", "another", "version"])
def test_wrong_bytes_are_never_believed(engine: str, how: str) -> None:
    """A page damaged, cut, missing or swapped is an error when it is needed; whole again, all is right."""
    store, policy, readings = Corrupting(Plan(2, 4)), sg.policies.count(400), values(1_200)
    window = sg.Window(SUMS, policy=policy, engine=engine, store=store)
    window.insert_many(readings[:500], results=False)
    window.flush()
    store.spoilt = {Key(0, 60): how, Key(2, 15): how}
    with pytest.raises(CorruptPageError):
        window.verify()
    for attempt in range(700):
        try:
            window.insert(readings[500 + attempt])
        except CorruptPageError:
            break
    else:
        pytest.fail("the pages were never needed")
    with pytest.raises(CorruptPageError):
        window.query()
    store.spoilt = {}
    assert window.query() == plain_of(readings[: window.accepted], policy).query()
    window.insert_many(readings[window.accepted :], results=False)
    window.verify()
    assert shape(window) == shape(plain_of(readings, policy))


def test_pages_of_another_life_are_not_believed() -> None:
    """A confirmed write that is gone, with an earlier life's page in its place, is noticed."""
    policy, readings = sg.policies.count(64), values(200)
    store = Memory(Plan(2, 10**6))
    window = sg.Window(SUMS, policy=policy, store=store)
    window.insert_many(readings[:101], results=False)
    window.flush()
    early = _copy(store)
    window.insert_many([1.0] * 20, results=False)
    window._core._checkpoint()  # pages 25 … 29 of the first life are stored, and then that life is forgotten
    window.flush()
    late = dict(store.rows)
    again = sg.Window.open(early)
    again.insert_many(readings[101:140], results=False)
    again.flush()
    assert early.rows[Key(0, 27)] != late[Key(0, 27)]
    early.rows[Key(0, 27)] = late[Key(0, 27)]
    with pytest.raises(CorruptPageError, match="life 1, expected 2"):
        sg.Window.open(early_copy := _copy(early)).verify()
    early_copy.rows[Key(0, 20)] = late[Key(0, 20)]
    assert early.rows[Key(0, 20)] == late[Key(0, 20)], "pages before the second life are the first one's"


def states_of(readings: list[float], policy: Any, engine: str) -> list[tuple[Any, Any]]:
    """What the window answers and holds after each number of readings."""
    window = sg.Window(SUMS, policy=policy, engine=engine)
    found = [(window.query(), shape(window))]
    for value in readings:
        window.insert(value)
        found.append((window.query(), shape(window)))
    return found


@pytest.mark.parametrize("seed", some(range(4), 3))
def test_every_crash_point(seed: int) -> None:
    """A power cut before, in and after every call of a store that keeps what it likes of unsynced writes.

    The window opens as it was after some number of readings, not fewer than were flushed; never a mixture; and goes on.
    """
    policy, source = sg.policies.count(23 + seed), random.Random(seed)
    readings = [source.gauss(0.0, 1.0) for _ in range(80)]
    engine, die_at = ENGINES[seed % len(ENGINES)], 0
    states = states_of(readings, policy, engine)
    while True:
        store, flushed = Losing(Plan(1 + seed // 2, 3), 1000 * seed + die_at, die_at), -1
        try:
            window = sg.Window(SUMS, policy=policy, engine=engine, store=store)
            flushed = 0
            for i, value in enumerate(readings):
                window.insert(value)
                if i % 23 == 22:
                    window.flush()
                    flushed = i + 1
            window.close()
            flushed = 80
            if store.calls <= die_at:
                return
            died = True
        except StoreError as error:
            died = isinstance(error.__cause__, DiedError)
        assert died
        die_at += 1
        survivor = store.crash()
        if not [key for key in survivor.rows if key.level == -1]:
            assert flushed == -1
            continue
        try:
            opened = sg.Window.open(survivor)
        except CorruptPageError:
            assert flushed == -1, "only the very first manifest may be torn with no other beside it"
            continue
        assert flushed <= opened.accepted <= 80
        assert (opened.query(), shape(opened)) == states[opened.accepted]
        opened.verify()
        for value in readings[opened.accepted :]:
            opened.insert(value)
        assert (opened.query(), shape(opened)) == states[80]
        opened.close()


Plans = st.lists(st.sets(st.sampled_from(["put", "get", "delete", "sync"]), max_size=2), min_size=1, max_size=8)


@settings(max_examples=40, deadline=None)
@given(Plans, st.integers(1, 3), st.integers(1, 80), st.booleans(), st.sampled_from(ENGINES))
def test_any_failures_at_any_time(failures: list[set[str]], shift: int, size: int, by_time: bool, engine: str) -> None:
    """Failures that come and go: each call succeeds or raises StoreError, and nothing is missing or wrong after."""
    policy = sg.policies.time(size) if by_time else sg.policies.count(size)
    store, readings = Failing(Plan(shift, 2)), values(60 * len(failures))
    window, plain = sg.Window(SUMS, policy=policy, engine=engine, store=store), sg.Window(SUMS, policy=policy)
    for k, failing in enumerate(failures):
        store.fails = failing
        for n in range(60 * k, 60 * k + 60):
            time = 4 * n
            try:
                window.insert(readings[n], time)
            except StoreError:
                store.fails = set()
                window.insert(readings[n], time)
            plain.insert(readings[n], time)
            assert window.accepted == plain.accepted
    store.fails = set()
    assert window.query() == plain.query()
    assert shape(window) == shape(plain)
    window.verify()
    window.close()


def test_the_writer_tries_again_by_itself() -> None:
    """After a failure that no call was waiting for, the thread writes within seconds without being asked."""
    store = Failing(Plan(1, 1))
    window = sg.Window(SUMS, policy=sg.policies.count(50), store=store)
    store.fails = {"put"}
    window.insert_many(values(40), results=False)
    deadline = time.monotonic() + 120.0
    while "put" not in store.calls and time.monotonic() < deadline:
        time.sleep(0.01)
    store.fails = set()
    while not any(key.level == 0 for key in store.rows) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert any(key.level == 0 for key in store.rows)
    window.close()
