"""The readable twin of sluicegate/engines/widths.pxd: what a bucket may add to a cut window's interval."""

from __future__ import annotations

from collections.abc import Sequence

from sluicegate.histograms.widths import Term, Width
from sluicegate.monoids.layout import COUNT, ORDERED
from sluicegate.reference.program import Partial


def width(term: Term, partial: Partial) -> float:
    """One aggregate's, of a bucket of at least two readings; 0 where no cut of it leaves anything in doubt."""
    n, kind = float(partial[COUNT]), term.width
    disordered = term.timed and partial[ORDERED] != 1
    if kind == Width.COUNT:
        return n - 1.0
    low, high = float(partial[term.low]), float(partial[term.high])
    if kind == Width.SUM:
        between = max(partial[term.prefix + 2] - partial[term.prefix + 1], 0.0)
        if term.low < 0:
            return between
        reach = (n - 1.0) * (high - low)
        return reach if disordered else min(between, reach)
    if kind == Width.SQUARES:
        return (n - 1.0) * ((high - low) * (high - low))
    if kind == Width.RANGE or disordered:
        return high - low
    if kind == Width.HIGH:
        return max((high if term.ends < 0 else partial[term.ends + 2]) - partial[term.last], 0.0)
    return max(partial[term.last] - (low if term.ends < 0 else partial[term.ends + 2]), 0.0)


def reach(term: Term, partial: Partial) -> float:
    """What one aggregate's width may be in all of the window: of an extreme what it would be at the window's own.

    Not what the window as one bucket adds after this reading: that is 0 while the last is the extreme, and a range's
    two ends were weighed a thousand times unlike each other then.
    """
    if term.width in (Width.HIGH, Width.LOW):
        return float(partial[term.high]) - float(partial[term.low])
    return width(term, partial)


class Weights:
    """What a bucket weighs: the sum of its widths, each by its scale, times its readings (so long is the edge in it).

    A scale is what the whole window as one bucket might add; where there is one width alone it stays 1.
    """

    def __init__(self, terms: Sequence[Term]) -> None:
        self.terms = tuple(terms)
        self.scales = [1.0] * len(self.terms)

    def __call__(self, partial: Partial) -> float:
        """A bucket's weight; a single reading's is 0."""
        if partial[COUNT] < 2:
            return 0.0
        total = 0.0
        for term, scale in zip(self.terms, self.scales, strict=True):
            if scale > 0.0:
                total += width(term, partial) / scale
        return float(partial[COUNT]) * total

    def rescale(self, total: Partial) -> None:
        """Take the scales from the partial of the whole window, of two readings at least."""
        self.scales = [reach(term, total) for term in self.terms]
