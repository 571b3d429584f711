# cython: language_level=3
"""Columns of numbers straight out of the text of a JSON array, where the objects between would take most of the time.

Only what is plain is read: all else is left to a parser, so that no rule of JSON is judged twice. Its definition is
tests/native/format/items_twin.py.
"""
from cpython.array cimport array, clone, resize
from libc.math cimport fabs, isfinite, rint
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcmp, strncmp

from array import array as _array

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object, Py_ssize_t*) except NULL
    double PyOS_string_to_double(const char*, char**, void*) except? -1.0

cdef enum:
    NAMES = 32  # keys of an object at most
    DIGITS = 18  # of a number that is read here: it has room in 64 bits
    LEAST = 6  # bytes of the shortest item, `{"":0}`

cdef double _WHOLE = <double> (1LL << 61)  # no time is beyond it: products are checked against it as doubles first
cdef uint64_t _EXACT = 1ULL << 53  # integers up to it are doubles, and so are the powers of ten up to 10^22
cdef double[23] _TENS
cdef int _power
_TENS[0] = 1.0
for _power in range(1, 23):
    _TENS[_power] = 10.0 * _TENS[_power - 1]
cdef array _INTS = _array("q")
cdef array _FLOATS = _array("d")


cdef struct Name:
    const char* text
    Py_ssize_t size


cdef struct Number:
    double value
    int64_t whole
    bint is_whole


cdef inline const char* after_space(const char* at) noexcept:
    while at[0] == c" " or at[0] == c"\n" or at[0] == c"\r" or at[0] == c"\t":
        at += 1
    return at


cdef const char* after_text(const char* at) noexcept:
    """Behind a text that begins here, of plain characters alone; NULL for any other."""
    if at[0] != c'"':
        return NULL
    at += 1
    while at[0] != c'"':
        if <unsigned char> at[0] < 0x20 or <unsigned char> at[0] > 0x7E or at[0] == c"\\":
            return NULL
        at += 1
    return at + 1


cdef inline const char* after_digits(const char* at, uint64_t* digits, int* count) noexcept:
    """Behind digits, which are put behind those before; NULL where there are none."""
    cdef const char* begin = at
    while c"0" <= at[0] <= c"9":
        digits[0] = 10 * digits[0] + <uint64_t> (at[0] - c"0")
        at += 1
    count[0] += <int> min(at - begin, 1000)
    return at if at > begin else NULL


cdef const char* after_number(const char* begin, Number* number) except? NULL:
    """Behind a number of JSON that begins here; NULL for none, and for a whole one of more digits than are read."""
    cdef const char* at = begin
    cdef char* end
    cdef uint64_t digits = 0
    cdef int count = 0, whole
    cdef bint is_negative = at[0] == c"-"
    at += is_negative
    if at[0] == c"0" and c"0" <= at[1] <= c"9":
        return NULL
    at = after_digits(at, &digits, &count)
    if at == NULL:
        return NULL
    whole = count
    number.is_whole = at[0] != c"." and at[0] != c"e" and at[0] != c"E"
    if number.is_whole:
        number.whole = -<int64_t> digits if is_negative else <int64_t> digits
        number.value = <double> number.whole
        return at if count <= DIGITS else NULL
    if at[0] == c".":
        at = after_digits(at + 1, &digits, &count)
        if at == NULL:
            return NULL
    if count <= DIGITS and digits <= _EXACT and at[0] != c"e" and at[0] != c"E":
        # Both are doubles, so the quotient is the nearest double (Clinger, PLDI 1990).
        number.value = <double> digits / _TENS[count - whole]
        number.value = -number.value if is_negative else number.value
        return at
    if at[0] == c"e" or at[0] == c"E":
        at += 1
        at += at[0] == c"+" or at[0] == c"-"
        at = after_digits(at, &digits, &count)
        if at == NULL:
            return NULL
    number.value = PyOS_string_to_double(begin, &end, NULL)
    return at if at == end and isfinite(number.value) else NULL


