"""Lives of an agent whose system calls are written down, and what a disk may hold after a power cut at any of them.

`record` runs with `recorded_calls.c` loaded: readings come, are committed and handed on, each life in a process of its
own that dies where a commit fails. `Disk` holds what is durable and what is on its way; a power cut leaves what was
synced, and of the rest any sectors, or none.
"""

from __future__ import annotations

import ctypes
import json
import logging
import os
import random
import sqlite3
import struct
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from durable_agent import NOON, SECOND, configured
from target_suite.memory import MemoryTarget

from sluicegate.format import chunk as chunks
from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.messages import Message
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.record.recorder import Recorder
from sluicegate_agent.state import State
from sluicegate_agent.state import state as states
from sluicegate_agent.sync import Sync

SOURCE = {"topic": "w", "streams": {"a": "v"}, "time": "t", "time_format": "us", "sequence": "n"}
WINDOW = {"name": "all", "policy": {"count": 1000}, "aggregate": ["count", "sum"], "buckets": 8}
STEPS = 24
_HEAD = struct.Struct("<c7xqqqq")
_SECTOR = 512


class Call(NamedTuple):
    """One call, or a mark."""

    kind: str
    inode: int
    offset: int
    data: bytes
    more: bytes


def calls(trace: Path) -> Iterator[Call]:
    """All that was written down."""
    data, at = trace.read_bytes(), 0
    while at < len(data):
        kind, inode, offset, length, second = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        yield Call(kind.decode(), inode, offset, data[at : at + length], data[at + length : at + length + second])
        at += length + second


class Known:
    """What the world outside the board knows: what was sent and acknowledged, and the target's documents."""

    def __init__(self) -> None:
        self.sent: set[int] = set()
        self.acknowledged: set[int] = set()
        self.documents: dict[str, bytes] = {}

    def learn(self, mark: bytes) -> None:
        """A mark that was made."""
        what, *told = json.loads(mark)
        if what == "sent":
            self.sent.add(told[0])
        elif what == "acknowledged":
            self.acknowledged |= set(told[0])
        else:
            self.documents[told[0]] = told[1].encode("latin-1")


class Target(MemoryTarget):
    """Says what it has."""

    def __init__(self, known: Known, mark: Any) -> None:
        super().__init__()
        self.documents, self._mark = known.documents, mark

    def put(self, documents: Any) -> Any:
        outcome = super().put(documents)
        for each in documents:
            if each.id in outcome.accepted:
                self._mark("document", each.id, each.data.decode("latin-1"))
        return outcome


def live(folder: Path, known: Known, mark: Any, *, more: int = 0, dies: bool = False) -> tuple[dict[str, Any], State]:
    """A life to its end, with `more` new readings; with `dies` the process ends where a commit fails."""
    states.home = lambda path: {"inode": "the same"}
    config = configured(folder, window=[WINDOW], source=[SOURCE], outbox={"chunk_buckets": 4})
    with State(config) as state:
        pipeline = Pipeline(config, state, lambda: NOON + 99 * SECOND, Recorder(config, state))
        pipeline.connected(session_present=bool(known.sent))
        sync = Sync(config, state, Target(known, mark))

        def say(number: int) -> None:
            payload = json.dumps({"n": number, "t": NOON + number * SECOND, "v": float(number)}).encode()
            pipeline.accept(Message("w", payload, number + 1, 1, dup=number in known.sent))
            known.sent.add(number)
            mark("sent", number)

        def commit() -> None:
            try:
                done = [each - 1 for each in pipeline.commit()]
            except sqlite3.OperationalError:
                if dies:
                    os._exit(9)
                raise
            known.acknowledged |= set(done)
            mark("acknowledged", done)

        for number in range(STEPS + more):
            if number in known.acknowledged:
                continue
            say(number)
            if number % 3 == 1:
                continue
            if number % 6 == 5:
                pipeline.fold_next()
            commit()
            sync.step(1e6 * number, flush=number % 8 == 7)
        commit()
        answers = {each.aggregate: each for each in pipeline.answers("a", "all")}
        if more:
            pipeline.flush()
            commit()
            now = 1e9
            while not sync.is_done() and now < 2e9:
                sync.step(now, flush=True)
                now += 1e6
        return answers, state


