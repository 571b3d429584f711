"""A board whose state is damaged one byte at a time, and what is true of it whether it is damaged or not."""

from __future__ import annotations

import contextlib
import json
import random
import sqlite3
import struct
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from math import fsum, isclose
from pathlib import Path
from typing import Any

import pytest
from durable_agent import NOON, SECOND, configured
from target_suite.memory import MemoryTarget

from sluicegate.format import chunk as chunks
from sluicegate_agent.messages import Message
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.record import recovery
from sluicegate_agent.record.recorder import Recorder
from sluicegate_agent.replay import Replay, jsonl_payloads
from sluicegate_agent.state import State, StoreDamaged
from sluicegate_agent.state import state as state_module
from sluicegate_agent.sync import Sync

TRUTHS: dict[str, Callable[[list[float]], float]] = {"count": len, "sum": fsum, "max": max, "min": min}
WINDOWS: list[dict[str, Any]] = [
    {"name": "time", "policy": {"time": "10s"}, "aggregate": [*TRUTHS], "buckets": 64},
    {"name": "count", "policy": {"count": 8}, "aggregate": [*TRUTHS], "buckets": 0},
]
_TIMED = {"time": "t", "time_format": "us"}
SOURCES: list[dict[str, Any]] = [
    {"topic": "numbered", "streams": {"level": "v"}, "sequence": "n"} | _TIMED,
    {"topic": "timed", "streams": {"heat": "v"}} | _TIMED,
    {"topic": "door", "format": "number", "streams": {"door": ""}},
    {
        "topic": "plant/{key}", "streams": {"p": "v"}, "sequence": "n", "tags": {"line": "{payload.line}"},
        "keys": {"most": 2, "evict": "oldest"},
    } | _TIMED,
]  # fmt: skip
#: What says that something may be wrong.
TELLING = ("rows.lost", "record.", "windows.begun", "copies", "undecidable")
#: After a damage so many rounds of readings follow, with a restart after RESTART of them.
ROUNDS, RESTART = 9, 4
Row = tuple[Any, ...]


