"""The readable twin of sluicegate/engines/tree/widths.pxd: what a bucket may add to a cut window's interval."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf

from sluicegate.histograms.widths import Term, Width
from sluicegate.monoids.layout import COUNT, ORDERED
from sluicegate.reference.program import Partial

EXTREMES = (Width.HIGH, Width.LOW)


def nothing(term: Term) -> float:
    """What hides no reading."""
    return inf if term.width == Width.LOW else -inf


def extreme(term: Term, partial: Partial) -> float:
    """A bucket's greatest value, or its least one."""
    return float(partial[term.low if term.width == Width.LOW else term.high])


def further(term: Term, a: float, b: float) -> float:
    """The extreme of both."""
    return min(a, b) if term.width == Width.LOW else max(a, b)


def width(term: Term, partial: Partial, behind: float | None = None) -> float:
    """One aggregate's, of a bucket of at least two readings; 0 where no cut of it leaves anything in doubt.

    `behind`: the extreme of all that follows the bucket in the window, which stays there longer: what it hides is in
    no doubt.
    """
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
        certain = partial[term.last] if behind is None else max(partial[term.last], behind)
        return max((high if term.ends < 0 else partial[term.ends + 2]) - certain, 0.0)
    certain = partial[term.last] if behind is None else min(partial[term.last], behind)
    return max(certain - (low if term.ends < 0 else partial[term.ends + 2]), 0.0)


def reach(term: Term, partial: Partial) -> float:
    """What one aggregate's width may be in all of the window: of an extreme what it would be at the window's own.

    Not what the window as one bucket adds after this reading: that is 0 while the last is the extreme, and a range's
    two ends were weighed a thousand times unlike each other then.
    """
    if term.width in EXTREMES:
        return float(partial[term.high]) - float(partial[term.low])
    return width(term, partial)


class Weights:
    """What a bucket weighs: the sum of its widths, each by its scale, times its readings (so long is the edge in it).

    A scale is what the whole window as one bucket might add; where there is one width alone it stays 1, and what
    follows a bucket is not looked at.
    """

    def __init__(self, terms: Sequence[Term]) -> None:
        self.terms = tuple(terms)
        self.scales = [1.0] * len(self.terms)

    def behind(self, later: Iterable[Partial]) -> list[float | None]:
        """What each width is judged by besides the bucket: the extreme of what follows it."""
        found = [nothing(term) if len(self.terms) > 1 and term.width in EXTREMES else None for term in self.terms]
        for each in later:
            found = self.with_one(found, each)
        return found

    def with_one(self, behind: Sequence[float | None], first: Partial) -> list[float | None]:
        """The same with one bucket more before those that follow."""
        known = zip(self.terms, behind, strict=True)
        return [None if value is None else further(term, value, extreme(term, first)) for term, value in known]

    def __call__(self, partial: Partial, behind: Sequence[float | None]) -> float:
        """A bucket's weight; a single reading's is 0."""
        if partial[COUNT] < 2:
            return 0.0
        total = 0.0
        for term, scale, beyond in zip(self.terms, self.scales, behind, strict=True):
            if scale > 0.0:
                total += width(term, partial, beyond) / scale
        return float(partial[COUNT]) * total

    def rescale(self, total: Partial) -> None:
        """Take the scales from the partial of the whole window, of two readings at least."""
        self.scales = [reach(term, total) for term in self.terms]
