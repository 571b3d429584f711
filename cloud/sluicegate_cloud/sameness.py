"""Whether two documents of one stream hold the same readings, bucket for bucket, however each of them folded them.

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

    def rows(self, wanted: NDArray[np.bool_], doubtful: NDArray[np.bool_]) -> dict[str, Any]:
        """Some of the buckets as the columns of a document; those that are `doubtful` with all their readings."""
        kept = np.ascontiguousarray(self.fields[:, wanted])
        kept[_AT["doubt"]] = np.where(doubtful[wanted], kept[_AT["n"]], kept[_AT["doubt"]])
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


def shared(mine: Buckets, its: Buckets) -> NDArray[np.bool_]:
    """Which of my buckets hold readings that the other document holds too, one that overlaps it in ordinals."""
    out = np.zeros(mine.n.size, bool)
    common = np.intersect1d(mine.edges, its.edges, assume_unique=True)
    if common.size < 2 or mine.center != its.center:
        return out
    at, to = (np.searchsorted(one.edges, common) for one in (mine, its))
    same = _alike(_joined(mine, at), _joined(its, to))
    counts = np.diff(at)
    out[at[0] : at[-1]] = np.repeat(same, counts)
    return out


def where_they_part(mine: Buckets, its: Buckets, same: NDArray[np.bool_]) -> slice | None:
    """My first buckets, up to an edge that both have, that lie at ordinals of the other's and are not the `same`."""
    first, end = mine.edges[:-1], mine.edges[1:]
    other = np.flatnonzero((first < its.edges[-1]) & (end > its.edges[0]) & ~same)
    if not other.size:
        return None
    begin = int(other[0])
    common = np.isin(end[begin:], its.edges)
    return slice(begin, begin + int(np.argmax(common)) + 1 if common.any() else int(other[-1]) + 1)


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


def _alike(a: dict[str, NDArray[Any]], b: dict[str, NDArray[Any]]) -> NDArray[np.bool_]:
    exact = np.all([a[name] == b[name] for name in ("t_first", "t_last", "low", "high", "x_first", "x_last")], axis=0)
    reach = np.maximum(np.maximum(np.abs(a["low"]), np.abs(a["high"])), np.abs(a["center"]))
    n = a["n"].astype(np.float64)
    return np.asarray(exact & (np.abs(a["total"] - b["total"]) <= 8 * n * n * _EPSILON * reach))
