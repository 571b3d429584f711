"""Consecutive readings of one stream folded into one record of 256 bytes.

The readable twin is sluicegate.reference.buckets.
"""
cimport cython
from libc.math cimport INFINITY, NAN, fabs, log
from libc.stdint cimport int64_t

import struct

from sluicegate.format.record import FIELDS, broken, comparable

cdef int64_t _ORDERED = 1
cdef int64_t _LATE = 2
cdef double _LARGEST = 2.0**960
cdef int64_t _WHOLE = 1LL << 61  # times and gaps: their sums and differences fit an int64

_layout = "<4q3dd4qd4q2d2q", "d2q7d", "q"
_record = struct.Struct("".join(_layout))
_older = (struct.Struct(_layout[0] + _layout[1]), struct.Struct(_layout[0]))
_records = {record.size: record for record in (_record, *_older)}
_state = struct.Struct("<4sdq?q")


cdef double log_of(double center) noexcept nogil:
    """What is taken off every logarithm: ln center, where there is one."""
    return log(center) if center > 0.0 else 0.0


cdef void single(
    Record* r, double value, int64_t time, double center, double log_center,
    int64_t first, int64_t gap, int64_t flags, int64_t doubt,
) noexcept nogil:
    cdef Extreme here
    here.value = value
    here.t_first = here.t_last = time
    here.o_first = here.o_last = first
    here.count = 1
    here.pre = here.suf = INFINITY
    r.first, r.n = first, 1
    r.t_first = r.t_last = time
    r.total, r.pre_low, r.pre_high = value - center, INFINITY, -INFINITY
    r.low = r.high = here
    r.high.pre = r.high.suf = -INFINITY
    r.x_first = r.x_last = value
    r.gap, r.flags, r.doubt = gap, flags, doubt
    r.m2 = 0.0
    if value > 0.0:
        r.log_total, r.log_pre_low, r.log_pre_high = log(value) - log_center, INFINITY, -INFINITY
    else:
        r.log_total = r.log_pre_low = r.log_pre_high = NAN


cdef inline void join(Extreme* a, const Extreme* b) noexcept nogil:
    """Both places of one value, b's readings being the later ones."""
    a.t_first, a.t_last = min(a.t_first, b.t_first), max(a.t_last, b.t_last)
    a.o_last = b.o_last
    a.count = -1 if a.count < 0 or b.count < 0 else a.count + b.count
    a.suf = b.suf


cdef inline void win(Extreme* a, const Extreme* b, double sign) noexcept nogil:
    """The greater one (sign 1) or the less (-1), b's readings being the later ones; comparisons keep NaN."""
    cdef double before = a.value
    if a.value == b.value:
        join(a, b)
    elif sign * a.value > sign * b.value:
        if sign * b.value > sign * a.suf:
            a.suf = b.value
    else:
        a[0] = b[0]
        if sign * before > sign * a.pre:
            a.pre = before


cdef inline void fold_squares(Record* a, const Record* b) noexcept nogil:
    """Chan, Golub and LeVeque (1979); before a's count and total change."""
    cdef double n = <double>a.n, m = <double>b.n
    cdef double apart = b.total / m - a.total / n
    a.m2 = a.m2 + b.m2 + apart * apart * (n * (m / (n + m)))
    if not a.m2 < INFINITY:
        a.m2 = NAN


cdef inline void fold_logs(Record* a, const Record* b) noexcept nogil:
    cdef double total = a.log_total + b.log_total
    if total != total:
        a.log_total = a.log_pre_low = a.log_pre_high = NAN
        return
    a.log_pre_low = min(min(a.log_pre_low, a.log_total), a.log_total + b.log_pre_low)
    a.log_pre_high = max(max(a.log_pre_high, a.log_total), a.log_total + b.log_pre_high)
    a.log_total = total