cdef const char* after_other(const char* at) except? NULL:
    """Behind a value that nobody asks for; NULL for an object, a list, or what is no plain value."""
    cdef Number number
    if at[0] == c'"':
        return after_text(at)
    if strncmp(at, b"true", 4) == 0 or strncmp(at, b"null", 4) == 0:
        return at + 4
    return at + 5 if strncmp(at, b"false", 5) == 0 else after_number(at, &number)


cdef Py_ssize_t place_of(const Name* names, Py_ssize_t count, Py_ssize_t likely, const char* text, Py_ssize_t size):
    """The place of a name among those asked for, looked for where it likely is first; -1 for another."""
    cdef Py_ssize_t step, place
    for step in range(count):
        place = likely + step
        place -= count if place >= count else 0
        if names[place].size == size and memcmp(names[place].text, text, size) == 0:
            return place
    return -1


cdef const char* after_object(const char* at, const Name* names, Py_ssize_t count, Number* found) except? NULL:
    """Behind an object that has a number under each name; NULL for any other, and where one stands there twice."""
    cdef uint64_t seen = 0
    cdef Py_ssize_t place = -1, name
    cdef const char* begin
    if at[0] != c"{":
        return NULL
    while at[0] != c"}":
        begin = after_space(at + 1)
        at = after_text(begin)
        if at == NULL:
            return NULL
        name = place_of(names, count, place + 1, begin + 1, at - begin - 2)
        at = after_space(at)
        if at[0] != c":":
            return NULL
        at = after_space(at + 1)
        if name < 0:
            at = after_other(at)
        else:
            at = NULL if seen >> name & 1 else after_number(at, &found[name])
            seen |= 1ULL << name
            place = name
        if at == NULL:
            return NULL
        at = after_space(at)
        if at[0] != c"," and at[0] != c"}":
            return NULL
    return at + 1 if seen == (1ULL << count) - 1 else NULL


cdef bint time_of(const Number* number, int64_t scale, int64_t earliest, int64_t latest, long long* time) noexcept:
    """Whether a number, times `scale` and rounded to even, is a time that may be."""
    cdef double scaled = rint(number.value * <double> scale)
    if not fabs(scaled) <= _WHOLE:
        return False
    time[0] = number.whole * scale if number.is_whole else <int64_t> scaled
    return earliest <= time[0] <= latest


def columns_of(bytes payload, Py_ssize_t most, time, int64_t scale, int64_t earliest, int64_t latest, tuple keys):
    """What `columns` gives of the items of a JSON array, at least one and at most so many; None for a closer look.

    Without nesting, escapes, characters beyond ASCII, a name that is asked for twice, or more than 31 names.
    """
    cdef Name[NAMES] names
    cdef Number[NAMES] found
    cdef double* values[NAMES]
    cdef Py_ssize_t count = 0, key, width = len(keys), room = min(most, len(payload) // LEAST)
    cdef array times = clone(_INTS, room, False), column
    cdef int64_t newest = earliest
    cdef double largest = 0.0
    cdef const char* begin = payload
    cdef const char* at = after_space(begin)
    if width >= NAMES or at[0] != c"[":
        return None
    filled = [clone(_FLOATS, room, False) for _ in keys]
    for key in range(width):
        names[key].text = PyUnicode_AsUTF8AndSize(keys[key], &names[key].size)
        column = filled[key]
        values[key] = column.data.as_doubles
    names[width].text = PyUnicode_AsUTF8AndSize(time, &names[width].size)
    while at[0] != c"]":
        at = after_object(after_space(at + 1), names, width + 1, found) if count < room else NULL
        if at == NULL or not time_of(&found[width], scale, earliest, latest, &times.data.as_longlongs[count]):
            return None
        newest = max(newest, times.data.as_longlongs[count])
        for key in range(width):
            values[key][count] = found[key].value
            largest = max(largest, fabs(found[key].value))
        count += 1
        at = after_space(at)
        if at[0] != c"," and at[0] != c"]":
            return None
    if after_space(at + 1) != begin + len(payload):
        return None
    for column in (times, *filled):
        resize(column, count)
    return times, filled, newest, largest
