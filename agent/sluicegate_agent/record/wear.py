"""What is written to the card: measured of the process that runs, and forecast for a configuration.

Measured are the bytes that the kernel counts for the process (`write_bytes` of /proc/self/io): whole pages, without
what the file system's journal and the card itself add.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sluicegate_agent.record.file import LARGEST
from sluicegate_agent.record.recorder import READINGS_MOST, is_recorded

if TYPE_CHECKING:
    from sluicegate_agent.config import Config

DAY = 86_400
_YEAR = 365.25
_PAGE = 4096
#: Measured by bench/wear.py with a reading a second of 100 streams, sequence numbers and one window: bytes of a frame a
#: reading; pages that a fold writes a stream, twice each (log and database); bytes that buckets and documents cost a
#: reading; pages that a commit without the record writes a stream that it touches.
FRAME_READING, FRAME, FOLD_PAGES, OUTBOX_READING, WHOLE_PAGES = 24, 150, 9, 64, 2.5


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
    """By what a process has written in so many seconds; None where nothing can be said."""
    if not written_bytes or seconds <= 0:
        return None
    return _of(config, written_bytes / seconds * DAY)


def forecast(config: Config) -> Wear:
    """With a reading a second of each stream: about, and without what windows of many aggregates add."""
    streams = len(config.streams) + sum(len(each.streams) * each.keys.most for each in config.plants)
    messages = sum(each.keys.most if each.is_plant else 1 for each in config.sources)
    every = config.commit.every.seconds or 1 / messages
    commits = min(messages, max(1 / every, messages / config.commit_messages))
    outbox = streams * OUTBOX_READING
    if not is_recorded(config):
        return _of(config, (commits * min(streams, streams / commits) * WHOLE_PAGES * _PAGE + outbox) * DAY)
    frame = FRAME + FRAME_READING * streams / commits
    record = commits * (frame / _PAGE + 1) * _PAGE
    folds = max(1 / config.commit.fold.seconds, streams / READINGS_MOST, commits * frame / LARGEST)
    return _of(config, (record + folds * streams * 2 * FOLD_PAGES * _PAGE + outbox) * DAY)


def _of(config: Config, bytes_a_day: float) -> Wear:
    return Wear(round(bytes_a_day), int(config.state.endurance) / max(bytes_a_day, 1) / _YEAR)
