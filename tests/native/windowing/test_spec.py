"""`WindowSpec`: what is no window is refused with place and reason; a definition has one table, and plain words."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from window_schema import schema

import sluicegate as sg
from sluicegate.errors import ConfigurationError

count, delta, time = sg.policies.count(10), sg.policies.delta("km", 5), sg.policies.time("1h")
punctuation, hop = sg.policies.punctuation(), sg.policies.time("1h", hop="10min")
by_count, by_delta, by_time = sg.triggers.count(1), sg.triggers.delta("km", 5), sg.triggers.time("1m")

TUMBLING = [{"kind": "tumbling", "evict": evict} for evict in (count, delta, time, punctuation)]
SLIDING = [
    {"kind": "sliding", "evict": evict, "trigger": trigger}
    for evict in (count, delta, time)
    for trigger in (by_count, by_delta, by_time)
]
BY_EVENT_TIME: list[dict[str, Any]] = [
    {"kind": "tumbling", "evict": time, "lateness": "5min"},
    {"kind": "tumbling", "evict": time, "aligned": "clock", "timezone": "Europe/Vienna"},
    {"kind": "tumbling", "aligned": "day", "timezone": "Europe/Vienna", "lateness": 0},
    {"kind": "tumbling", "aligned": "month", "trigger": by_time},
    {"kind": "tumbling", "evict": sg.policies.time("7d"), "aligned": "week"},
    {"kind": "hopping", "evict": hop},
    {"kind": "hopping", "evict": hop, "trigger": by_count, "lateness": "1h"},
    {"kind": "hopping", "evict": sg.policies.time("7d", hop="1d"), "aligned": "day"},
    {"kind": "session", "evict": time, "trigger": by_time},
]
ASKED: list[dict[str, Any]] = [
    {"kind": "sliding", "evict": evict}
    for evict in (count, time, delta, hop, sg.policies.count(100, hop=10), sg.policies.time("1h", up_to="max"))
]
LEGAL = TUMBLING + SLIDING + BY_EVENT_TIME + ASKED


def test_the_paper_counts_52() -> None:
    """6.1.1: kinds and policies, without partitions or with each of three ways in which partitions leave."""
    ways = [{}] + [{"key": "k", "partitions": sg.PartitionEviction(**{by: 9})} for by in ("count", "readings", "age")]
    made = [sg.WindowSpec(**kind, **way) for kind, way in itertools.product(TUMBLING + SLIDING, ways)]
    assert len(made) == 52


FORBIDDEN: list[tuple[dict[str, Any], str]] = [
    ({"kind": "jumping", "evict": count}, "kind: 'jumping', expected one of tumbling, sliding, hopping, session"),
    ({"kind": "tumbling"}, "evict: missing"),
    ({"kind": "tumbling", "evict": "1h"}, "evict: '1h', expected count, time, delta or punctuation"),
    (
        {"kind": "sliding", "evict": sg.policies.total("km", 3), "trigger": by_count},
        "evict: .*sg.Window takes the rest",
    ),
    ({"kind": "sliding", "evict": time, "lateness": 0}, "lateness: a window that is answered when it is asked takes"),
    ({"kind": "sliding", "evict": count, "partial": False}, "partial: a window without trigger answers whenever"),
    ({"kind": "sliding", "evict": count, "trigger": count}, r"trigger: .*expected sg.triggers.count\(n\)"),
    ({"kind": "sliding", "evict": punctuation, "trigger": by_count}, "evict: punctuation ends tumbling windows only"),
    ({"kind": "hopping", "evict": punctuation}, "evict: punctuation ends tumbling windows only"),
    ({"kind": "sliding", "evict": hop, "trigger": by_count}, "evict.hop: a sliding window's trigger says"),
    ({"kind": "tumbling", "evict": hop}, "evict.hop: a tumbling window empties at once"),
    ({"kind": "session", "evict": hop}, "evict.hop: a session moves on with its readings"),
    ({"kind": "tumbling", "evict": sg.policies.count(3, up_to="max")}, "evict.up_to"),
    ({"kind": "tumbling", "evict": count, "trigger": by_count}, "trigger: a tumbling window is processed when"),
    ({"kind": "tumbling", "evict": time, "trigger": by_count}, "trigger: a tumbling window is processed when"),
    ({"kind": "tumbling", "evict": time, "lateness": 0, "trigger": by_delta}, "trigger: early results"),
    ({"kind": "hopping", "evict": hop, "trigger": by_delta}, "trigger: early results .* go by count or time"),
    ({"kind": "hopping", "evict": time}, "evict.hop: missing"),
    ({"kind": "hopping", "evict": count}, "evict: a hopping window goes by time"),
    ({"kind": "hopping", "evict": sg.policies.time("1h", hop="2h")}, "evict.hop: longer than the window"),
    ({"kind": "session", "evict": count}, "evict: a session ends with a pause"),
    ({"kind": "session", "evict": time, "aligned": "day"}, "aligned: only tumbling and hopping windows by time"),
    ({"kind": "sliding", "evict": time, "trigger": by_count, "lateness": "1s"}, "lateness: a sliding window keeps"),
    ({"kind": "sliding", "evict": time, "trigger": by_count, "aligned": "day"}, "aligned: only tumbling and hopping"),
    ({"kind": "tumbling", "evict": count, "lateness": 0}, "lateness: a tumbling window by count goes by arrival"),
    ({"kind": "tumbling", "evict": punctuation, "lateness": 0}, "lateness: a tumbling window by punctuation"),
    ({"kind": "tumbling", "evict": count, "aligned": "clock"}, "aligned: only .*, not tumbling ones by count"),
    ({"kind": "tumbling", "evict": time, "lateness": "soon"}, "lateness: 'soon', expected a length"),
    ({"kind": "tumbling", "evict": time, "lateness": -1}, "lateness: -1, expected a length"),
    ({"kind": "tumbling", "evict": time, "lateness": "0.1us"}, "lateness: '0.1us', expected a length"),
    ({"kind": "tumbling", "evict": time, "partial": False}, "partial: a tumbling window is not processed before"),
    ({"kind": "session", "evict": time, "partial": False}, "partial: a session window"),
    ({"kind": "sliding", "evict": time, "trigger": by_count, "partial": 1}, "partial: 1, expected True or False"),
    ({"kind": "tumbling", "evict": time, "aligned": "noon"}, "aligned: 'noon', expected 'clock'"),
    ({"kind": "tumbling", "evict": time, "timezone": "Europe/Vienna"}, "timezone: nothing is aligned to it"),
    ({"kind": "tumbling", "evict": time, "aligned": "clock", "timezone": "Wien"}, "timezone: 'Wien', expected a name"),
    ({"kind": "tumbling", "evict": sg.policies.time("7h"), "aligned": "clock"}, "evict: .* must divide a day"),
    ({"kind": "tumbling", "evict": sg.policies.time("1s"), "aligned": "clock"}, "evict: .* a minute or more"),
    ({"kind": "tumbling", "evict": time, "aligned": "day"}, "evict: to begin with each day a window must move on by"),
    ({"kind": "tumbling", "evict": time, "aligned": "month"}, "evict: a month has no length in time"),
    (
        {"kind": "hopping", "evict": sg.policies.time("1h", hop="40min"), "aligned": "clock"},
        "evict: the length must be",
    ),
    ({"kind": "hopping", "aligned": "month"}, "evict: missing"),
    ({"kind": "tumbling", "evict": count, "key": ""}, "key: ''"),
    ({"kind": "tumbling", "evict": count, "key": []}, "key: "),
    ({"kind": "tumbling", "evict": count, "key": 3}, "key: 3, expected the name of an attribute"),
    ({"kind": "tumbling", "evict": count, "partitions": {"count": 3}}, "partitions: a window without key"),
    ({"kind": "tumbling", "evict": count, "key": "k", "partitions": 3}, "partitions: 3, expected sg.PartitionEviction"),
    ({"kind": "tumbling", "evict": count, "key": "k", "partitions": {}}, "partitions: nothing is limited"),
    ({"kind": "tumbling", "evict": count, "key": "k", "partitions": {"count": 0}}, "partitions.count: 0, expected"),
    ({"kind": "tumbling", "evict": count, "key": "k", "partitions": {"age": "old"}}, "partitions.age: 'old', expected"),
    ({"kind": "tumbling", "evict": count, "key": "k", "partitions": {"size": 1}}, "partitions.size: unknown"),
    (
        {"kind": "tumbling", "evict": count, "key": "k", "partitions": {"count": 1, "select": "mru"}},
        "partitions.select: 'mru', expected one of lru, lfu, oldest, user",
    ),
    (
        {"kind": "tumbling", "evict": count, "key": "k", "partitions": {"age": 1, "select": "lfu"}},
        "partitions.select: 'lfu', but age alone selects by itself",
    ),
]


@pytest.mark.parametrize(("given", "message"), FORBIDDEN, ids=[message[:60] for _, message in FORBIDDEN])
def test_what_is_no_window_is_refused_with_place_and_reason(given: dict[str, Any], message: str) -> None:
    """The message begins with the place."""
    with pytest.raises(ConfigurationError, match="^" + message):
        sg.WindowSpec(**given)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sg.triggers.count(0), "triggers.count: 0, expected a whole number"),
        (lambda: sg.triggers.count(True), "triggers.count: True"),
        (lambda: sg.triggers.delta("x", -1), r"triggers.delta\(width=-1\)"),
        (lambda: sg.triggers.delta(3, 1), "triggers.delta: attribute 3"),  # type: ignore[arg-type]
        (lambda: sg.triggers.time("often"), "triggers.time: 'often'"),
        (lambda: sg.triggers.time(0), "triggers.time: 0"),
        (lambda: sg.Window(sg.sum(), policy=sg.policies.punctuation()), "policy: punctuation ends a tumbling window"),
    ],
)
def test_triggers_and_punctuation_say_what_is_wrong(make: Any, message: str) -> None:
    """As policies do."""
    with pytest.raises(ConfigurationError, match="^" + message):
        make()


EXTRAS = [
    {},
    {"key": "sensor"},
    {"key": ["plant", "sensor"], "partitions": {"count": 3, "readings": 1000, "age": "1d", "select": "lfu"}},
]


@pytest.mark.parametrize("extra", EXTRAS)
def test_a_definition_and_its_table_are_one(extra: dict[str, Any]) -> None:
    """Through JSON and back, for every combination."""
    for given in LEGAL:
        spec = sg.WindowSpec(**given, **extra)
        assert sg.WindowSpec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec


SCHEMA = json.loads((Path(__file__).parents[3] / "docs/schema/window.schema.json").read_text("utf-8"))


def test_the_schema_is_what_the_code_says() -> None:
    """Written by `python tests/native/windowing/window_schema.py`."""
    assert schema() == SCHEMA


@pytest.mark.parametrize("extra", EXTRAS)
def test_the_schema_takes_every_definition(extra: dict[str, Any]) -> None:
    """Editors say of a window what `from_dict` does."""
    validator = jsonschema.Draft202012Validator(SCHEMA)
    for given in LEGAL:
        assert list(validator.iter_errors(sg.WindowSpec(**given, **extra).to_dict())) == []


@pytest.mark.parametrize(
    "table",
    [
        {"kind": "jumping", "evict": {"count": 3}},
        {"kind": "tumbling"},
        {"kind": "tumbling", "evict": {"count": 3}, "trigger": {"count": 1}},
        {"kind": "tumbling", "evict": {"count": 3}, "lateness": "1s"},
        {"kind": "tumbling", "evict": {"time": "1h"}, "timezone": "Europe/Vienna"},
        {"kind": "tumbling", "evict": {"count": 3}, "partitions": {"count": 3}},
        {"kind": "tumbling", "evict": {"count": 3}, "key": "k", "partitions": {}},
        {"kind": "tumbling", "evict": {"count": 3, "time": "1h"}},
        {"kind": "sliding", "evict": {"count": 3, "hop": 2}, "trigger": {"count": 1}},
        {"kind": "sliding", "evict": {"count": 3}, "partial": False},
        {"kind": "sliding", "evict": {"punctuation": True}, "trigger": {"count": 1}},
        {"kind": "sliding", "evict": {"delta": "km"}, "trigger": {"count": 1}},
        {"kind": "sliding", "evict": {"count": 3}, "trigger": {"time": "later"}},
        {"kind": "hopping", "evict": {"time": "1h"}},
        {"kind": "hopping", "evict": {"time": "1h", "hop": "1min"}, "trigger": {"delta": "km", "width": 1}},
        {"kind": "session", "evict": {"count": 3}},
        {"kind": "session", "evict": {"time": "1h"}, "aligned": "day"},
    ],
)
def test_what_the_schema_refuses_the_library_refuses(table: dict[str, Any]) -> None:
    """What can be seen without calculating."""
    assert not jsonschema.Draft202012Validator(SCHEMA).is_valid(table)
    with pytest.raises(ConfigurationError):
        sg.WindowSpec.from_dict(table)


def test_a_policy_is_short_for_a_sliding_window_that_is_asked() -> None:
    """`policy` of the agent's TOML and `kind = "sliding"` with `evict` are one; an operator needs a trigger."""
    for policy in ({"time": "24h"}, {"count": 100, "hop": 10}, {"time": "7d", "up_to": "max"}):
        short, long = {"policy": policy}, {"kind": "sliding", "evict": policy}
        spec = sg.WindowSpec.from_dict(short)
        assert spec == sg.WindowSpec.from_dict(long)
        assert spec.asked
        assert spec.to_dict() == {
            "kind": "sliding",
            "evict": {**policy, **({"time": "1d"} if "24h" in str(policy) else {})},
        }
        with pytest.raises(ConfigurationError, match=r"^trigger: missing: an operator .*sg\.Window"):
            sg.WindowOperator(spec)
    with pytest.raises(ConfigurationError, match=r"^policy: is short for .* leave out it or evict"):
        sg.WindowSpec.from_dict({"policy": {"count": 3}, "evict": {"count": 3}})


