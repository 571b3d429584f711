"""An input that a package of others adds: the page's own, installed as pip does; each row once, whatever happens."""

from __future__ import annotations

import importlib
import re
import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from desk import Desk

from sluicegate_agent.config import ConfigError, build
from sluicegate_agent.inputs.inputs import Inputs
from sluicegate_agent.inputs.no_broker import NoLink
from sluicegate_agent.plan import plan

PAGE = Path(__file__).parents[3] / "docs/how-to/own-input.md"
SECTION = PAGE.read_text("utf-8")
SOURCE = {"topic": "boiler", "input": "rows", "time": "at", "time_format": "s", "streams": {"heat": "celsius"}}


def block(kind: str, number: int = 0) -> str:
    """An example of the page."""
    return re.findall(rf"^```{kind}\n(.*?)^```$", SECTION, re.S | re.M)[number]


class Boiler:
    """An agent's inner half that reads the page's table; killed and begun again at will."""

    def __init__(self, folder: Path, install: Callable[..., None], **keys: Any) -> None:
        point = re.search(r"^rows = (.*)$", block("toml"), re.M)
        assert point is not None
        install("rows", block("python"), f"[sluicegate.inputs]\nrows = {point[1].strip(chr(34))}\n")
        self.file = folder / "readings.db"
        self.store = sqlite3.connect(self.file)
        self.store.execute("CREATE TABLE reading (id INTEGER PRIMARY KEY AUTOINCREMENT, at INT, celsius REAL)")
        self.desk = Desk(folder, SOURCE | {"options": {"file": str(self.file)}} | keys, recorded=True)
        self.begin()

    def begin(self) -> None:
        self.inputs = Inputs(self.desk.config, self.desk.pipeline, NoLink())

    def killed(self) -> None:
        self.inputs.close()
        self.desk.killed()
        self.begin()

    def write(self, *values: float) -> None:
        with self.store:
            rows = [(each,) for each in values]
            self.store.executemany("INSERT INTO reading (at, celsius) VALUES (1700000000, ?)", rows)

    def read(self, *, commit: bool = True) -> None:
        while self.inputs.step():
            if commit:
                self.desk.pipeline.commit()
                self.inputs.committed()

    def total(self) -> tuple[float, int]:
        return self.desk.sums().get("heat", (0.0, 0))


@pytest.fixture
def boiler(tmp_path: Path, install: Callable[..., None]) -> Iterator[Boiler]:
    """The page's input, installed and open."""
    one = Boiler(tmp_path, install)
    yield one
    one.inputs.close()
    one.desk.state.close()


def test_the_pages_input_counts_each_row_once(boiler: Boiler) -> None:
    """Equal rows too, over kills between a row and its commit; the page's configuration is one that is right."""
    boiler.write(1, 1, 1)
    boiler.read()
    assert boiler.total() == (3.0, 3)
    boiler.write(5, 5)
    boiler.read(commit=False)
    boiler.killed()
    assert boiler.total() == (3.0, 3)
    boiler.read()
    boiler.killed()
    boiler.write(7)
    boiler.read()
    assert boiler.total() == (20.0, 6)
    assert boiler.desk.state.counters["undecidable"] == 0


def test_the_pages_configuration_is_right(boiler: Boiler) -> None:
    """As it stands there."""
    import tomllib

    raw = tomllib.loads(block("toml", 1)) | {"device": {"id": "d"}, "state": {"path": "s"}}
    (source,) = build(raw, Path("agent.toml")).sources
    assert source.options.file == Path("/var/lib/boiler/readings.db")
    assert source.options.table == "reading"


def test_no_more_is_taken_than_a_commit_may_bring(boiler: Boiler) -> None:
    """While commits wait the rows stay where they are."""
    boiler.write(*range(1000))
    most = boiler.desk.config.commit_messages
    boiler.inputs.step()
    assert boiler.desk.pipeline.pending == most
    assert not boiler.inputs.step()
    assert boiler.inputs.is_busy
    boiler.read()
    boiler.desk.pipeline.commit()
    boiler.read()
    assert boiler.total()[1] == 1000
    assert not boiler.inputs.is_busy


