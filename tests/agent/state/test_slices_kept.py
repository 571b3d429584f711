"""Windows with ends in the agent: marks of results, what a kill leaves, what is refused, and what they cost."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")

import tracemalloc

from sluicegate_agent.config import ConfigError, build
from sluicegate_agent.messages import EndedResult, Message, Result
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.plan import plan
from sluicegate_agent.results import ENDED_MOST, Results
from sluicegate_agent.state import State

SECOND = 1_000_000
BEGIN = 1_750_000_020 * SECOND  # a whole minute
MINUTES: dict[str, Any] = {"kind": "tumbling", "evict": {"time": "1min"}, "lateness": "30s"}


def configured(folder: Path, *windows: dict[str, Any]) -> Any:
    """One source with a time, and windows of its one stream."""
    raw = {
        "device": {"id": "d"},
        "state": {"path": "state"},
        "guard": {"future": 0},
        "source": [{"topic": "p", "streams": {"x": "x"}, "time": "t", "time_format": "us"}],
        "window": [{"name": f"w{i}", **window} for i, window in enumerate(windows)],
    }
    return build(raw, folder / "agent.toml")


class Board:
    """An agent's inner half."""

    def __init__(self, folder: Path, *windows: dict[str, Any]) -> None:
        self.config = configured(folder, *windows)
        self.start()

    def start(self) -> None:
        """As after kill -9 where it ran before."""
        self.state = State(self.config)
        self.pipeline = Pipeline(self.config, self.state, clock=lambda: BEGIN)

    def take(self, *readings: tuple[float, float]) -> list[Result]:
        """(seconds, value) as messages, then a commit; the results."""
        for seconds, value in readings:
            payload = json.dumps({"t": BEGIN + round(seconds * SECOND), "x": value}).encode()
            self.pipeline.accept(Message("p", payload, 1, 1))
        self.pipeline.commit()
        return self.pipeline.results()

    def restart(self) -> list[Result]:
        """What it offers after a kill."""
        self.state.close()
        self.start()
        self.pipeline.answer_again()
        return self.pipeline.results()