cdef void fold(Record* a, const Record* b) noexcept nogil:
    cdef bint ordered = a.flags & b.flags & _ORDERED and b.t_first >= a.t_last
    fold_squares(a, b)
    fold_logs(a, b)
    a.pre_low = min(min(a.pre_low, a.total), a.total + b.pre_low)
    a.pre_high = max(max(a.pre_high, a.total), a.total + b.pre_high)
    a.total += b.total
    win(&a.low, &b.low, -1.0)
    win(&a.high, &b.high, 1.0)
    a.t_first, a.t_last = min(a.t_first, b.t_first), max(a.t_last, b.t_last)
    a.n += b.n
    a.x_last = b.x_last
    a.gap += b.gap
    a.doubt += b.doubt
    a.flags = ordered | (a.flags | b.flags) & _LATE


cdef int accept(double value) except -1:
    if not fabs(value) <= _LARGEST:
        expected = "expected a finite number of magnitude at most 2^960"
        raise ValueError(f"value {value!r}: {expected}; refuse it before it is folded")
    return 0


cdef int whole(int64_t number, str name) except -1:
    if not -_WHOLE <= number <= _WHOLE:
        raise OverflowError(f"{name} {number} is beyond ±2^61")
    return 0


cdef int doubtful(int64_t doubt) except -1:
    if not 0 <= doubt <= 1:
        raise ValueError(f"doubt {doubt}: a reading is in doubt (1) or not (0)")
    return 0


cdef Bucket wrap(const Record* r):
    cdef Bucket bucket = Bucket.__new__(Bucket)
    bucket.r = r[0]
    return bucket