def test_a_fault_is_told_and_it_goes_on_where_it_was(
    boiler: Boiler, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of what was taken and not committed comes twice."""
    boiler.write(1, 2)
    boiler.read(commit=False)
    boiler.store.execute("ALTER TABLE reading RENAME TO other")
    boiler.inputs.step()
    assert 'input "rows" of boiler: OperationalError: no such table: reading' in caplog.text
    assert boiler.desk.state.counters["inputs.failed"] == 1
    boiler.store.execute("ALTER TABLE other RENAME TO reading")
    boiler.write(4)
    assert not boiler.inputs.step()  # not at once
    monkeypatch.setattr(boiler.inputs._running[0], "_next_opening", 0.0)
    boiler.read()
    assert boiler.total() == (7.0, 3)


def test_a_damaged_store_keeps_the_place(boiler: Boiler) -> None:
    """Its row is among those that are salvaged."""
    boiler.write(1, 2)
    boiler.read()
    boiler.desk.state.store.condemn("for the test")
    boiler.write(4)
    boiler.killed()
    boiler.read()
    assert boiler.desk.state.counters["accepted"] == 3
    assert boiler.desk.state.counters["inputs.lost"] == 0


def test_a_place_that_a_damaged_store_lost(boiler: Boiler) -> None:
    """What is there may have counted: reading begins behind it, and each stream says that something is missing."""
    boiler.write(1, 2)
    boiler.read()
    boiler.desk.pipeline.fold_next()
    boiler.desk.pipeline.commit()
    with boiler.desk.state.transaction() as connection:
        connection.execute("DELETE FROM meta WHERE key LIKE 'input %'")
        from sluicegate_agent.identity.unsure import lose_memory

        lose_memory(connection, boiler.desk.now)
    boiler.write(4)
    boiler.killed()
    boiler.read()
    boiler.write(8)
    boiler.read()
    assert boiler.total() == (11.0, 3)
    assert boiler.desk.state.counters["inputs.lost"] == 1


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"input": "row"}, 'source[1].input = "row": expected "mqtt", "http", "tail", "stdin" or "rows"'),
        ({"options": {}}, "source[1].options.file: is required"),
        ({"options": {"file": "x", "tabel": "y"}}, 'source[1].options.tabel = "y": there is no such key; did you mean'),
        ({"options": {"file": 7}}, "source[1].options.file = 7: expected the path"),
        ({"options": {"file": "x", "table": "a b"}}, 'source[1].options.table = "a b": expected the name of a table'),
        ({"options": 3}, "source[1].options = 3: expected a table"),
        ({"input": "tail", "options": {"a": 1}}, "source[1].options: the input tail has none"),
        ({"input": "mqtt", "options": {"a": 1}}, "source[1].options: the input mqtt has none"),
    ],
)
def test_what_is_wrong_names_its_place(boiler: Boiler, keys: dict[str, Any], told: str) -> None:
    """Like any other key."""
    raw = {"device": {"id": "d"}, "state": {"path": "s"}, "source": [SOURCE | keys]}
    with pytest.raises(ConfigError) as caught:
        build(raw, Path("agent.toml"))
    assert told in str(caught.value)


QUEUE = """
import socket
from collections import deque
from sluicegate_agent.config.inputs import Input, Opened
from sluicegate_agent.messages import Message

class Queue(Opened):
    '''What was not acknowledged comes again.'''
    waiting, acknowledged, opened = deque(), [], 0

    def __init__(self, opening):
        Queue.opened += 1
        self.wakes, self.rings = socket.socketpair()
        self._under_way = []

    def take(self):
        if not self.waiting:
            return None
        self._under_way.append(self.waiting[0])
        return Message(*self.waiting.popleft())

    def committed(self):
        self.acknowledged.extend(self._under_way)
        self._under_way = []

    def close(self):
        self.waiting.extendleft(reversed(self._under_way))
        self.wakes.close()
        self.rings.close()

QUEUE = Input(Queue, repeats=True, memory=1 << 20)
NOTHING = 3
"""
POINTS = "[sluicegate.inputs]\nqueue = queue_of_a_test:QUEUE\nodd = queue_of_a_test:NOTHING\ngone = queue_of_a_test:X\n"


@pytest.fixture
def queue(install: Callable[..., None]) -> Any:
    """The class of an input whose messages come again until they are acknowledged."""
    install("queue_of_a_test", QUEUE, POINTS)
    sys.modules.pop("queue_of_a_test", None)
    return importlib.import_module("queue_of_a_test").Queue


def test_acknowledged_after_the_commit_and_known_when_it_comes_again(queue: Any, tmp_path: Path) -> None:
    """By its number; its topics may have wildcards, and one that is not the source's is refused."""
    source = {"topic": "plant/+", "input": "queue", "sequence": "n", "streams": {"x": "x"}}
    desk = Desk(tmp_path, source)
    link = NoLink()
    inputs = Inputs(desk.config, desk.pipeline, link)
    assert len(link._wake) == 1
    queue.waiting.extend([("plant/a", b'{"n": 1, "x": 1}'), ("plant/b", b'{"n": 1, "x": 2}'), ("other", b'{"x": 5}')])
    assert inputs.step()
    assert queue.acknowledged == []
    inputs.close()  # the commit never came
    assert link._wake == []
    desk.killed()
    inputs = Inputs(desk.config, desk.pipeline, link)
    inputs.step()
    desk.pipeline.commit()
    inputs.committed()
    assert [topic for topic, _ in queue.acknowledged] == ["plant/a", "plant/b", "other"]
    queue.waiting.append(("plant/a", b'{"n": 1, "x": 1}'))
    inputs.step()
    desk.pipeline.commit()
    assert {name: count for name, (_, count) in desk.sums().items()} == {"x/a": 1, "x/b": 1}
    assert desk.state.counters["duplicates"] == 1
    assert desk.reasons() == ['input "queue" gives messages of plant/+']
    assert any(line.part == 'input "queue"' and line.memory > 1 << 20 for line in plan(desk.config).lines)
    inputs.close()
    desk.state.close()


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("queue", "source[1].sequence: what this input gives may come again: say `sequence` or `time`"),
        ("odd", 'source[1].input = "odd": the entry point odd of sluicegate.inputs is no Input'),
        ("gone", 'source[1].input = "gone": queue_of_a_test:X cannot be imported: AttributeError'),
    ],
)
def test_an_input_that_cannot_be_used_is_named(queue: Any, name: str, told: str) -> None:
    """By `check`, before anything runs."""
    source = {"topic": "t", "input": name, "format": "number", "streams": {"x": ""}}
    with pytest.raises(ConfigError) as caught:
        build({"device": {"id": "d"}, "state": {"path": "s"}, "source": [source]}, Path("agent.toml"))
    assert told in str(caught.value)
