"""Readings of two values: covariance and correlation by definition, on the board and in what it sends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from durable_agent import NOON
from two_values import BOTH, TOPIC, WINDOWS, Climate, Reading, holds, told

from sluicegate.format import chunk as chunks
from sluicegate.format.extras import extra
from sluicegate.format.pairs import PAIR, unpack
from sluicegate_agent.config.errors import ConfigError
from sluicegate_agent.errors import InputRefused
from sluicegate_agent.messages import Message
from sluicegate_agent.record.frame import Steps
from sluicegate_agent.replay import columns_of, source_of

KEPT = [
    {"bucket": {"readings": 16}},
    {"bucket": {"readings": 1}},
    {"bucket": {"readings": 200}, "commit": {"fold": "0s"}},
    {"bucket": {"readings": 5}, "outbox": {"rows": 12, "bytes": "64KiB", "chunk_buckets": 4}},
]


@pytest.mark.parametrize("tables", KEPT, ids=["usual", "each reading", "long, no record", "few rows"])
def test_answers_and_documents_are_those_of_all_readings(tmp_path: Path, tables: dict[str, Any]) -> None:
    """Late readings, equal times, commits and kills between them: no answer outside, no bucket of other readings."""
    one = Climate(tmp_path, 3, **tables)
    asked, exact = 0, 0
    for _ in range(300):
        one.step()
        if one.rng.random() < 0.2:
            for window in (each["name"] for each in WINDOWS):
                inside = one.inside(window)
                for result in one.pipeline.answers("warmth", window):
                    assert holds(result, inside), (result, told(result.aggregate, inside))
                    asked += result.aggregate in BOTH
                    exact += result.aggregate in BOTH and result.exact and window != "each"
    assert asked > 200
    assert exact > 5
    _check(one)


def _check(one: Climate) -> None:
    """Each bucket's moments beside the readings of its ordinals; what is stored as a reading has its second value."""
    following = 0
    for chunk in one.arrived():
        assert chunk.skipped == ()
        for b, part, singles in zip(chunk.buckets, chunk.extras[PAIR], chunk.readings, strict=True):
            assert b.first == following
            own = one.readings[b.first : b.first + b.n]
            following += b.n
            assert part is not None
            assert (singles is not None) == (b.n == 1)
            n, x, y, low, high, *_, xy = unpack(part)
            assert (n, x, y) == (b.n, own[0][1], own[0][2])
            seconds = [second for _, _, second in own]
            assert (low, high) == (min(seconds), max(seconds))
            assert xy / n == pytest.approx(told("covariance", own), rel=1e-9, abs=1e-9)
            kind = extra(PAIR)
            assert kind is not None
            kind.check(part, b.n, min(at for at, _, _ in own), max(at for at, _, _ in own))
    assert following == len(one.readings)


def test_a_restart_that_plays_the_record_back_gives_the_same_bits(tmp_path: Path) -> None:
    """Beside one that writes the tables with each commit: rows of the streams, answers, and what is sent."""
    kept = []
    for name, tables in (("record", {}), ("tables", {"commit": {"fold": "0s"}})):
        (tmp_path / name).mkdir()
        one = Climate(tmp_path / name, 5, bucket={"readings": 70}, **tables)
        for _ in range(230):
            one.step(kills=0)
        one.commit()
        one.kill()
        rows = one.state.store.connection.execute("SELECT row FROM stream").fetchall()
        answers = [one.pipeline.answers("warmth", each["name"]) for each in WINDOWS]
        kept.append((rows, answers, [(chunk.buckets, chunk.extras) for chunk in one.arrived()]))
    assert kept[0] == kept[1]


def test_a_reading_needs_both_values(tmp_path: Path) -> None:
    """One of them absent: no reading, counted; no number: refused with its place; the message's others count."""
    one = Climate(tmp_path, 1)
    some: list[dict[str, Any]] = [
        {"t": 20.0}, {"t": 20.0, "air": {"humidity": None}}, {"t": None, "air": {"humidity": 60}},
        {"t": 20.0, "air": {"humidity": "wet"}}, {"t": 20.0, "air": {"humidity": 1e300}},
    ]  # fmt: skip
    for place, fields in enumerate(some):
        payload = json.dumps({"at": NOON + place, "door": 0} | fields).encode()
        one.pipeline.accept(Message(TOPIC, payload, place + 1, 1))
    told = [letter.reason for _, letter in one.state.dead_letters.recent]
    one.commit()
    counters = one.state.counters
    assert [counters[name] for name in ("accepted", "absent", "refused.value")] == [5, 3, 2]
    assert one.state.streams["warmth"].accepted == 0
    assert len(told) == sum("air.humidity" in each for each in told) == 2


