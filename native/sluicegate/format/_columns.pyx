"""A payload's columns in compiled loops, where all is as usual; None where it is not, and the Python twins decide.

The twins: `packing.unpack_ints` and `unpack_floats`, `payload.unpack_whole` and `columns_2.unpack_known`, which say what
is read and why it is refused. Whatever they refuse, and numbers beyond 64 bits on the way, is None here.
"""

from array import array as _array

from cpython cimport array
from libc.math cimport INFINITY, NAN, isfinite, isnan
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef extern from *:
    bint add_overflows "__builtin_add_overflow"(int64_t, int64_t, int64_t*) noexcept nogil
    bint mul_overflows "__builtin_mul_overflow"(int64_t, int64_t, int64_t*) noexcept nogil

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


cdef struct Place:
    const uint8_t* data
    Py_ssize_t at, size


cdef struct Room:
    int64_t* steps
    double* table


def unpack_ints(const uint8_t[::1] data, Py_ssize_t at, Py_ssize_t n):
    """(n ≥ 1 int64 from `at` on, where they end), or None."""
    cdef array.array out
    cdef Place place
    if not begun(&place, data, at, n):
        return None
    out = array.clone(INTS, n, zero=False)
    return (out, place.at) if ints(&place, n, <int64_t*> out.data.as_longlongs) else None


def unpack_floats(const uint8_t[::1] data, Py_ssize_t at, Py_ssize_t n):
    """(n ≥ 1 finite float64 from `at` on, where they end), or None."""
    cdef array.array out
    cdef Place place
    cdef Room room
    if not begun(&place, data, at, n):
        return None
    out, steps, table = (array.clone(of, n, zero=False) for of in (FLOATS, INTS, FLOATS))
    room.steps, room.table = longs(steps), doubles(table)
    return (out, place.at) if floats(&place, n, doubles(out), &room) else None


def unpack_whole(const uint8_t[::1] data, Py_ssize_t at, const int64_t[::1] first, const int64_t[::1] n, int codec):
    """(the fields by name, where they end) of buckets from ordinals `first` of `n` readings each, or None."""
    cdef Py_ssize_t count = n.shape[0]
    cdef Place place
    cdef Room room
    cdef int64_t* whole[12]
    cdef double* parts[15]
    cdef int i
    cdef bint right
    if not begun(&place, data, at, count) or first.shape[0] != count:
        return None
    integers = [array.clone(INTS, count, zero=False) for _ in INT_NAMES]
    numbers = [array.clone(FLOATS, count, zero=False) for _ in FLOAT_NAMES]
    steps, known = array.clone(INTS, count, zero=False), array.clone(INTS, count, zero=False)
    table = array.clone(FLOATS, 4 * count, zero=False)
    ranks = array.clone(INTS, 4 * count, zero=False)
    column = array.clone(FLOATS, 4 * count, zero=False)
    for i in range(12):
        whole[i] = longs(integers[i])
    for i in range(15):
        parts[i] = doubles(numbers[i])
    room.steps, room.table = longs(ranks), doubles(table)
    cdef int64_t* bits = longs(known)
    cdef double* beside = doubles(column)
    with nogil:
        right = plain(&place, count, &first[0], &n[0], whole, parts, &room)
        if right and codec > 1:
            right = told(&place, count, &first[0], &n[0], bits, whole, parts, beside, &room)
        elif right:
            nothing_told(count, whole, parts)
    if not right:
        return None
    return dict(zip(INT_NAMES, integers)) | dict(zip(FLOAT_NAMES, numbers)), place.at


cdef inline int64_t* longs(array.array of):
    return <int64_t*> of.data.as_longlongs


cdef inline double* doubles(array.array of):
    return of.data.as_doubles


cdef bint begun(Place* place, const uint8_t[::1] data, Py_ssize_t at, Py_ssize_t n):
    if n < 1 or at < 0 or at >= data.shape[0]:
        return False
    place.data, place.at, place.size = &data[0], at, data.shape[0]
    return True


cdef bint number(Place* place, int64_t* out) noexcept nogil:
    """LEB128 of the zigzag of an int64."""
    cdef uint64_t value = 0
    cdef int shift
    cdef uint8_t byte
    for shift in range(0, 70, 7):
        if place.at >= place.size:
            return False
        byte = place.data[place.at]
        place.at += 1
        if shift == 63 and byte > 1:
            return False
        value |= (<uint64_t> (byte & 0x7F)) << shift
        if byte < 0x80:
            out[0] = <int64_t> (value >> 1) ^ -<int64_t> (value & 1)
            return True
    return False


cdef bint planes(Place* place, Py_ssize_t n, int width, uint64_t* out) noexcept nogil:
    """The lowest byte of every number, then the next one of every number …"""
    cdef const uint8_t* data = place.data + place.at
    cdef Py_ssize_t i
    cdef int plane
    if place.size - place.at < n * width:
        return False
    for i in range(n):
        out[i] = data[i]
    for plane in range(1, width):
        for i in range(n):
            out[i] |= (<uint64_t> data[plane * n + i]) << (8 * plane)
    place.at += n * width
    return True


cdef bint ints(Place* place, Py_ssize_t n, int64_t* out) noexcept nogil:
    cdef int64_t[2] start
    cdef int64_t base, scale, step
    cdef int mode, width, k
    cdef Py_ssize_t i
    cdef bint over = False
    if place.at >= place.size:
        return False
    mode, width = place.data[place.at] & 3, place.data[place.at] >> 2
    place.at += 1
    if mode > 2 or width > 8 or n <= mode:
        return False
    for k in range(mode):
        if not number(place, &start[k]):
            return False
    if not number(place, &base) or not number(place, &scale):
        return False
    if width == 0:
        for i in range(mode, n):
            out[i] = base
    elif not planes(place, n - mode, width, <uint64_t*> out + mode):
        return False
    else:
        for i in range(mode, n):
            over |= out[i] < 0
            over |= mul_overflows(out[i], scale, &step)
            over |= add_overflows(step, base, &out[i])
    for k in range(mode - 1, -1, -1):
        out[k] = start[k]
        for i in range(k + 1, n):
            over |= add_overflows(out[i], out[i - 1], &out[i])
    return not over