def test_a_table_as_it_is_written() -> None:
    """Lengths are texts with the largest unit, and what is the default is left out."""
    table = {
        "kind": "sliding",
        "evict": {"delta": "km", "width": 2.5, "growing": True},
        "trigger": {"time": "90s"},
        "key": "sensor",
        "partitions": {"age": "1d"},
        "partial": False,
    }
    assert sg.WindowSpec.from_dict(table).to_dict() == table


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kinds": 1}, "window.kinds: unknown, expected kind, evict"),
        ({"policy": {"count": 3}}, "policy: is short for"),
        ({"evict": {}}, "evict: {}, expected a table with one of count, time, delta, punctuation"),
        ({"evict": {"count": 3, "time": "1h"}}, "evict: .*expected a table with one of"),
        ({"evict": {"count": 3, "hop": 2}}, "evict.hop: a sliding window's trigger says"),
        ({"evict": {"count": 3, "width": 2}}, "evict.width: unknown, expected count, hop, up_to"),
        ({"evict": {"delta": "km"}}, "evict.width: missing"),
        ({"evict": {"delta": "km", "width": 1, "growing": 1}}, "evict.growing: 1, expected true or false"),
        ({"evict": {"punctuation": 1}}, "evict.punctuation: 1, expected true"),
        ({"evict": {"time": "later"}}, "policies.time: 'later'"),
        ({"trigger": {"time": "later"}}, "triggers.time: 'later'"),
        ({"trigger": "1m"}, "trigger: '1m', expected a table with one of count, time, delta"),
        ({"partitions": 3}, "partitions: 3, expected a table of count, readings, age, select"),
    ],
)
def test_a_table_that_is_wrong_names_the_key(change: dict[str, Any], message: str) -> None:
    """As the agent's TOML does."""
    table = {"kind": "sliding", "evict": {"count": 3}, "trigger": {"count": 1}, "key": "k"}
    with pytest.raises(ConfigurationError, match="^" + message):
        sg.WindowSpec.from_dict(table | change)
    with pytest.raises(ConfigurationError, match=r"^kind: missing"):
        sg.WindowSpec.from_dict({"evict": {"count": 3}})


