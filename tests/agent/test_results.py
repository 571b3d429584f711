"""Answers leave in bounded messages, the newest of each window, none twice, and wait while the link takes none."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from msgspec.structs import replace

import sluicegate as sg
from sluicegate_agent import health
from sluicegate_agent.config import ConfigError, build
from sluicegate_agent.integrations.home_assistant import Discovery
from sluicegate_agent.messages import EndedResult, Result, plain
from sluicegate_agent.results import ENDED_MOST, IN_FLIGHT, PER_MESSAGE, Results, encode


class Sender:
    """Takes messages while `room` lasts."""

    def __init__(self) -> None:
        self.room = 1 << 30
        self.sent: list[tuple[str, dict[str, Any]]] = []

    def publish(self, topic: str, payload: bytes, *, retain: bool = False) -> bool:
        """Take one, or not."""
        if self.room <= 0:
            return False
        self.room -= 1
        self.sent.append((topic, json.loads(payload)))
        self.retained = retain
        return True

    def send(self, topic: str, payload: bytes, *, retain: bool) -> Sender | None:
        """The same with QoS 1: taken when `acknowledged` is set."""
        return self if self.publish(topic, payload, retain=retain) else None

    acknowledged = False

    def is_published(self) -> bool:
        """Whether all that was sent was taken."""
        return self.acknowledged


def answer(stream: str, ordinal: int, low: float = 0.0) -> Result:
    """An answer of one window."""
    return Result(stream, "w", "mean", ordinal, 10 * ordinal, 1.5, low, 2.0, False, 3, 2)


def publisher(sender: Sender, note: Callable[[str], None] | None = None, **results: Any) -> Results:
    """Results of a device `d`."""
    raw = {
        "device": {"id": "d"},
        "state": {"path": "s"},
        "source": [{"topic": "t", "streams": {"x": "x"}}],
        "results": results,
    }
    return Results(build(raw, Path("agent.toml")), sender, note)


def test_an_answer_as_it_is_published() -> None:
    """Topic with the device's name; every field by name; a bound that is none is null."""
    sender = Sender()
    publisher(sender).offer([answer("x", 7, low=float("-inf"))], now=0.0)
    topic, body = sender.sent[0]
    assert topic == "sluicegate/d/results"
    assert body["device"] == "d"
    expected = {"stream": "x", "window": "w", "aggregate": "mean", "ordinal": 7, "time_us": 70, "value": 1.5}
    expected |= {"low": None, "high": 2.0, "exact": False, "count": 3, "buckets": 2, "undecidable": 0}
    assert body["results"] == [expected]


def test_answers_with_parts_are_published_by_their_names() -> None:
    """A run, bins and the greatest values as JSON; a distinct count as its estimate."""
    kept = {"run": sg.longest_run(), "bins": sg.histogram((0, 2)), "top": sg.top_k(1), "many": sg.distinct_count()}
    window = sg.Window(kept, policy=sg.policies.count(9))
    for time, value in enumerate((1.0, 3.0, 3.0)):
        window.insert(value, time=time)
    answers = [replace(answer("x", 7), value=plain(found)) for found in window.query().values()]
    assert [told["value"] for told in json.loads(encode("d", answers))["results"]] == [
        {"t_first": 0, "t_last": 1, "span": 1, "length": 2},
        {"edges": [0.0, 2.0], "counts": [1], "below": 0, "above": 2},
        [{"value": 3.0, "time": 1}],
        2.0,
    ]


def test_quantiles_are_published_as_percentiles() -> None:
    """Of a window of buckets: percentiles by name, with what is known of the error of their ranks; none when empty."""
    window = sg.Window(sg.quantiles(k=64), policy=sg.policies.count(1000), histograms=[sg.Constrained(16)])
    empty = plain(window.query()["quantiles"])
    assert isinstance(empty, dict)
    assert (empty["n"], empty["p50"]) == (0, None)
    for time in range(900):
        window.insert(float(time), time=time)
    told = json.loads(encode("d", [replace(answer("x", 7), value=plain(window.query()["quantiles"]))]))["results"]
    value = told[0]["value"]
    assert (value["n"], value["least"], value["greatest"], value["cut"]) == (900, 0.0, 899.0, 0.0)
    assert abs(value["p50"] - 450) <= value["error"] * 900
    assert abs(value["p99"] - 891) <= value["error"] * 900


