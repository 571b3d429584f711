"""Consecutive readings of one stream folded into one record, and two records merged.

Its definition is tests/native/format/buckets_twin.py.
"""
cimport cython
from cpython.array cimport array, clone
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.math cimport INFINITY, NAN, fabs, log
from libc.string cimport memcpy

import sys
from array import array as _array

from sluicegate.format.record import (
    _RECORD, PACKED as _PACKED, Bucket, BuilderState, check_reading, check_value, check_whole,
)

cdef array _INTS = _array("q"), _FLOATS = _array("d")
cdef int64_t _ORDERED = 1
cdef int64_t _LATE = 2
cdef double _LARGEST = 2.0**960
cdef int64_t _WHOLE = 1LL << 61  # times and gaps: their sums and differences fit an int64


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
    # A loss beside what came late: which reading told it is not known, as if their times went back.
    cdef bint torn = min(a.gap, b.gap) < 0 < max(a.gap, b.gap)
    cdef bint ordered = a.flags & b.flags & _ORDERED and b.t_first >= a.t_last and not torn
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
    # What came late takes back a loss of another place: beside a loss of this one it would hide it, so it is left out.
    a.gap = max(a.gap, 0) + max(b.gap, 0) if a.gap > 0 or b.gap > 0 else a.gap + b.gap
    a.doubt += b.doubt
    a.flags = ordered | (a.flags | b.flags) & _LATE


cdef object bucket_of(const Record* r):
    return Bucket._make(_RECORD.unpack(packed_of(r)))


cdef bytes little(bytes packed):
    """Numbers of 8 bytes, this machine's as little-endian ones and the other way round."""
    if sys.byteorder == "little":
        return packed
    numbers = _array("q", packed)
    numbers.byteswap()
    return numbers.tobytes()


cdef bytes packed_of(const Record* r):
    """As Bucket.pack: what stands together in both is copied at once."""
    cdef bytes packed = PyBytes_FromStringAndSize(NULL, _PACKED)
    cdef char* out = packed
    memcpy(out, &r.first, 56)
    memcpy(out + 56, &r.low.value, 40)
    memcpy(out + 96, &r.high.value, 40)
    memcpy(out + 136, &r.x_first, 40)
    memcpy(out + 176, &r.low.count, 8)
    memcpy(out + 184, &r.high.count, 8)
    memcpy(out + 192, &r.low.pre, 16)
    memcpy(out + 208, &r.high.pre, 16)
    memcpy(out + 224, &r.log_total, 32)
    return little(packed)


cdef bytes readings_of(array times, array values, Py_ssize_t begin, Py_ssize_t end):
    """All times, then all values, 8 bytes each, little-endian."""
    cdef Py_ssize_t size = 8 * (end - begin)
    if sys.byteorder == "big":
        times, values = times[begin:end], values[begin:end]
        times.byteswap()
        values.byteswap()
        begin = 0
    cdef bytes packed = PyBytes_FromStringAndSize(NULL, 2 * size)
    cdef char* out = packed
    memcpy(out, times.data.as_chars + 8 * begin, size)
    memcpy(out + size, values.data.as_chars + 8 * begin, size)
    return packed


cdef Py_ssize_t length_of(array values, array times, Py_ssize_t begin) except -1:
    """How many readings these columns have. Raises ValueError where they are none, or have no such place."""
    cdef Py_ssize_t end = len(values)
    if values.typecode != "d" or times.typecode != "q" or len(times) != end or not 0 <= begin <= end:
        raise ValueError("expected as many times (q) as values (d), and a place among them")
    return end


def merge(a, b):
    """The bucket of a's readings, then b's. Associative; counts and extremes are exact.

    Raises ValueError where b's first ordinal is not the one after a's last, OverflowError for gaps beyond ±2⁶¹ in all.
    """
    return Bucket._make(_RECORD.unpack(merge_packed((a.pack(), b.pack()))))


cdef int load(Record* r, bytes packed) except -1:
    """What `packed_of` packed; records of an older length as Bucket.unpack reads them. Raises ValueError."""
    packed = little(packed if len(packed) == _PACKED else Bucket.unpack(packed).pack())
    cdef const char* data = packed
    memcpy(&r.first, data, 56)
    memcpy(&r.low.value, data + 56, 40)
    memcpy(&r.high.value, data + 96, 40)
    memcpy(&r.x_first, data + 136, 40)
    memcpy(&r.low.count, data + 176, 8)
    memcpy(&r.high.count, data + 184, 8)
    memcpy(&r.low.pre, data + 192, 16)
    memcpy(&r.high.pre, data + 208, 16)
    memcpy(&r.log_total, data + 224, 32)
    return 0