def test_a_callable_is_in_no_table() -> None:
    """Neither as key nor as selection."""
    spec = sg.WindowSpec(kind="tumbling", evict=count, key=len)
    with pytest.raises(ConfigurationError, match="key: a callable"):
        spec.to_dict()
    spec = sg.WindowSpec(kind="tumbling", evict=count, key="k", partitions=sg.PartitionEviction(count=1, select=list))
    with pytest.raises(ConfigurationError, match=r"partitions\.select: a callable"):
        spec.to_dict()


EXPLAINED: list[tuple[dict[str, Any], str]] = [
    (
        {"kind": "sliding", "evict": time, "trigger": by_time, "key": "sensor", "partitions": {"age": "1d"}},
        "every minute, the mean of the last hour for each sensor; "
        "a sensor silent for a day is dropped after its last result",
    ),
    (
        {"kind": "sliding", "evict": count, "trigger": by_count, "partial": False},
        "after each reading, once the window has been full, the mean of the last 10 readings",
    ),
    (
        {"kind": "sliding", "evict": delta, "trigger": by_delta},
        "before each reading whose km is more than 5 past that of the last such reading, the mean of the readings "
        "whose km is within 5 of the newest's",
    ),
    ({"kind": "sliding", "evict": time}, "whenever it is asked, the mean of the last hour by event time"),
    (
        {"kind": "sliding", "evict": sg.policies.count(100, hop=10, up_to="max")},
        "whenever it is asked, the mean of the newest 100 readings, moved on by 10 readings at once, without what "
        "stands before the maximum",
    ),
    ({"kind": "tumbling", "evict": count}, "after every 10 readings, the mean of those"),
    ({"kind": "tumbling", "evict": time}, "every hour, the mean of what arrived since the last time"),
    ({"kind": "tumbling", "evict": punctuation}, "at each punctuation, the mean of what came since the one before"),
    (
        {"kind": "tumbling", "evict": delta},
        "before a reading whose km is more than 5 past the window's first, the mean of the window",
    ),
    (
        {"kind": "tumbling", "aligned": "day", "timezone": "Europe/Vienna"},
        "for each day by the calendar of Europe/Vienna, the mean, by event time; "
        "a result is final at the window's end; what comes later is counted and changes nothing",
    ),
    (
        {"kind": "hopping", "evict": hop, "lateness": "90s", "trigger": by_time},
        "every 10 minutes, the mean of the hour before, by event time; an early result every minute; "
        "a late reading gives a revised result until 90 seconds after the end, when it is final; "
        "later ones are counted and change nothing",
    ),
    (
        {
            "kind": "session",
            "evict": sg.policies.time("30min"),
            "key": ["line", "user"],
            "trigger": sg.triggers.count(9),
        },
        "after each pause of 30 minutes, the mean of what came since the one before for each line and user, "
        "by event time; an early result after every 9 readings; "
        "a result is final at the window's end; what comes later is counted and changes nothing",
    ),
    (
        {"kind": "tumbling", "evict": count, "key": "ip", "partitions": {"count": 1000, "readings": 5000}},
        "after every 10 readings, the mean of those for each ip; of more than 1,000 ip values the least recently "
        "updated is dropped; while more than 5,000 readings are held the least recently updated ip is dropped",
    ),
]


@pytest.mark.parametrize(("given", "words"), EXPLAINED)
def test_a_definition_in_plain_words(given: dict[str, Any], words: str) -> None:
    """What `check --explain` says."""
    assert sg.WindowSpec(**given).explain("the mean") == words


def test_every_definition_has_words() -> None:
    """No combination is without."""
    said = {sg.WindowSpec(**given).explain() for given in LEGAL}
    assert len(said) == len(LEGAL)
