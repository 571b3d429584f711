"""Reads the columns of a payload (format.md, "Columns" and "Payload"), and refuses what is none with its reason.

Integers wrap around at 64 bits, as the format says. How long a column may be is the caller's to bound: one number
repeated has few bytes. By definition: tests/native/format/unpacking_twin.py.
"""

cimport cython
from cpython cimport array
from cpython.bytes cimport PyBytes_AS_STRING
from libc.math cimport INFINITY, NAN, isfinite, isnan
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from array import array as _array

cdef array.array INTS = _array("q"), FLOATS = _array("d")
cdef double LARGEST = 2.0**960
cdef int64_t FARTHEST = 1LL << 61
cdef double[16] POWERS
for _digits in range(16):
    POWERS[_digits] = 10.0**_digits
cdef enum:
    M2 = 1, LOW_N = 2, HIGH_N = 4, LOW_PRE = 8, LOW_SUF = 16, HIGH_PRE = 32, HIGH_SUF = 64, LOGS = 128

#: The columns of buckets stored whole, in their order; `known` and what follows from codec 2 on.
INT_NAMES = (
    "t_first", "t_last", "low_t_first", "low_t_last", "low_o_first", "low_o_last",
    "high_t_first", "high_t_last", "high_o_first", "high_o_last", "low_n", "high_n",
)
FLOAT_NAMES = (
    "total", "pre_low", "pre_high", "low", "high", "x_first", "x_last", "low_pre", "low_suf", "high_pre", "high_suf",
    "m2", "log_total", "log_pre_low", "log_pre_high",
)
cdef int[10] BASES = [-1, 0, 0, 2, -2, 4, 0, 6, -2, 8]  # of each integer column the one that it is an offset from


class PackingError(ValueError):
    """The bytes are no column: cut short, of an unknown layout, or with numbers that do not fit."""


cdef struct Place:
    const uint8_t* data
    Py_ssize_t at, size
    const char* why  # it was refused


cdef struct Room:
    int64_t* steps
    double* table


@cython.final
cdef class Reader:
    """Takes bytes off the front of a payload."""

    cdef bytes _data
    cdef Place _place

    def __init__(self, bytes data not None):
        self._data = data
        self._place.data, self._place.at, self._place.size = <const uint8_t*> PyBytes_AS_STRING(data), 0, len(data)
        self._place.why = NULL

    def take(self, Py_ssize_t n):
        """The next n bytes. Raises PackingError where fewer are left."""
        cdef Py_ssize_t at = self._place.at
        if not 0 <= n <= self._place.size - at:
            raise PackingError(f"ends at byte {self._place.size}, {n} more were expected at {at}")
        self._place.at += n
        return self._data[at : at + n]

    def finish(self):
        """Raises PackingError where bytes are left."""
        if self._place.at != self._place.size:
            raise PackingError(f"{self._place.size - self._place.at} bytes too many at the end")

    cdef int refuse(self) except -1:
        raise PackingError(f"at byte {self._place.at} of {self._place.size}: {self._place.why.decode()}")


def unpack_ints(Reader reader not None, Py_ssize_t n):
    """A column of n ≥ 1 int64. Raises PackingError."""
    cdef array.array out = room_for(INTS, n)
    if not ints(&reader._place, n, longs(out)):
        reader.refuse()
    return out


def unpack_floats(Reader reader not None, Py_ssize_t n):
    """A column of n ≥ 1 finite float64. Raises PackingError."""
    cdef array.array out = room_for(FLOATS, n), steps = array.clone(INTS, n, zero=False)
    cdef array.array table = array.clone(FLOATS, n, zero=False)
    cdef Room room
    room.steps, room.table = longs(steps), doubles(table)
    if not floats(&reader._place, n, doubles(out), &room):
        reader.refuse()
    return out