def merge_packed(records):
    """The packed bucket of packed neighbours, at least one, in their order. Raises what `merge` raises."""
    cdef Record all_of_them, following
    load(&all_of_them, records[0])
    for packed in records[1:]:
        load(&following, packed)
        if following.first != all_of_them.first + all_of_them.n:
            expected = all_of_them.first + all_of_them.n
            raise ValueError(f"bucket at ordinal {following.first} does not follow: expected ordinal {expected}")
        check_whole(all_of_them.gap + following.gap, "gap")
        fold(&all_of_them, &following)
    return packed_of(&all_of_them)


def unfold(list buckets, double center):
    """What buckets hold that folding their readings around `center` again brings back to the bit; None for others.

    Each is first ordinal, readings, packed bytes and packed readings (or None). Returns a tuple of columns, one number
    a bucket: first ordinals, readings, gaps, doubts, flags; then all times, all values.
    """
    cdef Py_ssize_t i, at = 0, count = len(buckets), n = 0
    cdef array times, values, firsts, counts, gaps, doubts, flags
    cdef Builder builder = Builder(center)
    cdef bytes packed, singles
    cdef Record r
    for bucket in buckets:
        packed, singles = bucket[2], bucket[3]
        if singles is None or len(packed) != _PACKED or not 0 < len(singles) == 16 * bucket[1]:
            return None
        n += len(singles) // 16
    times, values = clone(_INTS, n, False), clone(_FLOATS, n, False)
    for bucket in buckets:
        singles = bucket[3]
        n = len(singles) // 16
        memcpy(times.data.as_chars + 8 * at, <const char*> singles, 8 * n)
        memcpy(values.data.as_chars + 8 * at, <const char*> singles + 8 * n, 8 * n)
        at += n
    if sys.byteorder == "big":
        times.byteswap()
        values.byteswap()
    columns = firsts, counts, gaps, doubts, flags = [clone(_INTS, count, False) for _ in range(5)]
    at = 0
    for i in range(count):
        bucket = buckets[i]
        packed = bucket[2]
        load(&r, packed)
        if r.first != bucket[0] or r.n != bucket[1] or not builder.folds(&r, times, values, at, packed):
            return None
        firsts.data.as_longlongs[i], counts.data.as_longlongs[i] = r.first, r.n
        gaps.data.as_longlongs[i], doubts.data.as_longlongs[i], flags.data.as_longlongs[i] = r.gap, r.doubt, r.flags
        at += r.n
    return tuple(columns), times, values


def refold(double center, tuple columns, array times, array values):
    """The buckets of which `unfold` told, each with `center` behind it.

    Raises ValueError, OverflowError where these are none.
    """
    cdef Py_ssize_t i, at = 0, end = length_of(values, times, 0)
    cdef Builder builder = Builder(center)
    cdef array firsts, counts, gaps, doubts, flags
    cdef Record r
    firsts, counts, gaps, doubts, flags = columns
    found = []
    for i in range(len(counts)):
        r.first, r.n, r.gap, r.doubt, r.flags = firsts[i], counts[i], gaps[i], doubts[i], flags[i]
        if not 0 < r.n <= end - at:
            raise ValueError(f"a bucket of {r.n} readings, where {end - at} are left")
        builder.fold_whole(&r, times, values, at)
        found.append((r.first, r.n, packed_of(&builder.r), readings_of(times, values, at, at + r.n), center))
        at += r.n
    if at != end:
        raise ValueError(f"{end - at} readings are of no bucket")
    return found


