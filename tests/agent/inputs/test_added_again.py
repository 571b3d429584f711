"""An input that a package adds gives something again, or something odd: it counts once, or at most in doubt."""

from __future__ import annotations

import importlib
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from desk import NOON, Desk

from sluicegate_agent.changes import asked, list_losses
from sluicegate_agent.config.inputs import input_of
from sluicegate_agent.inputs import running
from sluicegate_agent.inputs.inputs import Inputs
from sluicegate_agent.inputs.no_broker import NoLink
from sluicegate_agent.messages import Message

CODE = """
from sluicegate_agent.config.inputs import Input, Opened
from sluicegate_agent.messages import Message

class Log(Opened):
    '''What is there is read from a place on; `spoil` changes what is given.'''
    there, spoil, positions = [], None, []

    def __init__(self, opening):
        self.positions.append(opening.position)
        self._at, self._topic, self.position = int(opening.position or 0), opening.source.topic, opening.position

    def take(self):
        if self._at == len(self.there):
            return None
        self._at += 1
        self.position = str(self._at).encode()
        message = Message(self._topic, self.there[self._at - 1])
        return Log.spoil(self, message) if Log.spoil else message

class Queue(Opened):
    '''What was not acknowledged comes again when it is opened again.'''
    there, acknowledged = [], 0

    def __init__(self, opening):
        self._at, self._topic = Queue.acknowledged, opening.source.topic

    def take(self):
        if self._at == len(self.there):
            return None
        self._at += 1
        return Message(self._topic, self.there[self._at - 1])

    def committed(self):
        Queue.acknowledged = self._at

LOG, OTHER, QUEUE = Input(Log), Input(Log), Input(Queue, repeats=True)
"""
POINTS = "[sluicegate.inputs]\nlog = given:LOG\nother = given:OTHER\nqueue = given:QUEUE\n"
BARE = {"topic": "boiler", "input": "log", "streams": {"heat": "v"}}
TIMED = BARE | {"time": "t", "time_format": "us"}
QUEUED = TIMED | {"input": "queue"}
NUMBERED = BARE | {"input": "queue", "sequence": "n"}