def unpack_whole(Reader reader not None, const int64_t[::1] first, const int64_t[::1] n, int codec):
    """The fields by name of buckets stored whole, from ordinals `first` of `n` readings each. Raises PackingError."""
    cdef Py_ssize_t count = n.shape[0]
    cdef Place* place = &reader._place
    cdef Room room
    cdef int64_t* whole[12]
    cdef double* parts[15]
    cdef int i
    cdef bint right
    if first.shape[0] != count or count < 1:
        raise ValueError(f"{first.shape[0]} first ordinals of {count} buckets")
    integers = [array.clone(INTS, count, zero=False) for _ in INT_NAMES]
    numbers = [array.clone(FLOATS, count, zero=False) for _ in FLOAT_NAMES]
    known, ranks = array.clone(INTS, count, zero=True), array.clone(INTS, 4 * count, zero=False)
    table, column = array.clone(FLOATS, 4 * count, zero=False), array.clone(FLOATS, 4 * count, zero=False)
    for i in range(12):
        whole[i] = longs(integers[i])
    for i in range(15):
        parts[i] = doubles(numbers[i])
    room.steps, room.table = longs(ranks), doubles(table)
    cdef int64_t* bits = longs(known)
    cdef double* beside = doubles(column)
    with nogil:
        right = plain(place, count, &first[0], &n[0], whole, parts, &room)
        right = right and told(place, count, &first[0], &n[0], codec, bits, whole, parts, beside, &room)
    if not right:
        reader.refuse()
    return dict(zip(INT_NAMES, integers)) | dict(zip(FLOAT_NAMES, numbers))


cdef array.array room_for(array.array of, Py_ssize_t n):
    """An array of n; the caller bounds n, since a column of one number repeated has few bytes."""
    if n < 1:
        raise PackingError(f"a column of {n} numbers")
    return array.clone(of, n, zero=False)


cdef inline int64_t* longs(array.array of):
    return <int64_t*> of.data.as_longlongs


cdef inline double* doubles(array.array of):
    return of.data.as_doubles


cdef bint refused(Place* place, const char* why) noexcept nogil:
    place.why = why
    return False


cdef int next_byte(Place* place) noexcept nogil:
    """The next byte; −1 at the end."""
    cdef int found = -1
    if place.at < place.size:
        found = place.data[place.at]
        place.at += 1
    else:
        place.why = "cut short"
    return found


cdef bint number(Place* place, int64_t* out) noexcept nogil:
    """LEB128 of a zigzag, at most ten bytes; of what is beyond 64 bits the lowest ones."""
    cdef uint64_t value = 0, above = 0
    cdef int shift, byte
    for shift in range(0, 70, 7):
        byte = next_byte(place)
        if byte < 0:
            return False
        value |= (<uint64_t> (byte & 0x7F)) << shift
        if shift == 63:
            above = <uint64_t> (byte >> 1 & 1) << 63
        if byte < 0x80:
            out[0] = <int64_t> ((value >> 1 | above) ^ -(value & 1))
            return True
    return refused(place, "an integer of more than ten bytes")


cdef bint planes(Place* place, Py_ssize_t n, int width, uint64_t* out) noexcept nogil:
    """The lowest byte of every number, then the next one of every number …; of no width all are 0."""
    cdef const uint8_t* data = place.data + place.at
    cdef Py_ssize_t i
    cdef int plane
    if place.size - place.at < n * width:
        return refused(place, "cut short")
    for i in range(n):
        out[i] = data[i] if width else 0
    for plane in range(1, width):
        for i in range(n):
            out[i] |= (<uint64_t> data[plane * n + i]) << (8 * plane)
    place.at += n * width
    return True


cdef bint ints(Place* place, Py_ssize_t n, int64_t* out) noexcept nogil:
    cdef uint64_t* x = <uint64_t*> out
    cdef int64_t[2] start
    cdef int64_t base, scale
    cdef int head = next_byte(place), mode, width, k
    cdef Py_ssize_t i
    if head < 0:
        return False
    mode, width = head & 3, head >> 2
    if mode > 2 or width > 8 or n <= mode:
        return refused(place, "integers of a layout, width or length that there is not")
    for k in range(mode):
        if not number(place, &start[k]):
            return False
    if not number(place, &base) or not number(place, &scale):
        return False
    if not planes(place, n - mode, width, x + mode):
        return False
    for i in range(mode, n):
        x[i] = x[i] * <uint64_t> scale + <uint64_t> base
    for k in range(mode - 1, -1, -1):
        x[k] = <uint64_t> start[k]
        for i in range(k + 1, n):
            x[i] += x[i - 1]
    return True


