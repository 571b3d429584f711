"""The numbers that a source gave since it last began to count: which were seen, and four bytes of what each said.

While they are few they are a list inside one row; then a ring of the newest `horizon` of them, in rows of BLOCK numbers
of which a commit writes those that changed. The contents of the first FIRST numbers stay for good: a sensor that begins
again begins there. Numbers are extended: a counter that wraps at 2^8, 2^16 or 2^32 goes on, as RTP's does.
"""

from __future__ import annotations

import sqlite3
import struct
import sys
from array import array
from collections.abc import Iterator
from functools import cache
from itertools import chain
from typing import Literal, cast

#: Runs of numbers passed over whose place is known; and numbers that an int64 holds.
RUNS, LARGEST = 32, 1 << 62
BLOCK = 64
FIRST = 64
FEW = 32
#: A number so far ahead of the newest may be a wrong one, as long as the run goes on below it.
ALONE = 64
#: A content that is not known, of a number that was seen by an older Sluicegate or beyond a shorter horizon.
UNKNOWN = 1
#: The same of one that had a time, which is read no more: with this number another may have come, and nothing tells.
TIMELESS = 0xFFFFFFFF
#: The widths of counters that wrap, and how many numbers may be lost at the first wrap of a source: the wider it is,
#: the less likely does a sensor begin again just there.
WRAP_GAPS = {8: 8, 16: 256, 32: 4096}
WIDTHS = (*WRAP_GAPS,)
_HEAD = struct.Struct("<4sqqqqqIqqBqH")
_MAGIC = b"SGQ2"
_OLD_HEAD = struct.Struct("<4sqqqqqI")
_OLD_MAGIC = b"SGQ1"
_ENTRY = struct.Struct("<qI")
_NO_TIME = -(1 << 63)
_FIRST_ROW = 0xFFFFFFFF
#: Of an epoch that is a list yet, the same for all of them: nobody writes to these.
_NONE, _NO_BLOCKS = array("I"), cast("set[int]", frozenset())


@cache
def _entries(count: int) -> struct.Struct:
    """So many entries at once, at most FEW."""
    return struct.Struct("<" + "qI" * count)


