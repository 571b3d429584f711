"""One component of a partial by itself: readings folded to its slots, and two runs of slots as one.

A bucket that is stored or sent carries such slots beside its record, 8 bytes each, little-endian, without the zeros at
their end (`sluicegate.format.extras`). By definition: tests/native/format/parts_twin.py.
"""

from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from sluicegate.partials.wide cimport Extra, Slot, combine_wide, free_extra, lift_wide, make_extra

import sys
from array import array


class _Alone:
    """As much of a layout as `make_extra` reads."""

    def __init__(self, component):
        self.components = (component,)


cdef class SlotFold:
    """What lifts and combines one component that has an operation of its own (`layout.WIDE` and after)."""

    cdef Extra* _extra
    cdef Slot* _held  # two of `width` slots: what is folded, and one reading or the right side
    cdef readonly Py_ssize_t width
    cdef int _op

    def __cinit__(self, component):
        self.width, self._op = len(component.format), component.op
        self._extra = make_extra(_Alone(component))
        if self._extra == NULL:
            raise ValueError(f"component {component!r}: it has no operation of its own")
        self._held = <Slot*> calloc(2 * self.width, sizeof(Slot))
        if self._held == NULL:
            raise MemoryError(f"a part of {self.width} slots")

    def __dealloc__(self):
        free(self._held)
        free_extra(self._extra, 1)

    def fold(self, const double[::1] values, const int64_t[::1] times):
        """Readings in order, at least one, as slots."""
        cdef Py_ssize_t i
        if values.shape[0] != times.shape[0] or values.shape[0] == 0:
            raise ValueError(f"{values.shape[0]} values and {times.shape[0]} times: expected as many, at least one")
        lift_wide(self._op, self._extra, self._held, &values[0], 0, times[0], 0)
        for i in range(1, values.shape[0]):
            lift_wide(self._op, self._extra, self._held + self.width, &values[i], 0, times[i], i)
            combine_wide(self._op, self._extra, self._held, self._held, self._held + self.width)
        return self._packed()

    def combine(self, const unsigned char[::1] a, const unsigned char[::1] b):
        """Two neighbours as one; a's readings precede b's."""
        self._take(self._held, a)
        self._take(self._held + self.width, b)
        combine_wide(self._op, self._extra, self._held, self._held, self._held + self.width)
        return self._packed()

    cdef int _take(self, Slot* out, const unsigned char[::1] packed) except -1:
        cdef Py_ssize_t i, slots = packed.shape[0] // 8
        if packed.shape[0] % 8 or slots > self.width:
            raise ValueError(f"{packed.shape[0]} bytes are no part of at most {self.width} slots")
        for i in range(slots, self.width):
            out[i].i = 0
        if sys.byteorder == "big":
            swapped = array("q", bytes(packed))
            swapped.byteswap()
            packed = memoryview(swapped).cast("B")
        if slots:
            memcpy(out, &packed[0], slots * 8)
        return 0

    cdef bytes _packed(self):
        cdef Py_ssize_t slots = self.width
        while slots and self._held[slots - 1].i == 0:
            slots -= 1
        packed = (<char*> self._held)[: slots * 8]
        if sys.byteorder == "big":
            swapped = array("q", packed)
            swapped.byteswap()
            packed = swapped.tobytes()
        return packed
