"""A state that went back without a trace (a card written anew from its image, a machine put back to a snapshot).

Its place is the same, so only the target tells: it has other documents under the names that come next. Then the agent
parts: whatever it took since is there, nothing counts twice for certain, and it waits for nobody.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from durable_agent import NOON, SECOND, configured
from test_copied import arrived, counted, kept, take
from thorough import number

from sluicegate_agent import faults
from sluicegate_agent.config import Config
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.service import lives
from sluicegate_agent.state import State
from sluicegate_agent.sync import DirectoryTarget, Sync
from sluicegate_agent.sync.contract import Document, Outcome, unfit


def taken(config: Config, minutes: range, *, send: bool = True) -> dict[str, Any]:
    """An agent from start to end, begun anew where it is told to: a reading a minute, all handed on where `send`."""
    with State(config) as state:
        take(Pipeline(config, state), minutes, close=send)
    while send:
        with State(config) as state:
            sync, now = Sync(config, state, DirectoryTarget(config.state.path.parent / "chunks")), 0.0
            sync.parts = True
            while not (sync.is_done() or sync.is_overtaken):
                sync.step(now, flush=True)
                now += 1000.0
            if not sync.is_overtaken:
                return {"counters": state.counters.as_dict(), "key": state.key, "incarnation": state.incarnation}
    return {}


def files_in(folder: Path) -> set[str]:
    """Their names below a folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def put_back(saved: dict[str, bytes], folder: Path) -> None:
    """The files as they were, each under its own inode: as when all sectors are written."""
    for name in files_in(folder) - {*saved}:
        (folder / name).unlink()
    for name, data in saved.items():
        with (folder / name).open("r+b" if (folder / name).exists() else "wb") as file:
            file.write(data)
            file.truncate()


def board(folder: Path) -> Config:
    """Its configuration, and a folder that takes documents."""
    (folder / "chunks").mkdir()
    return configured(folder, outbox={"chunk_buckets": 8, "bytes": "1MiB"})


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("backlog", [0, 10, 103])
def test_whatever_was_taken_since_is_there(tmp_path: Path, backlog: int, times: int) -> None:
    """Before the image, after it, and after it was put back: each counts, no oftener than in doubt, none is kept."""
    config = board(tmp_path)
    first = taken(config, range(2000, 2000 + 37))
    taken(config, range(backlog), send=False)
    saved = {path.name: path.read_bytes() for path in config.state.path.iterdir()}
    published = {*range(2000, 2037), *range(backlog)}
    for begin in range(5000, 5000 + 50 * times, 50):
        taken(config, range(begin, begin + 41))
        published |= {*range(begin, begin + 41)}
    put_back(saved, config.state.path)
    for begin in range(9000, 9000 + 50 * times, 50):
        found = taken(config, range(begin, begin + 23))
        published |= {*range(begin, begin + 23)}
    sure, doubt = counted(arrived(tmp_path))
    assert {*sure, *doubt} == published
    assert max(sure.values()) == 1
    assert kept(config) == []
    assert set(doubt) <= {*range(backlog), *range(9000, 9023)}
    assert found["key"] != first["key"]
    assert found["incarnation"] > first["incarnation"]
    assert found["counters"]["copies_noticed"] == 1


def test_its_ordinals_begin_at_0(tmp_path: Path) -> None:
    """What goes on under the new names lacks nothing there: the cloud would take it for lost."""
    config = board(tmp_path)
    taken(config, range(30))
    saved = {path.name: path.read_bytes() for path in config.state.path.iterdir()}
    taken(config, range(100, 130))
    put_back(saved, config.state.path)
    found = taken(config, range(200, 230))
    taken(config, range(300, 310))
    mine = [chunk for chunk in arrived(tmp_path) if chunk.incarnation == found["incarnation"]]
    spans = sorted((bucket.first, bucket.n) for chunk in mine for bucket in chunk.buckets)
    assert [first for first, _ in spans] == [0, *(first + n for first, n in spans)][:-1]
    assert sum(n for _, n in spans) == 40
    for chunk in mine:
        for bucket in chunk.buckets:
            assert bucket.first <= bucket.low_o_first <= bucket.low_o_last < bucket.first + bucket.n
            assert bucket.first <= bucket.high_o_first <= bucket.high_o_last < bucket.first + bucket.n


