"""What a policy and a reader see of consecutive readings: count, times, and each aggregate's result over them alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sluicegate.monoids.layout import COUNT, O_FIRST, ORDERED, T_FIRST, T_LAST, Layout


class Subsequence:
    """Consecutive readings of a window, folded.

    `count`: how many; `t_first`, `t_last`: the least and greatest time; `ordinal`: of the first reading; `ordered`:
    times never go back (each None where an exact window has no need to keep it). `old["mean"]`, or `old.mean`: an
    aggregate's result.
    """

    __slots__ = ("_lower", "_names", "_packed", "_results", "count", "ordered", "ordinal", "t_first", "t_last")

    def __init__(self, layout: Layout, packed: bytes, lower: Callable[[bytes], list[Any]]) -> None:
        """View a packed partial; `lower` computes the results when they are first asked for."""
        header = layout.unpack(packed) if layout.header else None
        self.count: int = header[COUNT] if header else 1
        self.t_first: int | None = header[T_FIRST] if header else None
        self.t_last: int | None = header[T_LAST] if header else None
        self.ordinal: int | None = header[O_FIRST] if header else None
        self.ordered: bool | None = header[ORDERED] == 1 if header else None
        self._names, self._packed, self._lower = layout.names, packed, lower
        self._results: dict[str, Any] | None = None

    @property
    def results(self) -> dict[str, Any]:
        """Each aggregate's result over these readings alone, by name."""
        if self._results is None:
            self._results = dict(zip(self._names, self._lower(self._packed), strict=True))
        return self._results

    def __getitem__(self, name: str) -> Any:
        """The result of the aggregate of that name; KeyError where there is none."""
        return self.results[name]

    def __getattr__(self, name: str) -> Any:
        """The same as an attribute, for names that are not taken by the fields."""
        if name.startswith("_") or name not in self._names:
            raise AttributeError(f"no field and no aggregate {name!r}; the aggregates are {list(self._names)}")
        return self.results[name]

    def __repr__(self) -> str:
        """Count, times and results."""
        return f"Subsequence(count={self.count}, t_first={self.t_first}, t_last={self.t_last}, results={self.results})"