def test_the_rate_is_bounded() -> None:
    """Answers are asked for at most once every `results.every`, and never where no topic is wanted."""
    results = publisher(Sender(), every="2s")
    assert results.due(5.0)
    results.offer([], now=5.0)
    assert not results.due(6.9)
    assert results.due(7.0)
    assert not publisher(Sender(), topic="").due(1e9)


def test_answers_wait_and_only_the_newest_leaves() -> None:
    """While the link takes nothing, older answers of a window are replaced: what waits is bounded by the windows."""
    sender = Sender()
    results = publisher(sender)
    sender.room = 0
    for ordinal in range(100):
        results.offer([answer("x", ordinal)], now=0.0)
    sender.room = 1
    results.offer([], now=0.0)
    assert [result["ordinal"] for _, body in sender.sent for result in body["results"]] == [99]
    results.offer([], now=0.0)
    assert len(sender.sent) == 1


def test_messages_are_bounded_and_none_is_lost_between_them() -> None:
    """Many answers leave in several messages; those the link did not take leave later."""
    sender = Sender()
    results = publisher(sender)
    sender.room = 2
    results.offer([answer(f"s{i}", i) for i in range(3 * PER_MESSAGE)], now=0.0)
    sender.room = 9
    results.offer([], now=0.0)
    assert [len(body["results"]) for _, body in sender.sent] == [PER_MESSAGE] * 3
    assert sorted(r["ordinal"] for _, body in sender.sent for r in body["results"]) == list(range(3 * PER_MESSAGE))


def test_health_beside_the_state(tmp_path: Path) -> None:
    """Written whole or not at all; what is no health is read as none."""
    assert health.read(tmp_path) is None
    health.write(tmp_path, health.process())
    found = health.read(tmp_path)
    assert found is not None
    assert 0 < found["rss_bytes"] <= found["peak_rss_bytes"] + (1 << 20)
    assert set(found["versions"]) == {"sluicegate", "python", "sqlite", "machine"}
    for damaged in (b"", b"[1]", b"\xff", b'{"a":'):
        (tmp_path / health.FILE).write_bytes(damaged)
        assert health.read(tmp_path) is None


def test_the_peak_is_the_process_own() -> None:
    """A small process that a large one started does not report the large one's peak as its own."""
    large = bytearray(b"x" * (96 << 20))
    code = "from sluicegate_agent import health; print(health.peak())"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert len(large) > int(shown.stdout) > 4 << 20


def test_a_topic_for_each_window() -> None:
    """The template names stream, window and aggregate; what a topic cannot have is replaced."""
    sender = Sender()
    results = publisher(sender, topic="s/{device}/{stream}/{window}/{aggregate}", retain=True)
    odd = Result("y", "w", "top_k(2)+/#", 1, 10, 1.5, 1, 2, False, 3, 2)
    results.offer([answer("x", 1), answer("y", 2), odd], now=0.0)
    assert [topic for topic, _ in sender.sent] == ["s/d/x/w/mean", "s/d/y/w/mean", "s/d/y/w/top_k(2)___"]
    assert sender.retained
    together = publisher(sender, topic="s/{stream}")
    together.offer([answer("x", 1), Result("x", "w", "max", 1, 10, 1, 1, 1, True, 3, 2)], now=0.0)
    assert [each["aggregate"] for each in sender.sent[-1][1]["results"]] == ["mean", "max"]


def test_only_what_changed_is_sent() -> None:
    """By more than the deadband since it was last sent, so that a slow drift is not missed; exactness counts."""

    def valued(value: float | None, *, exact: bool = True) -> Result:
        return Result("x", "w", "mean", 1, 10, value, value, value, exact, 3, 2)

    sender = Sender()
    results = publisher(sender, on_change=True, deadband=1.0)
    for now, value in enumerate((10.0, 10.5, 11.0, 11.25, 11.25, None, None, 11.0)):
        results.offer([valued(value)], float(now))
    results.offer([valued(11.0, exact=False)], 9.0)
    assert [body["results"][0]["value"] for _, body in sender.sent] == [10.0, 11.25, None, 11.0, 11.0]


