"""What is written to the card: measured of the process that runs, and forecast for a configuration.

Measured are the bytes that the kernel counts for the process (`write_bytes` of /proc/self/io): whole pages, without
what the file system's journal and the card itself add.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sluicegate_agent.record.limits import limits, streams_of
from sluicegate_agent.record.recorder import is_recorded

if TYPE_CHECKING:
    from sluicegate_agent.config import Config

DAY = 86_400
#: As sync/sealing.py and pipeline.py have them; a test holds them together.
CROWDED, COMMITTED_MOST = 0.5, 4096
_YEAR = 365.25
_PAGE = 4096
#: Measured by bench/wear.py with a reading a second of each stream, sequence numbers and one window. Bytes of a frame,
#: and of a reading in it: of one that comes alone more than of one of a run. Pages that a fold writes a stream, twice
#: each (log and database), after few readings and after many. Bytes of rows of identities a reading, and a source at
#: most. Bytes of a document in the tables a reading, and pages of its own; of buckets that have to wait in packed rows;
#: what a bucket takes in memory a reading, and in the outbox as it is counted. Pages that a commit without the record
#: writes a stream that it touches. What of the tables is written where the log is large: the database's part seldom.
FRAME, FRAME_READING, FRAME_ALONE = 150, 10, 5
FOLD_PAGES, FOLD_MORE, MANY = 3, 1, 600
ROW_READING, ROWS_SOURCE = 9, 36_000
DOCUMENT_READING, DOCUMENT, PACKED_READING = 12, 1500, 12
MEMORY_READING, COUNTED_READING = 51, 47
WHOLE_PAGES = 2.5
LARGE_LOG, OF_TABLES = 4 << 20, 0.75
#: A day's figure of less than this many seconds would be of the start.
LEAST_SECONDS = 3600


class Wear(NamedTuple):
    """Bytes written in a day, and how many years a card stands that."""

    bytes_a_day: int
    years: float

    def __str__(self) -> str:
        years = f"{self.years:.1f}" if self.years < 10 else f"{min(self.years, 999):.0f}"
        return f"{self.bytes_a_day / 1e9:.2f} GB a day, {years} years of the card (state.endurance)"


def written() -> int | None:
    """Bytes that this process had the system write since its start; None where the system does not say."""
    try:
        lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("write_bytes:"))
    except (OSError, ValueError, StopIteration):
        return None


def measured(config: Config, written_bytes: int | None, seconds: float) -> Wear | None:
    """By what a process has written in so many seconds; None where nothing can be said, or not yet."""
    if not written_bytes or seconds < LEAST_SECONDS:
        return None
    return _of(config, written_bytes / seconds * DAY)


def forecast(config: Config) -> Wear:
    """With a reading a second of each stream: about, and without what windows of many aggregates add."""
    streams = max(1, streams_of(config))
    messages = sum(each.keys.most if each.is_plant else 1 for each in config.sources)
    every = config.commit.every.seconds or 1 / messages
    commits = min(messages, max(1 / every, messages / config.commit_messages, streams / COMMITTED_MOST))
    outbox = _outbox(config, streams)
    if not is_recorded(config):
        return _of(config, (commits * min(streams, streams / commits) * WHOLE_PAGES * _PAGE + outbox) * DAY)
    most, together = limits(config), streams / commits
    frame = FRAME + together * (FRAME_READING + FRAME_ALONE / max(1.0, 1 / commits))
    pages = math.ceil(frame / _PAGE)
    record, file = commits * pages * _PAGE, commits * (frame if frame < _PAGE / 2 else pages * _PAGE)
    by_rows = streams * ROW_READING / most.rows if messages * ROWS_SOURCE > most.rows else 0.0
    folds = max(1 / config.commit.fold.seconds, streams / most.readings, file / most.file, by_rows)
    of_fold = FOLD_PAGES + FOLD_MORE * (1 / folds > MANY)
    share = OF_TABLES if most.log >= LARGE_LOG else 1
    return _of(config, (record + share * (folds * streams * 2 * of_fold * _PAGE + outbox)) * DAY)


def _outbox(config: Config, streams: int) -> float:
    """Bytes a second of buckets that wait, and of documents."""
    age, size = config.outbox.chunk_age.seconds, int(config.outbox.bytes)
    waiting = min(streams * age, size * CROWDED / COUNTED_READING)  # readings
    document = min(waiting / streams, config.bucket.readings * config.outbox.chunk_buckets)
    is_packed = is_recorded(config) and waiting * MEMORY_READING > limits(config).buckets
    return streams * (DOCUMENT_READING + DOCUMENT / max(1.0, document) + PACKED_READING * is_packed)


def _of(config: Config, bytes_a_day: float) -> Wear:
    return Wear(round(bytes_a_day), int(config.state.endurance) / max(bytes_a_day, 1) / _YEAR)
