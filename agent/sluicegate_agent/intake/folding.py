"""Hands readings that count to their streams, and to their windows where each reading is answered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from sluicegate_agent.doubts import Doubts

if TYPE_CHECKING:
    from array import array

    from sluicegate_agent.pipeline import Pipeline


class Folding:
    """The last step of a pipeline's messages before the commit."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    def one(self, name: str, time_us: int, value: float, missing: int, doubt: int) -> None:
        """Fold one reading. `missing`: readings of its source lost so far; `doubt`: it may be a repeat."""
        pipeline = self._pipeline
        stream = pipeline.state.streams[name]
        if doubt:
            pipeline.doubts.setdefault(name, Doubts()).add(stream.accepted, time_us, value)
        self._follow(name)
        stream.take(value, time_us, missing, doubt)
        pipeline.heard(name, 1)
        self._answer([(name, (value,))], (time_us,))

    def many(self, streams: Iterable[str], columns: list[array[float]], times: array[int], missing: int) -> None:
        """Fold a column of values a stream, all taken at these times."""
        pipeline, taken = self._pipeline, [*zip(streams, columns, strict=True)]
        for name, values in taken:
            self._follow(name)
            pipeline.state.streams[name].take_many(values, times, missing)
            pipeline.heard(name, len(values))
        self._answer(taken, times)
        pipeline.note("accepted", len(times) * len(columns))

    def row(self, streams: Iterable[str], values: Iterable[float], time: int, missing: int) -> None:
        """Fold a value a stream, all taken at this time; the caller counts them."""
        pipeline, taken = self._pipeline, [*zip(streams, values, strict=True)]
        there, is_answered = pipeline.state.streams, pipeline.each is not None
        for name, value in taken:
            if is_answered:
                self._follow(name)
            there[name].take(value, time, missing)
            pipeline.heard(name, 1)
        if is_answered:
            self._answer([(name, (value,)) for name, value in taken], (time,))

    def _follow(self, name: str) -> None:
        if self._pipeline.each is not None:
            self._pipeline.each.follow(self._pipeline.state.streams[name])

    def _answer(self, taken: Sequence[tuple[str, Sequence[float]]], times: Sequence[int]) -> None:
        pipeline = self._pipeline
        if pipeline.each is not None:
            streams, windows, doubts = pipeline.state.streams, pipeline.windows, pipeline.doubts
            found = [(streams[name], windows[name], values, doubts.get(name)) for name, values in taken]
            pipeline.refused(pipeline.each.took(found, times))