class Board:
    """Streams that say something each second; `said` is what was counted of each, in order."""

    def __init__(self, folder: Path) -> None:
        self.config = configured(folder, window=WINDOWS, source=SOURCES, outbox={"chunk_buckets": 4})
        self.folder, self.path = folder, folder / "state/state.db"
        self.said: dict[str, list[tuple[int, float]]] = defaultdict(list)
        self.sent: list[Message] = []
        self.step, self.rng = 0, random.Random(5)
        #: The files after each commit, as a power cut then would have left them.
        self.moments: list[dict[Path, bytes]] = []
        self._live()
        self.kept = self._files()
        self._kept = self.step, {name: [*each] for name, each in self.said.items()}, [*self.sent]

    def _files(self) -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}

    def now(self) -> int:
        """The clock."""
        return NOON + self.step * SECOND + 1

    def _live(self) -> None:
        """All tables have rows afterwards, and the record has frames."""
        (self.folder / "history.jsonl").write_text(json.dumps({"t": NOON, "v": 2.0}))
        self.said["heat"].append((NOON, 2.0))
        self._replay()
        self._open()
        self._say("timed", b"nonsense")
        self._say("door", b"7", retain=True)
        self.said["door"].append((self.now(), 7.0))
        for step in range(24):
            self._take()
            if step == 11:
                self.pipeline.saving.fold()
                target = MemoryTarget()
                target.away = True
                Sync(self.config, self.state, target).step(0.0, flush=True)
            elif step == 18:
                self.pipeline.saving.fold()
            self.moments.append(self._files())
        self.state.close()

    def _open(self) -> None:
        self.state = State(self.config)
        self.pipeline = Pipeline(self.config, self.state, self.now, Recorder(self.config, self.state))
        self.pipeline.connected(session_present=True)

    def _replay(self) -> None:
        """A file that counts once, however often it comes."""
        with State(self.config) as state, state.store.noticing_damage():
            replay = Replay(self.config, state, self.config.sources[1], self.folder / "history.jsonl")
            for payload in jsonl_payloads(self.folder / "history.jsonl", replay.progress.passed):
                replay.feed(payload)
            replay.finish(drain=False)

    def _say(self, topic: str, payload: bytes, **flags: bool) -> None:
        self.sent.append(Message(topic, payload, len(self.sent) + 1, 1, **flags))
        self.pipeline.accept(self.sent[-1])

    def _take(self) -> None:
        self.step += 1
        at = NOON + self.step * SECOND
        plants = ("c",) if self.step < 4 else ("a", "b")
        for topic, stream in (
            ("numbered", "level"), ("timed", "heat"), *((f"plant/{key}", f"p/{key}") for key in plants),
        ):  # fmt: skip
            value = self.rng.randrange(-80, 80) / 8
            self.said[stream].append((at, value))
            number = {} if topic == "timed" else {"n": self.step}
            self._say(topic, json.dumps({"t": at, "v": value, "line": "north"} | number).encode())
        self.said["door"].append((self.now(), float(self.step % 3)))
        self._say("door", b"%d" % (self.step % 3))
        self.pipeline.commit()

    # the runs

    def restore(self, files: dict[Path, bytes] | None = None) -> None:
        """All as it was before the damage; `files`: instead of those."""
        self.step, said, sent = self._kept
        kept = self.kept if files is None else files
        for path in [*self.folder.rglob("*")]:
            if path.is_file() and path not in kept:
                path.unlink()
        for path, data in kept.items():
            path.write_bytes(data)
        self.said, self.sent = defaultdict(list, {name: [*each] for name, each in said.items()}), [*sent]
        self.rng = random.Random(6)

    def faults(self) -> list[str]:
        """Go on with the state as it is now, and hand everything over: what is neither true nor told to be in doubt.

        A process that says that its store is damaged is started again, twice.
        """
        for _ in range(2):
            with contextlib.suppress(StoreDamaged):
                return self._faults()
        return self._faults()

    def _faults(self) -> list[str]:
        try:
            self._replay()
            self._open()
            with self.state.store.noticing_damage():
                return [*self._gone_on()]
        finally:
            self.state.close()

    def _gone_on(self) -> Iterator[str]:
        for message in self.sent[-15:]:  # whose acknowledgement the broker has not seen
            self.pipeline.accept(message._replace(dup=True))
        self.pipeline.commit()
        for place in range(ROUNDS):
            if place:
                self._take()
            self.pipeline.results()
            for stream in ("level", "heat", "door", "p/a", "p/b"):
                yield from self._wrong(stream)
            if place == RESTART:
                self.state.close()
                self._open()
        yield from self._wrong_documents()

    def _wrong(self, stream: str) -> Iterator[str]:
        """Of a stream's answers those whose interval lacks the truth, or that are exact and wrong."""
        said = self.said[stream]
        held = {
            "time": [value for at, value in said if at > said[-1][0] - 10 * SECOND],
            "count": [value for _, value in said[-8:]],
        }
        for window, values in held.items():
            for each in self.pipeline.answers(stream, window):
                truth, low, high = TRUTHS[each.aggregate](values), each.low, each.high
                assert isinstance(low, int | float | None)
                assert isinstance(high, int | float | None)
                holds = (low is None or low <= truth + 1e-9) and (high is None or truth - 1e-9 <= high)
                if not holds or (each.exact and not isclose(float(each.value or 0), truth, abs_tol=1e-9)):
                    yield f"{stream} {window} {each.aggregate}: {truth} is not in {each}"

    def _wrong_documents(self) -> Iterator[str]:
        """What arrived counts nothing twice beyond its doubt, and lacks nothing without saying so."""
        self.pipeline.flush()
        self.pipeline.fold_next()
        self.pipeline.commit()
        target = MemoryTarget()
        sync = Sync(self.config, self.state, target)
        for _ in range(200):
            if not sync.is_done():
                sync.step(time.monotonic(), flush=True)
        if not sync.is_done() or self.state.outbox.rejected:
            yield "not all was handed over"
        arrived: dict[str, list[float]] = defaultdict(list)
        doubt, tags = Counter[str](), set[tuple[str, str]]()
        for each in map(chunks.decode, target.documents.values()):
            tags.add((each.stream, json.dumps(each.tags)))
            for bucket, singles in zip(each.buckets, each.readings, strict=True):
                arrived[each.stream] += singles[1] if singles else []
                doubt[each.stream] += bucket.doubt
        counters = self.state.counters.as_dict()
        is_told = any(count and name.startswith(TELLING) for name, count in counters.items() if name not in QUIET)
        for stream in self.said.keys() | arrived.keys():
            truth = Counter(value for _, value in self.said.get(stream, ()))
            more, less = Counter(arrived[stream]) - truth, truth - Counter(arrived[stream])
            if more.total() > doubt[stream]:
                yield f"{stream}: {more} counted twice or never said, {doubt[stream]} in doubt"
            if less and not is_told:
                yield f"{stream}: {less} is missing, and nothing says so"
        if not is_told and tags != {(s, '{"line": "north"}' if "/" in s else "null") for s in self.said}:
            yield f"other names or tags: {tags}"


#: Counters that say nothing of a damage.
QUIET = {f"record.folds.{why}" for why in ("due", "streams", "memory", "other", "waiting")}


def columns(path: Path) -> dict[tuple[str, str], list[tuple[Row, list[str]]]]:
    """By table and column all rows that have something there, with the names of their columns."""
    found: dict[tuple[str, str], list[tuple[Row, list[str]]]] = defaultdict(list)
    with contextlib.closing(sqlite3.connect(path)) as store:
        tables = [name for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            cursor = store.execute(f'SELECT * FROM "{table}"')  # noqa: S608
            names = [each[0] for each in cursor.description]
            for row in cursor:
                for name, value in zip(names, row, strict=True):
                    if value is not None and value != b"":
                        found[table, name].append((row, names))
    return found


def flip(path: Path, table: str, column: str, row: Row, names: list[str], rng: random.Random) -> str:
    """Turn over one bit of a row's column; what was done."""
    value = row[names.index(column)]
    form = "<q" if isinstance(value, int) else "<d" if isinstance(value, float) else None
    data = bytearray(struct.pack(form, value) if form else value.encode() if isinstance(value, str) else value)
    at, bit = rng.randrange(len(data)), rng.randrange(8)
    data[at] ^= 1 << bit
    new = struct.unpack(form, data)[0] if form else bytes(data)
    where = " AND ".join(f'"{name}" IS ?' for name in names)
    said = "CAST(? AS TEXT)" if isinstance(value, str) else "?"
    update = f'UPDATE OR IGNORE "{table}" SET "{column}" = {said} WHERE {where}'  # noqa: S608
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as store:
        store.execute(update, (new, *row))
    return f"{table}.{column} of {row[:2]}: byte {at}, bit {bit}"


def placed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Board:
    """A board at a place that does not change although its file is written anew."""
    monkeypatch.setattr(state_module, "home", lambda _: {"inode": "1"})
    made = Board(folder)
    monkeypatch.setattr(recovery, "now_us", made.now)
    return made
