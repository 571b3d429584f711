"""Where windows by event time begin and end: multiples of a length, the clock on the wall, or the calendar.

Edges are µs since 1970 UTC and windows hold start ≤ time < end, so an hour or a day of a time zone is as long as it is
there: a day in Vienna has 23 hours once a year, and 25 once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache

from sluicegate.errors import ConfigurationError, InputError

Extent = tuple[int, int]
Covering = Callable[[int], list[Extent]]
UNITS = ("day", "week", "month", "year")
MINUTE, HOUR, DAY = 60_000_000, 3_600_000_000, 86_400_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def zone(name: str) -> tzinfo:
    """The time zone of IANA's name. Raises ConfigurationError where there is none."""
    from zoneinfo import ZoneInfo  # where no window is aligned it is not loaded

    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError, TypeError):
        raise ConfigurationError(
            f"timezone: {name!r}, expected a name of IANA's, such as 'Europe/Vienna'; some systems need tzdata"
        ) from None


@lru_cache(maxsize=64)  # one for all streams of a configuration
def on_the_clock(length: int, hop: int, place: tzinfo) -> Covering:
    """Windows that begin whenever the clock shows a multiple of `hop` since midnight, and are length / hop hops long.

    An hour that the clock shows twice begins twice; what it skips begins, and ends, at the moment of the change.
    """

    @lru_cache(maxsize=64)
    def edges_of(day: date) -> list[int]:
        midnight = datetime(day.year, day.month, day.day)
        if _is_plain(midnight, place):
            begins = _instant(midnight, place)
            return [*range(begins, begins + DAY, hop)]
        shown = [midnight + timedelta(microseconds=k) for k in range(0, DAY, hop)]
        return sorted({_instant(wall.replace(fold=fold), place) for wall in shown for fold in (0, 1)})

    return _by_edges(edges_of, length // hop, length, place)


@lru_cache(maxsize=64)
def by_calendar(unit: str, units: int, place: tzinfo) -> Covering:
    """Windows that begin with each day, week (on Monday), month or year, and are so many `units` long."""

    @lru_cache(maxsize=64)
    def edges_of(day: date) -> list[int]:
        begins = unit == "day" or (unit == "week" and not day.weekday()) or (unit != "week" and day.day == 1)
        if not begins or (unit == "year" and day.month > 1):
            return []
        return [_instant(datetime(day.year, day.month, day.day), place)]

    days = {"day": 1, "week": 7, "month": 31, "year": 366}[unit]
    return _by_edges(edges_of, units, units * days * DAY, place)


def _by_edges(edges_of: Callable[[date], list[int]], hops: int, length: int, place: tzinfo) -> Covering:
    """The windows from each edge to the `hops`-th after it; none is much longer than `length`."""
    reach = timedelta(days=length // DAY + 2)

    @lru_cache(maxsize=4)
    def around(day: date) -> list[int]:
        first = day - reach
        days = (first + timedelta(days=i) for i in range(2 * reach.days + 1))
        return sorted({edge for each in days for edge in edges_of(each)})

    def covering(time: int) -> list[Extent]:
        try:
            edges = around((_EPOCH + timedelta(microseconds=time)).astimezone(place).date())
        except OverflowError:
            raise InputError(f"time: {time!r}, expected one that the calendar has (years 1 to 9999)") from None
        newest = bisect_right(edges, time) - 1
        return [(edges[i], edges[i + hops]) for i in range(newest - hops + 1, newest + 1)]

    return covering


def _is_plain(midnight: datetime, place: tzinfo) -> bool:
    """Whether the clock of the place runs through that day as any clock does: seen each half hour."""
    hours = [midnight + timedelta(minutes=30 * k) for k in range(49)]
    first = _instant(midnight, place)
    return all(
        _instant(wall.replace(fold=fold), place) == first + k * HOUR // 2
        for k, wall in enumerate(hours)
        for fold in (0, 1)
    )


def _instant(wall: datetime, place: tzinfo) -> int:
    """When the clock of a place shows it; of a time that it skips, the moment of the change."""
    moment = wall.replace(tzinfo=place).astimezone(UTC)
    shown = moment.astimezone(place).replace(tzinfo=None, fold=0)
    if shown != wall.replace(fold=0):
        moment = _change(wall, place)
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _change(wall: datetime, place: tzinfo) -> datetime:
    """The moment at which the clock skips `wall`, by bisection: read by the offset after it, `wall` lies before it."""
    low = wall.replace(fold=1, tzinfo=place).astimezone(UTC)
    high = wall.replace(fold=0, tzinfo=place).astimezone(UTC)
    before = low.astimezone(place).utcoffset()
    while high - low > timedelta(seconds=1):
        middle = low + (high - low) // 2
        if middle.astimezone(place).utcoffset() == before:
            low = middle
        else:
            high = middle
    return high.replace(microsecond=0)
