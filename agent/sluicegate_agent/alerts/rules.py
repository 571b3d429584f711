"""What an alert is after one more answer: nothing, pending, raised; a pure function of what it was and what is seen."""

from __future__ import annotations

from collections import deque
from typing import Literal, NamedTuple

from msgspec import Struct

from sluicegate_agent.config.outward import AlertConfig

State = Literal["ok", "pending", "raised"]
#: So many earlier answers stand for the length over which a change is taken.
_STEPS = 8


class Kept(Struct, frozen=True, array_like=True):
    """One alert of one stream: since when (µs of the stream's time) it is in its state; whether it was certain."""

    state: State = "ok"
    since_us: int = 0
    certain: bool = False


class Seen(NamedTuple):
    """What is compared: a value and the ends of its interval; None where nothing is known."""

    time_us: int
    value: float | None
    low: float | None
    high: float | None


def judged(alert: AlertConfig, kept: Kept, seen: Seen) -> Kept:
    """The state after `seen`. What is not known changes nothing."""
    compared = {"value": seen.value, "low": seen.low, "high": seen.high}[alert.on]
    if compared is None:
        return kept
    certain = is_certain(alert, seen)
    if kept.state == "raised":
        if _has_cleared(alert, compared):
            return Kept("ok", seen.time_us)
        return Kept("raised", kept.since_us, kept.certain or certain)
    if not _is_beyond(alert, compared):
        return Kept() if kept.state == "pending" else kept
    # A clock that was set back must not make a pending alert wait for years.
    since = min(kept.since_us, seen.time_us) if kept.state == "pending" else seen.time_us
    return Kept("raised", since, certain) if seen.time_us - since >= alert.hold else Kept("pending", since)


def is_certain(alert: AlertConfig, seen: Seen) -> bool:
    """Whether the whole interval lies beyond the limit: then the exact answer does, too."""
    if alert.above is not None:
        return seen.low is not None and seen.low > alert.above
    return alert.below is not None and seen.high is not None and seen.high < alert.below


def _is_beyond(alert: AlertConfig, value: float) -> bool:
    return value > alert.above if alert.above is not None else alert.below is not None and value < alert.below


def _has_cleared(alert: AlertConfig, value: float) -> bool:
    if alert.above is not None:
        return value <= (alert.above if alert.clear is None else alert.clear)
    return alert.below is not None and value >= (alert.below if alert.clear is None else alert.clear)


class Changes:
    """How much an answer changed in a length of time, from a few earlier answers; certain, as both ends are."""

    def __init__(self, per: int) -> None:
        self.per = per
        self._earlier: deque[Seen] = deque()

    def after(self, seen: Seen) -> Seen:
        """The change up to `seen`, scaled to the length; nothing is known before so long has passed."""
        while self._earlier and self._earlier[-1].time_us > seen.time_us:
            self._earlier.pop()  # the clock was set back: what came after is no past
        while len(self._earlier) > 1 and self._earlier[1].time_us <= seen.time_us - self.per:
            self._earlier.popleft()
        if not self._earlier or seen.time_us - self._earlier[-1].time_us >= self.per // _STEPS:
            self._earlier.append(seen)
        then = self._earlier[0]
        elapsed = seen.time_us - then.time_us
        if elapsed < self.per:
            return Seen(seen.time_us, None, None, None)
        scale = self.per / elapsed
        ends = ((seen.value, then.value), (seen.low, then.high), (seen.high, then.low))
        return Seen(seen.time_us, *(None if a is None or b is None else (a - b) * scale for a, b in ends))