def record(folder: Path, failing: int) -> None:
    """Lives, one after the other, until one comes to its end; in the first the `failing`-th sync fails."""
    shim = ctypes.CDLL(None)

    def mark(*told: Any) -> None:
        shim.mark(json.dumps(told).encode())

    for number in range(20):
        child = os.fork()
        if not child:
            known = Known()
            trace = Path(os.environ["TRACE"])
            for call in calls(trace) if trace.exists() else ():
                if call.kind == "M":
                    known.learn(call.data)
            shim.fail(0 if number else failing)
            try:
                live(folder, known, mark, dies=True)
            except EnvironmentRefused:
                os._exit(9)
            os._exit(0)
        if os.waitpid(child, 0)[1] == 0:
            return
    raise SystemExit("it never came to an end")


class Disk:
    """What is on the medium, and what is only in memory: of each inode, and of the names."""

    def __init__(self) -> None:
        self._files: dict[int, bytearray] = {}
        self._waiting: dict[int, list[Call]] = {}
        self._names: dict[str, int] = {}
        self._cached: dict[str, int] = {}
        self._renamed: list[Call] = []
        self._uses: dict[int, int] = {}  # an inode is used again

    def do(self, call: Call, *, lies: bool = False) -> None:
        """A call; of a disk that `lies` no sync reaches the medium."""
        if call.kind == "O":
            self._uses[call.inode] = self._uses.get(call.inode, 0) + 1
        call = call._replace(inode=call.inode << 16 | self._uses.get(call.inode, 0))
        if call.kind in "WT":
            self._waiting.setdefault(call.inode, []).append(call)
        elif call.kind in "ORU":
            self._renamed.append(call)
            _name(self._cached, call)
        elif call.kind == "F":
            self._waiting.pop(call.inode, None)  # clean in memory, and not on the medium
        elif call.kind == "S" and not lies:
            for each in self._waiting.pop(call.inode, ()):
                _write(self._files.setdefault(call.inode, bytearray()), each)
            for each in self._renamed:
                _name(self._names, each)
            self._renamed.clear()

    def cut(self, folder: Path, chance: random.Random | None) -> None:
        """The files as they are after a power cut: `chance` keeps some sectors of what was on its way, None nothing."""
        names = dict(self._names)
        for each in self._renamed[: chance.randint(0, len(self._renamed)) if chance else 0]:
            _name(names, each)
        folder.mkdir(parents=True)
        for path, inode in names.items():
            content = bytearray(self._files.get(inode, b""))
            for each in self._waiting.get(inode, ()) if chance else ():
                for piece in _sectors(each):
                    if chance is not None and chance.random() < 0.6:
                        _write(content, piece)
            (folder / Path(path).name).write_bytes(content)


def _name(names: dict[str, int], call: Call) -> None:
    path = call.data.decode()
    if call.kind == "O":
        names[path] = call.inode
    elif call.kind == "U":
        names.pop(path, None)
    elif path in names:
        names[call.more.decode()] = names.pop(path)


def _write(content: bytearray, call: Call) -> None:
    if call.kind == "T":
        del content[call.offset :]
        content.extend(bytes(call.offset - len(content)))
    else:
        content.extend(bytes(max(0, call.offset - len(content))))
        content[call.offset : call.offset + len(call.data)] = call.data


def _sectors(call: Call) -> Iterator[Call]:
    if call.kind == "T":
        yield call
    at = 0
    while call.kind == "W" and at < len(call.data):
        size = _SECTOR - (call.offset + at) % _SECTOR
        yield call._replace(offset=call.offset + at, data=call.data[at : at + size])
        at += size


class Found(NamedTuple):
    """What the documents of all lives come to."""

    lost: int
    twice: int
    doubt: int
    gap: int
    told: int
    wrong: str


def judged(folder: Path, known: Known, more: int = 4) -> Found:
    """A life after a power cut: what was not acknowledged comes again, and `more` beside."""
    answers, state = live(folder, known, lambda *told: None, more=more)
    arrived, count, doubt, gap = Counter[float](), 0, 0, 0
    for each in map(chunks.decode, known.documents.values()):
        for bucket, singles in zip(each.buckets, each.readings, strict=True):
            arrived.update(singles[1] if singles else [])
            count, doubt, gap = count + bucket.n, doubt + bucket.doubt, gap + bucket.gap
    truth = Counter(map(float, range(STEPS + more)))
    counters = state.counters
    told = counters["record.damaged"] + state.store.set_aside + counters["sync.rejected"]
    wrong = ""
    for name, exact in (("count", STEPS + more), ("sum", sum(range(STEPS + more)))):
        found = answers[name]
        if (found.exact and found.value != exact) or (not (found.low or 0) <= exact and found.low is not None):
            wrong = f"the window says {name} {found}"
    lost = max(0, STEPS + more - count) if doubt else (truth - arrived).total()
    return Found(lost, (arrived - truth).total(), doubt, gap, told, wrong)


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    record(Path(sys.argv[1]), int(sys.argv[2]))