@cython.final
cdef class Bucket:
    """Readings first … first + n − 1 of a stream; the fields, units and order of docs/architecture.md."""

    def __init__(
        self,
        int64_t first, int64_t n, int64_t t_first, int64_t t_last, double total,
        double pre_low, double pre_high, double low, int64_t low_t_first, int64_t low_t_last,
        int64_t low_o_first, int64_t low_o_last, double high, int64_t high_t_first, int64_t high_t_last,
        int64_t high_o_first, int64_t high_o_last, double x_first, double x_last, int64_t gap,
        int64_t flags, double m2=NAN, int64_t low_n=-1, int64_t high_n=-1, double low_pre=NAN,
        double low_suf=NAN, double high_pre=NAN, double high_suf=NAN, double log_total=NAN,
        double log_pre_low=NAN, double log_pre_high=NAN, int64_t doubt=0,
    ):
        cdef Record* r = &self.r
        r.first, r.n, r.t_first, r.t_last = first, n, t_first, t_last
        r.total, r.pre_low, r.pre_high = total, pre_low, pre_high
        r.low.value, r.low.t_first, r.low.t_last = low, low_t_first, low_t_last
        r.low.o_first, r.low.o_last, r.low.count = low_o_first, low_o_last, low_n
        r.low.pre, r.low.suf = low_pre, low_suf
        r.high.value, r.high.t_first, r.high.t_last = high, high_t_first, high_t_last
        r.high.o_first, r.high.o_last, r.high.count = high_o_first, high_o_last, high_n
        r.high.pre, r.high.suf = high_pre, high_suf
        r.x_first, r.x_last, r.gap, r.flags, r.m2, r.doubt = x_first, x_last, gap, flags, m2, doubt
        r.log_total, r.log_pre_low, r.log_pre_high = log_total, log_pre_low, log_pre_high

    @classmethod
    def single(
        cls, double value, int64_t time, double center, int64_t first, int64_t gap=0, int64_t flags=1, int64_t doubt=0
    ):
        """The bucket of one reading.

        Raises ValueError for NaN, infinities, |value| > LARGEST and a doubt other than 0 and 1, OverflowError for a
        time or gap beyond ±2⁶¹.
        """
        cdef Bucket bucket = Bucket.__new__(Bucket)
        accept(value)
        whole(time, "time")
        whole(gap, "gap")
        doubtful(doubt)
        single(&bucket.r, value, time, center, log_of(center), first, gap, flags, doubt)
        return bucket

    @classmethod
    def unpack(cls, bytes data):
        """The bucket of 256 packed bytes, or of 248 or 168 older ones, verified.

        Raises ValueError for another length or a broken invariant.
        """
        record = _records.get(len(data))
        if record is None:
            raise ValueError(f"a packed bucket has {_record.size} bytes, older ones 248 or 168; these are {len(data)}")
        cdef Bucket bucket = Bucket(*record.unpack(data))
        bucket.verify()
        return bucket

    def pack(self):
        """All fields in order, 8 bytes each, little-endian."""
        return _record.pack(*self._fields())

    def verify(self):
        """Raise ValueError naming the first invariant that does not hold."""
        for reason in broken(self):
            raise ValueError(f"bucket at ordinal {self.first} of {self.n} readings: {reason}")

    def _fields(self):
        cdef Record* r = &self.r
        return (
            r.first, r.n, r.t_first, r.t_last, r.total, r.pre_low, r.pre_high,
            r.low.value, r.low.t_first, r.low.t_last, r.low.o_first, r.low.o_last, r.high.value, r.high.t_first,
            r.high.t_last, r.high.o_first, r.high.o_last, r.x_first, r.x_last, r.gap, r.flags,
            r.m2, r.low.count, r.high.count, r.low.pre, r.low.suf, r.high.pre, r.high.suf,
            r.log_total, r.log_pre_low, r.log_pre_high, r.doubt,
        )

    def __eq__(self, other):
        """Field by field; what is not known equals what is not known."""
        return isinstance(other, Bucket) and comparable(self._fields()) == comparable((<Bucket>other)._fields())

    def __hash__(self):
        return hash(comparable(self._fields()))

    def __repr__(self):
        return f"Bucket({', '.join(f'{name}={getattr(self, name)!r}' for name in FIELDS)})"

    def __reduce__(self):
        return Bucket.unpack, (self.pack(),)

    @property
    def first(self):
        return self.r.first

    @property
    def n(self):
        return self.r.n

    @property
    def t_first(self):
        return self.r.t_first

    @property
    def t_last(self):
        return self.r.t_last

    @property
    def total(self):
        return self.r.total

    @property
    def pre_low(self):
        return self.r.pre_low

    @property
    def pre_high(self):
        return self.r.pre_high

    @property
    def low(self):
        return self.r.low.value

    @property
    def low_t_first(self):
        return self.r.low.t_first

    @property
    def low_t_last(self):
        return self.r.low.t_last

    @property
    def low_o_first(self):
        return self.r.low.o_first

    @property
    def low_o_last(self):
        return self.r.low.o_last

    @property
    def high(self):
        return self.r.high.value

    @property
    def high_t_first(self):
        return self.r.high.t_first

    @property
    def high_t_last(self):
        return self.r.high.t_last

    @property
    def high_o_first(self):
        return self.r.high.o_first

    @property
    def high_o_last(self):
        return self.r.high.o_last

    @property
    def x_first(self):
        return self.r.x_first

    @property
    def x_last(self):
        return self.r.x_last

    @property
    def gap(self):
        return self.r.gap

    @property
    def flags(self):
        return self.r.flags

    @property
    def m2(self):
        return self.r.m2

    @property
    def low_n(self):
        return self.r.low.count

    @property
    def high_n(self):
        return self.r.high.count

    @property
    def low_pre(self):
        return self.r.low.pre

    @property
    def low_suf(self):
        return self.r.low.suf

    @property
    def high_pre(self):
        return self.r.high.pre

    @property
    def high_suf(self):
        return self.r.high.suf

    @property
    def log_total(self):
        return self.r.log_total

    @property
    def log_pre_low(self):
        return self.r.log_pre_low

    @property
    def log_pre_high(self):
        return self.r.log_pre_high

    @property
    def doubt(self):
        return self.r.doubt


