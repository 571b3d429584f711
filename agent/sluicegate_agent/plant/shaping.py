"""Changes values before any window sees them: scales, checks limits, passes over what says too little that is new.

The last value that counted of a stream with `deadband` or `every` is a row of the table `meta`, written in the commit
that counts it, so that a restart passes over what a run without one would.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Callable
from math import isfinite
from typing import TYPE_CHECKING

from sluicegate.format.pairs import Pair
from sluicegate_agent.checksums import checksum
from sluicegate_agent.config.sources import ValueConfig
from sluicegate_agent.naming.names import base_of
from sluicegate_agent.naming.templates import Template

if TYPE_CHECKING:
    from sluicegate_agent.config import Config

_ROW = struct.Struct("<qdI")
#: Streams whose rules are kept ready; counters of what is passed over.
_READY = 16_384
DEADBAND, EVERY, CLIPPED = "filtered.deadband", "filtered.every", "filtered.clipped"


class Shaping:
    """The values of all streams that have rules."""

    def __init__(self, connection: sqlite3.Connection, config: Config, note: Callable[[str, int], None]) -> None:
        self._note = note
        self._rules = {name: asked for source in config.sources for name, asked in source.values.items()}
        self._templates = [(Template(name), asked) for name, asked in self._rules.items() if "{" in name]
        self._ready: dict[str, ValueConfig | None] = {}
        self._last: dict[str, tuple[int, float]] = {}
        self._changed: dict[str, None] = {}
        self._gone: dict[str, None] = {}
        if any(asked.remembers for asked in self._rules.values()):
            for key, row in connection.execute("SELECT key, value FROM meta WHERE key LIKE 'last %'"):
                self._load(key, row)

    def _load(self, key: str, row: object) -> None:
        if isinstance(row, bytes) and len(row) == _ROW.size:
            time_us, value, crc = _ROW.unpack(row)
            if crc == checksum(key, row[:-4]):  # else the next value counts
                self._last[key.removeprefix("last ")] = time_us, value

    def __bool__(self) -> bool:
        return bool(self._rules)

    def rule(self, stream: str) -> ValueConfig | None:
        """What is asked of a stream, by its full name."""
        if stream not in self._ready:
            if len(self._ready) >= _READY:
                self._ready.clear()
            base = base_of(stream)
            fits = (asked for template, asked in self._templates if template.fits(base))
            self._ready[stream] = self._rules.get(base) or next(fits, None)
        return self._ready[stream]

    def shape(self, stream: str, time_us: int, raw: float) -> tuple[float | None, str]:
        """A value as it counts, or None and why it is refused, or None alone where it is passed over."""
        asked = self.rule(stream)
        if asked is None:
            return raw, ""
        value = raw * asked.scale + asked.offset
        if not isfinite(value):
            return None, "is not finite once it is scaled"
        low, high = asked.min, asked.max
        if (low is not None and value < low) or (high is not None and value > high):
            if asked.outside == "refuse":
                return None, _outside(asked, value)
            value = low if low is not None and value < low else high if high is not None else value
            self._note(CLIPPED, 1)
        if isinstance(raw, Pair):
            value = Pair(value, raw.second)
        return (value if self._says_enough(stream, asked, time_us, value) else None), ""

    def _says_enough(self, stream: str, asked: ValueConfig, time_us: int, value: float) -> bool:
        """Whether it comes late enough and differs enough; it is the last one then."""
        if not asked.remembers:
            return True
        last = self._last.get(stream)
        if last is not None:
            if asked.every is not None and abs(time_us - last[0]) < asked.every:
                self._note(EVERY, 1)
                return False
            if asked.deadband is not None and abs(value - last[1]) <= asked.deadband:
                self._note(DEADBAND, 1)
                return False
        if last is None or time_us >= last[0]:
            self._last[stream] = time_us, value
            self._changed[stream] = None
        return True

    def forget(self, stream: str) -> None:
        """It leaves."""
        if self._last.pop(stream, None) is not None:
            self._changed.pop(stream, None)
            self._gone[stream] = None

    @property
    def changed(self) -> bool:
        """Whether anything waits for the commit."""
        return bool(self._changed or self._gone)

    def save(self, connection: sqlite3.Connection) -> None:
        """Write what changed, inside the caller's transaction."""
        connection.executemany("DELETE FROM meta WHERE key = ?", [(f"last {stream}",) for stream in self._gone])
        for stream in self._changed:
            key, head = f"last {stream}", _ROW.pack(*self._last[stream], 0)[:-4]
            row = head + checksum(key, head).to_bytes(4, "little")
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, row))

    def saved(self) -> None:
        """The transaction is durable."""
        self._changed.clear()
        self._gone.clear()


def _outside(asked: ValueConfig, value: float) -> str:
    name, limit = ("min", asked.min) if asked.min is not None and value < asked.min else ("max", asked.max)
    unit = f" {asked.unit}" if asked.unit else ""
    return f"{value:.6g}{unit} is {'below' if name == 'min' else 'above'} {name} = {limit:.6g}{unit}"
