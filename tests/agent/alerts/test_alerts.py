"""An alert is judged with the commit that causes it: told once, kept over restarts, dropped only with a count."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from durable_agent import bare, configured

from sluicegate_agent.alerts.alerts import Alerts
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.record.recorder import Recorder
from sluicegate_agent.state import State

WINDOW = {"name": "last", "policy": {"count": 1}, "aggregate": "last", "buckets": 0, "streams": ["door"]}
HIGH = {"name": "high", "window": "last", "above": 2, "clear": 1}


class Board:
    """An agent's inner half with alerts, on a folder; `recorded`: with the record, as an agent runs."""

    def __init__(self, folder: Path, *, recorded: bool = False, **tables: Any) -> None:
        self.recorded = recorded
        self.config = configured(folder, **{"window": [WINDOW], "alert": [HIGH]} | tables)
        self.sent = 0
        self.open()

    def open(self) -> None:
        """As at a start."""
        self.state = State(self.config)
        recorder = Recorder(self.config, self.state) if self.recorded else None
        self.pipeline = Pipeline(self.config, self.state, recorder=recorder)
        self.alerts = self.pipeline.beside = Alerts(self.config, self.state, self.pipeline)

    def restart(self) -> None:
        """As after kill -9."""
        self.state.close()
        self.open()

    def take(self, *values: float) -> None:
        """A message and a commit a value."""
        for value in values:
            self.sent += 1
            self.pipeline.accept(bare(value, self.sent))
            self.pipeline.commit()

    def told(self) -> list[tuple[str, str]]:
        """State and certainty of what waits."""
        return [(each.told.state, each.told.certainty) for each in self.alerts.waiting.values()]


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Callable[..., Board]]:
    """Makes a board; closes it."""
    made: list[Board] = []

    def make(**tables: Any) -> Board:
        made.append(Board(tmp_path, **tables))
        return made[-1]

    yield make
    for one in made:
        one.state.close()


def test_one_message_a_change(board: Callable[..., Board]) -> None:
    """Raised once however long it lasts, cleared once; the message says value, limit and since when."""
    one = board()
    one.take(1, 3, 4, 5, 1.5, 1, 0.5, 9)
    assert one.told() == [("raised", "certain"), ("cleared", "certain"), ("raised", "certain")]
    first = next(iter(one.alerts.waiting.values())).told
    assert (first.alert, first.stream, first.value, first.limit, first.number) == ("high", "door", 3.0, 2, 1)
    assert "last of door in last is certainly above 2: 3 (between 3 and 3)" in first.text
    assert len({each.told.id for each in one.alerts.waiting.values()}) == 3
    assert one.state.counters["alerts.messages"] == 3


def test_a_restart_neither_forgets_nor_repeats(board: Callable[..., Board]) -> None:
    """What is raised stays raised, what waits waits on, and numbers go on, also when all were taken."""
    one = board()
    one.take(3)
    one.restart()
    one.take(4)
    assert list(one.alerts.waiting) == [1]
    one.alerts.taken(1, mqtt=True)
    assert one.pipeline.due(0.0)
    one.pipeline.commit()
    one.restart()
    assert not one.alerts.waiting
    one.take(0.5)
    assert [(number, each.told.state) for number, each in one.alerts.waiting.items()] == [(2, "cleared")]


def test_an_alert_is_a_few_bytes_of_the_record(board: Callable[..., Board]) -> None:
    """No tables are written for it, however many streams there are; over kills it is as if they were."""
    one = board(recorded=True)
    one.take(1, 1)
    folds = sum(count for name, count in one.state.counters.as_dict().items() if name.startswith("record.folds"))
    one.take(3, 0, 3)
    one.alerts.taken(1, mqtt=True)
    one.pipeline.commit()
    counts = one.state.counters.as_dict()
    assert sum(count for name, count in counts.items() if name.startswith("record.folds")) == folds
    assert counts["alerts.messages"] == 3
    one.restart()
    assert [*one.alerts.waiting] == [2, 3]
    assert [each["state"] for each in one.alerts.raised] == ["raised"]
    one.take(0)
    one.alerts.taken(2, mqtt=True)
    one.pipeline.fold_next()
    one.pipeline.commit()
    assert [*one.alerts.waiting] == [3, 4]
    rows = "SELECT key FROM meta WHERE key LIKE 'alert.%' ORDER BY key"
    kept = [key for (key,) in one.state.store.connection.execute(rows)]
    assert kept == ["alert.message/3", "alert.message/4", "alert.number"]
    one.restart()
    assert [*one.alerts.waiting] == [3, 4]
    assert one.state.counters["alerts.messages"] == 4


