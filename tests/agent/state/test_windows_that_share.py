"""Windows over one set of buckets in the agent: each interval holds, before and after restarts, and one set is kept."""

from __future__ import annotations

import random
import sqlite3
from array import array
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from click.testing import CliRunner
from durable_agent import configured

from sluicegate_agent.commands.check import check
from sluicegate_agent.config import Config, ConfigError
from sluicegate_agent.config.sharing import might_share
from sluicegate_agent.plan import plan
from sluicegate_agent.state import schema
from sluicegate_agent.state.windows import StoredWindow

LONG: dict[str, Any] = {
    "name": "long",
    "policy": {"time": "400us"},
    "aggregate": ["mean", "max"],
    "buckets": 12,
    "merge": "pairs",
}
SHORT: dict[str, Any] = {"name": "short", "policy": {"time": "60us"}, "aggregate": "max", "shares": "long"}
HOPS: dict[str, Any] = {
    "name": "hops",
    "policy": {"time": "150us", "hop": "50us"},
    "aggregate": "mean",
    "shares": "long",
}
COUNTED: dict[str, Any] = {"name": "long", "policy": {"count": 90}, "buckets": 0}
STEPS = LONG | {"aggregate": ["max"], "max_like": {"staircase": True, "staging": 300}}


def asked(*windows: dict[str, Any]) -> Config:
    """A configuration of these windows."""
    return configured(Path("/"), window=list(windows))


def empty() -> sqlite3.Connection:
    """An empty store in memory."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    schema.create(connection)
    return connection


def opened(store: sqlite3.Connection, config: Config) -> StoredWindow:
    """The first window, and all that share its buckets."""
    first = config.windows[0]
    return StoredWindow(store, 1, first, config.sharing("heat", first.name))


def commit(store: sqlite3.Connection, window: StoredWindow) -> None:
    """What the pipeline does with a window in a commit."""
    window.save(store)
    window.saved()


def inside(seen: list[tuple[int, float]], span: int, hop: int) -> list[float]:
    """The readings of the newest `span` µs."""
    cutoff = max(time for time, _ in seen) // hop * hop - span
    begin = max((i + 1 for i, (time, _) in enumerate(seen) if time <= cutoff), default=0)
    return [value for _, value in seen[begin:]] if begin < len(seen) else []


@pytest.mark.parametrize("long", [LONG, STEPS], ids=["pairs", "staircase"])
def test_each_interval_holds_through_restarts(long: dict[str, Any]) -> None:
    """Random walks, committed and opened anew at random: long, short and hopping windows hold their exact results."""
    config = asked(long, SHORT, HOPS) if long is LONG else asked(long, SHORT)
    store, rng, seen, time = empty(), random.Random(4), list[tuple[int, float]](), 0
    window, points = opened(store, config), 0
    for _ in range(1500):
        time += rng.choice((1, 1, 2, 9))
        seen.append((time, 50 + (seen[-1][1] - 50) * 0.98 + rng.gauss(0, 1) if seen else 50.0))
        window.insert_many(array("d", [seen[-1][1]]), array("q", [time]))
        if rng.random() < 0.3:
            commit(store, window)
            if rng.random() < 0.3:
                edges = dict(window.shorter.windows.edges) if window.shorter else {}
                window = opened(store, config)
                window.window.verify()
                assert window.shorter is not None
                assert window.shorter.windows.edges == edges
        for name, span, hop in (("long", 400, 1), ("short", 60, 1), ("hops", 150, 50)):
            if name not in window.names:
                continue
            values = inside(seen, span, hop)
            for aggregate, (value, low, high, exact) in window.answers(name).items():
                true = max(values) if aggregate == "max" else sum(values) / len(values)
                assert low - 1e-9 <= true <= high + 1e-9, (name, aggregate)
                assert low <= value <= high
                points += name == "short" and exact
            readings, buckets = window.size(name)
            assert 1 <= buckets <= window.size()[1]
            assert (name != "long") or readings == pytest.approx(len(values), abs=60)
    assert points == 1500 if long is STEPS else points > 300
    rows = store.execute("SELECT name, length(state) FROM window ORDER BY id").fetchall()
    assert [name for name, _ in rows] == list(window.names)
    assert all(size == 8 for name, size in rows if name != "long")
    leaves = store.execute("SELECT window FROM window_leaf UNION SELECT window FROM window_run").fetchall()
    assert leaves == [(window.number,)]


def test_a_shorter_window_comes_and_goes_without_the_longer_ones_history() -> None:
    """Shared later, it answers from the buckets there are; kept alone again, its row is another's."""
    store = empty()
    window = opened(store, asked(LONG))
    window.insert_many(array("d", range(500)), array("q", range(500)))
    commit(store, window)
    both = opened(store, asked(LONG, SHORT))
    assert not both.begun_anew
    assert both.answers("short")["max"].value == 499.0
    assert both.answers() == window.answers()
    commit(store, both)
    own = {key: value for key, value in SHORT.items() if key != "shares"} | {"name": "short"}
    alone = StoredWindow(store, 1, asked(LONG, own).windows[1])
    assert alone.begun_anew
    assert len(alone.window) == 0
    again = opened(store, asked(LONG, SHORT))
    assert again.answers("short")["max"].value == 499.0
    store.execute("UPDATE window SET state = x'ff' WHERE name = 'short'")
    assert opened(store, asked(LONG, SHORT)).answers("short")["max"].value == 499.0


