"""The readable twin of sluicegate.partials.parts, bit for bit."""

from __future__ import annotations

import struct
from array import array
from functools import reduce

from sluicegate.monoids.layout import Component
from sluicegate.reference import wide


class SlotFold:
    """What lifts and combines one component that has an operation of its own."""

    def __init__(self, component: Component) -> None:
        self._component = component
        self._format = struct.Struct("<" + component.format)
        self.width = len(component.format)

    def fold(self, values: array[float], times: array[int]) -> bytes:
        """Readings in order, at least one, as slots."""
        if len(values) != len(times) or not values:
            raise ValueError(f"{len(values)} values and {len(times)} times: expected as many, at least one")
        lifted = (wide.lift(self._component, (x,), t, i) for i, (x, t) in enumerate(zip(values, times, strict=True)))
        return self._packed(reduce(lambda a, b: wide.combine(self._component, a, b), lifted))

    def combine(self, a: bytes, b: bytes) -> bytes:
        """Two neighbours as one; a's readings precede b's."""
        return self._packed(wide.combine(self._component, self._slots(a), self._slots(b)))

    def _slots(self, packed: bytes) -> wide.Slots:
        if len(packed) % 8 or len(packed) > 8 * self.width:
            raise ValueError(f"{len(packed)} bytes are no part of at most {self.width} slots")
        return list(self._format.unpack(packed.ljust(8 * self.width, b"\0")))

    def _packed(self, slots: wide.Slots) -> bytes:
        packed = self._format.pack(*slots).rstrip(b"\0")
        return packed.ljust(-(-len(packed) // 8) * 8, b"\0")