def test_a_document_that_is_cut_is_no_other_board(tmp_path: Path) -> None:
    """The target refuses it for what it is: it is kept for a person, and the state goes on under its names."""

    class Strict(DirectoryTarget):
        def put(self, documents: Sequence[Document]) -> Outcome:
            return Outcome(
                (), {each.id: unfit(Document(each.id, each.data[: len(each.data) // 2])) for each in documents}
            )

    config = board(tmp_path)
    taken(config, range(30), send=False)
    with State(config) as state:
        sync = Sync(config, state, Strict(tmp_path / "chunks"))
        sync.parts = True
        sync.step(0.0, flush=True)
        assert not sync.is_overtaken
    assert kept(config) != []


@pytest.mark.parametrize("backlog", [53, 103])
def test_a_copy_that_sends_the_backlog_first(tmp_path: Path, backlog: int) -> None:
    """The original parts where a document of its is refused; those that the target took stay, and leave no hole."""
    config = board(tmp_path)
    copy = configured(tmp_path, state={"path": "copy"}, outbox={"chunk_buckets": 8, "bytes": "1MiB"})
    taken(config, range(2000, 2037))
    taken(config, range(backlog), send=False)
    shutil.copytree(config.state.path, copy.state.path)
    taken(copy, range(3000, 3023))
    found = [taken(config, range(begin, begin + 23)) for begin in (4000, 5000)]
    sure, doubt = counted(arrived(tmp_path))
    assert {*sure, *doubt} == {*range(backlog), *range(2000, 2037), *range(3000, 3023)} | {
        minute for begin in (4000, 5000) for minute in range(begin, begin + 23)
    }
    assert max(sure.values()) == 1
    assert (kept(config), found[0]["counters"]["copies_noticed"]) == ([], 1)
    mine = [chunk for chunk in arrived(tmp_path) if chunk.incarnation == found[1]["incarnation"]]
    spans = sorted((bucket.first, bucket.n) for chunk in mine for bucket in chunk.buckets)
    assert [first for first, _ in spans] == [0, *(first + n for first, n in spans)][:-1]


def test_killed_as_it_parts(tmp_path: Path) -> None:
    """At steps from the refused document to the last one under the new names: each counts, none is kept."""
    config = board(tmp_path)
    taken(config, range(2000, 2037))
    taken(config, range(53), send=False)
    saved = {path.name: path.read_bytes() for path in config.state.path.iterdir()}
    taken(config, range(5000, 5041))
    put_back(saved, config.state.path)
    taken(config, range(9000, 9023), send=False)
    before = {name: (tmp_path / name).read_bytes() for name in files_in(tmp_path)}
    published = {*range(2000, 2037), *range(53), *range(5000, 5041), *range(9000, 9023)}
    for at in range(1, 200, number(1, 9)):
        put_back(before, tmp_path)
        child = os.fork()
        if child == 0:
            with suppress(BaseException):
                faults.arm(at, None, "")
                taken(config, range(0))
            os._exit(0)
        is_over = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        taken(config, range(0))
        sure, doubt = counted(arrived(tmp_path))
        assert {*sure, *doubt} == published, at
        assert (max(sure.values()), kept(config)) == (1, []), at
        if is_over:
            break
    assert is_over
    assert at > 50


@pytest.mark.parametrize("drain", [True, False])
def test_an_agent_that_runs_begins_anew_by_itself(tmp_path: Path, drain: bool) -> None:
    """`run` with a file as its input: put back, it goes on by itself, also where it notices as it is to end."""
    (tmp_path / "chunks").mkdir()
    lines = tmp_path / "heat.jsonl"
    source = {"topic": "heat", "input": "tail", "file": str(lines), "streams": {"heat": "v"}}
    source |= {"time": "t", "time_format": "us"}
    config = configured(tmp_path, source=[source], outbox={"chunk_buckets": 8, "bytes": "1MiB"}, window=[])

    def write(minutes: range) -> None:
        with lines.open("a") as file:
            file.writelines(json.dumps({"t": NOON + m * 60 * SECOND, "v": m}) + "\n" for m in minutes)

    write(range(20))
    lives.run(config, drain=True, idle=0.3)
    saved = {path.name: path.read_bytes() for path in config.state.path.iterdir()}
    write(range(20, 40))
    lives.run(config, drain=True, idle=0.3)
    put_back(saved, config.state.path)
    lines.write_bytes(b"".join(lines.read_bytes().splitlines(keepends=True)[:20]))  # the board was put back as a whole
    write(range(60, 80))
    lives.run(config, drain=drain, idle=0.3)
    write(range(80, 90))
    lives.run(config, drain=True, idle=0.3)
    sure, doubt = counted(arrived(tmp_path))
    assert {*sure, *doubt} == {*range(40), *range(60, 90)}
    assert set(doubt) <= {*range(60, 90)}
    assert drain is False or set(doubt) == {*range(60, 80)}
    assert kept(config) == []