cdef bint table_of(Place* place, Py_ssize_t n, int mode, double* out, int64_t* steps) noexcept nogil:
    """Floats of layout 0 (planes) or 1 (integers over a power of ten)."""
    cdef Py_ssize_t i
    cdef int digits
    if mode == 0:
        return planes(place, n, 8, <uint64_t*> out) and finite(place, n, out)
    digits = next_byte(place)
    if digits > 15:
        return refused(place, "decimals of more than 15 places")
    if digits < 0 or not ints(place, n, steps):
        return False
    for i in range(n):
        out[i] = (<double> steps[i]) / POWERS[digits]
    return True


cdef bint finite(Place* place, Py_ssize_t n, const double* values) noexcept nogil:
    cdef Py_ssize_t i
    cdef bint right = True
    for i in range(n):
        right &= isfinite(values[i]) != 0
    return right or refused(place, "a number that is not finite")


cdef bint floats(Place* place, Py_ssize_t n, double* out, Room* room) noexcept nogil:
    cdef int mode = next_byte(place)
    cdef Py_ssize_t i
    if mode < 2:
        return mode >= 0 and table_of(place, n, mode, out, room.steps)
    if mode == 2:
        return dictionary(place, n, out, room)
    if mode == 3:
        if not planes(place, 1, 8, <uint64_t*> out):
            return False
        for i in range(1, n):
            out[i] = out[0]
        return finite(place, 1, out)
    return singles(place, n, out) if mode == 4 else refused(place, "floats of an unknown layout")


cdef bint dictionary(Place* place, Py_ssize_t n, double* out, Room* room) noexcept nogil:
    cdef Py_ssize_t i
    cdef int64_t size
    cdef int mode
    if not number(place, &size):
        return False
    if size < 1 or size > n:
        return refused(place, "a dictionary of more numbers than its column, or of none")
    mode = next_byte(place)
    if mode > 1:
        return refused(place, "a dictionary of an unknown layout")
    if mode < 0 or not table_of(place, size, mode, room.table, room.steps) or not ints(place, n, room.steps):
        return False
    for i in range(n):
        if room.steps[i] < 0 or room.steps[i] >= size:
            return refused(place, "a rank outside its dictionary")
        out[i] = room.table[room.steps[i]]
    return True


cdef bint singles(Place* place, Py_ssize_t n, double* out) noexcept nogil:
    """Floats of layout 4: float32 in planes."""
    cdef Py_ssize_t i
    cdef uint64_t* bits = <uint64_t*> out
    cdef uint32_t half
    cdef float value
    if not planes(place, n, 4, bits):
        return False
    for i in range(n):
        half = <uint32_t> bits[i]
        memcpy(&value, &half, 4)
        out[i] = value
    return finite(place, n, out)


cdef bint plain(
    Place* place, Py_ssize_t count, const int64_t* first, const int64_t* n, int64_t** whole, double** parts, Room* room
) noexcept nogil:
    """The columns that every codec has, and whether they are in their order."""
    cdef const int64_t* base
    cdef Py_ssize_t i
    cdef int k
    cdef bint wrong = False, far = False
    cdef double low, high
    for k in range(10):
        if not ints(place, count, whole[k]):
            return False
        if BASES[k] != -1:
            base = first if BASES[k] == -2 else whole[BASES[k]]
            for i in range(count):
                whole[k][i] = <int64_t> (<uint64_t> whole[k][i] + <uint64_t> base[i])
    for k in range(7):
        if not floats(place, count, parts[k], room):
            return False
    for i in range(count):
        low, high = parts[3][i], parts[4][i]
        wrong |= n[i] < 2 or parts[1][i] > parts[2][i]
        far |= low < -LARGEST or high > LARGEST or whole[0][i] < -FARTHEST or whole[1][i] > FARTHEST
        wrong |= parts[5][i] < low or parts[5][i] > high or parts[6][i] < low or parts[6][i] > high
        for k in range(2, 10, 4):
            wrong |= whole[k][i] < whole[0][i] or whole[k + 1][i] < whole[k][i] or whole[1][i] < whole[k + 1][i]
            wrong |= whole[k + 2][i] < first[i] or whole[k + 3][i] < whole[k + 2][i]
            wrong |= whole[k + 3][i] > first[i] + n[i] - 1
    if wrong:
        return refused(place, "a bucket whose fields contradict each other")
    return not far or refused(place, "a value of more than 2^960, or a time of more than 2^61 microseconds")