def test_what_went_back_before_it_left_is_not_sent() -> None:
    """The link was busy, and by the time it takes messages the answer is what is known outside already."""
    sender = Sender()
    results = publisher(sender, on_change=True)
    results.offer([answer("x", 1)], 0.0)
    sender.room = 0
    results.offer([Result("x", "w", "mean", 2, 20, 9.0, 9, 9, False, 3, 2)], 1.0)
    sender.room = 5
    results.offer([answer("x", 1)], 2.0)
    assert len(sender.sent) == 1


def test_with_qos_1_few_are_under_way() -> None:
    """What the broker has not acknowledged is bounded; the rest waits as the newest of its window."""
    sender = Sender()
    results = publisher(sender, qos=1, topic="r/{stream}")
    results.offer([answer(f"s{i}", i) for i in range(100)], 0.0)
    assert len(sender.sent) == IN_FLIGHT
    sender.acknowledged = True
    results.offer([], 1.0)
    assert len(sender.sent) == 100


@pytest.mark.parametrize(
    ("results", "said"),
    [
        ({"deadband": 1}, "add on_change = true"),
        ({"deadband": -1, "on_change": True}, "expected 0 or more"),
        ({"home_assistant": "homeassistant"}, "add {stream} and {window}"),
        ({"home_assistant": "a/#", "topic": "{stream}/{window}"}, "expected the prefix"),
        ({"topic": "{stram}"}, "without wildcards"),
        ({"qos": 2}, "expected 0 or 1"),
    ],
)
def test_results_that_cannot_work_are_found_by_check(results: dict[str, Any], said: str) -> None:
    """Key, value and remedy."""
    with pytest.raises(ConfigError) as refusal:
        publisher(Sender(), **results)
    assert said in str(refusal.value)


def test_home_assistant_finds_each_answer() -> None:
    """A retained description a window and aggregate, whose template picks that answer; again at each connection."""
    raw = {
        "device": {"id": "d.1"},
        "state": {"path": "s"},
        "source": [{"topic": "t", "streams": {"x": "x"}}],
        "window": [{"name": "w", "policy": {"count": 5}, "aggregate": ["mean", "max"]}],
        "results": {"topic": "r/{device}/{stream}/{window}", "home_assistant": "homeassistant"},
    }
    sender = Sender()
    sender.acknowledged = True
    discovery = Discovery(build(raw, Path("agent.toml")), sender)
    discovery.step(0)
    assert sender.sent == []
    for connection in (1, 1, 2):
        discovery.step(connection)
    assert sender.retained
    assert [topic for topic, _ in sender.sent[:2]] == [
        "homeassistant/sensor/d_1/x_w_mean/config",
        "homeassistant/sensor/d_1/x_w_max/config",
    ]
    assert len(sender.sent) == 4
    body = sender.sent[1][1]
    assert body["state_topic"] == "r/d.1/x/w"
    jinja = pytest.importorskip("jinja2", reason="the template is tried with Jinja where that is installed")
    message = {"results": [{"aggregate": "mean", "value": 1}, {"aggregate": "max", "value": 4}]}
    assert jinja.Template(body["value_template"]).render(value_json=message) == "4"


def test_what_is_dropped_while_the_link_is_away_is_counted() -> None:
    """Of windows with ends the newest wait; each of the older ones that nobody will get is told, one by one."""
    sender, told = Sender(), list[str]()
    sender.room = 0
    one = publisher(sender, told.append)
    starts, known = range(ENDED_MOST + 5), ("x", "w", "mean", 9, 9, 1.5, 1.0, 2.0, False, 3, 2)
    given = [EndedResult(*known, start_us=start, end_us=start + 1) for start in starts]
    one.offer(given, now=0.0)
    assert told == ["results.dropped"] * 5
    sender.room = 1 << 30
    one.offer([], now=100.0)
    assert [each["start_us"] for _, message in sender.sent for each in message["results"]] == [*starts[5:]]
