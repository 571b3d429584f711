"""A file of readings taken the way messages are: the same decoding, identity, windows and commits, without a broker."""

from __future__ import annotations

import csv
import re
import time
from collections.abc import Callable, Iterator
from math import inf
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from sluicegate_agent.config import Config, SourceConfig
from sluicegate_agent.errors import InputRefused
from sluicegate_agent.handover import commit, hand_over
from sluicegate_agent.identity.verdict import digest_of
from sluicegate_agent.logs.notices import Notices
from sluicegate_agent.messages import Message, Result, Unreadable
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.replayed import Replayed
from sluicegate_agent.routing.routes import Route, Routes
from sluicegate_agent.state import State
from sluicegate_agent.sync import Sync
from sluicegate_agent.sync.backpressure import Backpressure

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_LONGEST_LINE = 1 << 24
_encode = msgspec.json.Encoder().encode


class Replay:
    """Feeds payloads into an open state; `finish` commits, and hands everything on where it is told to drain."""

    def __init__(self, config: Config, state: State, source: SourceConfig, file: Path, *, again: bool = False) -> None:
        """Go on where an earlier run of `file` ended; with `again`, where an interrupted one did, else from its begin.

        Lines come with the bytes told to `progress.passed`, as `csv_payloads` and `jsonl_payloads` do.
        """
        self.config, self.state, self.source = config, state, source
        self.pipeline = Pipeline(config, state)
        self.progress = Replayed(state, source.topic, file, again=again)
        self.pipeline.beside = self.progress
        self.pipeline.identities.unsure.files = self.progress.may_be_forgotten
        self._lines: dict[bytes, None] = {}
        self.sync = Sync(config, state)
        self.notices = Notices(self.sync, self.pipeline)
        self.backpressure = Backpressure(self.sync, inf)  # a file can wait as long as the target takes documents
        self.answers: dict[tuple[str, str, str], Result] = {}

    def feed(self, payload: bytes) -> None:
        """One line of the file: skipped where an earlier run counted it; else counted, or counted as what it was."""
        limit = self.config.limits.payload
        whole = len(payload) if len(payload) > limit else 0
        message = Message(self.source.topic, payload[:limit], 0, 0, whole)
        is_repeated = self._is_repeated(message)
        if self.progress.is_known:
            return
        self.progress.counted()
        self.pipeline.accept(message, is_new=is_repeated)
        if self.pipeline.due(time.monotonic()):
            self._commit()

    def _is_repeated(self, message: Message) -> bool:
        """Whether the file says the same line again: that is another reading, where a number does not deny it."""
        if self.source.time is None or self.source.sequence is not None:
            return False
        digest = digest_of(message)
        if self._lines.pop(digest, self) is None:
            self._lines[digest] = None
            return True
        self._lines[digest] = None
        if len(self._lines) > self._horizon:
            del self._lines[next(iter(self._lines))]
        return False

    @property
    def _horizon(self) -> int:
        return max(self.config.identity.horizon, self.config.mqtt.receive_maximum)

    def finish(self, *, drain: bool) -> None:
        """Commit; with `drain`, close the open buckets and send everything, as far as the target takes it."""
        self._commit()
        self.progress.finish()
        if drain:
            hand_over(self.pipeline, self.sync, self.notices)
        self.sync.close()

    def _commit(self) -> None:
        commit(self.pipeline)
        for answer in self.pipeline.results():
            self.answers[answer.stream, answer.window, answer.aggregate] = answer
        self.sync.step(time.monotonic())
        self.notices.look()
        while self.backpressure.holds(time.monotonic()) and not self.sync.is_hung:
            time.sleep(0.01 if self.sync.is_busy else 0)
            self.sync.step(time.monotonic())
            self.notices.look()


def source_of(config: Config, topic: str | None) -> SourceConfig:
    """The source that the file stands for: the one of `topic`, or the only one. Raises InputRefused."""
    topics = [source.topic for source in config.sources]
    if topic is None and (len(topics) > 1 or config.plants):
        raise InputRefused(f"say which topic this file's messages came with, with --topic; there are: {topics}")
    try:
        found = Routes(config).find(topics[0] if topic is None else topic)
    except Unreadable as reason:
        raise InputRefused(f"--topic {topic}: {reason}") from None
    if found is None:
        raise InputRefused(f"--topic {topic}: no source has this topic; there are: {topics}")
    return found


def jsonl_payloads(file: Path, passed: Callable[[bytes], None]) -> Iterator[bytes]:
    """Each line that is not empty is a payload; `passed` is told what was read. Raises InputRefused."""
    with _opened(file) as handle:
        while line := handle.readline(_LONGEST_LINE):
            passed(line)
            if line.strip():
                yield line.strip()


def csv_payloads(file: Path, source: SourceConfig, passed: Callable[[bytes], None]) -> Iterator[bytes]:
    """Each row as the JSON object that the source's paths expect, numbers as numbers. Raises InputRefused."""
    if source.format != "json":
        raise InputRefused(f'a CSV file stands for a source with format = "json", not "{source.format}"; use --jsonl')
    with _opened(file) as handle:
        rows = csv.reader(_text(file, handle, passed))
        columns = columns_of(file, next(rows, None), source)
        for row in rows:
            if row:
                yield _encode(document_of(row, columns))


def _opened(file: Path) -> BinaryIO:
    try:
        if file.stat().st_size == 0:
            raise InputRefused(f"{file}: is empty; expected readings")
        return file.open("rb")
    except OSError as error:
        raise InputRefused(f"{file}: cannot be read: {error.strerror}; correct the path or its permissions") from None


def _text(file: Path, handle: BinaryIO, passed: Callable[[bytes], None]) -> Iterator[str]:
    for number, line in enumerate(iter(lambda: handle.readline(_LONGEST_LINE), b""), 1):
        passed(line)
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise InputRefused(f"{file}: line {number} is not text (UTF-8); is this a CSV file?") from None
        if "\0" in text:
            raise InputRefused(f"{file}: line {number} has a zero byte; is this a CSV file?")
        yield text


def columns_of(file: Path, header: list[str] | None, source: SourceConfig) -> dict[int, list[str]]:
    """Column number → steps of the path that it fills, for every path of the source. Raises InputRefused."""
    names = [name.strip() for name in header or []]
    paths = {"streams." + stream: path for stream, path in source.streams.items()}
    paths |= {key: getattr(source, key) for key in ("time", "sequence", "epoch") if getattr(source, key) is not None}
    for stream, asked in source.values.items():
        paths |= {f"values.{stream}.plus, {path}": path for path in asked.plus}
        paths |= {f"values.{stream}.with": path for path in (asked.second,) if path is not None}
    if isinstance(source, Route) and source.unfilled is not None:
        paths |= {f"key, {path}": path for path in source.unfilled.paths}
    for key, path in paths.items():
        if path not in names:
            raise InputRefused(f"{file}: has no column `{path}` (the source's {key}); it has: {', '.join(names)[:200]}")
    return {names.index(path): path.split(".") for path in paths.values()}


def document_of(row: list[str], columns: dict[int, list[str]]) -> dict[str, Any]:
    """A row as the object that the source's paths expect."""
    document: dict[str, Any] = {}
    for column, (*folders, name) in columns.items():
        place = document
        for folder in folders:
            place = place.setdefault(folder, {})
        place[name] = _cell(row[column].strip()) if column < len(row) else None
    return document


def _cell(text: str) -> Any:
    if not text:
        return None
    if not _NUMBER.fullmatch(text) or len(text) > 64:
        return text
    return int(text) if text.lstrip("+-").isdigit() else float(text)