cdef bint told(
    Place* place, Py_ssize_t count, const int64_t* first, const int64_t* n, int codec, int64_t* known, int64_t** whole,
    double** parts, double* column, Room* room,
) noexcept nogil:
    """What codec 2 adds, and whether it contradicts the other columns; before it nothing is known: −1 and NaN."""
    cdef Py_ssize_t i, at = 0
    cdef int side, k
    cdef bint wrong = False
    cdef double x
    cdef int64_t open_room
    if codec > 1 and not ints(place, count, known):
        return False
    for i in range(count):
        wrong |= known[i] < 0 or known[i] >= 2 * LOGS
    if wrong:
        return refused(place, "a bucket that knows what is not known to exist")
    if not (often(place, count, n, known, LOW_N, whole, parts, 4, whole[10], room)
            and often(place, count, n, known, HIGH_N, whole, parts, 8, whole[11], room)):
        return False
    for side in range(4):
        for i in range(count):
            at += (known[i] & (LOW_PRE << side)) != 0 and room_of(first[i], n[i], whole, side, i) > 1
    if at and not floats(place, at, column, room):
        return False
    at = 0
    for side in range(4):
        for i in range(count):
            open_room = room_of(first[i], n[i], whole, side, i)
            x = NAN
            if known[i] & (LOW_PRE << side):
                x = parts[5 + side % 2][i] if open_room else (INFINITY if side < 2 else -INFINITY)
                if open_room > 1:
                    x = column[at]
                    at += 1
            parts[7 + side][i] = x
            if -LARGEST <= x <= LARGEST:
                wrong |= (x <= parts[3][i] or x > parts[4][i]) if side < 2 else (x >= parts[4][i] or x < parts[3][i])
    if wrong:
        return refused(place, "a value beside an extreme is beyond the bucket's")
    for k in range(11, 15):
        if not spread(place, count, known, M2 if k == 11 else LOGS, parts[k], column, room):
            return False
    for i in range(count):
        wrong |= parts[11][i] < 0 or parts[14][i] < parts[13][i] or (parts[3][i] <= 0 and not isnan(parts[12][i]))
    return not wrong or refused(place, "squares or logarithms that cannot be")


cdef inline int64_t room_of(int64_t first, int64_t n, int64_t** whole, int side, Py_ssize_t i) noexcept nogil:
    """How many readings stand before (even sides) or after an extreme."""
    cdef int64_t** of = whole + (4 if side < 2 else 8)
    return first + n - 1 - of[1][i] if side % 2 else of[0][i] - first


cdef bint often(
    Place* place, Py_ssize_t count, const int64_t* n, const int64_t* known, int64_t bit, int64_t** whole,
    double** parts, int of, int64_t* out, Room* room,
) noexcept nogil:
    """How often an extreme occurs, whose first and last ordinals are `whole[of]` and the next."""
    cdef Py_ssize_t i, at = 0, some = 0
    cdef int64_t places
    cdef bint same, right = True
    for i in range(count):
        same = parts[4][i] <= parts[3][i]
        out[i] = n[i] if same else whole[of + 1][i] - whole[of][i] + 1
        some += (known[i] & bit) != 0 and out[i] > 2 and not same
    if some and not ints(place, some, room.steps):
        return False
    for i in range(count):
        places = out[i]
        if not known[i] & bit:
            out[i] = -1
        elif places > 2 and parts[4][i] > parts[3][i]:
            right &= 0 <= room.steps[at] <= places - 2
            out[i] = room.steps[at] + 2
            at += 1
    return right or refused(place, "an extreme that occurs more often than there is room")


cdef bint spread(
    Place* place, Py_ssize_t count, const int64_t* known, int64_t bit, double* out, double* column, Room* room
) noexcept nogil:
    """A column of those buckets that know it; NaN for the others."""
    cdef Py_ssize_t i, some = 0, at = 0
    for i in range(count):
        some += (known[i] & bit) != 0
    if some and not floats(place, some, column, room):
        return False
    for i in range(count):
        out[i] = NAN
        if known[i] & bit:
            out[i] = column[at]
            at += 1
    return True
