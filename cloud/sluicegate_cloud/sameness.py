"""Tells whether two documents of one stream hold the same readings, however each of them cut and merged its buckets.

Two boards that went on from one copied card have the readings from before in documents of their own, cut elsewhere and
merged otherwise. Between two ordinals at which both have an edge they are compared as one bucket: the same readings
have the same times, extremes and ends to the bit, and the same sum but for rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sluicegate_cloud.grid import Floats, Ints
from sluicegate_cloud.schema import BUCKET_FIELDS

_EPSILON = float(np.finfo(np.float64).eps)
Mask = NDArray[np.bool_]
_AT = {name: i for i, name in enumerate(BUCKET_FIELDS)}


@dataclass(frozen=True)
class Buckets:
    """The buckets of one document, contiguous in ordinals, as they came: (field, bucket); `center` of their sums."""

    fields: Ints
    center: float

    @classmethod
    def of(cls, fields: Ints, center: float) -> Buckets:
        """Of the packed fields of a document."""
        return cls(fields, float(center))

    def whole(self, name: str) -> Ints:
        """An integer field."""
        return np.asarray(self.fields[_AT[name]])

    def real(self, name: str) -> Floats:
        """A field of float64."""
        return np.asarray(self.fields[_AT[name]].view(np.float64))

    @property
    def n(self) -> Ints:
        """Readings of each bucket."""
        return self.whole("n")

    @property
    def t_first(self) -> Ints:
        """The least time of each."""
        return self.whole("t_first")

    @property
    def t_last(self) -> Ints:
        """The greatest time of each."""
        return self.whole("t_last")

    @property
    def edges(self) -> Ints:
        """The ordinals at which a bucket begins, and the one after the last."""
        first = self.whole("first")
        return np.append(first, first[-1] + self.n[-1])

    def rows(self, wanted: Mask, doubt: Ints) -> dict[str, Any]:
        """Some of the buckets as the columns of a document, with so much more `doubt`."""
        kept = np.ascontiguousarray(self.fields[:, wanted])
        kept[_AT["doubt"]] = np.minimum(kept[_AT["doubt"]] + doubt[wanted], kept[_AT["n"]])
        some = Buckets(kept, self.center)
        return {
            "readings": int(some.n.sum()),
            "buckets": int(wanted.sum()),
            "gap": int(some.whole("gap").sum()),
            "doubt": int(some.whole("doubt").sum()),
            "t_first": int(some.t_first.min()),
            "t_last": int(some.t_last.max()),
            "packed": kept.tobytes(),
        }


@dataclass(frozen=True)
class Shared:
    """Of a document's buckets: which hold readings that another one holds too, and which may.

    `same`: for certain. `undecided`: before the first and after the last edge that both have, where nothing can be
    compared; `within`: those of them that may be a part of one bucket of the other: closed early where a card was
    copied, or merged with what came in another document. `overlap`: how many ordinals of each are the other's too.
    """

    same: Mask
    undecided: Mask
    within: Mask
    overlap: Ints


def shared(mine: Buckets, its: Buckets) -> Shared:
    """What a document shares with another one of its stream and incarnation that it overlaps in ordinals."""
    first, end = mine.edges[:-1], mine.edges[1:]
    overlap = np.maximum(np.minimum(end, its.edges[-1]) - np.maximum(first, its.edges[0]), 0)
    same, undecided, within = (np.zeros(mine.n.size, bool) for _ in range(3))
    if mine.center != its.center:
        return Shared(same, undecided, within, overlap)
    common = np.intersect1d(mine.edges, its.edges, assume_unique=True)
    at, to = (np.searchsorted(one.edges, common) for one in (mine, its))
    if common.size > 1:
        same[at[0] : at[-1]] = np.repeat(_alike(_joined(mine, at), _joined(its, to)), np.diff(at))
    for run in (slice(0, mine.n.size),) if not common.size else (slice(0, at[0]), slice(at[-1], mine.n.size)):
        if run.start < run.stop:
            undecided[run] = overlap[run] > 0
            within[run] = _may_be_within(mine, run, its)
    return Shared(same, undecided, within, overlap)


def _may_be_within(mine: Buckets, run: slice, its: Buckets) -> bool:
    """Whether a run of my buckets may be a part of one of the other's: between its ordinals, times and values."""
    first, end = int(mine.edges[run.start]), int(mine.edges[run.stop])
    j = int(np.searchsorted(its.edges, first, side="right")) - 1
    if not 0 <= j < its.n.size or end > its.edges[j + 1]:
        return False
    values = mine.real("low")[run].min() >= its.real("low")[j] and mine.real("high")[run].max() <= its.real("high")[j]
    times = mine.t_first[run].min() >= its.t_first[j] and mine.t_last[run].max() <= its.t_last[j]
    begins = first != its.edges[j] or mine.real("x_first")[run.start] == its.real("x_first")[j]
    ends = end != its.edges[j + 1] or mine.real("x_last")[run.stop - 1] == its.real("x_last")[j]
    return bool(values and times and begins and ends)


