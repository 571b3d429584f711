"""One numbered message, and what it says beside others of its source."""

from __future__ import annotations

from dataclasses import dataclass

from sluicegate_agent.identity.epoch import FIRST, WIDTHS, Epoch
from sluicegate_agent.identity.verdict import Verdict

#: How near numbers are that confirm one another, and that contradict what waits.
NEAR = 64
#: Of counters that wrap.
LAST_NUMBERS = tuple((1 << width) - 1 for width in WIDTHS)


@dataclass(slots=True)
class Sighting:
    """One message by its number; while it waits, `held` is its row and `why` what it is if nothing confirms it."""

    key: bytes
    raw: int
    content: int
    time: int | None
    why: Verdict = Verdict.NEW
    doubt: int = 0
    held: int = 0
    since: float = 0.0
    dup: bool = False


def is_later(time: int | None, other: int | None) -> bool:
    """Whether both are times, and the first is the later one."""
    return time is not None and other is not None and time > other


def is_fresh(epoch: Epoch, seen: Sighting) -> bool:
    """Whether its time says that it came after the newest of the epoch."""
    return is_later(seen.time, epoch.high_time)


def wants(older: Epoch, now: Epoch, seen: Sighting, ahead: int) -> bool:
    """Whether a number that an epoch lacks is late there, rather than a loss in the one that began after it."""
    number = older.extended(seen.raw)
    lacks = older.base <= number <= older.high + NEAR and number > older.high - older.horizon
    if not lacks or older.content(number):
        return False
    if seen.time is not None and older.high_time is not None:
        return number > older.high or seen.time <= older.high_time
    return ahead > NEAR


def confirms(w: Sighting, seen: Sighting, now: Epoch, *, is_hole: bool) -> bool:
    """Whether a second message that contradicts the run is near enough to one that waits to be of the same new run."""
    apart = seen.raw - w.raw
    if is_hole:
        return apart == 1
    if apart == 0:  # a counter that stands still: only times tell its messages from repeats that say more
        return is_fresh(now, w) and is_fresh(now, seen) and w.time != seen.time
    return abs(apart) <= NEAR


def is_wrap(now: Epoch, seen: Sighting, horizon: int) -> bool:
    """Whether the counter's last number was the newest, give or take a few, and this is one of its first.

    What was said under the number in the lap before is a repeat, unless it has no time and comes at the very wrap.
    """
    if now.is_repeat(seen.raw, seen.content, timed=seen.time is not None):
        return seen.time is None and seen.raw == 0 and now.high - now.offset in LAST_NUMBERS
    if seen.time is not None and now.high_time is not None:
        return seen.time >= now.high_time
    number = seen.raw + now.offset
    if number >= now.base and number - now.start >= FIRST:
        return False  # it was said long ago, or may have been
    return number < now.base or now.content(number) > 0 or number <= now.high - horizon
