"""Batches of readings: flat views of a caller's buffers, checked whole before any reading enters a window."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Any, NamedTuple

from sluicegate.core import first_late, first_not_positive, first_refused
from sluicegate.errors import InputError
from sluicegate.monoids.layout import Layout

_DOUBLES = ("d", "@d", "=d")
_LONGS = ("q", "l", "@q", "@l", "=q")


class Values(NamedTuple):
    """A flat view of `readings` readings of `dimensions` float64 each."""

    view: memoryview[float]
    readings: int
    dimensions: int


class Batch(NamedTuple):
    """Values and, where given, the times of a batch."""

    values: Values
    times: memoryview[int] | None

    def rows(self, ordinal: int) -> Iterator[tuple[tuple[float, ...], int]]:
        """Each reading's values and time; without times its ordinal, counted from `ordinal`."""
        view, count, size = self.values
        for i in range(count):
            row = tuple(view[k] for k in range(i * size, (i + 1) * size))
            yield row, ordinal + i if self.times is None else self.times[i]


def flat_values(values: Any, dimensions: int) -> Values:
    """View float64 readings as one run. Raises InputError naming the index of what may not enter."""
    view = _view(values, "d", "values")
    if view.format not in _DOUBLES:
        raise InputError(f"values: elements of format {view.format!r}, expected float64 ('d'); convert them first")
    if not view.c_contiguous:
        raise InputError(f"values: a view with strides {view.strides}, expected C-contiguous; copy it first")
    if view.shape is None or view.ndim not in (1, 2) or (view.shape[1] if view.ndim == 2 else 1) != dimensions:
        raise InputError(
            f"values: of shape {view.shape}, expected (n, {dimensions})" + (" or (n,)" if dimensions == 1 else "")
        )
    count = view.shape[0]
    flat: memoryview[float] = view.cast("B").cast("d") if count else memoryview(array("d"))
    refused = first_refused(flat)
    if refused >= 0:
        place = f"values[{refused}]" if dimensions == 1 else f"values[{refused // dimensions}, {refused % dimensions}]"
        raise InputError(
            f"{place}: {flat[refused]!r}, expected a finite value of magnitude up to 2^960; nothing was inserted"
        )
    return Values(flat, count, dimensions)


def refuse_not_positive(values: Values, layout: Layout) -> None:
    """Raise InputError, naming the index, where a geometric mean would meet a value that is not greater than 0."""
    for dimension in layout.positive:
        row = first_not_positive(values.view, values.dimensions, dimension) if values.readings else -1
        if row >= 0:
            place = f"values[{row}]" if values.dimensions == 1 else f"values[{row}, {dimension}]"
            raise InputError(
                f"{place}: {values.view[row * values.dimensions + dimension]!r}; a geometric mean takes values greater "
                "than 0 only; nothing was inserted"
            )


def flat_times(times: Any, count: int) -> memoryview[int]:
    """View int64 times as one run. Raises InputError for another type, length, or a time beyond ±2^61."""
    view = _view(times, "q", "times")
    if view.format not in _LONGS or view.itemsize != 8:
        raise InputError(
            f"times: elements of format {view.format!r}, expected int64 microseconds ('q'); convert them first"
        )
    if view.ndim != 1 or not view.c_contiguous:
        raise InputError(f"times: of shape {view.shape}, expected ({count},) and contiguous")
    if len(view) != count:
        raise InputError(f"times: {len(view)} of them for {count} readings; expected one each")
    flat: memoryview[int] = view.cast("B").cast("q") if count else memoryview(array("q"))
    late = first_late(flat)
    if late >= 0:
        raise InputError(f"times[{late}]: {flat[late]}, expected microseconds within ±2^61; nothing was inserted")
    return flat


def _view(given: Any, code: str, name: str) -> memoryview[Any]:
    try:
        return memoryview(given)
    except (TypeError, ValueError):
        pass
    try:
        return memoryview(array(code, given))
    except (TypeError, ValueError, OverflowError) as error:
        what = "float64" if code == "d" else "int64"
        raise InputError(
            f"{name}: {type(given).__name__} is no buffer of {what} nor a sequence of numbers ({error})"
        ) from None
