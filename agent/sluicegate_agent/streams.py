"""One stream's way into the outbox: readings become base buckets, closed by count, by span, or when time goes back.

A base bucket keeps its single readings beside it while they are few; losses that the source's sequence numbers tell of
enter the bucket as `gap`.
"""

from __future__ import annotations

import json
import sqlite3
import struct
from array import array
from collections.abc import Callable
from typing import NamedTuple

from sluicegate.format.bucket import LATE, Builder
from sluicegate.format.late import LATE_NAME, NEVER
from sluicegate.format.pairs import PAIR, Moments, PairColumn
from sluicegate_agent import carried
from sluicegate_agent.carried import pack_readings, unpack_readings
from sluicegate_agent.identity import tally
from sluicegate_agent.identity.returned import Returned
from sluicegate_agent.tables.streams import Row, write_origin, write_tags

SINGLES_MOST = 64
#: Told of a run that a stream folds: number, values, times, where it begins among them, missing, doubt.
Tell = Callable[[int, "array[float]", "array[int]", int, int, int], None]
_ROW = struct.Struct("<4sqqqqqiII")
_MAGIC = b"SGS2"
_CARRYING = b"SGS3"  # the same, then what the open bucket carries
_OLD_ROW = struct.Struct("<4sqqqII")
_OLD_MAGIC = b"SGS1"
_GAP_MOST = 1 << 60
#: What most of thousands of streams have nothing of, the same for all: nobody writes to these.
_NO_TIMES, _NO_VALUES, _NO_MOMENTS = array("q"), array("d"), Moments()
_NO_PARTS, _NO_TAGS = dict[str, bytes](), dict[str, str]()


class Closed(NamedTuple):
    """A closed base bucket on its way into the outbox, with its single readings where they are still at hand.

    `center`: what a stream folded them around; None where it was not folded by one.
    """

    first: int
    n: int
    bucket: bytes
    readings: bytes | None
    center: float | None = None


