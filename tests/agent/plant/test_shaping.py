"""Values before any window: scaled, refused, clipped and passed over as a plain loop over the readings would."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from desk import NOON, Desk

from sluicegate_agent.config import ConfigError
from sluicegate_agent.messages import Message
from sluicegate_agent.payloads import decode

SECOND = 1_000_000


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Callable[..., Desk]]:
    """Makes a desk of one source with values; closes it."""
    made: list[Desk] = []

    def make(values: dict[str, Any], **keys: Any) -> Desk:
        source = {"topic": "w", "streams": {"x": "x"}, "time": "t", "time_format": "us", "values": values} | keys
        made.append(Desk(tmp_path, source))
        return made[-1]

    yield make
    for one in made:
        one.state.close()


def said(x: Any, second: float, **more: Any) -> Message:
    """A message with a value at a second after noon."""
    return Message("w", json.dumps({"x": x, "t": NOON + round(second * SECOND)} | more).encode(), 0, 0)


def test_values_are_scaled_and_held_against_limits(desk: Callable[..., Desk]) -> None:
    """Limits are those of the scaled value; what is outside is a dead letter that names value, unit and limit."""
    one = desk({"x": {"scale": 0.5, "offset": -10, "min": -5, "max": 5, "unit": "°C"}})
    one.take(*[said(x, x) for x in (9, 10, 20, 30, 31)])
    assert one.sums() == {"x": (0.0 - 5.0 + 5.0, 3)}
    assert one.reasons() == ["x: -5.5 °C is below min = -5 °C", "x: 5.5 °C is above max = 5 °C"]
    assert one.state.counters["refused.range"] == 2


def test_values_outside_are_clipped_where_asked(desk: Callable[..., Desk]) -> None:
    """They count as the limit, and are counted."""
    one = desk({"x": {"min": 0, "max": 10, "outside": "clip"}})
    one.take(*[said(x, x) for x in (-3, 4, 99)])
    assert one.sums() == {"x": (14.0, 3)}
    assert (one.state.counters["filtered.clipped"], one.reasons()) == (2, [])


def test_a_sum_over_fields_has_all_of_them_or_is_none(desk: Callable[..., Desk]) -> None:
    """Each field times its coefficient; one that is missing makes it absent, one that is a text refuses it."""
    one = desk({"x": {"plus": {"out.a": -1.0, "b": 0.5}, "scale": 2}})
    one.take(said(10, 1, out={"a": 3}, b=2), said(10, 2, out={}, b=2), said(10, 3, out={"a": "y"}, b=2))
    assert one.sums() == {"x": (16.0, 1)}
    assert one.state.counters["absent"] == 1
    assert one.reasons() == ["x is a text, not a number"]


def expected(readings: list[tuple[float, float]], deadband: float | None, every: float | None) -> list[float]:
    """The definition: one after the other, against the last that counted."""
    kept: list[float] = []
    last: tuple[float, float] | None = None
    for value, second in readings:
        if last is not None and every is not None and abs(second - last[1]) < every:
            continue
        if last is not None and deadband is not None and abs(value - last[0]) <= deadband:
            continue
        kept.append(value)
        last = (value, second) if last is None or second >= last[1] else last
    return kept


@pytest.mark.parametrize(("deadband", "every"), [(1.0, None), (None, 5.0), (0.5, 2.0)])
def test_what_is_passed_over_is_what_the_definition_says_through_kills(
    desk: Callable[..., Desk], deadband: float | None, every: float | None
) -> None:
    """Random walks with late readings, repeats and restarts: the same readings as without any of them."""
    chance = random.Random(3)
    asked = {"deadband": deadband, "every": None if every is None else f"{every:.0f}s"}
    one = desk({"x": {key: value for key, value in asked.items() if value is not None}})
    value, readings = 0.0, []
    for second in range(300):
        value += chance.choice((-0.75, -0.25, 0, 0.25, 0.75))
        readings.append((value, second - (3 if chance.random() < 0.1 else 0) + second / 1000))
        one.take(said(*readings[-1]), said(*readings[-1]), commit=False)
        if chance.random() < 0.2:
            one.take()
            one.killed()
            one.take(said(*readings[-1]))
    one.take()
    kept = expected(readings, deadband, every)
    assert one.sums() == {"x": (pytest.approx(sum(kept)), len(kept))}
    passed = sum(one.state.counters[name] for name in ("filtered.deadband", "filtered.every"))
    assert passed == len(readings) - len(kept) > 10


def test_a_reading_that_waits_for_the_clock_is_shaped_once(desk: Callable[..., Desk]) -> None:
    """It is scaled when it counts, not when it is held."""
    one = desk({"x": {"scale": 10.0, "max": 25}}, format="array")
    items = [{"x": x, "t": NOON + x * SECOND} for x in (1, 2, 3)]
    message = Message("w", json.dumps(items).encode(), 0, 0)
    decoded = decode(one.config.sources[0], message, NOON, one.config.limits)
    one.pipeline.count(message, decoded, NOON, doubt=0, latest=NOON + SECOND)
    assert one.sums() == {"x": (10.0, 1)}
    one.pipeline.count(message, decoded, NOON, doubt=0, after=NOON + SECOND, latest=NOON + 9 * SECOND)
    one.take()
    assert one.sums() == {"x": (30.0, 2)}
    assert one.reasons() == ["x: 30 is above max = 25"]


def test_streams_of_keys_have_the_rules_of_their_name(desk: Callable[..., Desk]) -> None:
    """Each key has its own last value; one that leaves takes it along."""
    one = desk({"x": {"deadband": 1}}, topic="w/+", keys={"most": 2, "evict": "oldest"})
    for key in "abc":
        one.take(said(5, 1)._replace(topic=f"w/{key}"), said(5.5, 2)._replace(topic=f"w/{key}"))
    assert {stream for stream, (_, count) in one.sums().items() if count == 1} == {"x/b", "x/c"}
    rows = one.state.store.connection.execute("SELECT key FROM meta WHERE key LIKE 'last %' ORDER BY key").fetchall()
    assert rows == [("last x/b",), ("last x/c",)]


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ({"y": {}}, "source[1].values.y: is no stream of this source; there are: x"),
        ({"x": {"scale": 0}}, "source[1].values.x.scale = 0: would make every value the same"),
        ({"x": {"min": 2, "max": 1}}, "source[1].values.x.min = 2: is above max = 1.0"),
        ({"x": {"outside": "clip"}}, 'source[1].values.x.outside = "clip": says what happens'),
        ({"x": {"deadband": -1}}, "source[1].values.x.deadband = -1: expected 0 or more"),
        ({"x": {"every": "0"}}, 'source[1].values.x.every = "0": expected more than nothing'),
        ({"x": {"plus": {"a..b": 1}}}, "source[1].values.x.plus.a..b"),
        ({"x": {"scal": 2}}, "source[1].values.x.scal = 2: there is no such key; did you mean `scale`?"),
    ],
)
def test_what_cannot_be_meant_is_refused(desk: Callable[..., Desk], values: dict[str, Any], shown: str) -> None:
    """Each finding names its key."""
    with pytest.raises(ConfigError) as caught:
        desk(values)
    assert shown in str(caught.value)