class Epoch:
    """One run of a source's numbers. `last` is the commit that its newest message belongs to, `order` its age.

    `missing`: how many numbers were passed over, whether they came late or not; `passed`: the last ones of these in any
    order, three numbers a run: first, last, and how many were passed over before.
    """

    __slots__ = (
        *("base", "blocks", "changed", "doubtful_below", "few", "first", "first_changed", "generation", "high"),
        *("high_time", "horizon", "last", "lone", "missing", "offset", "order", "passed", "ring", "start", "width"),
    )

    def __init__(self, order: int, horizon: int, first: int, generation: int = 0) -> None:
        self.order, self.horizon, self.generation = order, horizon, generation
        self.base = self.high = self.start = first
        self.missing = 0
        self.passed: array[int] | None = None
        self.offset = self.width = 0
        self.high_time: int | None = None
        self.doubtful_below = _NO_TIME
        self.few: dict[int, int] | None = {}
        self.ring = self.first = _NONE
        self.blocks = _NO_BLOCKS
        self.first_changed = self.changed = True
        self.last = 0
        self.lone: int | None = None

    # numbers

    def extended(self, raw: int) -> int:
        """The number that `raw` stands for: the nearest one to the newest, where the counter wraps."""
        if not self.width or raw >= 1 << self.width:
            return raw + self.offset
        modulus = 1 << self.width
        ahead = (raw + self.offset - self.high) % modulus
        return self.high + (ahead if ahead <= modulus // 2 else ahead - modulus)

    @property
    def awaited(self) -> int:
        """The number after the newest, as its source says it."""
        return self.high + 1 - self.offset

    def wrap(self, raw: int) -> int:
        """The width of a counter that would wrap with `raw`, 0: none would; a few numbers may be lost in between."""
        return next((width for width, lost in self._wraps(raw) if lost <= WRAP_GAPS[width]), 0)

    def lost_if_wrapped(self, raw: int) -> int:
        """How many numbers were lost if it did not begin again with `raw` but wrapped, 0: that is far from likely."""
        return next((lost for _, lost in self._wraps(raw)), 0)

    def _wraps(self, raw: int) -> Iterator[tuple[int, int]]:
        """The widths of counters that may have wrapped before `raw`, and how many numbers were lost then."""
        newest = self.high - self.offset
        if self.width or raw >= newest:
            return
        for width in WIDTHS:
            most = min(self.horizon, 1 << width >> 2)
            lost = (1 << width) + raw - newest - 1
            if newest < 1 << width and raw < most and lost <= most:
                yield width, lost

    def content(self, number: int) -> int:
        """Four bytes of what `number` said, UNKNOWN, or 0: it was not seen, or is beyond the horizon."""
        if not self.high - self.horizon < number <= self.high:
            return 0
        return self.few.get(number, 0) if self.few is not None else self.ring[number % self.horizon]

    def read_anew(self, raw: int, content: int) -> bool:
        """Whether a number was seen with a time that is read no more: this is what it says from now on."""
        number = self.extended(raw)
        if found := self.content(number) == TIMELESS:
            self.mark(number, content)
        return found

    def first_content(self, number: int) -> int:
        """The same of the first numbers, however old they are."""
        if not 0 <= number - self.start < FIRST:
            return 0
        return self.few.get(number, 0) if self.few is not None else self.first[number - self.start]

    def is_repeat(self, raw: int, content: int, *, timed: bool, fresh: bool = False) -> bool:
        """Whether this was said: under this number, or some laps ago where a content has its time.

        Where a number's content is not known only a time tells: `fresh` says that it is newer than the newest.
        """
        number = self.extended(raw)
        known = self.content(number)
        if known and (known == content or content == UNKNOWN or (known == UNKNOWN and not fresh)):
            return True
        if number <= self.high and self.first_content(number) == content:
            return True
        return bool(timed and self.width) and self._was_said_before(number, content)

    def _was_said_before(self, number: int, content: int) -> bool:
        """Some laps ago, as far as the horizon reaches."""
        laps = range(1, (self.horizon >> self.width) + 1)
        return any(self.content(number - (lap << self.width)) == content for lap in laps)

    def laps_look_alike(self, number: int, content: int, in_flight: int) -> bool:
        """Whether a new number may be what the lap before said, sent again: more than half a lap is on its way."""
        return 0 < 1 << self.width >> 1 < in_flight and self.content(number - (1 << self.width)) == content

    def begin(self, content: int, time: int | None) -> None:
        """Mark the number it was made with."""
        self.high_time = time
        self.mark(self.start, content)

    def put(self, number: int, content: int, time: int | None) -> bool:
        """Mark a new number as seen; those between it and the newest, or the oldest, are missing. Whether it is late:
        one of those that were.
        """
        is_late = self.base <= number <= self.high
        if number > self.high:
            self.lone = number if number - self.high > ALONE else self.lone
            self._pass_to(number)
            self.high_time = time
        elif number < self.base:
            self._pass_over(number + 1, self.base)
            self.base = number
        self.mark(number, content)
        return is_late

    def _pass_over(self, first: int, end: int) -> None:
        """These numbers have not come."""
        if first == end:
            return
        if self.passed is None:
            self.passed = array("q")
        if max(-first, end) <= LARGEST:
            befores = self.passed[2::3]
            at = 3 * befores.index(min(befores)) if len(befores) == RUNS else len(self.passed)
            # Each stays where it is: a frame says what changed of a row.
            self.passed[at : at + 3] = array("q", (first, end - 1, self.missing))
        self.missing += end - first

    def passed_at(self, number: int) -> int | None:
        """The how manyth of those passed over it was; None where that is not known any more."""
        passed = self.passed or array("q")
        runs = zip(passed[2::3], passed[::3], passed[1::3], strict=True)
        found = [(before, first) for before, first, last in runs if first <= number <= last]
        before, first = max(found, default=(0, number + 1))
        return before + number - first + 1 if found else None

    def put_next(self, content: int, time: int | None) -> None:
        """Mark the number after the newest."""
        number = self.high = self.high + 1
        self.high_time, self.changed = time, True
        if self.few is not None or number - self.start < FIRST:
            self._let_go(number)
            self.mark(number, content)
            return
        at = number % self.horizon
        self.ring[at] = content
        self.blocks.add(at // BLOCK)

    def put_run(self, contents: array[int], time: int) -> None:
        """Mark the numbers after the newest, each with what it said; `time` is the last one's."""
        begin, count = (self.high + 1) % self.horizon, len(contents)
        if self.few is not None or self.high < self.start + FIRST or begin + count > self.horizon:
            for content in contents:
                self.put(self.high + 1, content, time)
            return
        self.ring[begin : begin + count] = contents
        self.blocks.update(range(begin // BLOCK, (begin + count - 1) // BLOCK + 1))
        self.high, self.high_time, self.changed = self.high + count, time, True

    def corrects(self, number: int, content: int) -> bool:
        """Whether what had this number was wrong: it came far ahead of the run, which has come up to it since.

        Then this is what it says. Not known after a restart: then the run's own message is refused as a conflict.
        """
        if number != self.lone or not self.content(number - 1):
            return False
        self.lone = None
        self.mark(number, content)
        return True

    def fill(self, number: int, content: int) -> bool:
        """Mark a number that never came, of those between the oldest and the newest; False where it is no such one."""
        is_hole = max(self.base, self.high - self.horizon) < number < self.high and not self.content(number)
        if is_hole:
            self.mark(number, content)
        return is_hole

    def mark(self, number: int, content: int) -> None:
        """Note what a number said, whatever it said before."""
        self._note(number, content)
        if self.few is None and 0 <= number - self.start < FIRST:
            self.first[number - self.start] = content
            self.first_changed = True

    def take_back(self, number: int) -> None:
        """Unmark a number: its message was refused, and is new when it comes again."""
        if self.content(number):
            self._note(number, 0)
            self._pass_over(number, number + 1)
        if self.few is None and self.first_content(number):
            self.first[number - self.start] = 0
            self.first_changed = True

    def forget_contents(self, content: int = UNKNOWN) -> None:
        """Which numbers were seen is known, and no more what they said; `content`: UNKNOWN or TIMELESS."""
        self.changed = True
        if self.few is not None:
            self.few = dict.fromkeys(self.few, content)
            return
        self.ring = array("I", (content if said else 0 for said in self.ring))
        self.first = array("I", (content if said else 0 for said in self.first))
        self.blocks, self.first_changed = set(range(-(-self.horizon // BLOCK))), True

    def _pass_to(self, number: int) -> None:
        self._pass_over(self.high + 1, number)
        if self.few is not None:
            self._let_go(number)
        else:
            self._clear(max(self.high + 1, number - self.horizon + 1), number)
        self.high = number

    def _let_go(self, number: int) -> None:
        """Of those in the list none is beyond the horizon of this number, but for the first ones."""
        oldest = number - self.horizon
        if self.few is not None and oldest >= self.base:  # else none is as old as that
            self.few = {n: said for n, said in self.few.items() if n > oldest or n - self.start < FIRST}

    def _clear(self, start: int, end: int) -> None:
        for number in range(start, end):
            at = number % self.horizon
            if self.ring[at]:
                self.ring[at] = 0
                self.blocks.add(at // BLOCK)

    def _note(self, number: int, content: int) -> None:
        self.changed = True
        if number <= self.high - self.horizon:
            return
        if self.few is not None:
            self.few[number] = content
            if not content:
                del self.few[number]
            elif len(self.few) > FEW:
                self._spread()
            return
        at = number % self.horizon
        self.ring[at] = content
        self.blocks.add(at // BLOCK)

    def _spread(self) -> None:
        """From a list to the ring: there are too many for one row."""
        few, self.few = self.few or {}, None
        self._begin_ring()
        for number, content in few.items():
            self.mark(number, content)

    def _begin_ring(self) -> None:
        self.ring, self.first = array("I", bytes(4 * self.horizon)), array("I", bytes(4 * FIRST))
        self.blocks = set()

    # rows

    def rows(self, key: bytes, carried: int) -> Iterator[tuple[bytes, bytes]]:
        """What changed, as (key of the row, row); `carried` is what the epochs forgotten before it still miss."""
        entries = self.few or {}
        few = _entries(len(entries)).pack(*chain.from_iterable(entries.items()))
        counts = (self.order, self.base, self.high, self.missing, carried, self.horizon)
        time = _NO_TIME if self.high_time is None else self.high_time
        place = (time, self.offset, self.width, self.doubtful_below, len(entries))
        named = key_of(key, self.generation)
        yield named, _HEAD.pack(_MAGIC, *counts, *place) + few + _little(self.passed or array("q"))
        for block in self.blocks:
            yield _row_key(key, self.generation, block), _little(self.ring[block * BLOCK : (block + 1) * BLOCK])
        if self.first_changed and self.few is None:
            row = struct.pack("<q", self.start) + _little(self.first)
            yield _row_key(key, self.generation, _FIRST_ROW), row

    def saved(self) -> None:
        """The rows are durable."""
        self.changed = False
        if self.few is None:
            self.blocks.clear()
            self.first_changed = False

    @classmethod
    def unpack(cls, row: bytes, others: dict[int, bytes], generation: int, horizon: int) -> tuple[Epoch, int]:
        """The epoch of its rows, moved to another horizon where the setting changed; and what it carried."""
        try:
            epoch, carried = _older(row) if row[:4] == _OLD_MAGIC else cls._restored(row, others, generation)
        except (struct.error, ValueError) as error:
            raise sqlite3.DatabaseError(f"a row of the table sequence is malformed: {error}") from error
        epoch.generation = generation
        return (epoch if epoch.horizon == horizon else epoch._resized(horizon)), carried

    @classmethod
    def _restored(cls, row: bytes, others: dict[int, bytes], generation: int) -> tuple[Epoch, int]:
        magic, order, base, high, missing, carried, horizon, time, offset, width, doubtful, few = _HEAD.unpack_from(row)
        ends = _HEAD.size + few * _ENTRY.size
        if magic != _MAGIC or not 0 <= len(row) - ends <= 24 * RUNS or not horizon:
            raise ValueError("wrong length")
        epoch = cls(order, horizon, high, generation)
        epoch.base, epoch.start, epoch.missing = base, base, missing
        epoch.high_time = None if time == _NO_TIME else time
        epoch.offset, epoch.width, epoch.doubtful_below = offset, width, doubtful
        epoch.passed = _native(row[ends:], "q") or None
        if few:
            epoch.few = dict(_ENTRY.iter_unpack(row[_HEAD.size : ends]))
        else:
            epoch._restore_ring(others)
        epoch.saved()
        return epoch, carried

    def _restore_ring(self, others: dict[int, bytes]) -> None:
        self.few = None
        self._begin_ring()
        for block, row in others.items():
            if block == _FIRST_ROW:
                (self.start,) = struct.unpack_from("<q", row)
                self.first = _native(row[8:])
                if len(self.first) != FIRST:
                    raise ValueError("wrong length")
                continue
            contents = _native(row)
            if len(contents) != len(self.ring[block * BLOCK : (block + 1) * BLOCK]):
                raise ValueError("wrong length")
            self.ring[block * BLOCK : (block + 1) * BLOCK] = contents

    def _resized(self, horizon: int) -> Epoch:
        """A longer horizon cannot know what the shorter one forgot: those numbers count as seen, never twice."""
        new = Epoch(self.order, horizon, self.high, self.generation)
        new.few = dict(self.few or {})
        if self.few is None:
            new._spread()
        for name in ("base", "start", "missing", "passed", "offset", "width", "high_time", "doubtful_below", "first"):
            setattr(new, name, getattr(self, name))
        for number in range(max(self.base, self.high - horizon + 1), self.high + 1):
            known = number > self.high - self.horizon
            content = self.content(number) if known else UNKNOWN
            if content:
                new._note(number, content)
        return new


def key_of(key: bytes, generation: int) -> bytes:
    """The key of an epoch's head row: the epoch that the sensor names, and which of its beginnings it is."""
    return key + struct.pack("<I", generation) if generation else key


def split(row_key: bytes, size: int) -> tuple[bytes, int, int | None]:
    """A row's key as (epoch, generation, block or None for the head)."""
    rest = row_key[size:]
    if len(rest) not in (0, 4, 8):
        raise sqlite3.DatabaseError("a key of the table sequence is malformed")
    generation = struct.unpack_from("<I", rest)[0] if rest else 0
    return row_key[:size], generation, struct.unpack_from("<I", rest, 4)[0] if len(rest) == 8 else None


def _row_key(key: bytes, generation: int, block: int) -> bytes:
    return key + struct.pack("<II", generation, block)


def _older(row: bytes) -> tuple[Epoch, int]:
    """An epoch of a Sluicegate that kept a bit a number: what each said is not known."""
    _, order, base, high, missing, carried, horizon = _OLD_HEAD.unpack_from(row)
    bits = row[_OLD_HEAD.size :]
    if not horizon or len(bits) != (horizon + 7) // 8:
        raise ValueError("wrong length")
    epoch = Epoch(order, horizon, high)
    epoch.base = epoch.start = base
    epoch.missing = missing
    for number in range(max(base, high - horizon + 1), high + 1):
        at = number % horizon
        if bits[at >> 3] >> (at & 7) & 1:
            epoch._note(number, UNKNOWN)
    return epoch, carried


def _little(numbers: array[int]) -> bytes:
    if sys.byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    return numbers.tobytes()


def _native(data: bytes, kind: Literal["I", "q"] = "I") -> array[int]:
    numbers = array(kind)
    numbers.frombytes(data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
