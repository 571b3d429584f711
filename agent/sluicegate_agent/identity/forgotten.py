"""Until which time a source's messages may be forgotten: what comes with such a time may have been counted before.

Of so many messages no times are kept. The newest time is noted every few messages instead; it is no earlier than that
of any message before.
"""

from __future__ import annotations

import struct
from collections import deque

PARTS = 8
_NEVER = -(1 << 62)
_ROW = struct.Struct(f"<q{2 * PARTS + 2}q")
ROW = _ROW.size


class Forgotten:
    """Of one source, of which the last `horizon` messages are known; `until`: no time of the others is later."""

    def __init__(self, horizon: int, count: int, newest: int, row: bytes = b"") -> None:
        """`count`: messages so far; `row`: what `packed` gave, empty where nothing was kept."""
        self.until = _NEVER
        self._horizon, self._step = horizon, max(1, -(-horizon // PARTS))
        self._count = count
        self._marks: deque[tuple[int, int]] = deque()
        if row:
            self.until, *marks = _ROW.unpack(row)
            self._marks.extend(each for each in zip(marks[::2], marks[1::2], strict=True) if each[0])
        elif count:
            self._marks.append((count, newest))
        self._look()

    def note(self, newest: int) -> bool:
        """One message more; no time so far is later than `newest`. Whether there is something to keep."""
        self._count += 1
        is_due = not self._marks or self._count - self._marks[-1][0] >= self._step
        if is_due:
            self._marks.append((self._count, newest))
        return self._look() or is_due

    def _look(self) -> bool:
        """Let those be forgotten that are beyond the horizon: of a mark all before it, or some would have no time."""
        before = self.until
        while self._marks and (self._marks[0][0] <= self._count - self._horizon or len(self._marks) > PARTS + 1):
            self._until(self._marks.popleft()[1])
        if self._marks and self._count > self._horizon:
            self._until(self._marks[0][1])
        return self.until != before

    def _until(self, time: int) -> None:
        self.until = max(self.until, time)

    def packed(self) -> bytes:
        """For the store; always as long."""
        marks = [number for mark in self._marks for number in mark]
        return _ROW.pack(self.until, *marks, *[0] * (2 * PARTS + 2 - len(marks)))