@cython.final
cdef class Builder:
    """Folds readings into the open bucket; the caller decides when it closes.

    A reading older than the bucket's newest clears ORDERED. A bucket opened by a reading older than an earlier bucket's
    newest is LATE.
    """

    def __init__(self, double center, int64_t first=0):
        check_value(center)
        if first < 0:
            raise ValueError(f"first ordinal {first} is outside 0 … 2⁶³ − 1")
        self.center, self.next, self.seen = center, first, False
        self.log_center = log_of(center)
        self.r.n = 0

    @property
    def newest(self):
        """The greatest time seen, µs, or None."""
        return self.latest if self.seen else None

    @property
    def bucket(self):
        """The open bucket, or None."""
        return bucket_of(&self.r) if self.r.n else None

    @property
    def n(self):
        """The open bucket's readings, 0 where there is none."""
        return self.r.n

    @property
    def gap(self):
        """What the open bucket says is missing, 0 where there is none."""
        return self.r.gap if self.r.n else 0

    @property
    def times(self):
        """The open bucket's first and last time, µs; 0, 0 where there is none."""
        if self.r.n == 0:
            return 0, 0
        return self.r.t_first, self.r.t_last

    def add(self, double value, int64_t time, int64_t gap=0, int64_t doubt=0):
        """Fold one reading of `time` µs, before which `gap` were lost, in doubt (1) where it may be a repeat.

        Raises as Bucket.single, changing nothing.
        """
        self.put(value, time, gap, doubt)

    cdef int put(self, double value, int64_t time, int64_t gap, int64_t doubt) except -1:
        cdef Record reading
        cdef bint late = self.r.n == 0 and self.seen and time < self.latest
        cdef int64_t flags
        if not (fabs(value) <= _LARGEST and -_WHOLE <= time <= _WHOLE and -_WHOLE <= gap <= _WHOLE and 0 <= doubt <= 1):
            check_reading(value, time, gap, doubt)
        flags = _ORDERED | (_LATE if late else 0)
        single(&reading, value, time, self.center, self.log_center, self.next, gap, flags, doubt)
        if self.r.n:
            if not -_WHOLE <= self.r.gap + gap <= _WHOLE:
                check_whole(self.r.gap + gap, "gap")
            fold(&self.r, &reading)
        else:
            self.r = reading
        if not self.seen or time > self.latest:
            self.latest, self.seen = time, True
        self.next += 1
        return 0

    cdef int fold_whole(self, const Record* like, array times, array values, Py_ssize_t begin) except -1:
        """Have the open bucket be that of the readings from `begin` on, with ordinals, gap and flags as of another."""
        cdef Py_ssize_t i
        self.r.n, self.next = 0, like.first
        for i in range(begin, begin + like.n):
            self.put(values.data.as_doubles[i], times.data.as_longlongs[i], like.gap if i == begin else 0, 0)
        self.r.flags, self.r.doubt = like.flags, like.doubt
        return 0

    cdef bint folds(self, const Record* like, array times, array values, Py_ssize_t begin, bytes packed) except -1:
        """Whether readings make just this bucket."""
        try:
            self.fold_whole(like, times, values, begin)
        except (ValueError, OverflowError):
            return False
        return packed_of(&self.r) == packed

    def add_run(
        self, array values, array times, Py_ssize_t begin, int64_t gap, int64_t doubt, int64_t readings, int64_t span
    ):
        """`add` the readings from `begin` on until the bucket has `readings`, or the next one would not fit.

        One does not fit in an open bucket that is older than its newest, or `span` µs after its first or more. `gap`
        were lost before the first. Returns where it stopped: close the bucket there, unless that is the end.
        """
        cdef Py_ssize_t i, end = length_of(values, times, begin)
        for i in range(begin, end):
            if self.r.n and (times.data.as_longlongs[i] < self.r.t_last
                             or times.data.as_longlongs[i] - self.r.t_first >= span):
                return i
            self.put(values.data.as_doubles[i], times.data.as_longlongs[i], gap, doubt)
            gap = 0
            if self.r.n >= readings:
                return i + 1
        return end

    def add_buckets(
        self, array values, array times, Py_ssize_t begin, int64_t gap, int64_t doubt, int64_t readings, int64_t span
    ):
        """Where none is open: the buckets that `add_run` would begin and fill among the readings from `begin` on.

        Returns where the rest begins, which fills none, and of each bucket first ordinal, readings, flags, packed bytes
        and packed readings: all times, then all values, little-endian.
        """
        cdef Py_ssize_t i, last, end = length_of(values, times, begin)
        cdef const int64_t* time = <const int64_t*> times.data.as_longlongs
        if self.r.n:
            raise ValueError("a bucket is open: close it before whole ones begin")
        found = []
        while begin < end:
            last = begin + 1
            while (last < end and last - begin < readings
                   and time[last] >= time[last - 1] and time[last] - time[begin] < span):
                last += 1
            if last == end and last - begin < readings:
                break
            for i in range(begin, last):
                self.put(values.data.as_doubles[i], time[i], gap, doubt)
                gap = 0
            found.append((
                self.r.first, self.r.n, self.r.flags, packed_of(&self.r),
                readings_of(times, values, begin, last),
            ))
            self.r.n, begin = 0, last
        return begin, found

    def close(self):
        """The open bucket, which is open no more. Raises ValueError where there is none."""
        if not self.r.n:
            raise ValueError("no bucket is open: add a reading before closing")
        closed = bucket_of(&self.r)
        self.r.n = 0
        return closed

    def close_packed(self):
        """Like `close`, as first ordinal, readings, flags and packed bytes."""
        if not self.r.n:
            raise ValueError("no bucket is open: add a reading before closing")
        closed = self.r.first, self.r.n, self.r.flags, packed_of(&self.r)
        self.r.n = 0
        return closed

    def state(self):
        """Everything `restore` needs, little-endian: 29 bytes, and 256 more while a bucket is open."""
        return BuilderState(self.center, self.next, self.newest, self.bucket).pack()

    @classmethod
    def restore(cls, bytes state):
        """The builder that `state()` was taken of, now or with an older record. Raises ValueError for other bytes."""
        saved = BuilderState.unpack(state)
        cdef Builder builder = Builder(saved.center, saved.following)
        builder.seen = saved.newest is not None
        builder.latest = saved.newest if builder.seen else 0
        if saved.bucket is not None:
            load(&builder.r, saved.bucket.pack())
        return builder
