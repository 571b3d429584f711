"""Columns of objects' numbers are what each object says, or none at all; compiled and pure."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.format import _items as compiled
from sluicegate.reference import items as pure

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