def test_a_commit_that_fails_tells_nothing(board: Callable[..., Board], monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in memory nor on disk; the next one that succeeds does, once."""
    one = board()

    def refuse(connection: sqlite3.Connection) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(one.state.dead_letters, "save", refuse)
    one.pipeline.accept(bare(3, 1))
    with pytest.raises(sqlite3.OperationalError):
        one.pipeline.commit()
    assert not one.alerts.waiting
    assert one.alerts.raised == []
    monkeypatch.undo()
    one.pipeline.commit()
    assert one.told() == [("raised", "certain")]
    assert one.state.counters["alerts.messages"] == 1


def test_pending_lasts_over_a_restart(board: Callable[..., Board]) -> None:
    """An agent that restarts every minute raises an alert of five minutes nevertheless."""
    one = board(alert=[HIGH | {"for": "50ms"}])
    one.take(3)
    assert one.alerts.raised[0]["state"] == "pending"
    one.restart()
    time.sleep(0.06)
    one.take(4)
    assert one.told() == [("raised", "certain")]


def test_possible_becomes_certain_once(board: Callable[..., Board]) -> None:
    """On `high` an alert is possible first; when `low` is beyond, too, that is one more message."""
    window = WINDOW | {"name": "m", "policy": {"count": 8}, "aggregate": "mean", "buckets": 4}
    one = board(window=[window], alert=[{"name": "high", "window": "m", "above": 2, "on": "high"}])
    one.take(*[1.0] * 30, *[3.0] * 30)
    told = [each.told for each in one.alerts.waiting.values()]
    assert [(each.state, each.certainty) for each in told] == [("raised", "possible"), ("raised", "certain")]
    assert "is possibly above 2" in told[0].text
    assert told[0].low is not None
    assert told[0].low <= 2 < (told[0].high or 0)
    assert (told[1].low or 0) > 2


def test_silence_is_told_and_its_end(board: Callable[..., Board], monkeypatch: pytest.MonkeyPatch) -> None:
    """By the board's clock, once; a restart does not end it, a reading does."""
    now = [1000.0]
    monkeypatch.setattr("sluicegate_agent.alerts.alerts.time.monotonic", lambda: now[0])
    one = board(alert=[{"name": "silent", "absent": "10min", "streams": ["door"]}])
    one.take(1)
    now[0] += 599
    one.alerts.step(now[0])
    assert one.told() == []
    for _ in range(3):
        now[0] += 10
        one.alerts.step(now[0])
        one.pipeline.commit()
    assert one.told() == [("raised", "certain")]
    one.restart()
    now[0] += 10
    one.alerts.step(now[0])
    assert not one.alerts.changed
    assert one.told() == [("raised", "certain")]
    now[0] += 10
    one.take(2)
    assert one.told() == [("raised", "certain"), ("cleared", "certain")]


def test_a_full_queue_drops_the_oldest_with_a_count(board: Callable[..., Board]) -> None:
    """Nobody takes any for long: the newest are there, on disk too, and what was dropped is counted."""
    one = board(alerts={"queue": 2})
    one.take(3, 0, 3, 0)
    assert [*one.alerts.waiting] == [3, 4]
    assert one.state.counters["alerts.dropped"] == 2
    one.restart()
    assert [*one.alerts.waiting] == [3, 4]


@pytest.mark.parametrize("recorded", [False, True])
def test_what_gave_way_stays_gone_when_one_of_two_took_it(board: Callable[..., Board], recorded: bool) -> None:
    """The broker took it, the webhook did not, and the commit that keeps that makes room: no restart sends it again."""
    one = board(alerts={"queue": 1, "webhook": "http://127.0.0.1:9/x"}, recorded=recorded)
    one.take(3)
    one.alerts.taken(1, mqtt=True)
    one.take(0)
    assert [*one.alerts.waiting] == [2]
    one.restart()
    assert [*one.alerts.waiting] == [2]


def test_a_record_that_is_lost_gives_no_other_alert_the_same_id(board: Callable[..., Board], tmp_path: Path) -> None:
    """The number goes back with it: who keeps one of each id would never see the next alert."""
    one = board(recorded=True)
    one.take(1, 1, 3)
    (sent,) = one.alerts.waiting.values()
    one.state.close()
    for file in tmp_path.rglob("*.record"):
        file.write_bytes(file.read_bytes()[:64] + bytes(max(0, file.stat().st_size - 64)))
    one.open()
    assert not one.alerts.waiting
    one.take(0, 4)
    (other,) = one.alerts.waiting.values()
    assert (other.told.value, sent.told.value) == (4.0, 3.0)
    assert other.told.id != sent.told.id


def test_an_alert_that_is_no_more_leaves_nothing(board: Callable[..., Board], tmp_path: Path) -> None:
    """Its state goes; named again later it is judged anew."""
    one = board()
    one.take(3)
    one.state.close()
    other = board(alert=[HIGH | {"name": "other"}])
    rows = other.state.store.connection.execute("SELECT key FROM meta WHERE key LIKE 'alert.state%'").fetchall()
    assert rows == []
    other.take(3)
    assert [each.told.alert for each in other.alerts.waiting.values()] == ["high", "other"]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"window": "none"}, "expected one of the windows (last), or `absent`"),
        ({"below": 1}, "expected exactly one of `above` and `below`"),
        ({"clear": 3}, "expected at most `above` (2.0)"),
        ({"aggregate": "mean"}, "the window asks: last"),
        ({"streams": ["temp2"]}, "no source feeds it"),
        ({"above": float("nan"), "clear": None}, "expected a finite number"),
        ({"absent": "5min"}, "an alert on absence has no threshold"),
        ({"for": "36501d"}, "expected 0 to 36500d"),
        ({"per": "0"}, "expected 1ms to 36500d"),
        ({"name": "a b"}, "expected 1 to 64 letters"),
    ],
)
def test_an_alert_that_cannot_work_is_found_by_check(keys: dict[str, Any], said: str, tmp_path: Path) -> None:
    """Key, value and remedy."""
    from sluicegate_agent.config import ConfigError

    raw = {key: value for key, value in (HIGH | keys).items() if value is not None}
    with pytest.raises(ConfigError) as refusal:
        configured(tmp_path, window=[WINDOW], alert=[raw])
    assert said in str(refusal.value)


@pytest.mark.parametrize(
    ("alerts", "said"),
    [
        ({"webhook": "http://example.org/x"}, "is not encrypted"),
        ({"webhook": "ftp://example.org"}, "expected a URL"),
        ({"webhook": "https://me:pw@example.org"}, "no user and password in a URL"),
        ({"topic": "a/+/b"}, "without wildcards"),
        ({"queue": 0}, "expected 1 to 65536"),
        ({"timeout": "1ms"}, "expected 1s to 5min"),
        ({"ca_file": "/none"}, "cannot be read"),
    ],
)
def test_where_messages_go_is_checked(alerts: dict[str, Any], said: str, tmp_path: Path) -> None:
    """Before anything starts; a password in a URL is not shown."""
    from sluicegate_agent.config import ConfigError

    with pytest.raises(ConfigError) as refusal:
        configured(tmp_path, window=[WINDOW], alerts=alerts)
    assert said in str(refusal.value)
    assert "pw" not in str(refusal.value)