@pytest.mark.parametrize(
    ("windows", "shown"),
    [
        ([LONG, SHORT | {"shares": "lnog"}], 'window[2].shares = "lnog": expected the name of a window that keeps'),
        ([LONG, SHORT | {"shares": "short"}], 'window[2].shares = "short": expected the name of a window that keeps'),
        ([LONG, SHORT, HOPS | {"shares": "short"}], 'window[3].shares = "short": expected the name of a window'),
        ([LONG, SHORT | {"aggregate": "min"}], 'window[2].aggregate = "min": the buckets of long carry mean, max'),
        ([LONG, SHORT | {"policy": {"time": "1h"}}], "window[2].shares = \"long\": 'short' is longer than 'long'"),
        ([LONG, SHORT | {"policy": {"count": 9}}], "window[2].shares = \"long\": policies"),
        ([LONG, SHORT | {"buckets": 9}], "window[2].buckets = 9: says how buckets are kept"),
        ([LONG, SHORT | {"merge": "pairs"}], 'window[2].merge = "pairs": says how buckets are kept'),
        ([LONG, SHORT | {"max_like": {}}], "window[2].max_like: says how buckets are kept"),
        ([LONG | {"streams": ["level"]}, SHORT], 'window[2].streams = "flow": long keeps no buckets of it'),
        ([SHORT | {"shares": "x"}], 'window[1].shares = "x": expected the name of a window'),
        (
            [COUNTED, SHORT | {"policy": {"count": 9}, "aggregate": "mean"}],
            "window[2].shares = \"long\": no histograms, so there are no buckets to share",
        ),
    ],
)  # fmt: skip
def test_what_cannot_share_is_refused_with_the_place(windows: list[dict[str, Any]], shown: str) -> None:
    """The window's number and key, what was expected and what there is."""
    with pytest.raises(ConfigError) as caught:
        asked(*windows)
    lines = [str(problem) for problem in caught.value.problems]
    assert any(line.startswith(shown) for line in lines), lines


def test_a_shared_window_costs_next_to_nothing_in_the_plan() -> None:
    """Its plan is a few objects and a row a stream, where one of its own is planned with all its buckets."""
    one, shared = plan(asked(LONG)), plan(asked(LONG, SHORT))
    own = plan(asked(LONG, {key: value for key, value in LONG.items() if key != "name"} | {"name": "short"}))
    assert one.memory < shared.memory < own.memory
    assert one.disk < shared.disk < own.disk
    assert shared.disk - one.disk < (own.disk - one.disk) / 5


def test_check_says_what_might_share(tmp_path: Path) -> None:
    """Two windows of one method and streams: the note names the key; none where they differ or share already."""
    short = {key: value for key, value in SHORT.items() if key != "shares"} | {"buckets": 12, "merge": "pairs"}
    assert [*might_share(asked(LONG, short))] == [("short", "long")]
    assert [*might_share(asked(LONG, short | {"buckets": 13}))] == []
    assert [*might_share(asked(LONG, SHORT))] == []
    file = tmp_path / "agent.toml"
    file.write_text(
        '[device]\nid = "d"\n[state]\npath = "state"\n[[source]]\ntopic = "w"\nstreams = { t = "t" }\n'
        '[[window]]\nname = "day"\npolicy = { time = "24h" }\n[[window]]\nname = "hour"\npolicy = { time = "1h" }\n'
    )
    ran = CliRunner().invoke(check, [str(file)])
    assert 'Note: window hour could be answered from the buckets of day: shares = "day"' in ran.output, ran.output
