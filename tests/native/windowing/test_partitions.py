"""Partitions: which leave and when (3.5), in what order, and that the handler sees them first."""

from __future__ import annotations

from typing import Any

import pytest
from listening import Hears

import sluicegate as sg

SLIDING = {"kind": "sliding", "evict": sg.policies.count(2), "trigger": sg.triggers.count(1), "key": "k"}


class Leaving(sg.WindowHandler):
    """What left: keys with their readings, as the handler saw them."""

    def __init__(self) -> None:
        self.left: list[list[tuple[Any, int]]] = []

    def partition_eviction(self, window: Any, partitions: Any) -> None:
        assert all(each in list(window.partitions()) for each in partitions), "they are still there"
        self.left.append([(each.key, len(window.readings(each.key))) for each in partitions])


def run(keys: str, handler: Any = None, **limits: Any) -> tuple[sg.WindowOperator, Leaving]:
    """Readings of the keys, one a µs."""
    handler = handler or Leaving()
    clock = [0]
    window = sg.WindowOperator(
        sg.WindowSpec(**SLIDING, partitions=sg.PartitionEviction(**limits)), handler, lambda: clock[0]
    )
    for k in keys:
        clock[0] += 1
        window.insert({"k": k})
    return window, handler


@pytest.mark.parametrize(("select", "left"), [("lru", [[("b", 1)]]), ("lfu", [[("c", 1)]]), ("oldest", [[("a", 2)]])])
def test_which_leaves_where_there_are_too_many(select: str, left: Any) -> None:
    """a came first, b not for the longest time but twice before, c once."""
    window, handler = run("abbcaad", count=3, select=select)
    assert handler.left == [left[0] if left[0][0][0] != "b" else [("b", 2)]]
    assert len(list(window.partitions())) == 3
    assert {each.key for each in window.partitions()} == set("abcd") - {left[0][0][0]}


def test_room_is_made_before_a_new_partition_enters() -> None:
    """3.5.1: "one is evicted to make space"; the newcomer is no candidate, though it has the fewest updates."""
    window, handler = run("aab", count=1, select="lfu")
    assert handler.left == [[("a", 2)]]
    assert [each.key for each in window.partitions()] == ["b"]


def test_as_many_leave_as_there_are_readings_too_many() -> None:
    """3.5.1: "one or more subwindows are removed until there is no need"."""
    window, handler = run("abccdd", readings=4)
    assert handler.left == [[("a", 1)], [("b", 1)]]
    assert len(window) == 4


def test_full_windows_move_on_within_the_limit() -> None:
    """What is evicted as a reading enters makes room for it: nobody has to leave."""
    window, handler = run("aabbab", readings=4)
    assert handler.left == []
    assert len(window) == 4


def test_the_last_partition_leaves_where_it_alone_is_too_much() -> None:
    """No exception for the one that was just updated."""
    window, handler = run("aa", readings=1)
    assert handler.left == [[("a", 2)]]
    assert len(window) == 0


def test_age_by_the_clock_alone() -> None:
    """A silent sensor's last result comes at the age itself, then it leaves, though nothing arrives."""
    told: list[Any] = []

    class Sensor(sg.WindowHandler):
        def trigger(self, window: Any, key: Any) -> None:
            told.append((window.now, "trigger", key))

        def partition_eviction(self, window: Any, partitions: Any) -> None:
            told.append((window.now, "leaves", [each.key for each in partitions]))

    now = [0]
    partitions = sg.PartitionEviction(age=10)
    spec = sg.WindowSpec(
        kind="sliding", evict=sg.policies.time(3), trigger=sg.triggers.time(5), key="k", partitions=partitions
    )
    window = sg.WindowOperator(spec, Sensor(), lambda: now[0])
    window.insert({"k": "a"})
    now[0] = 5
    window.insert({"k": "b"})
    now[0] = 100
    window.advance()
    assert told == [
        (5, "trigger", "a"), (10, "trigger", "a"), (10, "trigger", "b"), (10, "leaves", ["a"]),
        (15, "trigger", "b"), (15, "leaves", ["b"]),
    ]  # fmt: skip
    assert list(window.partitions()) == []


