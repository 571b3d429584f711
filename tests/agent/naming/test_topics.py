"""Filters with named levels: what they match, and which two match a topic in common."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from sluicegate_agent.naming.names import base_of, device_of, flaw_of_key, full_name, key_of, title_of
from sluicegate_agent.naming.topics import Filter

LEVELS = ("a", "b", "")
TOPICS = ["/".join(levels) for size in range(1, 5) for levels in product(LEVELS, repeat=size)]
FILTERS = st.lists(st.sampled_from(["a", "b", "", "+", "{x}"]), min_size=1, max_size=3).flatmap(
    lambda levels: st.sampled_from(["/".join(levels), "/".join([*levels, "#"])])
)


def matches(written: str, topic: str) -> bool:
    """MQTT 5, 4.7.1, read level by level."""
    levels, parts = written.split("/"), topic.split("/")
    if levels[-1] == "#":
        levels = levels[:-1]
        parts = parts[: len(levels)]
    return len(levels) == len(parts) and all(
        level in ("+", "{x}") or level == part for level, part in zip(levels, parts, strict=True)
    )


@settings(max_examples=150)
@given(FILTERS)
def test_a_filter_matches_what_the_standard_says(written: str) -> None:
    """Of all short topics it matches exactly those that MQTT's rules give it."""
    assert [t for t in TOPICS if Filter(written).match(t) is not None] == [t for t in TOPICS if matches(written, t)]


@settings(max_examples=150)
@given(FILTERS, FILTERS)
def test_two_filters_overlap_where_a_topic_matches_both(one: str, other: str) -> None:
    """No overlap is missed, and none is made up, whichever of the two is asked."""
    both = any(matches(one, topic) and matches(other, topic) for topic in TOPICS)
    assert Filter(one).overlaps(Filter(other)) == Filter(other).overlaps(Filter(one)) == both


def test_levels_are_known_by_their_names() -> None:
    """The broker is asked for plain wildcards, and what stands for each is told in its order."""
    found = Filter("$share/line/plant/{site}/+/#")
    assert (found.subscription, found.path) == ("$share/line/plant/+/+/#", "plant/{site}/+/#")
    assert (found.names, found.match("plant/north/press/a/b")) == (("site", None, None), ("north", "press", "a/b"))
    assert Filter("{x}/a").match("$SYS/a") is None


@pytest.mark.parametrize("device", ["", "press-7"])
@pytest.mark.parametrize("key", ["", "north/line 3", "a:b"])
def test_a_full_name_is_taken_apart_again(device: str, key: str) -> None:
    """Device, name and key come out of a stream's full name as they went in."""
    name = full_name(device, "temp", key)
    assert (device_of(name), base_of(name), key_of(name)) == (device, "temp", key)
    assert title_of(name) == ("temp/" + key if key else "temp")


@pytest.mark.parametrize("key", ["", "a::b", ":a", "a:", " a", "a\n", "ü" * 33, "x" * 65])
def test_what_can_be_no_key_is_refused_with_its_reason(key: str) -> None:
    """Nothing that would break a document's id or be longer than it allows becomes a key."""
    assert flaw_of_key(key)