@pytest.fixture
def given(install: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of the inputs."""
    monkeypatch.setattr(running, "_READ_AHEAD", 0.0, raising=False)
    monkeypatch.setattr(running, "_FIRST_DELAY", 0.0)
    install("given", CODE, POINTS)
    return importlib.import_module("given")


def said(number: int, **more: Any) -> bytes:
    """The message of a number."""
    return json.dumps({"t": NOON + number, "n": number, "v": number, **more}).encode()


class Lives:
    """An agent's inner half on a folder, started again and again, each time perhaps with another source."""

    def __init__(self) -> None:
        self.desk: Desk | None = None

    def begin(self, folder: Path, source: dict[str, Any]) -> list[str]:
        """Another life; what `check` says that it would lose."""
        self.end()
        self.desk = Desk(folder, source, recorded=True)
        losses = list_losses(self.desk.config)
        self.inputs = Inputs(self.desk.config, self.desk.pipeline, NoLink())
        self.desk.state.remember(asked(self.desk.config))
        return losses

    def end(self) -> None:
        """As after kill -9."""
        if self.desk is not None:
            self.inputs.close()
            self.desk.state.close()
            self.desk = None

    def read(self, *, acknowledge: bool = True) -> tuple[int, int]:
        """Take all that is there; how many readings it came to, how many of them in doubt."""
        assert self.desk is not None
        before = self.desk.state.counters.as_dict()
        while self.inputs.step():
            self.desk.pipeline.commit()
            if acknowledge:
                self.inputs.committed()
        self.desk.pipeline.commit()
        after = self.desk.state.counters.as_dict()
        return tuple(after.get(name, 0) - before.get(name, 0) for name in ("accepted", "undecidable"))  # type: ignore[return-value]


@pytest.fixture
def lives() -> Iterator[Lives]:
    """None yet; the last one is ended."""
    one = Lives()
    yield one
    one.end()


@pytest.mark.parametrize(("before", "after"), [(QUEUED, NUMBERED), (NUMBERED, QUEUED), (BARE, QUEUED)])
def test_what_is_known_by_something_else_is_in_doubt(
    lives: Lives, given: Any, tmp_path: Path, before: dict[str, Any], after: dict[str, Any]
) -> None:
    """What counted and was not acknowledged comes again under another kind of identity: `check` says so first."""
    if before is BARE:  # a new version of its package repeats
        before = BARE | {"input": "queue"}
        given.QUEUE = given.Input(given.Queue)
    given.Queue.there.extend(map(said, range(5)))
    assert lives.begin(tmp_path, before) == []
    assert lives.read(acknowledge=False) == (5, 0)
    lives.end()
    given.QUEUE = given.Input(given.Queue, repeats=True)
    input_of.cache_clear()
    (loss,) = lives.begin(tmp_path, after)
    assert loss.startswith("source boiler: its messages were known again by ")
    lives.end()
    lives.begin(tmp_path, after)
    given.Queue.there.extend(map(said, range(5, 8)))
    counted, doubt = lives.read()
    assert counted - doubt <= 3 <= counted
    assert lives.begin(tmp_path, after) == []


def test_no_change_brings_no_doubt(lives: Lives, given: Any, tmp_path: Path) -> None:
    """The same configuration again knows each by what it knew it by before."""
    given.Queue.there.extend(map(said, range(5)))
    for count in (5, 0, 0):
        assert lives.begin(tmp_path, QUEUED) == []
        assert lives.read(acknowledge=False) == (count, 0)


def test_the_same_at_the_newest_time_of_a_coarse_clock_is_in_doubt(lives: Lives, given: Any, tmp_path: Path) -> None:
    """It may be another reading of that second, or the same once more, in one life too: nothing says which."""
    given.Queue.there.append(said(1))
    lives.begin(tmp_path, QUEUED | {"resolution": "1s"})
    assert lives.read() == (1, 0)
    given.Queue.there.append(said(1))
    assert lives.read() == (1, 1)


@pytest.mark.parametrize("epochs", [4, 9])
def test_epochs_that_were_not_acknowledged_are_known(lives: Lives, given: Any, tmp_path: Path, epochs: int) -> None:
    """A sensor begins anew again and again in what comes once more after a kill."""
    there = [said(number, boot=boot) for boot in range(epochs) for number in range(3)]
    given.Queue.there.extend(there)
    source = QUEUED | {"sequence": "n", "epoch": "boot"}
    lives.begin(tmp_path, source)
    assert lives.read(acknowledge=False) == (3 * epochs, 0)
    lives.begin(tmp_path, source)
    counted, doubt = lives.read()
    assert counted == doubt


def mutable(log: Any, message: Message) -> Message:
    """One position for all, changed in place."""
    log.place = getattr(log, "place", bytearray(b"0"))
    log.place[:] = log.position
    log.position = log.place
    return message


def raising(log: Any, message: Message) -> Message:
    """Its place has moved already."""
    raise OSError("gone")


def misplaced(log: Any, message: Message) -> Message:
    """A place that cannot be kept."""
    log.position = log.position.decode()
    return message


ODD = {
    "mutable": mutable,
    "raising": raising,
    "misplaced": misplaced,
    "too long": lambda log, message: setattr(log, "position", b"1" * 5000) or message,
    "no message": lambda log, message: (message.topic, message.payload),
    "a topic that is none": lambda log, message: message._replace(topic=b"boiler"),
    "text": lambda log, message: message._replace(payload=message.payload.decode()),
    "flags": lambda log, message: message._replace(dup=True, retain=True, whole=7, packet_id=3, qos=1),
    "a buffer": lambda log, message: message._replace(payload=bytearray(message.payload)),
}


@pytest.mark.parametrize("source", [BARE, TIMED])
@pytest.mark.parametrize("odd", ODD)
def test_what_is_odd_is_a_fault_of_the_input_and_nothing_is_lost(
    lives: Lives, given: Any, tmp_path: Path, odd: str, source: dict[str, Any]
) -> None:
    """Whatever those after the first are at first: told or taken, the agent lives, and all count once, over a kill."""
    given.Log.there.extend([said(1), said(2), said(3)])
    lives.begin(tmp_path, source)
    seen: list[int] = []

    def spoil(log: Any, message: Message) -> Any:
        seen.append(1)
        return ODD[odd](log, message) if log._at >= 2 and len(seen) < 4 else message

    given.Log.spoil = spoil
    assert lives.desk is not None
    for _ in range(6):
        lives.read()
    assert lives.desk.sums() == {"heat": (6.0, 3)}
    failed = lives.desk.state.counters["inputs.failed"]
    assert failed == (0 if odd in ("mutable", "flags", "a buffer") else 2)
    lives.begin(tmp_path, source)
    lives.read()
    assert lives.desk.sums() == {"heat": (6.0, 3)}
    assert lives.desk.state.counters["undecidable"] == 0


@pytest.mark.parametrize(("key", "value"), [("topic", "kettle"), ("input", "other")])
def test_another_name_or_input_is_refused_and_then_in_doubt(
    lives: Lives, given: Any, tmp_path: Path, key: str, value: str
) -> None:
    """It knows no place, and none of another: what is there counts again, in doubt; what comes then does not."""
    given.Log.there.extend(map(said, range(3)))
    lives.begin(tmp_path, BARE)
    assert lives.read() == (3, 0)
    after = BARE | {key: value}
    (loss,) = lives.begin(tmp_path, after)
    assert f"source {after['topic']}: up to where its input {after['input']} was read is not known" in loss
    assert given.Log.positions == [None, None]
    assert lives.begin(tmp_path, after) == []  # killed before it had read anything
    assert lives.read() == (3, 3)
    given.Log.there.append(said(4))
    assert lives.read() == (1, 0)
    assert lives.begin(tmp_path, after) == []
    assert lives.read() == (0, 0)


def test_a_second_source_is_none_that_was_renamed(lives: Lives, given: Any, tmp_path: Path) -> None:
    """Both have places of their own."""
    given.Log.there.extend(map(said, range(3)))
    assert lives.begin(tmp_path, BARE) == []
    assert lives.read() == (3, 0)
    assert lives.begin(tmp_path, [BARE, BARE | {"topic": "kettle", "streams": {"k": "v"}}]) == []  # type: ignore[arg-type]
    assert lives.read() == (3, 0)


@pytest.mark.parametrize("way", ["log", "tail"])
def test_what_a_copied_state_reads_again_is_in_doubt(lives: Lives, given: Any, tmp_path: Path, way: str) -> None:
    """A backup was put back: the original has counted and sent what is there; what comes from then on is certain."""
    file, original, copy = tmp_path / "meter.jsonl", tmp_path / "one", tmp_path / "two"
    original.mkdir()
    source = BARE | {"input": way} | ({"file": str(file)} if way == "tail" else {})

    def write(*numbers: int) -> None:
        given.Log.there.extend(map(said, numbers))
        with file.open("ab") as end:
            end.write(b"".join(said(number) + b"\n" for number in numbers))

    write(0, 1, 2)
    lives.begin(original, source)
    assert lives.read() == (3, 0)
    lives.end()
    shutil.copytree(original, copy)
    write(3, 4, 5, 6)
    lives.begin(original, source)
    assert lives.read() == (4, 0)
    lives.begin(copy, source)
    lives.begin(copy, source)  # killed before it had read anything
    assert lives.read() == (4, 4)
    write(7, 8)
    assert lives.read() == (2, 0)


def test_a_file_under_another_name_is_refused_and_then_in_doubt(lives: Lives, given: Any, tmp_path: Path) -> None:
    """The name of a source says where its file was read to."""
    file = tmp_path / "meter.jsonl"
    file.write_bytes(b"".join(said(number) + b"\n" for number in range(3)))
    source = BARE | {"input": "tail", "file": str(file)}
    assert lives.begin(tmp_path, source) == []
    assert lives.read() == (3, 0)
    (loss,) = lives.begin(tmp_path, source | {"topic": "kettle"})
    assert "source kettle: up to where its input tail was read is not known" in loss
    assert lives.read() == (3, 3)
