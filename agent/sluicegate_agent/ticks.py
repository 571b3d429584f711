"""Advances the event time of silent streams by the monotonic clock, less the stream's usual delay.

What has passed since the last reading is taken from the monotonic clock, so that a clock that is set moves no window.
The usual delay is the greatest of late: one that is less is believed an eighth at a time. So a reading that comes about
as late as others did is still in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import monotonic
from typing import NamedTuple

#: Seconds without a reading after which a stream's event time goes on by itself.
SILENT = 1.0
MICROS = 1_000_000


class _Heard(NamedTuple):
    """Its greatest time, when that was heard (monotonic seconds), its delay, and the usual one, in µs."""

    newest: int
    at: float
    delay: int
    usual: int


class Ticks:
    """What time it is for each stream."""

    def __init__(self, clock: Callable[[], int], ticking: Callable[[], float] = monotonic) -> None:
        """`clock`: the board's, in µs since 1970; `ticking`: seconds that are never set."""
        self._clock, self._ticking = clock, ticking
        self._heard: dict[str, _Heard] = {}

    def resume(self, stream: str, newest: int) -> None:
        """An earlier run heard the stream up to this time: at least what has passed since the start has passed."""
        self._heard[stream] = _Heard(newest, self._ticking(), 0, 0)

    def forget(self, stream: str) -> None:
        """What was heard of the stream was at a time that cannot be."""
        self._heard.pop(stream, None)

    def heard(self, batches: Iterable[tuple[str, int]]) -> None:
        """Readings came of each stream, the newest of this time; older ones say nothing of the delay."""
        now, at = self._clock(), self._ticking()
        for stream, newest in batches:
            before = self._heard.get(stream)
            if before is None:
                self._heard[stream] = _Heard(newest, at, now - newest, now - newest)
            elif newest > before.newest:
                delay = now - newest
                self._heard[stream] = _Heard(newest, at, delay, max(delay, before.usual - (before.usual - delay) // 8))

    def now(self, stream: str) -> int | None:
        """The event time of a silent stream; None where it speaks, or never did."""
        heard = self._heard.get(stream)
        if heard is None or self._ticking() - heard.at < SILENT:
            return None
        passed = int((self._ticking() - heard.at) * MICROS)
        return heard.newest + max(passed - (heard.usual - heard.delay), 0)
