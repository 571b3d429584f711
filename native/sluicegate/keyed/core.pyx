"""The core of windows by key: readings come in by key, partitions leave by the limits, what changed is saved."""

cimport cython
from cpython.long cimport PyLong_AsLongLong, PyLong_CheckExact
from cpython.object cimport PyObject_Hash
from cpython.unicode cimport PyUnicode_CheckExact
from libc.stdint cimport INT64_MAX, int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

from sluicegate.keyed.directory cimport FLAG_CHANGED, FLAG_SAVED, LRU, Slot, slot_at
from sluicegate.keyed.rows cimport BUCKET, PartitionRows

from operator import attrgetter

from sluicegate.constants import NEVER as _NEVER
from sluicegate.errors import InputError, InvariantError, PolicyError, SnapshotError
from sluicegate.keyed.definition import Held, Left

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL

cdef enum:
    NONE = 0xFFFFFFFF
    OF_MALLOC = 16
    HEADER = 8  # words before a saved partition's text and rows

cdef int64_t NEVER = _NEVER
by_number = attrgetter("number")


@cython.final
cdef class KeyedCore(PartitionRows):
    """Partitions of windows by `definition`; see `sluicegate.keyed.definition.Definition` for what its fields say."""

    cdef readonly int64_t accepted, late
    cdef readonly list removed, left
    cdef bint shared
    cdef int64_t count_limit, readings_limit, age
    cdef size_t memory
    cdef object leave, failed, select

    def __init__(self, definition, leave=None):
        """`leave`: called with a `Left` for each partition that leaves, while it is still there."""
        self.by_time, self.length, self.more = definition.by_time, definition.length, definition.more
        self.width = definition.width
        self.count_limit = definition.partitions or INT64_MAX
        self.readings_limit = definition.readings or INT64_MAX
        self.age = definition.age or 0
        self.memory = definition.memory
        self.select = definition.select if callable(definition.select) else None
        self.by = LRU if self.select is not None else ("lru", "lfu", "oldest").index(definition.select)
        self.shared = definition.shared
        self.ops = 0
        for op in definition.ops:
            self.op[self.ops] = ("sum", "min", "max").index(op)
            self.ops += 1
        self.stride = BUCKET if self.width else 2 + self.ops
        self.clock = NEVER
        self.leave = leave
        self.removed, self.left = [], [0, 0, 0, 0]

    @property
    def nbytes(self):
        """Bytes that the partitions take now, with what allocations cost beside their own."""
        return self.taken()

    def insert_numbers(self, const int64_t[::1] keys, const double[::1] values, const int64_t[::1] times):
        """Readings whose keys are integers; `times` is None where they do not matter."""
        cdef Py_ssize_t i
        cdef uint32_t found
        self.failed = None
        for i in range(values.shape[0]):
            found = self.find_number(keys[i])
            if found == NONE:
                self._enter_new(keys[i], 0 if times is None else times[i], values[i])
            else:
                self._enter(found, 0 if times is None else times[i], values[i])
        self._tell()

    def insert_keys(self, list keys not None, const double[::1] values, const int64_t[::1] times):
        """Readings whose keys are ints or strs: looked through whole first. Raises InputError for others."""
        cdef Py_ssize_t i, size
        cdef uint32_t found
        cdef const char* text
        for i in range(len(keys)):
            self.check_key(keys[i], i)
        self.failed = None
        for i in range(values.shape[0]):
            key = keys[i]
            if PyUnicode_CheckExact(key):
                text = PyUnicode_AsUTF8AndSize(key, &size)
                found = self.find_text(text, <uint32_t> size, <uint32_t> PyObject_Hash(key))
            else:
                found = self.find_number(PyLong_AsLongLong(key))
            if found == NONE:
                self._enter_new(key, 0 if times is None else times[i], values[i])
            else:
                self._enter(found, 0 if times is None else times[i], values[i])
        self._tell()

    cdef int check_key(self, object key, Py_ssize_t i) except -1:
        """Raise InputError unless it is an int of 64 bits or a str that UTF-8 can hold, of less than 2^31 bytes."""
        cdef Py_ssize_t size = 0
        try:
            if PyUnicode_CheckExact(key):
                PyUnicode_AsUTF8AndSize(key, &size)
                if size < 1 << 31:
                    return 0
            elif PyLong_CheckExact(key):
                PyLong_AsLongLong(key)
                return 0
        except (OverflowError, UnicodeEncodeError):
            pass
        place = "key" if i < 0 else f"keys[{i}]"
        raise InputError(f"{place}: {key!r:.80}, expected an int of 64 bits or a str; nothing was inserted")

    def _tell(self):
        """The first error of the caller's functions, now that all readings are in."""
        failed, self.failed = self.failed, None
        if failed is not None:
            raise PolicyError(f"{failed[0]}; all readings are in, the partition has left") from failed[1]

    cdef int _enter_new(self, object key, int64_t time, double value) except -1:
        """A reading of a key that has no partition: room is made for it first."""
        cdef uint32_t i
        if self.by_time and time <= self.clock - self.length:
            self.late += 1
            return 0
        while self.live >= self.count_limit:
            self._leave_selected(0)
        i = self.add(key)
        slot_at(self, i).newest = NEVER
        slot_at(self, i).split = 0
        self._clear(slot_at(self, i))
        return self._enter(i, time, value)

    cdef int _enter(self, uint32_t i, int64_t time, double value) except -1:
        """A reading of a partition; what then is too old leaves, and partitions by the limits."""
        cdef Slot* slot = slot_at(self, i)
        cdef int64_t now = slot.newest if slot.newest > self.clock else self.clock
        if self.by_time and time <= now - self.length:
            self.late += 1
            return 0
        if self.shared and time > self.clock:
            self.clock = time
        if time > slot.newest:
            slot.newest = time
        if time > now:
            now = time
        if not self.by_time and not self.width and slot.held == self.length:
            self._evict_rows(slot, 1)
        if self.width:
            self._join(slot, time, value)
        else:
            self._place(slot, time, value)
        slot.held += 1
        self.readings += 1
        self.accepted += 1
        self._evict(slot, now)
        slot.updates += 1
        slot.updated = now
        slot.flags |= FLAG_CHANGED
        self.touch(i)
        while self.readings > self.readings_limit:
            self._leave_selected(1)
        while self.memory and self.taken() > self.memory and self.live:
            self._leave_selected(3)
        while self.shared and self.age and self.live and self.clock - slot_at(self, self.first).updated >= self.age:
            self._leave(self.first, 2)
        return 0

    cdef int _leave_selected(self, int why) except -1:
        """The partition whose turn it is, or those that the caller's function chooses."""
        if self.select is None:
            return self._leave(self.least(), why)
        for i in self._chosen():
            self._leave(i, why)
        return 0

    cdef list _chosen(self):
        """The slots that the caller's function chooses; it is given all partitions in the order of their making.

        Where it fails the least recently updated one leaves, and what it raised is told when all readings are in.
        """
        cdef uint32_t i
        cdef dict slots = {}
        cdef list held = []
        cdef Slot* slot
        for i in range(self.made):
            slot = slot_at(self, i)
            if slot.flags:
                key = self.key_of(slot)
                slots[key] = i
                held.append(Held(key, slot.number, slot.newest, slot.updated, slot.updates, slot.held))
        try:
            chosen = dict.fromkeys(self.select(sorted(held, key=by_number)))
            if chosen and all(key in slots for key in chosen):
                return [slots[key] for key in chosen]
            self._fail(f"partitions.select: chose {list(chosen)!r}, expected keys of partitions, one at least", None)
        except Exception as error:
            self._fail(f"partitions.select: raised {error!r}", error)
        return [self.first]

    def _fail(self, what, error):
        """The first of what went wrong in the caller's functions is told."""
        self.failed = self.failed or (what, error)

    cdef int _leave(self, uint32_t i, int why) except -1:
        """A partition leaves: the caller's function sees it first. What it raises is told when all readings are in."""
        cdef Slot* slot = slot_at(self, i)
        if self.by_time:
            self._evict(slot, self._now(slot))
        if self.leave is not None:
            try:
                self.leave(Left(self.key_of(slot), ("count", "readings", "age", "memory")[why], self._rows(slot)))
            except Exception as error:
                self._fail(f"on_leave: raised {error!r}", error)
        self.left[why] += 1
        return self._forget(i)

    cdef int _forget(self, uint32_t i) except -1:
        cdef Slot* slot = slot_at(self, i)
        if slot.flags & FLAG_SAVED:
            self.removed.append(self.key_of(slot))
        self.readings -= slot.held
        self._clear(slot)
        return self.remove(i)

    def advance(self, int64_t time):
        """It is at least this late for every key: what is too old leaves, then partitions that are."""
        cdef uint32_t i = self.first, then
        cdef Slot* slot
        self.failed = None
        if time > self.clock:
            self.clock = time
        while i != NONE:
            slot = slot_at(self, i)
            then = slot.after
            if self.by_time and self._evict(slot, self._now(slot)):
                slot.flags |= FLAG_CHANGED
            if self.age and self.clock - slot.updated >= self.age:
                self._leave(i, 2)
            i = then
        self._tell()

    def slot(self, key):
        """The slot's number of a key, −1 where it has no partition. Raises InputError for what is no key."""
        cdef uint32_t i
        self.check_key(key, -1)
        i = self.find(key)
        return -1 if i == NONE else i

    def piece(self, uint32_t begin, uint32_t size):
        """Up to `size` slots' (key, totals) from slot `begin` on, and where the next piece begins (−1: no more)."""
        cdef list found = []
        cdef uint32_t i = begin
        while i < self.made and len(found) < <Py_ssize_t> size:
            if slot_at(self, i).flags:
                found.append((self.key_of(slot_at(self, i)), self.totals(i)))
            i += 1
        return found, i if i < self.made else -1

    def save(self, bint whole):
        """All partitions, or those that have changed since the last save and the keys of those that left."""
        cdef uint32_t i = self.first, at
        cdef Slot* slot
        cdef int64_t[HEADER] head
        cdef size_t size = (BUCKET if self.width else 2) * sizeof(double)
        cdef bytearray saved = bytearray()
        if not whole:
            for key in self.removed:
                named = isinstance(key, str)
                text = key.encode() if named else b""
                head = [len(text) if named else -1, 0 if named else key, 0, 0, 0, 0, 0, -1]
                saved += (<char*> head)[:sizeof(head)] + text
        self.removed = []
        while i != NONE:
            slot = slot_at(self, i)
            if whole or slot.flags & FLAG_CHANGED:
                head = [
                    -1 if slot.text == NULL else <int64_t> slot.length, slot.key, slot.newest, slot.updated,
                    <int64_t> slot.number, <int64_t> slot.updates, slot.held, <int64_t> slot.tail - slot.head,
                ]
                saved += (<char*> head)[:sizeof(head)]
                if slot.text != NULL:
                    saved += slot.text[:slot.length]
                for at in range(slot.head, slot.tail):
                    saved += (<char*> (slot.rows + <size_t> at * self.stride))[:size]
            slot.flags = (slot.flags | FLAG_SAVED) & ~FLAG_CHANGED
            i = slot.after
        return bytes(saved)

    def load(self, const unsigned char[::1] saved):
        """Put saved partitions in place of those of their keys. Raises SnapshotError for what is cut short."""
        cdef size_t at = 0, end = saved.shape[0], size = (BUCKET if self.width else 2) * sizeof(double)
        cdef int64_t[HEADER] head
        cdef const char* data = <const char*> &saved[0] if end else NULL
        cdef uint32_t i
        while at < end:
            if end - at < sizeof(head):
                raise SnapshotError(f"keyed windows: byte {at}: cut short")
            memcpy(head, data + at, sizeof(head))
            at += sizeof(head)
            if head[0] < -1 or head[0] > <int64_t> (end - at) or head[7] < -1:
                raise SnapshotError(f"keyed windows: byte {at}: no partition")
            key = head[1] if head[0] < 0 else data[at:at + head[0]].decode()
            at += max(head[0], 0)
            if head[7] > <int64_t> ((end - at) // size) or head[7] >= 1 << 30:
                raise SnapshotError(f"keyed windows: byte {at}: {head[7]} rows, cut short")
            i = self.find(key)
            if head[7] < 0:
                if i != NONE:
                    self._forget(i)
                continue
            if i == NONE:
                i = self.add(key)
                self._clear(slot_at(self, i))
            self._restore(i, head, data + at)
            at += head[7] * size
        self.removed = []

    cdef int _restore(self, uint32_t i, const int64_t* head, const char* rows) except -1:
        cdef Slot* slot = slot_at(self, i)
        cdef bint moved = slot.updates != <uint64_t> head[5] or slot.number != <uint64_t> head[4]
        slot.newest, slot.updated = head[2], head[3]
        slot.number, slot.updates = <uint64_t> head[4], <uint64_t> head[5]
        slot.flags |= FLAG_SAVED
        self._load_rows(slot, rows, <uint32_t> head[7])
        if slot.number >= self.next_number:
            self.next_number = slot.number + 1
        if moved:
            self.touch(i)
            if self.by != LRU:
                self._rank(i)
        return 0

    @property
    def counters(self):
        """Clock, accepted, late, partitions made, and those that left by count, readings, age and memory."""
        return self.clock, self.accepted, self.late, self.next_number, *self.left

    @counters.setter
    def counters(self, saved):
        self.clock, self.accepted, self.late, self.next_number = saved[:4]
        self.left = list(saved[4:])

    def verify(self):
        """Raise InvariantError where table, list, ranks, rows or sums of bytes and readings contradict one another."""
        cdef uint32_t i
        cdef int64_t readings = 0
        cdef size_t owned = 0
        cdef Slot* slot
        self.check()
        for i in range(self.made):
            slot = slot_at(self, i)
            if slot.flags:
                self.check_rows(slot)
                readings += slot.held
                owned += slot.length + 1 + OF_MALLOC if slot.text != NULL else 0
                owned += <size_t> slot.room * self.stride * sizeof(double) + OF_MALLOC if slot.room else 0
        if readings != self.readings or owned != self.owned:
            raise InvariantError(
                f"keyed windows: {readings} readings in {owned} bytes, counted {self.readings} in {self.owned}"
            )
