"""Windows by event time over one stream, kept in slices: what an agent on a board runs and keeps durable.

A slice is the time between two neighbouring edges of windows, a session is one by itself. Each is one bucket record, so
a window costs a record a hop however many readings come, and a reading enters one slice however many windows hold it.
Results are those of `WindowOperator`, but that late readings of one batch share a revised result.

`changes` gives the records that changed, `state` what else a restart needs; `restore` goes on bit for bit.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush
from math import gcd
from typing import Any, Final, NamedTuple, cast

from sluicegate.constants import NEVER
from sluicegate.errors import ConfigurationError, SnapshotError
from sluicegate.format.bucket import Bucket, Builder, merge
from sluicegate.format.record import BuilderState
from sluicegate.policies import Time
from sluicegate.windowing.calendar import HOUR
from sluicegate.windowing.partitions import ENDED, FINAL, TRIGGER
from sluicegate.windowing.ranges import Ranges, numbered
from sluicegate.windowing.regular import Regular
from sluicegate.windowing.spec import WindowSpec
from sluicegate.windowing.triggers import CountTrigger, TimeTrigger

SLICE, TOLD = 0, 1  # kinds of records: of readings, and of what has been told of a window
MOST_SLICES: Final = 1 << 16
_HEAD = struct.Struct("<4sdqqqq")
_MAGIC = b"SGW1"
_ENDS = struct.Struct("<qqdqd")  # of a slice: its end, the first reading by time and the last
_OF_WINDOW = struct.Struct("<qq?")  # results given, readings since the last one by count, whether told at its end


class SliceResult(NamedTuple):
    """A result: of the window start ≤ time < end, due at `at`, "early", "revised" or "final", the `revision`-th one.

    `bucket`: all its readings, of which the first and the last by time are `first` and `last`. `center`: what the
    bucket's sums are relative to. `replaces`: starts of the sessions whose results it stands for.
    """

    at: int
    start: int
    end: int
    stage: str
    revision: int
    bucket: Bucket
    first: float
    last: float
    center: float
    replaces: tuple[int, ...]


class _Slice:
    """The readings of one stretch of time, folded."""

    __slots__ = ("builder", "end", "first", "first_time", "last", "last_time", "start")

    def __init__(self, start: int, end: int, builder: Builder) -> None:
        self.start, self.end, self.builder = start, end, builder
        self.first = self.last = 0.0
        self.first_time = self.last_time = NEVER

    def add(self, value: float, time: int) -> None:
        """A reading more; of equal times the first that came is the first, the last the last."""
        if self.first_time == NEVER or time < self.first_time:
            self.first_time, self.first = time, value
        if time >= self.last_time:
            self.last_time, self.last = time, value
        self.builder.add(value, time)

    @property
    def bucket(self) -> Bucket:
        """All its readings."""
        return cast(Bucket, self.builder.bucket)  # there is at least the one that made it

    def pack(self) -> bytes:
        """Its record."""
        ends = _ENDS.pack(self.end, self.first_time, self.first, self.last_time, self.last)
        return ends + self.builder.state()

    @classmethod
    def unpack(cls, start: int, row: bytes) -> _Slice:
        """What `pack` packed. Raises ValueError or struct.error."""
        made = cls(start, 0, Builder.restore(row[_ENDS.size :]))
        made.end, made.first_time, made.first, made.last_time, made.last = _ENDS.unpack_from(row)
        return made


class _Window:
    """One window that is not final; `told`: results given."""

    __slots__ = ("early", "end", "ended", "replaces", "seen", "start", "told", "waiting")

    def __init__(self, start: int, end: int) -> None:
        self.start, self.end = start, end
        self.told = self.seen = 0
        self.early = NEVER  # when its next period ends; none is watched that is past
        self.ended = self.waiting = False
        self.replaces: tuple[int, ...] = ()

    def pack(self) -> bytes:
        """Its record."""
        told = _OF_WINDOW.pack(self.told, self.seen, self.ended)
        return told + struct.pack(f"<{len(self.replaces)}q", *self.replaces)

    def take_up(self, row: bytes) -> None:
        """What `pack` packed. Raises struct.error."""
        self.told, self.seen, self.ended = _OF_WINDOW.unpack_from(row)
        self.replaces = struct.unpack(f"<{(len(row) - _OF_WINDOW.size) // 8}q", row[_OF_WINDOW.size :])


class Slices:
    """One stream's windows by `spec`, which goes by event time and has no key. Raises ConfigurationError.

    `now`: event time, None before the first reading; `late`: readings that came for final windows alone.
    """

    def __init__(self, spec: WindowSpec) -> None:
        if not spec.by_event_time or spec.key is not None:
            raise ConfigurationError("slices: expected a window by event time, without key")
        self.now, self.late, self.center = NEVER, 0, 0.0
        self.slices: dict[int, _Slice] = {}
        self.windows: dict[int, _Window] = {}
        self._lateness = spec.lateness or 0
        self._gap = spec.pause
        self._covering: Any = None if self._gap else spec.covering()
        self._regular = Regular.of(spec)
        self._count = spec.trigger.count if isinstance(spec.trigger, CountTrigger) else 0
        self._period = spec.trigger.period if isinstance(spec.trigger, TimeTrigger) else 0
        self._closed = NEVER  # where the last final session ended
        self._due: list[tuple[int, int, int]] = []
        self._current: _Slice | None = None
        self._ranges = Ranges(self.slices, gcd(*self._regular) if self._regular else 0)
        self._revised: dict[int, None] = {}
        self._changed: set[tuple[int, int]] = set()
        self._given: list[SliceResult] = []

    # readings and time

    def insert_many(self, values: Iterable[float], times: Iterable[int]) -> list[SliceResult]:
        """Finite readings in order of arrival, and times in µs; the results that they led to."""
        for value, time in zip(values, times, strict=True):
            self._insert(value, time)
        return self._taken()

    def advance(self, time: int) -> list[SliceResult]:
        """It is at least this late; the results that were due."""
        if self.now != NEVER:
            self._pass(time)
        return self._taken()

    def _insert(self, value: float, time: int) -> None:
        if self.now == NEVER:
            self.now, self.center = time, value
        if time > self.now:
            self._pass(time)
        current = self._current
        if current is None or not current.start <= time < current.end or self._gap:
            current = self._current = self._session(time) if self._gap else self._slice(time)
            if current is None:
                self.late += 1
                return
        current.add(value, time)
        self._ranges.change(current.start)
        self._changed.add((SLICE, current.start))
        if time < self.now or self._count:
            self._told_of(current)

    def _told_of(self, entered: _Slice) -> None:
        """A reading entered: what has ended is revised, and by count there may be an early result."""
        for window in self._windows_of(entered):
            if window.end <= self.now:
                self._revised[window.start] = None
            elif not self._count:
                break  # neither have those that begin later
            else:
                window.seen += 1
                self._changed.add((TOLD, window.start))
                if window.seen >= self._count:
                    window.seen = 0
                    self._give(window, "early")

    def _taken(self) -> list[SliceResult]:
        for start in self._revised:
            self._give(self.windows[start], "revised")
        self._revised.clear()
        given, self._given = self._given, []
        return given

    def _pass(self, now: int) -> None:
        """What is due happens, in order of deadlines; then it is now."""
        while self._due and self._due[0][0] <= now:
            deadline, rank, start = heappop(self._due)
            window = self.windows.get(start)
            if window is not None:
                self.now = max(self.now, deadline)
                self._happens(rank, window)
        self.now = max(self.now, now)

    def _happens(self, rank: int, window: _Window) -> None:
        until = window.end + (self._lateness if rank == FINAL else 0)
        if rank == TRIGGER:
            if window.end > self.now == window.early:
                self._early_after(window)
                self._give(window, "early")
        elif until > self.now:  # the session has grown since
            heappush(self._due, (until, rank, window.start))
        elif rank == FINAL:
            self._finish(window)
        elif window.waiting:
            window.waiting = False
            self._give(window, "revised" if window.ended else "early")

    # which slice, which windows

    def _slice(self, time: int) -> _Slice | None:
        """Where the reading belongs; None where it is late."""
        regular = self._regular
        if regular is not None:
            (start, end), last = regular.slice_of(time), regular.newest(time) + regular.span
        else:
            extents = self._covering(time)
            start, end, last = extents[-1][0], extents[0][1], extents[-1][1]
        found = self.slices.get(start)
        if found is None:
            if last + self._lateness <= self.now:
                return None
            for extent in self._missing(start):
                self._begin(*extent)
            found = self.slices[start] = _Slice(start, end, Builder(self.center))
        return found

    def _missing(self, start: int) -> list[tuple[int, int]]:
        """The windows over a new slice that are not final and not there; they begin one after the other."""
        regular, open_since = self._regular, self.now - self._lateness
        if regular is None:
            return [each for each in self._covering(start) if each[1] > open_since and each[0] not in self.windows]
        found: list[tuple[int, int]] = []
        first = max(regular.oldest(start), regular.oldest(open_since))
        for begins in reversed(regular.starts(first, regular.newest(start))):
            if begins not in self.windows:
                found.append((begins, begins + regular.span))
            elif found:
                break
        return found

    def _begin(self, start: int, end: int, told: bytes | None = None) -> None:
        window = self.windows[start] = _Window(start, end)
        if told is not None:
            window.take_up(told)
        self._schedule(window)

    def _schedule(self, window: _Window) -> None:
        self._early_after(window)
        self._watch_end(window)
        heappush(self._due, (window.end + self._lateness, FINAL, window.start))

    def _watch_end(self, window: _Window) -> None:
        if self._lateness and not window.waiting and window.end > self.now:
            window.waiting = True
            heappush(self._due, (window.end, ENDED, window.start))

    def _early_after(self, window: _Window) -> None:
        if self._period:
            passed = max(0, self.now - window.start) // self._period
            window.early = window.start + (passed + 1) * self._period
            heappush(self._due, (window.early, TRIGGER, window.start))

    def _windows_of(self, entered: _Slice) -> Iterator[_Window]:
        """In the order of their starts, which is that of their ends."""
        if self._gap:
            return iter((self.windows[entered.start],))
        regular, at = self._regular, entered.start
        if regular is None:
            starts: Iterable[int] = (start for start, _ in self._covering(at))
        else:
            starts = regular.starts(regular.oldest(at), regular.newest(at))
        return (self.windows[start] for start in starts if start in self.windows)

    # sessions

    def _session(self, time: int) -> _Slice | None:
        """The session that a reading is a part of; one that fills a pause joins two. None where it is late."""
        touched = [each for each in self.slices.values() if each.start < time + self._gap and time < each.end]
        if time < self._closed or not (touched or time + self._gap + self._lateness > self.now):
            return None
        if not touched:
            session = self.slices[time] = _Slice(time, time + self._gap, Builder(self.center))
            self._begin(time, session.end)
            return session
        touched.sort(key=lambda each: each.start)
        session, window = touched[0], self.windows[touched[0].start]
        for other in touched[1:]:
            self._join(session, window, other)
        start, session.end = min(session.start, time), max(session.end, time + self._gap)
        if start < session.start:
            self._move(session, window, start)
        window.end = session.end
        self._watch_end(window)
        if window.early <= self.now:  # it goes on after its end
            self._early_after(window)
        return session

    def _join(self, session: _Slice, window: _Window, other: _Slice) -> None:
        later = self.windows.pop(other.start)
        del self.slices[other.start]
        window.replaces += (*later.replaces, *((other.start,) if later.told else ()))
        window.told, window.seen = max(window.told, later.told), window.seen + later.seen
        window.ended |= later.ended
        self._revised.pop(other.start, None)
        joined = merge(session.bucket, numbered(session.bucket, other.bucket))
        newest = max(session.last_time, other.last_time)
        session.builder = Builder.restore(BuilderState(self.center, joined.first + joined.n, newest, joined).pack())
        session.end, session.last_time, session.last = other.end, other.last_time, other.last
        self._changed |= {(SLICE, other.start), (TOLD, other.start), (TOLD, session.start)}

    def _move(self, session: _Slice, window: _Window, start: int) -> None:
        """The session begins earlier."""
        if window.told:
            window.replaces = (window.start, *window.replaces)
        self._changed |= {(SLICE, session.start), (TOLD, session.start), (SLICE, start), (TOLD, start)}
        if session.start in self._revised:
            del self._revised[session.start]
            self._revised[start] = None
        self.slices[start], self.windows[start] = self.slices.pop(session.start), self.windows.pop(session.start)
        session.start = window.start = start
        self._due = [each for each in self._due if each[2] in self.windows]
        heapify(self._due)
        window.waiting = False
        self._schedule(window)

    # results

    def _give(self, window: _Window, stage: str) -> None:
        window.ended |= window.end <= self.now
        whole = self._ranges.run(window.start, window.end)
        self._given.append(SliceResult(
            self.now, window.start, window.end, stage, window.told, bucket=whole.bucket, first=whole.first,
            last=whole.last, center=self.center, replaces=window.replaces,
        ))  # fmt: skip
        window.told += 1
        window.replaces = ()
        self._changed.add((TOLD, window.start))

    def _finish(self, window: _Window) -> None:
        self._revised.pop(window.start, None)
        self._give(window, "final")
        del self.windows[window.start]
        self._changed.add((TOLD, window.start))
        if self._gap:
            self._closed = max(self._closed, window.end)
        # Windows end in the order in which they begin: what begins before the next one does is needed no more.
        following = window.start + (1 if self._regular is None else self._regular.hop)
        for start in [start for start in self.slices if start < following]:
            del self.slices[start]
            self._ranges.change(start)
            self._changed.add((SLICE, start))
        self._current = None

    def each(self) -> Iterator[SliceResult]:
        """What each slice holds by itself, oldest first."""
        for start, held in sorted(self.slices.items()):
            of = (held.bucket, held.first, held.last, self.center, ())
            yield SliceResult(self.now, start, held.end, "early", 0, *of)

    # what outlives the process

    def state(self) -> bytes:
        """All but the records: of one size, whatever the windows hold."""
        return _HEAD.pack(_MAGIC, self.center, self.now, self.late, self._closed, 0)

    def changes(self) -> Iterator[tuple[int, int, bytes | None]]:
        """(kind, start, record) of what changed since `saved`; None for what is gone."""
        for kind, start in sorted(self._changed):
            if kind == SLICE:
                found = self.slices.get(start)
                yield kind, start, None if found is None else found.pack()
            else:
                window = self.windows.get(start)
                told = window is not None and (window.told or window.seen)
                yield kind, start, window.pack() if window is not None and told else None

    def saved(self) -> None:
        """What `changes` gave is durable."""
        self._changed.clear()

    def restore(self, state: bytes, records: Iterable[tuple[int, int, bytes]]) -> None:
        """Go on from what was saved. Raises SnapshotError for anything else."""
        try:
            magic, self.center, self.now, self.late, self._closed, _ = _HEAD.unpack(state)
            if magic != _MAGIC:
                raise ValueError("not the state of windows in slices")
            by_kind: dict[int, dict[int, bytes]] = {SLICE: {}, TOLD: {}}
            for kind, start, record in records:
                by_kind[kind][start] = record
            for start, record in sorted(by_kind[SLICE].items()):
                self._restore(_Slice.unpack(start, record), by_kind[TOLD])
        except (KeyError, ValueError, struct.error) as error:
            raise SnapshotError(f"windows in slices: what is kept of them is damaged: {error}") from error

    def _restore(self, found: _Slice, told: dict[int, bytes]) -> None:
        if self._gap:
            missing = [(found.start, found.end)] if found.end + self._lateness > self.now else []
        else:
            missing = self._missing(found.start)
        self.slices[found.start] = found
        for start, end in missing:
            self._begin(start, end, told.get(start))


def slices_at_most(spec: WindowSpec) -> int:
    """How many slices there are at once: of the longest window that may still be open, and what is not final."""
    evict, lateness = spec.evict, spec.lateness or 0
    if not isinstance(evict, Time):  # a day has 23 hours at least
        return 2 + lateness // (23 * HOUR)
    if spec.kind != "hopping":
        return 2 + (evict.span + lateness) // evict.span
    hour = HOUR if spec.aligned else 0  # which the clock may show twice
    return 2 + (evict.span + hour + lateness) // gcd(evict.span, evict.hop)
