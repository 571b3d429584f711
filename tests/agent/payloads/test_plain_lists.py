"""A list read a column at a time gives what reading it item by item gives; the closer look is never left out."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from thorough import number

from sluicegate_agent.config.model import LimitsConfig
from sluicegate_agent.config.sources import SourceConfig
from sluicegate_agent.messages import Decoded, Message, Unreadable
from sluicegate_agent.payloads import decode, documents

ARRIVAL = 1_700_000_000_000_000
NUMBERS = st.one_of(st.integers(-(2**40), 2**40), st.floats(), st.just(10**400))
ODD = st.one_of(st.none(), st.booleans(), st.text(max_size=3), st.just("NA"), st.just([1]), st.just({"a": 1}))
GOOD = st.fixed_dictionaries({"t": st.integers(0, 2**33), "temp": st.floats(-1e9, 1e9), "wind": st.integers(-9, 9)})
ANY = st.one_of(
    GOOD, st.fixed_dictionaries({"t": NUMBERS | ODD, "temp": NUMBERS | ODD}, optional={"wind": NUMBERS | ODD}), ODD
)


def source(time: str | None, scale: str, streams: dict[str, str]) -> SourceConfig:
    """One whose messages are lists."""
    return SourceConfig(subscribed="w", streams=streams, format="array", time=time, time_format=scale)


def read(asked: SourceConfig, payload: bytes) -> Decoded | str:
    """What a message says, or why it cannot be read."""
    try:
        return decode(asked, Message("w", payload, 1, 1), ARRIVAL, LimitsConfig(readings=64))
    except Unreadable as reason:
        return str(reason)


@settings(max_examples=number(300, 100))
@given(
    items=st.one_of(st.lists(GOOD, max_size=6), st.lists(ANY, max_size=6)),
    time=st.sampled_from([None, "t"]),
    scale=st.sampled_from(["s", "ms", "us", "ns", "iso8601"]),
    streams=st.sampled_from([{"a": "temp"}, {"a": "temp", "b": "wind"}, {"a": "temp.0"}, {"a": "0"}, {"a": ""}]),
)
def test_it_is_the_same_as_item_by_item(
    items: list[Any], time: str | None, scale: str, streams: dict[str, str]
) -> None:
    """Readings in their order, what is absent, what is refused and why."""
    asked, payload = source(time, scale, streams), json.dumps(items).encode()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(documents, "plain_readings", lambda *_: None)
        expected = read(asked, payload)
    assert read(asked, payload) == expected


@settings(max_examples=number(400, 130))
@given(
    document=GOOD
    | st.fixed_dictionaries({"t": NUMBERS | ODD, "temp": NUMBERS | ODD}, optional={"wind": NUMBERS | ODD}),
    numbered=st.fixed_dictionaries({}, optional={"n": st.integers(-2, 2**65) | NUMBERS | ODD, "boot": NUMBERS | ODD}),
    time=st.sampled_from([None, "t"]),
    scale=st.sampled_from(["s", "ms", "us", "ns", "iso8601"]),
    streams=st.sampled_from([{"a": "temp"}, {"a": "temp", "b": "wind"}, {"a": "temp.0"}, {"a": "0"}]),
    of=st.sampled_from([(None, None), ("n", None), ("n", "boot"), ("n.0", None)]),
)
def test_an_object_is_the_same_as_part_by_part(
    document: dict[str, Any], numbered: dict[str, Any], time: str | None, scale: str, streams: Any, of: Any
) -> None:
    """With its number and its run, which a message is known by."""
    asked = structs.replace(source(time, scale, streams), format="json", sequence=of[0], epoch=of[1])
    payload = json.dumps(document | numbered).encode()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(documents, "_plain_object", lambda *_: None)
        expected = read(asked, payload)
    found = read(asked, payload)
    assert found == expected
    assert repr(found[:5]) == repr(expected[:5]), "an integer is no float: what it says is what it is known by"


@pytest.mark.parametrize("odd", [None, True, "3", float("inf"), {"a": 1}])
def test_only_plain_lists_are_read_so(odd: Any) -> None:
    """Ordinary items are; one among them that is no number sends all to the closer look."""
    asked = source("t", "s", {"a": "temp", "b": "wind"})
    items = [{"t": 1_700_000_000 + i, "temp": 0.5 * i, "wind": i} for i in range(5)]
    found = documents.plain_readings(asked, items, ARRIVAL)
    assert found is not None
    assert found[:3] == [
        ("a", 1_700_000_000_000_000, 0.0),
        ("b", 1_700_000_000_000_000, 0.0),
        ("a", 1_700_000_001_000_000, 0.5),
    ]
    assert len(found) == 10
    assert (found.newest, found.largest) == (1_700_000_004_000_000, 4.0)
    assert documents.plain_readings(asked, [*items, items[0] | {"wind": odd}], ARRIVAL) is None