def merge(Bucket a not None, Bucket b not None):
    """The bucket of a's readings, then b's. Associative; counts and extremes are exact.

    Raises ValueError where b's first ordinal is not the one after a's last, OverflowError for gaps beyond ±2⁶¹ in all.
    """
    if b.r.first != a.r.first + a.r.n:
        raise ValueError(f"bucket at ordinal {b.r.first} does not follow: expected ordinal {a.r.first + a.r.n}")
    whole(a.r.gap + b.r.gap, "gap")
    cdef Bucket merged = wrap(&a.r)
    fold(&merged.r, &b.r)
    return merged


@cython.final
cdef class Builder:
    """Folds readings into the open bucket; the caller decides when it closes.

    A reading older than the bucket's newest clears ORDERED. A bucket opened by a reading older than an earlier bucket's
    newest is LATE.
    """

    def __init__(self, double center, int64_t first=0):
        accept(center)
        if first < 0:
            raise ValueError(f"first ordinal {first} is outside 0 … 2⁶³ − 1")
        self.center, self.following, self.seen = center, first, False
        self.log_center = log_of(center)
        self.r.n = 0

    @property
    def next(self):
        """The ordinal of the reading that comes next."""
        return self.following

    @property
    def newest(self):
        """The greatest time seen, µs, or None."""
        return self.latest if self.seen else None

    @property
    def bucket(self):
        """The open bucket, or None."""
        return wrap(&self.r) if self.r.n else None

    def add(self, double value, int64_t time, int64_t gap=0, int64_t doubt=0):
        """Fold one reading of `time` µs, before which `gap` were lost, in doubt (1) where it may be a repeat.

        Raises as Bucket.single, changing nothing.
        """
        cdef Record reading
        cdef bint late = self.r.n == 0 and self.seen and time < self.latest
        accept(value)
        whole(time, "time")
        whole(gap, "gap")
        doubtful(doubt)
        flags = _ORDERED | (_LATE if late else 0)
        single(&reading, value, time, self.center, self.log_center, self.following, gap, flags, doubt)
        if self.r.n:
            whole(self.r.gap + gap, "gap")
            fold(&self.r, &reading)
        else:
            self.r = reading
        if not self.seen or time > self.latest:
            self.latest, self.seen = time, True
        self.following += 1

    def close(self):
        """The open bucket, which is open no more. Raises ValueError where there is none."""
        if not self.r.n:
            raise ValueError("no bucket is open: add a reading before closing")
        closed = wrap(&self.r)
        self.r.n = 0
        return closed

    def state(self):
        """Everything `restore` needs, little-endian: 29 bytes, and 256 more while a bucket is open."""
        head = _state.pack(b"SGB3", self.center, self.following, self.seen, self.latest if self.seen else 0)
        return head + (wrap(&self.r).pack() if self.r.n else b"")

    @classmethod
    def restore(cls, bytes state):
        """The builder that `state()` was taken of, now or with an older record. Raises ValueError for other bytes."""
        size = {b"SGB3": _record.size, b"SGB2": 248, b"SGB1": 168}.get(state[:4], -1)
        if size < 0 or len(state) not in (_state.size, _state.size + size):
            raise ValueError(f"not a builder's state of this version: {len(state)} bytes beginning {state[:4]!r}")
        _, center, following, seen, newest = _state.unpack_from(state)
        cdef Builder builder = Builder(center, following)
        builder.seen, builder.latest = seen, newest
        if len(state) > _state.size:
            builder.resume(Bucket.unpack(state[_state.size:]))
        return builder

    cdef int resume(self, Bucket bucket) except -1:
        if bucket.r.first + bucket.r.n != self.following or not self.seen or bucket.r.t_last > self.latest:
            raise ValueError(f"builder's state is damaged: its bucket does not end before ordinal {self.following}")
        self.r = bucket.r
        return 0