class Stream:
    """The open bucket, cursors and counters of one stream: one small row.

    `told` is what its buckets say was lost, `owed` what the next one says beside its source's numbers. Both belong
    to the stream, not to the source: a topic that is renamed takes nothing back. `without`: what came late without a
    reading of it, where messages may be so; its next bucket says it. `tell` is told of it as of no reading.

    Readings that it is given with `take` are folded together, when somebody asks for the builder or `settle`s it.
    `tell` is told of each such run; `new_times` and `new_values` keep it until it is `handed` to the windows.

    A stream that `carries` "pair" takes readings of two values; its buckets have the moments of both in place of single
    readings, which do not say them.
    """

    #: A dictionary of so many takes 1.6 KiB of each silent stream.
    __slots__ = (
        *("number", "name", "incarnation", "key", "tags", "source", "readings", "span_us", "tell", "closed", "changed"),
        *("carries", "has_left", "has_new_tags", "is_fed_anew", "is_known", "is_new", "is_retired"),
        *("_builder", "_missing", "_moments", "_settled", "folded", "parts", "times", "values"),
        *("new_times", "new_values", "missing_seen", "returned", "told", "owed", "late", "buckets", "without"),
    )

    def __init__(self, number: int, name: str, readings: int, span_us: int) -> None:
        self.number, self.name = number, name
        self.incarnation = self.key = ""
        self.tags = _NO_TAGS
        self.has_new_tags = False
        self.is_known = self.is_new = self.is_retired = self.has_left = self.is_fed_anew = False
        self.readings, self.span_us = readings, span_us
        self._builder: Builder | None = None
        self.new_times, self.new_values = _NO_TIMES, _NO_VALUES
        self._settled = self._missing = 0
        self.tell: Tell | None = None
        self.missing_seen = self.returned = self.told = self.owed = 0
        self.source: str | None = None
        self.late = self.buckets = 0
        self.without: Returned | None = None
        self.times, self.values = _NO_TIMES, _NO_VALUES
        self.carries: tuple[str, ...] = ()  # the names of what its buckets carry; set before the first reading is taken
        self.parts, self._moments, self.folded = _NO_PARTS, _NO_MOMENTS, 0
        self.closed: list[Closed] = []
        self.changed = True

    @property
    def builder(self) -> Builder | None:
        """What its readings are folded into, all that were taken among them; None before the first."""
        if self._settled < len(self.new_times):
            self.settle()
        return self._builder

    @builder.setter
    def builder(self, builder: Builder | None) -> None:
        self._builder = builder

    @property
    def accepted(self) -> int:
        """Readings accepted in this incarnation: the next ordinal."""
        return self.builder.next if self.builder else 0

    @property
    def taken(self) -> int:
        """The same, without folding what was taken."""
        return (self._builder.next if self._builder else 0) + len(self.new_times) - self._settled

    def take(self, value: float, time: int, missing: int, doubt: int = 0) -> None:
        """Have one finite reading wait for `settle`; one in doubt is folded at once. See `add`."""
        if doubt or missing != self._missing or self.new_times is _NO_TIMES:
            self._begin_run(missing)
        self.new_values.append(value)
        self.new_times.append(time)
        self.changed = True
        if doubt:
            self.settle(doubt)

    def take_many(self, values: array[float], times: array[int], missing: int) -> None:
        """The same of several."""
        if missing != self._missing or self.new_times is _NO_TIMES:
            self._begin_run(missing)
        self.new_values += values
        self.new_times += times
        self.changed = True

    def _begin_run(self, missing: int) -> None:
        """What comes now says this of losses, and is folded apart from what was taken before."""
        self.settle()
        self._missing = missing
        if self.new_times is _NO_TIMES:
            self.new_times, self.new_values = array("q"), self._column()

    def _column(self) -> array[float]:
        """For values of its kind."""
        return PairColumn() if PAIR in self.carries else array("d")

    def settle(self, doubt: int = 0) -> None:
        """Fold what was taken and is in no bucket yet; with `doubt` all of it is in doubt."""
        begin, self._settled = self._settled, len(self.new_times)
        if begin < self._settled:
            if self.tell:
                self.tell(self.number, self.new_values, self.new_times, begin, self._missing, doubt)
            self.add_many(self.new_values, self.new_times, begin, self._missing, doubt)

    def handed(self) -> tuple[array[float], array[int]]:
        """Values and times of all that was taken since the last call, in their order."""
        self.settle()
        found = self.new_values, self.new_times
        self.new_times, self.new_values, self._settled = _NO_TIMES, _NO_VALUES, 0
        return found

    def fed_by(self, source: str, missing: int, missing_of: Callable[[str], int]) -> None:
        """Its source from now on, of which `missing` is known; what the former one lost and did not tell is owed."""
        if self.source == source:
            return
        self.settle()
        if self.source is not None:
            has_told = self.builder is not None or self.goes_on
            self.owed += missing_of(self.source) - self.missing_seen if has_told else 0
            self.missing_seen = missing
        self.source, self.changed, self.is_fed_anew = source, True, True

    @property
    def goes_on(self) -> bool:
        """Whether its next reading says what is lost since the last one of another stream of its name."""
        return self.without is not None and self.without.since != NEVER

    def owe(self, readings: int) -> None:
        """So many are lost that no number tells of: the next bucket says so. The tables keep it, not the record."""
        self.settle()
        self.owed += readings
        self.changed = self.is_fed_anew = True

    def add(self, value: float, time: int, missing: int, doubt: int = 0) -> None:
        """Fold one finite reading; `missing` is what its message says of losses so far (`tally`).

        `doubt` is 1 where the reading cannot be told from a repeat of one that was counted.
        """
        self.settle()
        values = self._column()
        values.append(value)
        self.add_many(values, array("q", (time,)), 0, missing, doubt)

    def add_many(self, values: array[float], times: array[int], begin: int, missing: int, doubt: int = 0) -> None:
        """The same of those from `begin` on, in their order."""
        if self._builder is None:
            self._builder = Builder(values[begin])
            self.missing_seen = self.missing_seen if self.goes_on else tally.lost(missing)
        seen, gap = self.missing_seen, self._gap(missing)
        if gap > 0 and self.without and times[begin] >= (newest := self._builder.newest or 0):
            self.without.tell(seen, self.missing_seen, max(times[begin] - 1, newest))
        self.told += gap
        self.changed = True
        if self._parts(gap, missing, times[begin]):
            self.close()
        builder, end = self._builder, len(values)
        two = values if isinstance(values, PairColumn) else None
        while begin < end:
            is_plain = self.readings <= SINGLES_MOST and two is None and not (self.without and self.without.waits)
            if not builder.n and end - begin > 1 and is_plain:
                rest = self._add_buckets(builder, values, times, begin, gap, doubt)
                gap, begin = gap if rest == begin else 0, rest
                if begin == end:
                    return
            before, begin = begin, builder.add_run(values, times, begin, gap, doubt, self.readings, self.span_us)
            if begin > before:
                gap = 0
                self._keep(values, times, before, begin)
                if two is not None:
                    self._moments = Moments() if self._moments is _NO_MOMENTS else self._moments
                    self._moments.add(two, before, begin)
            if begin < end or builder.n >= self.readings:
                self.close()

    def is_without(self, missing: int) -> None:
        """A message that came late has no reading of it, and says this of losses (`tally`): it misses none there."""
        self.settle()
        if self.builder is None or self.without is None or not tally.is_known(missing):
            return
        if self.tell:
            self.tell(self.number, array("d"), array("q"), 0, missing, 0)
        if tally.lost(missing) > self.missing_seen:  # not told yet
            self.owed -= 1
        elif self.told > 0:
            self.told -= self.without.take(tally.lost(missing))
        self.changed = True

    def _parts(self, gap: int, missing: int, time: int) -> bool:
        """Whether a reading must not join the open bucket: what came late takes back a loss of another, and would hide
        one of this. Those that come late come first in a bucket, and are older than those in time.
        """
        builder = self._builder
        open_one = builder.bucket if builder and gap | builder.gap else None
        if builder is None or open_one is None or (gap == 0 > missing):
            return False
        goes_on = time >= (builder.newest or 0) and open_one.flags & LATE
        if gap <= 0 and open_one.gap < 0:
            return bool(goes_on) == (gap < 0)
        return gap < 0 or open_one.gap < 0 or bool(goes_on and gap)

    def _gap(self, missing: int) -> int:
        """What the next reading says is lost before it, or takes back; `missing`: of its message (`tally`).

        At most what was told is taken back: a loss from before the stream's first reading was never told.
        """
        lost = tally.lost(missing)
        more = lost - self.missing_seen
        if missing >= 0 > more:  # a damage took what its source knew: it counts anew
            more = 0
        new = max(0, min(_GAP_MOST, more + self.owed))
        if missing >= 0:
            self.missing_seen, self.owed = lost, 0
            return new
        if missing == self.returned:  # another reading of the same message
            return 0
        self.returned = missing
        if lost <= self.missing_seen:
            return -1 if self.told > 0 and not (self.without and self.without.is_former(missing)) else 0
        if tally.is_known(missing):  # of what was passed over since the stream's last reading this one has come
            self.missing_seen, self.owed = lost, 0
            return new - 1
        return new  # how many of these were before it is not known: the next one says them again

    def _add_buckets(
        self, builder: Builder, values: array[float], times: array[int], begin: int, gap: int, doubt: int
    ) -> int:
        """Close those that begin and end among readings from `begin` on; where the rest begins."""
        rest, found = builder.add_buckets(values, times, begin, gap, doubt, self.readings, self.span_us)
        made, center = tuple.__new__, builder.center  # `Closed(…)` takes twice as long
        self.closed += [made(Closed, (first, n, bucket, singles, center)) for first, n, _, bucket, singles in found]
        self.late += sum([n for _, n, flags, _, _ in found if flags & LATE])
        self.buckets += len(found)
        return rest

    def _keep(self, values: array[float], times: array[int], begin: int, end: int) -> None:
        """Beyond SINGLES_MOST the bucket and what it carries stay; if it carries nothing, empty arrays say so."""
        if self._builder is None or self._builder.n != self.folded + len(self.times) + end - begin:
            return
        if self.times is _NO_TIMES:
            self.times, self.values = array("q"), array("d")
        while begin < end:
            if len(self.times) == SINGLES_MOST:
                self._fold()
                if not self.folded:
                    return
            part = slice(begin, min(end, begin + SINGLES_MOST - len(self.times)))
            self.times += times if part.stop - begin == len(times) else times[part]
            self.values += values if part.stop - begin == len(times) else values[part]
            begin = part.stop

    def _fold(self) -> None:
        """The readings at hand into what the bucket carries; nothing of any stays where it carries nothing."""
        if self.carries:
            more = carried.fold(self.carries, self.values, self.times)
            self.parts = carried.merged(self.parts, more) if self.folded else more
            self.folded += len(self.times)
        else:
            self.parts, self.folded = {}, 0
        self.times, self.values = array("q"), array("d")

    def close(self) -> None:
        """Close the open bucket, if there is one: it waits for the commit."""
        builder = self.builder
        if builder is None or not builder.n:
            return
        first, n, flags, bucket = builder.close_packed()
        has_both = self._moments.n == n
        readings = pack_readings(self.times, self.values) if len(self.times) == n and not has_both else None
        if (self.folded or has_both) and self.folded + len(self.times) == n and self.times:
            self._fold()
        parts = self._carried(n)
        if self.without and (late := self.without.said(bucket, readings)):
            parts = parts | {LATE_NAME: late}
        self.closed.append(Closed(first, n, carried.joined(bucket, parts), readings, builder.center))
        self.late += n if flags & LATE else 0
        self.buckets += 1
        self.forget_readings()

    def forget_readings(self) -> None:
        """Nothing is kept beside the open bucket any more."""
        self.times, self.values, self.parts, self.folded = _NO_TIMES, _NO_VALUES, _NO_PARTS, 0
        self._moments = _NO_MOMENTS
        self.changed = True

    def _carried(self, n: int) -> carried.Parts:
        """What the open bucket of n readings carries."""
        return self.parts | ({PAIR: self._moments.pack()} if 0 < self._moments.n == n else {})

    def go_on_as(self, number: int, tags: dict[str, str]) -> Stream:
        """The same stream with other tags, under another number, ordinals going on; this one keeps what has closed."""
        self.close()
        new = Stream(number, self.name, self.readings, self.span_us)
        new.incarnation, new.key, new.tags, new.carries = self.incarnation, self.key, tags, self.carries
        kept = "missing_seen", "returned", "told", "owed", "source", "late", "buckets", "builder", "tell", "without"
        for name in (*kept, "new_times", "new_values", "_settled", "_missing"):
            setattr(new, name, getattr(self, name))
        self.handed()  # the windows go on with the new one
        if self.builder is not None:
            self.builder = Builder(self.builder.center, self.builder.next)
        new.is_new = new.has_new_tags = True
        self.is_retired = self.has_left = self.changed = True
        return new

    def saved(self) -> None:
        """The transaction is durable: nothing is waiting."""
        self.closed.clear()
        self.changed = False
        self.is_known = self.builder is not None
        self.is_new = self.has_new_tags = self.is_fed_anew = False

    def keep(self, connection: sqlite3.Connection) -> None:
        """Write the row, inside the caller's transaction; once, in a table of its own, what the outbox's rows rest on.

        Where a medium damages the page of one of the two, the buckets that wait can still be sent.
        """
        named = self.incarnation, self.key
        Row(self.number, self.name, self.pack(), *named, int(self.is_retired)).write(connection)
        if self.has_new_tags:
            write_tags(connection, self.number, json.dumps(self.tags, sort_keys=True))
        if not self.is_known and self.builder is not None:
            write_origin(connection, self.number, self.name, *named, self.builder.center)

    def pack(self) -> bytes:
        """The stream's row: counters, the builder with its open bucket, the readings of the open bucket."""
        builder = self.builder.state() if self.builder else b""
        source = b"" if self.source is None else self.source.encode()
        counts = (self.missing_seen, self.late, self.buckets, self.told, self.owed)
        lengths = (-1 if self.source is None else len(source), len(builder), len(self.times))
        parts = self._carried(self._builder.n if self._builder else 0)
        parts |= self.without.parts() if self.without else {}
        head = _ROW.pack(_CARRYING if parts else _MAGIC, *counts, *lengths)
        return head + source + builder + pack_readings(self.times, self.values) + carried.joined(b"", parts)

    def restore(self, row: bytes) -> None:
        """Continue where `pack` left off. Raises sqlite3.DatabaseError for a row that is none."""
        try:
            (builder, singles), data = self._restore_counts(row)
            ends = builder + 16 * singles
            if len(data) < ends or (len(data) > ends and row[:4] != _CARRYING):
                raise ValueError("wrong length")
            self.builder = Builder.restore(data[:builder]) if builder else None
            self.times, self.values = unpack_readings(data[builder:ends]) if singles else (_NO_TIMES, _NO_VALUES)
            self.parts = carried.section(data[ends:]) if row[:4] == _CARRYING else _NO_PARTS
            self.without = Returned.of(self.parts)
            self.folded = self.builder.n - len(self.times) if self.parts and self.builder else 0
            self._moments = Moments(self.parts.pop(PAIR)) if PAIR in self.parts else _NO_MOMENTS
        except (ValueError, struct.error) as error:
            raise sqlite3.DatabaseError(f"the row of stream {self.name} is malformed: {error}") from error
        self.changed = False

    def _restore_counts(self, row: bytes) -> tuple[tuple[int, int], bytes]:
        """Take the row's head; the lengths of builder and readings, and the bytes of both."""
        if row[:4] == _OLD_MAGIC:  # without a source: the one of the configuration is taken for it
            _, self.missing_seen, self.late, self.buckets, builder, singles = _OLD_ROW.unpack_from(row)
            self.told, self.owed, self.source = self.missing_seen, 0, None
            return (builder, singles), row[_OLD_ROW.size :]
        magic, self.missing_seen, self.late, self.buckets, self.told, self.owed, named, builder, singles = (
            _ROW.unpack_from(row)
        )
        if magic not in (_MAGIC, _CARRYING):
            raise ValueError("not a stream's row")
        at = _ROW.size + max(named, 0)
        self.source = row[_ROW.size : at].decode() if named >= 0 else None
        return (builder, singles), row[at:]