cdef bint table_of(Place* place, Py_ssize_t n, int mode, double* out, int64_t* steps) noexcept nogil:
    """Floats of layout 0 (planes) or 1 (integers over a power of ten)."""
    cdef Py_ssize_t i
    cdef int digits
    cdef bint right = True
    if mode == 0:
        if not planes(place, n, 8, <uint64_t*> out):
            return False
        for i in range(n):
            right &= isfinite(out[i]) != 0
        return right
    if place.at >= place.size:
        return False
    digits = place.data[place.at]
    place.at += 1
    if digits > 15 or not ints(place, n, steps):
        return False
    for i in range(n):
        out[i] = (<double> steps[i]) / POWERS[digits]
    return True


cdef bint floats(Place* place, Py_ssize_t n, double* out, Room* room) noexcept nogil:
    cdef int mode
    cdef Py_ssize_t i
    cdef int64_t size
    cdef uint64_t bits
    if place.at >= place.size:
        return False
    mode = place.data[place.at]
    place.at += 1
    if mode < 2:
        return table_of(place, n, mode, out, room.steps)
    if mode == 2:
        if not number(place, &size) or size < 1 or size > n or place.at >= place.size:
            return False
        mode = place.data[place.at]
        place.at += 1
        if mode > 1 or not table_of(place, size, mode, room.table, room.steps) or not ints(place, n, room.steps):
            return False
        for i in range(n):
            if room.steps[i] < 0 or room.steps[i] >= size:
                return False
            out[i] = room.table[room.steps[i]]
        return True
    if mode == 3:
        if not planes(place, 1, 8, &bits):
            return False
        memcpy(&out[0], &bits, 8)
        for i in range(1, n):
            out[i] = out[0]
        return isfinite(out[0]) != 0
    return mode == 4 and singles(place, n, out)


cdef bint singles(Place* place, Py_ssize_t n, double* out) noexcept nogil:
    """Floats of layout 4: float32 in planes."""
    cdef Py_ssize_t i
    cdef uint64_t* bits = <uint64_t*> out
    cdef uint32_t half
    cdef float value
    cdef bint right = True
    if not planes(place, n, 4, bits):
        return False
    for i in range(n):
        half = <uint32_t> bits[i]
        memcpy(&value, &half, 4)
        out[i] = value
        right &= isfinite(value) != 0
    return right


cdef bint plain(
    Place* place, Py_ssize_t count, const int64_t* first, const int64_t* n, int64_t** whole, double** parts, Room* room
) noexcept nogil:
    """The columns that every codec has, and whether they are in their order."""
    cdef const int64_t* base
    cdef Py_ssize_t i
    cdef int k
    cdef bint wrong = False
    cdef double low, high
    for k in range(10):
        if not ints(place, count, whole[k]):
            return False
        if BASES[k] != -1:
            base = first if BASES[k] == -2 else whole[BASES[k]]
            for i in range(count):
                wrong |= add_overflows(whole[k][i], base[i], &whole[k][i])
    for k in range(7):
        if not floats(place, count, parts[k], room):
            return False
    for i in range(count):
        low, high = parts[3][i], parts[4][i]
        wrong |= n[i] < 2 or parts[1][i] > parts[2][i]
        wrong |= low < -LARGEST or high > LARGEST
        wrong |= parts[5][i] < low or parts[5][i] > high or parts[6][i] < low or parts[6][i] > high
        wrong |= whole[0][i] < -FARTHEST or whole[1][i] > FARTHEST
        for k in range(2, 10, 4):
            wrong |= whole[k][i] < whole[0][i] or whole[k + 1][i] < whole[k][i] or whole[1][i] < whole[k + 1][i]
            wrong |= whole[k + 2][i] < first[i] or whole[k + 3][i] < whole[k + 2][i]
            wrong |= whole[k + 3][i] > first[i] + n[i] - 1
    return not wrong


cdef void nothing_told(Py_ssize_t count, int64_t** whole, double** parts) noexcept nogil:
    cdef Py_ssize_t i
    cdef int k
    for i in range(count):
        whole[10][i] = whole[11][i] = -1
        for k in range(7, 15):
            parts[k][i] = NAN


cdef bint told(
    Place* place, Py_ssize_t count, const int64_t* first, const int64_t* n, int64_t* known, int64_t** whole,
    double** parts, double* column, Room* room,
) noexcept nogil:
    """What codec 2 adds, and whether it contradicts the other columns."""
    cdef Py_ssize_t i, at = 0
    cdef int side, k
    cdef bint wrong = False
    cdef double low, x
    cdef int64_t open_room
    if not ints(place, count, known):
        return False
    for i in range(count):
        wrong |= known[i] < 0 or known[i] >= 2 * LOGS
    if wrong or not (often(place, count, n, known, LOW_N, whole, parts, 4, whole[10], room)
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
    for k in range(11, 15):
        if not spread(place, count, known, M2 if k == 11 else LOGS, parts[k], column, room):
            return False
    for i in range(count):
        low = parts[3][i]
        wrong |= parts[11][i] < 0 or parts[14][i] < parts[13][i] or (low <= 0 and not isnan(parts[12][i]))
    return not wrong


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
    return right


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
