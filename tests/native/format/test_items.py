"""Columns of objects' numbers are what each object says, or none at all; compiled and pure."""

from __future__ import annotations

import json
from typing import Any

import items_twin as pure
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.format import _items as compiled
from sluicegate.format import _json_columns

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
    largest=st.sampled_from([1e300, 1e6]),
)
def test_both_read_the_same_runs(
    items: list[Any], numbers: list[Any], epochs: list[Any], epoch: str | None, named: str | int, largest: float
) -> None:
    """Up to the same item, whatever the items are."""
    for item, n, e in zip(items, numbers, epochs, strict=False):
        if isinstance(item, dict):
            item.update(n=n, e=e)
    asked = (
        items,
        "n",
        numbers[0] if type(numbers[0]) is int else 0,
        epoch,
        named,
        "t",
        1000,
        EARLIEST,
        LATEST,
        largest,
        ("a",),
    )
    if abs(asked[2]) < 2**63 - 8:
        assert compiled.run_of(*asked) == pure.run_of(*asked)


@BOTH
def test_a_run_ends_where_something_else_begins(implementation: Any) -> None:
    """At another number, epoch, time or magnitude, and at what is no object; what is before it counts."""
    plain = [{"n": n, "e": "a", "t": n, "v": n / 2} for n in range(5, 9)]
    asked = "n", 5, "e", "a", "t", 10, 0, 80, 4.0, ("v",)
    times, (values,) = implementation.run_of(plain, *asked)
    assert (times.tolist(), values.tolist()) == ([50, 60, 70, 80], [2.5, 3.0, 3.5, 4.0])
    for change in (
        {"n": 9},
        {"e": "b"},
        {"e": None},
        {"t": 81},
        {"t": "7"},
        {"v": 4.5},
        {"v": float("nan")},
        {"v": True},
    ):
        assert implementation.run_of([*plain[:2], plain[2] | change, plain[3]], *asked)[0].tolist() == [50, 60]
    for odd in (None, [1], {}, "n"):
        assert implementation.run_of([*plain[:3], odd], *asked)[0].tolist() == [50, 60, 70]
    assert implementation.run_of([], *asked) == (implementation.run_of(plain[1:], *asked))


OF_TEXT = pytest.mark.parametrize("columns_of", [_json_columns.columns_of, pure.columns_of], ids=["compiled", "pure"])
DECIMALS = st.floats(-1e9, 1e9).map(lambda x: round(x, 3)) | st.floats(allow_nan=False, allow_infinity=False)
PLAIN = st.fixed_dictionaries(
    {"t": st.integers(0, 2**33) | st.floats(0, 1e9), "a": DECIMALS | st.integers(-(10**17), 10**17)},
    optional={"b": DECIMALS, "id": st.sampled_from(["x", "", "a b"]), "ok": st.booleans(), "no": st.none()},
)


@given(
    items=st.lists(PLAIN, min_size=1, max_size=5),
    scale=st.sampled_from([1, 1000, 1_000_000]),
    keys=st.sampled_from([("a",), ("a", "b")]),
    spaced=st.sampled_from([(",", ":"), (" ,\n", "\t: "), (", ", ": ")]),
)
def test_plain_text_is_read_as_its_items_are(
    items: list[Any], scale: int, keys: tuple[str, ...], spaced: tuple[str, str]
) -> None:
    """Bit for bit, however it is spaced."""
    text = json.dumps(items, separators=spaced).encode()
    asked = "t", scale, EARLIEST, LATEST, keys
    expected = pure.columns(items, *asked)
    for columns_of in (_json_columns.columns_of, pure.columns_of):
        found = columns_of(text, 5, *asked)
        assert found == expected
        if found and expected:
            assert [each.tobytes() for each in found[1]] == [each.tobytes() for each in expected[1]]


@given(
    text=st.lists(ANY, max_size=3).map(lambda items: json.dumps(items).encode()),
    cut=st.integers(0, 60),
    more=st.sampled_from([b"", b"]", b",", b"\0", b"{", b"1", b'"', b"\\", b"e5", b".5", b"-", b" ", b"\xff", b"null"]),
)
def test_what_is_not_plain_is_never_read_otherwise(text: bytes, cut: int, more: bytes) -> None:
    """Damaged anywhere: what is read at all is what the readable twin, and so a parser, reads."""
    damaged = text[:cut] + more + text[cut:]
    for each in (damaged, damaged[: len(text)]):
        asked = each, 5, "t", 1, EARLIEST, LATEST, ("a",)
        found = _json_columns.columns_of(*asked)
        assert found is None or found == pure.columns_of(*asked)


@OF_TEXT
@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", "[1]", '[{"t":1}]', '[{"t":1,"a":01}]', '[{"t":1,"a":1.}]', '[{"t":1,"a":+1}]',
     '[{"t":1,"a":NaN}]',
     '[{"t":1,"a":1,}]', '[{"t":1,"a":1},]', '[{"t":1,"a":1}', '[{"t":1,"a":1}]]', '[{"t":1,"a":1,"a":2}]',
     '[{"t":1,"a":"1"}]', '[{"t":1,"a":1,"b":[]}]', '[{"t":1,"a":1,"b":"\\n"}]', '[{"t":1,"a":1,"b":"\u00e9"}]',
     '[{"t":1,"a":1e400}]', '[{"t":1,"a":1,"b":.5}]', '[{"t":1,"a":1,"b":tru}]', '[{"t":1 "a":1}]',
     '[{"t":1,"a":1}] 7'],
)  # fmt: skip
def test_what_is_not_plain_is_left_to_a_parser(columns_of: Any, text: str) -> None:
    """No JSON, nested, escaped, beyond ASCII, or without a number where one is asked for."""
    assert columns_of(text.encode(), 9, "t", 1, EARLIEST, LATEST, ("a",)) is None


@OF_TEXT
def test_no_more_items_are_read_than_are_asked_for(columns_of: Any) -> None:
    """Nor a name that is asked for twice."""
    text = b'[{"t":1,"a":1.5},{"t":2,"a":-2.5}]'
    times, values, newest, largest = columns_of(text, 2, "t", 1, EARLIEST, LATEST, ("a",))
    assert (times.tolist(), values[0].tolist(), newest, largest) == ([1, 2], [1.5, -2.5], 2, 2.5)
    assert columns_of(text, 1, "t", 1, EARLIEST, LATEST, ("a",)) is None
    assert columns_of(text, 2, "t", 1, EARLIEST, LATEST, ("a", "t")) is None
    assert columns_of(text, 2, "t", 1, EARLIEST, LATEST, tuple(f"k{i}" for i in range(32))) is None