def parted_by(mine: Buckets, its: Buckets, found: Shared) -> int | None:
    """The first ordinal of which is known that both have readings of their own there; None where nothing is known.

    By a reading at an edge of one that is not in the other's bucket there, or by buckets between two common edges.
    """
    known = [_strangers(mine, its), _strangers(its, mine)]
    other = np.flatnonzero((found.overlap > 0) & ~found.same & ~found.undecided)
    if other.size:
        ends = mine.edges[other[0] + 1 :]
        known.append(int(ends[np.argmax(np.isin(ends, its.edges))]) - 1)
    return min((at for at in known if at is not None), default=None)


def _strangers(mine: Buckets, its: Buckets) -> int | None:
    """The first of my readings at an edge whose time or value the other's bucket at its ordinal does not have."""
    found = []
    for side, at in (("first", mine.edges[:-1]), ("last", mine.edges[1:] - 1)):
        j = np.searchsorted(its.edges, at, side="right") - 1
        there = (j >= 0) & (j < its.n.size) & _ordered(mine)
        j = np.clip(j, 0, its.n.size - 1)
        time, value = mine.whole(f"t_{side}"), mine.real(f"x_{side}")
        fits = (time >= its.t_first[j]) & (time <= its.t_last[j])
        fits &= (value >= its.real("low")[j]) & (value <= its.real("high")[j])
        for its_side, edge in (("first", its.edges[:-1]), ("last", its.edges[1:] - 1)):
            same = (time == its.whole(f"t_{its_side}")[j]) & (value == its.real(f"x_{its_side}")[j])
            fits &= (at != edge[j]) | same | ~_ordered(its)[j]
        found += at[there & ~fits].tolist()
    return min(found, default=None)


def _ordered(one: Buckets) -> Mask:
    """Where the first and the last reading have the least and the greatest time."""
    return np.asarray((one.whole("flags") & 1) == 1)


def _joined(one: Buckets, at: Ints) -> dict[str, NDArray[Any]]:
    """What must agree, of the buckets between each two of the positions `at`."""
    begin, end = at[:-1], at[1:] - 1
    upto = slice(None, at[-1])

    def over(operation: np.ufunc, values: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(operation.reduceat(values[upto], begin))

    return {
        "t_first": over(np.minimum, one.t_first),
        "t_last": over(np.maximum, one.t_last),
        "low": over(np.minimum, one.real("low")),
        "high": over(np.maximum, one.real("high")),
        "x_first": one.real("x_first")[begin],
        "x_last": one.real("x_last")[end],
        "n": over(np.add, one.n),
        "total": over(np.add, one.real("total")),
        "center": np.full(begin.size, one.center),
    }


def _alike(a: dict[str, NDArray[Any]], b: dict[str, NDArray[Any]]) -> Mask:
    exact = np.all([a[name] == b[name] for name in ("t_first", "t_last", "low", "high", "x_first", "x_last")], axis=0)
    reach = np.maximum(np.maximum(np.abs(a["low"]), np.abs(a["high"])), np.abs(a["center"]))
    n = a["n"].astype(np.float64)
    return np.asarray(exact & (np.abs(a["total"] - b["total"]) <= 8 * n * n * _EPSILON * reach))