def test_the_handler_selects() -> None:
    """4.1.3: the selection event, only where the policy is the user's; several may leave at once."""

    class Chooses(Leaving):
        def partition_selection(self, window: Any, partitions: Any) -> Any:
            return [each.key for each in partitions if each.key != "a"]

    window, handler = run("abcd", Chooses(), count=3, select="user")
    assert handler.left == [[("b", 1), ("c", 1)]]
    assert [each.key for each in window.partitions()] == ["a", "d"]
    _, unasked = run("abcd", Chooses(), count=3, select="oldest")
    assert unasked.left == [[("a", 1)]]


def test_a_callable_selects() -> None:
    """By whatever a partition tells of itself."""
    _, handler = run("aabbbc", count=2, select=lambda partitions: [max(partitions, key=lambda each: each.updates).key])
    assert handler.left == [[("b", 2)]]


@pytest.mark.parametrize("chosen", [[], ["x"], ["a", "x"]])
def test_a_selection_that_selects_nothing_is_refused(chosen: list[str]) -> None:
    """It would never end; nothing has left, and the reading that asked for room is not in."""
    with pytest.raises(sg.errors.PolicyError, match="partition selection: chose"):
        run("ab", count=1, select=lambda partitions: chosen)


def test_who_selects_must_be_there() -> None:
    """Found when the window is made."""
    spec = sg.WindowSpec(**SLIDING, partitions=sg.PartitionEviction(count=1, select="user"))
    with pytest.raises(sg.errors.ConfigurationError, match="'user', but the handler has no partition_selection"):
        sg.WindowOperator(spec, sg.WindowHandler())


def test_what_has_left_is_forgotten() -> None:
    """Trigger and initial-full of a key that comes again begin anew (4.2: state is cleaned with the partition)."""
    heard = Hears()
    spec = sg.WindowSpec(
        kind="sliding", evict=sg.policies.count(1), trigger=sg.triggers.count(2), key="k",
        partitions=sg.PartitionEviction(count=1),
    )  # fmt: skip
    window = sg.WindowOperator(spec, heard)
    for k in "aba":
        window.insert({"k": k})
    assert [event for event, *_ in heard.events].count("initial_full") == 3
    assert [event for event, *_ in heard.events].count("trigger") == 0


def test_a_key_of_several_attributes_and_one_of_any_kind() -> None:
    """By name, in mappings and in objects; or what a callable makes of a reading."""
    seen: list[Any] = []

    class Keys(sg.WindowHandler):
        def after_insert(self, window: Any, key: Any, reading: Any) -> None:
            seen.append(key)

    for key in ("k", ["k", "n"], lambda reading: reading["n"] % 2):
        sg.WindowOperator(sg.WindowSpec(kind="tumbling", evict=sg.policies.count(2), key=key), Keys()).insert(
            {"k": "a", "n": 3}
        )
    assert seen == ["a", ("a", 3), 1]


def test_another_store_takes_the_place_of_the_partitions() -> None:
    """What the window asks of it is what `PartitionStore` has."""
    from sluicegate.windowing.partitions import PartitionStore

    class Counting(PartitionStore):
        made = 0

        def add(self, key: Any, now: int) -> Any:
            self.made += 1
            return super().add(key, now)

    store = Counting()
    window = sg.WindowOperator(sg.WindowSpec(**SLIDING), store=store)
    for k in "abab":
        window.insert({"k": k})
    assert store.made == 2


def test_deadlines_of_what_has_left_are_not_kept() -> None:
    """Keys come and go for ever while their age would be a day."""
    spec = sg.WindowSpec(
        kind="sliding", evict=sg.policies.time("1d"), trigger=sg.triggers.time("1d"), key="k",
        partitions=sg.PartitionEviction(count=10, age="1d"),
    )  # fmt: skip
    window = sg.WindowOperator(spec)
    for k in range(3000):
        window.insert({"k": k})
    assert len(list(window.partitions())) == 10
    assert len(window._heap) < 300


def test_many_partitions_leave_by_frequency_in_order() -> None:
    """The least frequently updated, of equals the oldest, among thousands."""
    keys = [i % 50 for i in range(2000)] + list(range(0, 50, 2))
    left: list[Any] = []

    class Notes(sg.WindowHandler):
        def partition_eviction(self, window: Any, partitions: Any) -> None:
            left.extend(each.key for each in partitions)

    partitions = sg.PartitionEviction(count=50, select="lfu")
    window = sg.WindowOperator(sg.WindowSpec(**SLIDING, partitions=partitions), Notes())
    for k in keys:
        window.insert({"k": k})
    for k in range(100, 105):
        window.insert({"k": k})
        window.insert({"k": k, "again": True})
    assert left == [1, 100, 101, 102, 103]
