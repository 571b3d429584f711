"""Columns of objects' numbers are what each object says, or none at all; compiled and pure."""

from __future__ import annotations

from typing import Any

import items_twin as pure
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.format import items as compiled

EARLIEST, LATEST = -62_135_596_800_000_000, 253_402_300_799_999_999
ODD = st.one_of(st.none(), st.booleans(), st.text(max_size=2), st.just([1]), st.just(10**400), st.integers())
NUMBERS = st.integers(-(2**40), 2**40) | st.floats(-1e12, 1e12) | st.floats()
ITEMS = st.fixed_dictionaries({"t": NUMBERS, "a": NUMBERS}, optional={"b": NUMBERS})
ANY = ITEMS | ODD | st.fixed_dictionaries({"t": NUMBERS | ODD, "a": NUMBERS | ODD})
BOTH = pytest.mark.parametrize("implementation", [compiled, pure], ids=["compiled", "pure"])


@given(
    items=st.lists(ITEMS, max_size=5) | st.lists(ANY, max_size=5),
    time=st.sampled_from([None, "t"]),
    scale=st.sampled_from([1, 1000, 1_000_000]),
    keys=st.sampled_from([("a",), ("a", "b"), ()]),
)
def test_both_read_the_same(items: list[Any], time: str | None, scale: int, keys: tuple[str, ...]) -> None:
    """Whatever the items are; nothing is raised."""
    asked = items, time, scale, EARLIEST, LATEST, keys
    assert compiled.columns(*asked) == pure.columns(*asked)


@BOTH
def test_times_are_rounded_to_even_and_values_are_as_they_are(implementation: Any) -> None:
    """Beside them the latest time and the greatest magnitude."""
    items = [{"t": 2.5, "a": -3, "b": 0.5}, {"t": 3.5, "a": 1, "b": 2**53 + 1}, {"t": 1, "a": 0.25, "b": -0.0}]
    times, columns, newest, largest = implementation.columns(items, "t", 1, EARLIEST, LATEST, ("a", "b"))
    assert times.tolist() == [2, 4, 1]
    assert [each.tolist() for each in columns] == [[-3.0, 1.0, 0.25], [0.5, float(2**53), -0.0]]
    assert (times.typecode, columns[0].typecode, newest, largest) == ("q", "d", 4, float(2**53))


@BOTH
@pytest.mark.parametrize(
    "odd",
    [{"t": 1}, {"a": 1.0}, {"t": LATEST + 1, "a": 1}, {"t": float(LATEST), "a": 1}, {"t": EARLIEST - 1, "a": 1},
     {"t": 1, "a": float("nan")}, {"t": 2**70, "a": 1}, {"t": True, "a": 1}, {"t": 1, "a": "1"}, [1], "text", None],
)  # fmt: skip
def test_one_item_that_is_not_plain_leaves_all_to_a_closer_look(implementation: Any, odd: Any) -> None:
    """There is no half of a message."""
    items = [{"t": LATEST, "a": 1.0}, odd, {"t": EARLIEST, "a": 2}]
    assert implementation.columns(items, "t", 1, EARLIEST, LATEST, ("a",)) is None
    assert implementation.columns([items[0], items[2]], "t", 1, EARLIEST, LATEST, ("a",)) is not None


@given(
    items=st.lists(ITEMS, max_size=5) | st.lists(ANY, max_size=5),
    numbers=st.lists(st.sampled_from([0, 1, 2, 3, 4, True, "1", 2**70, 1.0]), min_size=5, max_size=5)
    | st.just([3, 4, 5, 6, 7]),
    epochs=st.lists(st.sampled_from(["e", "e", "e", 1, True, None]), min_size=5, max_size=5) | st.just(["e"] * 5),
    epoch=st.sampled_from([None, "e", "missing"]),
    named=st.sampled_from(["e", 1]),
)
def test_both_read_the_same_runs(
    items: list[Any], numbers: list[Any], epochs: list[Any], epoch: str | None, named: str | int
) -> None:
    """Up to the same item, whatever the items are."""
    for item, n, e in zip(items, numbers, epochs, strict=False):
        if isinstance(item, dict):
            item.update(n=n, e=e)
    first = numbers[0] if type(numbers[0]) is int else 0
    if abs(first) < 2**63 - 8:
        assert compiled.run_length(items, "n", first, epoch, named) == pure.run_length(items, "n", first, epoch, named)


@BOTH
def test_a_run_ends_where_something_else_begins(implementation: Any) -> None:
    """At another number or epoch, and at what is no object; what is before it counts."""
    plain = [{"n": n, "e": "a"} for n in range(5, 9)]
    asked = "n", 5, "e", "a"
    assert implementation.run_length(plain, *asked) == 4
    for change in ({"n": 9}, {"n": 7.0}, {"n": True}, {"e": "b"}, {"e": None}):
        assert implementation.run_length([*plain[:2], plain[2] | change, plain[3]], *asked) == 2
    for odd in (None, [1], {}, "n"):
        assert implementation.run_length([*plain[:3], odd], *asked) == 3
    assert implementation.run_length([], *asked) == implementation.run_length(plain[1:], *asked) == 0
    assert implementation.run_length([{"n": 5}], "n", 5, None, None) == 1
