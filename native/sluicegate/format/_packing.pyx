"""What packing or reading a column counts and rounds, compiled. By definition: tests/native/format/packing_twin.py."""

from array import array as _array

from cpython cimport array
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.math cimport INFINITY, fabs, isfinite, nextafterf, rint, signbit
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

cdef extern from *:
    bint sub_overflows "__builtin_sub_overflow"(int64_t, int64_t, int64_t*) noexcept nogil
    bint mul_overflows "__builtin_mul_overflow"(int64_t, int64_t, int64_t*) noexcept nogil
    bint add_signed "__builtin_add_overflow"(int64_t, int64_t, int64_t*) noexcept nogil
    bint add_overflows "__builtin_add_overflow"(uint64_t, uint64_t, uint64_t*) noexcept nogil

cdef array.array INTS = _array("q"), UNSIGNED = _array("Q"), SINGLES = _array("f"), DOUBLES = _array("d")
cdef double EXACT = 2.0**53  # integers a float64 holds exactly
cdef double[16] POWERS
cdef int _digits
for _digits in range(16):
    POWERS[_digits] = 10.0**_digits


def extent(const int64_t[::1] numbers):
    """Of at least one number: the least, the greatest, and the sum of all, whatever its size."""
    cdef Py_ssize_t i
    cdef int64_t least = numbers[0], greatest = numbers[0], upper = 0, lower = 0
    for i in range(numbers.shape[0]):
        least, greatest = min(least, numbers[i]), max(greatest, numbers[i])
        upper += numbers[i] >> 32
        lower += <uint32_t> numbers[i]
    return least, greatest, (<object> upper << 32) + lower


def begins(int64_t first, const int64_t[::1] lengths):
    """Where runs of these lengths begin that follow each other from `first`. Raises OverflowError beyond 64 bits."""
    cdef Py_ssize_t i
    cdef array.array out = array.clone(INTS, lengths.shape[0], zero=False)
    for i in range(lengths.shape[0]):
        out.data.as_longlongs[i] = first
        if add_signed(first, lengths[i], &first):
            raise OverflowError("a run ends beyond 64 bits")
    return out


def residue(const int64_t[::1] values, int mode):
    """A column less `mode` times its neighbours: (base, scale, width, planes), for n > mode numbers.

    Of (rest − base) / scale, padded so that the middle number has 0x80 in every plane but the highest, where that and
    the base then fit. None where a difference is beyond 64 bits.
    """
    cdef Py_ssize_t i, n = values.shape[0] - mode
    cdef array.array rest = array.clone(INTS, values.shape[0], zero=False)
    cdef array.array steps = array.clone(UNSIGNED, n, zero=False)
    cdef int64_t* x = <int64_t*> rest.data.as_longlongs
    cdef uint64_t* step = <uint64_t*> steps.data.as_ulonglongs
    cdef uint64_t scale = 0, most = 0, pad
    cdef int64_t base, padded, lowered
    cdef int width
    for i in range(values.shape[0]):
        x[i] = values[i]
    if not differences(x, values.shape[0], mode):
        return None
    base = x[mode]
    for i in range(mode, values.shape[0]):
        base = min(base, x[i])
    for i in range(n):
        step[i] = <uint64_t> x[mode + i] - <uint64_t> base
        scale = divisor(scale, step[i])
    scale = scale or 1
    for i in range(n):
        step[i] //= scale
        most = max(most, step[i])
    width = width_of(most)
    pad = centering(step, n, most, width) if width > 1 else 0
    if pad and not (scale >> 62 or mul_overflows(pad, scale, &padded) or sub_overflows(base, padded, &lowered)):
        base = lowered
        for i in range(n):
            step[i] += pad
    return base, scale, width, planes(step, n, width, width)


def steps(const int64_t[::1] numbers):
    """Each number less the one before it, the first one 0: (least, what each has beyond it as 8 planes).

    For at least one number; None where a difference is beyond 64 bits.
    """
    cdef Py_ssize_t i, n = numbers.shape[0]
    cdef array.array found = array.clone(UNSIGNED, n, zero=False)
    cdef uint64_t* step = <uint64_t*> found.data.as_ulonglongs
    cdef int64_t* x = <int64_t*> step
    cdef int64_t least = 0
    cdef uint64_t most = 0
    x[0] = 0
    for i in range(1, n):
        if sub_overflows(numbers[i], numbers[i - 1], &x[i]):
            return None
        least = min(least, x[i])
    for i in range(n):
        step[i] = <uint64_t> x[i] - <uint64_t> least
        most = max(most, step[i])
    return least, planes(step, n, width_of(most), 8)


def sums(const uint8_t[::1] data, Py_ssize_t n, int64_t first, int64_t least):
    """The numbers of which `steps` told, n ≥ 1 of them from 8 planes; None where one is beyond 64 bits."""
    cdef Py_ssize_t i
    cdef array.array out = array.clone(INTS, n, zero=True)
    cdef uint64_t* step = <uint64_t*> out.data.as_ulonglongs
    cdef int64_t* x = <int64_t*> step
    cdef uint64_t most = <uint64_t> ((1ULL << 63) - 1) - <uint64_t> least
    cdef int64_t before = first
    if data.shape[0] != 8 * n:
        raise ValueError(f"{data.shape[0]} bytes are not 8 planes of {n}")
    for plane in range(8):
        fill(step, &data[plane * n], n, 8 * plane)
    for i in range(n):
        if step[i] > most or add_signed(before, <int64_t> (step[i] + <uint64_t> least), &x[i]):
            return None
        before = x[i]
    return out