def said(results: list[Result]) -> list[tuple[Any, ...]]:
    """Seconds of start and end, stage, revision, value."""
    found = [each for each in results if isinstance(each, EndedResult)]
    return [
        ((each.start_us - BEGIN) // SECOND, (each.end_us - BEGIN) // SECOND, each.stage, each.revision, each.value)
        for each in found
    ]


def test_early_revised_and_final(tmp_path: Path) -> None:
    """At the end, after a late reading, and when no allowed reading can change it; what comes later changes nothing."""
    board = Board(tmp_path, MINUTES | {"aggregate": "sum"})
    assert said(board.take((1, 1.0), (59, 2.0))) == []
    assert said(board.take((61, 4.0))) == [(0, 60, "early", 0, 3.0)]
    assert said(board.take((30, 8.0), (62, 16.0), (31, 32.0))) == [(0, 60, "revised", 1, 43.0)]
    assert said(board.take((90, 1.0))) == [(0, 60, "final", 2, 43.0)]
    assert said(board.take((40, 100.0))) == []
    (stored,) = board.pipeline.windows["x"]
    assert stored.slices.late == 1  # type: ignore[union-attr]
    assert board.state.streams["x"].accepted == 8


def test_a_final_result_is_offered_again_after_a_kill(tmp_path: Path) -> None:
    """The process before may not have sent it; open windows go on to the bit."""
    window = {"kind": "hopping", "evict": {"time": "1min", "hop": "20s"}, "aggregate": ["sum", "last"]}
    killed, other = Board(tmp_path / "a", window), Board(tmp_path / "b", window)
    for board in (killed, other):
        board.take(*((i, 0.1 * i) for i in range(130)))
    sums = said(killed.restart())[::2]  # each before its last
    assert [each[:4] for each in sums] == [(start, start + 60, "final", 0) for start in (0, 20, 40, 60)]
    assert sums[-1][4] == pytest.approx(sum(0.1 * i for i in range(60, 120)))
    after = [board.take(*((i, 0.1 * i) for i in range(130, 200))) for board in (killed, other)]
    assert after[0] == after[1]
    assert len(said(after[0])) == 6


def test_a_spread_beyond_float64_ends_no_agent(tmp_path: Path) -> None:
    """Two readings that a sensor made up: the result says that nothing is known, also after a restart."""
    board = Board(tmp_path, MINUTES | {"lateness": "0s", "aggregate": "std"})
    for found in board.take((1, 1e200), (2, -1e200), (61, 0.0)), board.restart():
        assert [(each.value, each.low, each.high, each.exact) for each in found] == [(math.inf, 0.0, math.inf, False)]


def test_silence_ends_a_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time goes on where nothing arrives: the tick gives what is due."""
    board = Board(tmp_path, {"kind": "session", "evict": {"time": "10s"}, "aggregate": "count"})
    board.take((0, 1.0), (3, 1.0))
    (stored,) = board.pipeline.windows["x"]
    assert not stored.advance(BEGIN + 12 * SECOND)
    assert stored.advance(BEGIN + 13 * SECOND)
    board.pipeline.answer_again()
    assert said(board.pipeline.results()) == [(0, 13, "final", 0, 2)]


def test_a_late_reading_joins_sessions_over_a_kill(tmp_path: Path) -> None:
    """The result says which sessions it replaces, and what waits to be sent of them goes."""
    board = Board(tmp_path, {"kind": "session", "evict": {"time": "10s"}, "lateness": "60s", "aggregate": "count"})
    assert len(board.take((0, 1.0), (15, 1.0), (40, 1.0))) == 2
    board.restart()
    (joined,) = board.take((8, 1.0))
    assert said([joined]) == [(0, 25, "revised", 1, 4 - 1)]
    assert isinstance(joined, EndedResult)
    assert joined.replaces == (BEGIN + 15 * SECOND,)


def test_damaged_rows_begin_the_window_anew(tmp_path: Path) -> None:
    """With a counter; the stream's own buckets are not touched."""
    board = Board(tmp_path, MINUTES)
    board.take((1, 1.0), (2, 2.0))
    board.state.store.connection.execute("UPDATE window_leaf SET leaf = zeroblob(40)")
    board.restart()
    assert board.state.counters["windows.begun_anew"] == 1
    assert said(board.take((61, 4.0), (91, 1.0))) == []
    assert board.state.streams["x"].accepted == 4


def test_after_every_n_readings(tmp_path: Path) -> None:
    """Each answer as of its reading, whatever the batches; where it stands is known after a kill."""
    board = Board(tmp_path, {"kind": "sliding", "evict": {"count": 4}, "trigger": {"count": 3}, "aggregate": "sum",
                             "buckets": 0})  # fmt: skip
    found = board.take(*((i, float(i)) for i in range(8)))
    assert [(each.ordinal, each.value) for each in found] == [(2, 3.0), (5, 14.0)]
    board.restart()
    found = board.take((8, 8.0), (9, 9.0))
    assert [(each.ordinal, each.value) for each in found] == [(8, 26.0)]
    board = Board(tmp_path / "full", {"policy": {"count": 4}, "trigger": {"count": 3}, "partial": False,
                                      "aggregate": "sum"})  # fmt: skip
    found = board.take(*((i, float(i)) for i in range(8)))
    assert [(each.ordinal, each.value) for each in found] == [(5, 14.0)]


def test_by_the_calendar_of_a_place(tmp_path: Path) -> None:
    """A day of Vienna."""
    board = Board(tmp_path, {"kind": "tumbling", "aligned": "day", "timezone": "Europe/Vienna", "aggregate": "count"})
    ((start, end, stage, _, value),) = said(board.take((0, 1.0), (86_400, 1.0)))
    assert (end - start, stage, value) == (86_400, "final", 1)
    assert (BEGIN // SECOND + start + 2 * 3600) % 86_400 == 0  # UTC+2 in June


@pytest.mark.parametrize(
    ("window", "words"),
    [
        (
            {"kind": "tumbling", "evict": {"time": "1h"}},
            "window[1].evict: it goes by arrival, .* write late",
        ),
        ({"kind": "tumbling", "evict": {"punctuation": True}}, "window[1].evict: no message carries a punctuation"),
        ({"kind": "tumbling", "evict": {"delta": "", "width": 1}}, "window[1].evict: a stream's reading is"),
        ({"kind": "sliding", "evict": {"delta": "", "width": 1}}, "window[1].evict: a stream's reading is"),
        ({"policy": {"time": "1h"}, "trigger": {"time": "1min"}}, "window[1].trigger: it goes by arrival"),
        ({"policy": {"count": 9}, "trigger": {"time": "1min"}}, "window[1].trigger: only a number of readings"),
        (MINUTES | {"key": "room"}, "window[1].key: each stream has windows of its own"),
        (MINUTES | {"aggregate": "rate(1s)"}, 'window[1].aggregate = "rate(1s)": a window that ends is answered from'),
        (MINUTES | {"sum_like": {"error": "1%"}}, "window[1].sum_like: is of windows that readings leave one by one"),
        (MINUTES | {"lateness": "100d"}, "window[1].evict: 144,003 hops until a window is final"),
        (MINUTES | {"policy": {"count": 3}}, "window[1].policy: is short for kind = 'sliding'"),
        ({"kind": "jumping"}, "window[1].kind: 'jumping', expected one of tumbling"),
        ({"kind": "hopping", "evict": {"time": "1h"}}, "window[1].evict.hop: missing"),
        (
            {"kind": "sliding", "evict": {"time": "1 fortnight"}},
            'window[1].evict.time = "1 fortnight": expected',
        ),
    ],
)
def test_what_the_agent_does_not_run_is_refused_by_name(tmp_path: Path, window: dict[str, Any], words: str) -> None:
    """Legal or not: the place in the file and the reason."""
    import re

    with pytest.raises(ConfigError) as refused:
        configured(tmp_path, window)
    pattern = ".*".join(map(re.escape, words.split(".*")))
    assert any(re.match(pattern, str(problem)) for problem in refused.value.problems), refused.value


class Away:
    """A link that takes nothing until it is back."""

    def __init__(self) -> None:
        self.back, self.sent = False, list[Any]()

    def publish(self, topic: str, payload: bytes, *, retain: bool = False) -> bool:
        """One message."""
        if self.back:
            self.sent += json.loads(payload)["results"]
        return self.back


def test_results_that_wait_are_bounded(tmp_path: Path) -> None:
    """The newest of each window, and of the newest windows; a session that another took up is not told of."""
    link, noted = Away(), list[str]()
    results = Results(configured(tmp_path, MINUTES), link, noted.append)

    def given(start: int, revision: int = 0, replaces: tuple[int, ...] = ()) -> EndedResult:
        marks = {"start_us": start, "end_us": start + 1, "revision": revision, "replaces": replaces}
        return EndedResult("x", "w0", "sum", 0, 0, 1.0, 1.0, 1.0, True, 1, 1, 0, **marks)  # type: ignore[arg-type]

    results.offer([given(start, revision) for start in range(100) for revision in range(2)], 0.0)
    results.offer([given(99, 2, (98,))], 0.0)
    link.back = True
    results.offer([], 0.0)
    assert [each["start_us"] for each in link.sent] == [*range(100 - ENDED_MOST, 98), 99]
    assert {each["revision"] for each in link.sent[:-1]} == {1}
    assert link.sent[-1]["stage"] == "final"
    assert noted == ["results.dropped"] * (100 - ENDED_MOST)


@pytest.mark.parametrize(
    "window",
    [
        {"kind": "tumbling", "evict": {"time": "1s"}, "lateness": "0s", "aggregate": ["mean", "max"]},
        {"kind": "sliding", "evict": {"count": 5}, "trigger": {"count": 1}, "buckets": 0, "aggregate": ["mean", "max"]},
    ],
    ids=["with ends", "by a trigger"],
)
def test_results_of_one_commit_beyond_the_room_are_counted(tmp_path: Path, window: dict[str, Any]) -> None:
    """A hundred readings in one commit end, or trigger, more than wait: the oldest are `results.dropped`."""
    board = Board(tmp_path, window)
    given = board.take(*((float(i), 1.0) for i in range(100)))
    ended = 99 if window["kind"] == "tumbling" else 100
    assert len(given) // 2 + board.state.counters["results.dropped"] // 2 == ended
    assert board.state.counters["results.dropped"] > 0
    assert not board.pipeline.results()
    assert board.take((200.0, 1.0))
    assert len(given) // 2 + board.state.counters["results.dropped"] // 2 == ended


@pytest.mark.parametrize("lateness", ["0s", "300min"])
def test_plan_counts_more_than_is_used(tmp_path: Path, lateness: str) -> None:
    """Memory of the records and windows, and the rows of the store, at their most."""
    window = {"kind": "hopping", "evict": {"time": "200min", "hop": "1min"}, "lateness": lateness}
    board, bare = Board(tmp_path, window), configured(tmp_path)
    (stored,) = board.pipeline.windows["x"]
    planned = plan(board.config).streams["x"]
    before = plan(bare).streams["x"]
    tracemalloc.start()
    try:
        begin = tracemalloc.get_traced_memory()[0]
        for i in range(900):
            stored.advance(BEGIN + i * 60 * SECOND)
            stored.insert_many([1.5], [BEGIN + i * 60 * SECOND])  # type: ignore[arg-type]
            stored.saved()
        used = tracemalloc.get_traced_memory()[0] - begin
    finally:
        tracemalloc.stop()
    assert len(stored.slices.slices) > 190  # type: ignore[union-attr]
    assert used < planned["memory"] - before["memory"]
    board.state.close()