@pytest.mark.parametrize(
    ("source", "window", "reason"),
    [
        ({"values": {}}, {}, "one value"),
        ({"format": "number", "streams": {"warmth": ""}, "time": None}, {}, "message of several fields"),
        ({"values": {"warmth": {"with": "a..b"}}}, {}, "path of a second value"),
        ({}, {"streams": ["*"]}, "stream door have one value"),
        ({}, {"aggregate": "covariance(1)"}, "no options"),
        ({}, {"policy": {}, "kind": "tumbling", "evict": {"time": "1min"}, "lateness": "0s"}, "one record a hop"),
    ],
)
def test_what_cannot_be_is_refused_by_its_name(tmp_path: Path, source: Any, window: Any, reason: str) -> None:
    """Before a start, with what to do."""
    asked = {"topic": TOPIC, "streams": {"warmth": "t", "door": "door"}, "time": "at", "time_format": "us",
             "values": {"warmth": {"with": "humidity"}}}  # fmt: skip
    one = {"name": "w", "streams": ["warmth"], "policy": {"time": "1h"}, "aggregate": "covariance"} | window
    given = {key: value for key, value in (asked | source).items() if value is not None}
    with pytest.raises(ConfigError, match=reason):
        Climate(tmp_path, 1, source=[given], window=[{key: value for key, value in one.items() if value != {}}])


def test_a_second_value_can_come_later_and_go_again(tmp_path: Path) -> None:
    """The stream goes on: buckets from before have none, those after have it, windows of both begin with it."""
    source = {"topic": TOPIC, "streams": {"warmth": "t", "door": "door"}, "time": "at", "time_format": "us"}
    both = source | {"values": {"warmth": {"with": "air.humidity", "offset": 0.5}}}
    plain = source | {"values": {"warmth": {"offset": 0.5}}}
    single, every = [WINDOWS[3]], [each | {"streams": ["warmth"]} for each in WINDOWS]
    readings: list[Reading] = []
    for place, (asked, windows) in enumerate([(plain, single), (both, every), (plain, single)]):
        one = Climate(tmp_path, 7 + place, source=[asked], window=windows)
        one.minute, one.readings = 40.0 * place, readings
        for _ in range(75):
            one.step(kills=0)
        one.commit()
        if place == 1:
            result = one.pipeline.answers("warmth", "each")[0]
            assert holds(result, readings[-20:])
        if place < 2:
            one.state.close()
    parts = [(b.n, part) for chunk in one.arrived() for b, part in zip(chunk.buckets, chunk.extras[PAIR], strict=True)]
    assert sum(n for n, part in parts if part is not None) in range(45, 76)
    assert parts[0][1] is None
    assert parts[-1][1] is None


def test_steps_of_second_values_stand_before_their_readings() -> None:
    """A frame that says otherwise is none."""
    steps = Steps()
    steps.add(1, 5)
    with pytest.raises(ValueError, match="not steps"):
        Steps.unpack(steps.pack())


def test_a_file_brings_the_second_value_too(tmp_path: Path) -> None:
    """A CSV file's columns are found by every path of the source: value, second value, terms of a sum, key."""
    one = Climate(tmp_path, 1)
    (source,) = one.config.sources
    one.state.close()
    columns = columns_of(tmp_path / "r.csv", ["at", "air.humidity", "t", "door", "other"], source)
    assert columns == {0: ["at"], 1: ["air", "humidity"], 2: ["t"], 3: ["door"]}
    with pytest.raises(InputRefused, match=r"no column `air.humidity` \(the source's values.warmth.with\)"):
        columns_of(tmp_path / "r.csv", ["at", "t", "door"], source)
    asked = {"topic": "keyed", "key": "site", "streams": {"used": "in"}, "values": {"used": {"plus": {"out": -1.0}}}}
    keyed = source_of(Climate(tmp_path, 1, source=[asked], window=[]).config, "keyed")
    assert columns_of(tmp_path / "r.csv", ["site", "in", "out"], keyed) == {0: ["site"], 1: ["in"], 2: ["out"]}


def test_streams_by_key_have_two_values_too(tmp_path: Path) -> None:
    """Keys that come and make room for others, tags that change in between: each document says its own readings'."""
    source = {"topic": "site/{site}", "key": "{site}", "streams": {"warmth": "t"}, "time": "at", "time_format": "us",
              "values": {"warmth": {"with": "h"}}, "keys": {"most": 3, "evict": "lru"},
              "tags": {"shift": "{payload.shift}"}}  # fmt: skip
    window = {"name": "w", "policy": {"time": "1h"}, "aggregate": BOTH, "buckets": 8}
    one = Climate(tmp_path, 2, source=[source], window=[window], bucket={"readings": 7})
    given: dict[str, dict[int, tuple[float, float]]] = {}
    for i in range(400):
        site, at = one.rng.choice("aaabbbccd"), NOON + i * 60_000_000
        x, y = round(one.rng.gauss(20, 2), 1), round(one.rng.gauss(50, 5), 1)
        given.setdefault(site, {})[at] = (x, y)
        told = json.dumps({"at": at, "t": x, "h": y, "shift": str(i // 90)}).encode()
        one.pipeline.accept(Message(f"site/{site}", told, i + 1, 1))
        if one.rng.random() < 0.2:
            one.pipeline.commit()
    seen = 0
    for data in one.documents().values():
        chunk = chunks.decode(data)
        for b, part in zip(chunk.buckets, chunk.extras[PAIR], strict=True):
            own = [both for at, both in given[chunk.stream[-1]].items() if b.t_first <= at <= b.t_last]
            assert part is not None
            n, x, y, low, high, *_ = unpack(part)
            assert (n, x, y) == (len(own), *own[0])
            assert (low, high) == (min(y for _, y in own), max(y for _, y in own))
            seen += b.n
    assert seen == 400