cdef void fill(uint64_t* numbers, const uint8_t* plane, Py_ssize_t n, int shift) noexcept:
    """Put a plane into each number; most planes are zero throughout."""
    cdef Py_ssize_t i
    cdef uint8_t any_of_them = 0
    for i in range(n):
        any_of_them |= plane[i]
    for i in range(n if any_of_them else 0):
        numbers[i] |= <uint64_t> plane[i] << shift


cdef bint differences(int64_t* x, Py_ssize_t n, int times) noexcept:
    """Each number less the one before, `times` over, from place `times` on; False where one is beyond 64 bits."""
    cdef Py_ssize_t i
    cdef int time
    cdef bint over = False
    for time in range(times):
        for i in range(n - 1, time, -1):
            over |= sub_overflows(x[i], x[i - 1], &x[i])
    return not over


cdef uint64_t divisor(uint64_t a, uint64_t b) noexcept:
    """The greatest common divisor."""
    while b:
        a, b = b, a % b
    return a


cdef int width_of(uint64_t number) noexcept:
    """Bytes of a number; 0 of 0."""
    cdef int width = 0
    while number:
        number >>= 8
        width += 1
    return width


cdef uint64_t centering(const uint64_t* step, Py_ssize_t n, uint64_t most, int width):
    """What to add to numbers of `width` bytes; 0 where the greatest does not fit then."""
    cdef uint64_t below = <uint64_t> 1 << 8 * (width - 1), limit
    cdef uint64_t pad = (<uint64_t> 0x8080808080808080 - middle_of(step, n)) & (below - 1)
    if add_overflows(most, pad, &limit):
        return 0
    return pad if width == 8 or limit < below << 8 else 0


cdef uint64_t middle_of(const uint64_t* step, Py_ssize_t n):
    """The number at place n // 2 once they are sorted: quickselect (Hoare, 1961)."""
    cdef array.array copied = array.clone(UNSIGNED, n, zero=False)
    cdef uint64_t* x = <uint64_t*> copied.data.as_ulonglongs
    cdef Py_ssize_t i, j, low = 0, high = n - 1, place = n // 2
    cdef uint64_t pivot
    for i in range(n):
        x[i] = step[i]
    while low < high:
        pivot, i, j = x[low + (high - low) // 2], low, high
        while i <= j:
            while x[i] < pivot:
                i += 1
            while x[j] > pivot:
                j -= 1
            if i <= j:
                x[i], x[j] = x[j], x[i]
                i += 1
                j -= 1
        if place <= j:
            high = j
        elif place >= i:
            low = i
        else:
            break
    return x[place]


cdef bytes planes(const uint64_t* step, Py_ssize_t n, int width, int most):
    """The lowest byte of every number, then the next one of every number …: of `most`, those beyond `width` are 0."""
    cdef bytes found = PyBytes_FromStringAndSize(NULL, n * most)
    cdef uint8_t* out = <uint8_t*> <char*> found
    cdef Py_ssize_t i
    cdef int plane
    for plane in range(width):
        for i in range(n):
            out[plane * n + i] = <uint8_t> (step[i] >> 8 * plane)
    memset(out + width * n, 0, (most - width) * n)
    return found


def digits(const double[::1] values):
    """The fewest decimal places whose integers bring back every bit of finite numbers; −1 where at most 15 do not.

    Nor where there is a number below 10^−4, whose shortest text has an exponent, or a zero with a sign.
    """
    cdef Py_ssize_t i, untried = 0
    cdef int places = 0, before
    cdef double largest = 0.0
    for i in range(values.shape[0]):
        largest = max(largest, fabs(values[i]))
    for i in range(values.shape[0]):
        if 0.0 < fabs(values[i]) < 1e-4 or (values[i] == 0.0 and signbit(values[i])):
            return -1
        before = places
        while places <= 15 and largest * POWERS[places] < EXACT and not comes_back(values[i], places):
            places += 1
        if places > 15 or not largest * POWERS[places] < EXACT:
            return -1
        if places > before:
            untried = i
    for i in range(untried):  # those before it were tried with fewer places
        if not comes_back(values[i], places):
            return -1
    return places


cdef inline bint comes_back(double x, int places) noexcept:
    return rint(x * POWERS[places]) / POWERS[places] == x


def scaled(const double[::1] values, int places):
    """Each number times 10^places, below 2^53, rounded to even."""
    cdef Py_ssize_t i
    cdef array.array out = array.clone(INTS, values.shape[0], zero=False)
    for i in range(values.shape[0]):
        out.data.as_longlongs[i] = <int64_t> rint(values[i] * POWERS[places])
    return out


def divided(const int64_t[::1] numbers, int places):
    """Each number over 10^places, at most 15: what `scaled` took."""
    cdef Py_ssize_t i
    cdef array.array out = array.clone(DOUBLES, numbers.shape[0], zero=False)
    for i in range(numbers.shape[0]):
        out.data.as_doubles[i] = <double> numbers[i] / POWERS[places]
    return out


def singles(const double[::1] values, bint up):
    """Each number as the nearest float32 not below (`up`) or not above it; None where one has none."""
    cdef Py_ssize_t i
    cdef array.array out = array.clone(SINGLES, values.shape[0], zero=False)
    cdef float near
    for i in range(values.shape[0]):
        near = <float> values[i]
        if not isfinite(near):
            return None
        if near != values[i] and (near > values[i]) != up:
            near = nextafterf(near, <float> INFINITY if up else <float> -INFINITY)
        if not isfinite(near):
            return None
        out.data.as_floats[i] = near
    return out
