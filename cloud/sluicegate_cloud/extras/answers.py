"""A window's share of readings → its columns: value, between what it lies, whether nothing is uncertain. No Spark.

Lines, means over time, distinct counts and the greatest values lie in their intervals for certain; quantiles with 99 %
(the rank error of KLL, and on top, certainly, the share of readings that may not be inside).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import sluicegate as sg
from sluicegate.bounds import comoments
from sluicegate.bounds.told import alone
from sluicegate.bounds.view import View
from sluicegate.format import pairs
from sluicegate.monoids import comoments as moments
from sluicegate.monoids import hll, kll
from sluicegate.monoids.layout import COUNT, T_FIRST, T_LAST, Layout, Op, lay_out
from sluicegate.monoids.results import as_tops
from sluicegate.records import Cut
from sluicegate_cloud.extras import placed
from sluicegate_cloud.extras.asked import RANKS, Asked
from sluicegate_cloud.extras.piece import Piece, Share
from sluicegate_cloud.names import ENDS

Columns = dict[str, Any]
_MARGIN = 2.0**-46  # of the greatest |x|: what rounding may do to a mean over time


def answer(share: Share, place: int, asked: Asked) -> Columns:
    """The columns of one aggregate; None each where a bucket did not carry what it is answered from."""
    parts = [each.parts[place] for each in (share.inside, share.cut) if each is not None]
    if any(part is None for part in parts):
        return dict.fromkeys(asked.columns)
    return _ANSWERS[asked.kind](share, place, asked)


def _ends(name: str, value: Any, low: Any, high: Any, exact: bool) -> Columns:
    return dict(zip((f"{name}{end}" for end in ENDS), (value, low, high, exact), strict=True))


def _joined(share: Share, place: int, asked: Asked) -> bytes:
    """The part of all that touches the window."""
    parts = [each.parts[place] for each in (share.inside, share.cut) if each is not None]
    return asked.extra.all_of([part for part in parts if part is not None])


def _slots(share: Share, place: int, asked: Asked) -> tuple[Any, ...]:
    return asked.extra.slots(_joined(share, place, asked))


@lru_cache(maxsize=8)
def _layout(monoid: sg.Monoid) -> Layout:
    return lay_out(monoid, header=True, times=False, bucketed=True)


_TOLD: dict[str, Callable[[Any, sg.Monoid], float | None]] = {
    "slope": lambda own, monoid: moments.slope(own, monoid.options[0]),
    "intercept": lambda own, monoid: moments.intercept(own, monoid.options[0]),
    "covariance": lambda own, monoid: moments.covariance(own, monoid.ddof),
    "correlation": lambda own, monoid: moments.correlation(own),
}


def _together_in(share: Share, place: int, asked: Asked) -> Columns:
    """Of what values do over time, or together with second ones."""
    view = _view(share, place, asked)
    # Over what is certainly inside, else over all that may be.
    own = (view.total if view.rest is None else view.rest)[view.layout.own_slots(asked.monoid)]
    found = comoments.interval(view, asked.monoid, _TOLD[asked.kind](own, asked.monoid))
    return _ends(asked.kind, found.value, found.low, found.high, found.exact)


def _view(share: Share, place: int, asked: Asked) -> View:
    """As a window of buckets, of which the cut ones together are the one that its edge cuts."""
    layout, begin, last = _layout(asked.monoid), share.start, share.end - 1
    rest = share.inside and _partial(layout, asked, share.inside, place, share.inside.t_first, share.inside.t_last)
    if share.cut is None:
        return alone(layout, rest or ())._replace(cutoff=begin - 1)
    # Where none of the cut ones' readings is certain, their times say nothing of when the window's first and last are.
    until = min(share.cut.t_last, last) if share.least else last
    oldest = _partial(layout, asked, share.cut, place, max(share.cut.t_first, begin), until)
    joined = _together(share, place, asked)
    total = _partial(layout, asked, joined, place, begin, last)
    return View(layout, total, rest, oldest, Cut(share.least, share.most, share.most), begin - 1, ())


def _together(share: Share, place: int, asked: Asked) -> Piece:
    """All that touches the window; of what it carries this one part."""
    some = [each for each in (share.inside, share.cut) if each is not None]
    parts = (*(None,) * place, _joined(share, place, asked))
    low, high = min(each.low for each in some), max(each.high for each in some)
    return some[0]._replace(n=sum(each.n for each in some), low=low, high=high, parts=parts)


def _partial(layout: Layout, asked: Asked, piece: Piece, place: int, first: int, last: int) -> tuple[Any, ...]:
    """What a window of buckets would keep of these readings, as far as an interval reads it."""
    slots: list[Any] = [0] * layout.width
    slots[COUNT], slots[T_FIRST], slots[T_LAST] = piece.n, first, last
    for op, value in ((Op.LOW, piece.low), (Op.HIGH, piece.high)):
        slots[layout.slot(op)] = value
    own = list(asked.extra.slots(piece.parts[place] or b""))
    if asked.carried == pairs.PAIR:
        for op, value in ((Op.LOW, own[pairs.LEAST]), (Op.HIGH, own[pairs.GREATEST])):
            slots[layout.slot(op, 1)] = value
        own = [own[i] for i in pairs.MOMENTS]
    else:
        own[2] = min(own[2], last)
    slots[layout.own_slots(asked.monoid)] = own
    return tuple(slots)


def _mean_over_time(share: Share, place: int, asked: Asked) -> Columns:
    held = share.held
    if held is None:
        return dict.fromkeys(asked.columns)
    low, high = held.low, held.high
    if held.time:
        mean = held.area / held.time
        longest = held.time + held.more
        low = min(mean, (held.area + held.low * held.more) / longest)
        high = max(mean, (held.area + held.high * held.more) / longest)
    else:
        mean = low if low == high else low / 2.0 + high / 2.0
    greatest = max(abs(x) for each in (share.inside, share.cut) if each for x in (each.low, each.high))
    margin = _MARGIN * greatest if held.time else 0.0
    is_known = low == high and (share.inside is not None or share.least > 0)  # else there may be no reading
    return _ends(asked.kind, mean, low - margin, high + margin, is_known)


def _quantiles(share: Share, place: int, asked: Asked) -> Columns:
    sketch = kll.of_slots(asked.monoid.options[0], _slots(share, place, asked))
    doubt = share.cut.n - share.least if share.cut else 0
    off = min(1.0, sketch.error + doubt / sketch.n)
    found: Columns = {}
    for name, rank in RANKS.items():
        value = sketch.quantile(rank)
        low, high = sketch.quantile(max(0.0, rank - off)), sketch.quantile(min(1.0, rank + off))
        found |= _ends(name, value, low, high, off == 0.0)
    return found


def _distinct(share: Share, place: int, asked: Asked) -> Columns:
    everything = _told(asked, _joined(share, place, asked))
    part = share.inside.parts[place] if share.inside else None
    sure = _told(asked, part) if part is not None else None
    least = sure[2] if sure else min(1, share.least)
    most = (share.inside.n if share.inside else 0) + share.most
    value = everything[0]
    if share.cut is not None:
        known = sure[0] if sure else 0.0
        no_edge = share.most == share.cut.n  # only whether some are repeats is not known
        inside = share.most if no_edge else (share.least + share.most) / 2.0
        value = known + max(0.0, everything[0] - known) * inside / share.cut.n
    least = max(1, least) if share.inside or share.least else 0
    exact = least == most
    return _ends(asked.kind, min(max(value, least), most), float(least), float(most), exact) | {
        f"{asked.kind}_error": everything[1]
    }


def _told(asked: Asked, part: bytes) -> tuple[float, float, int, bytes]:
    """Estimate, its relative standard error, the certain least, the sketch."""
    slots = asked.extra.slots(part)
    return hll.answer(asked.monoid.options[0], slots[0], struct.pack(f"<{len(slots) - 1}q", *slots[1:]))


def _top(share: Share, place: int, asked: Asked) -> Columns:
    """Place by place: at least what is known to be inside, at most what all that touches the window has there."""
    high = [top.value for top in as_tops(_slots(share, place, asked))]
    part = share.inside.parts[place] if share.inside else None
    low = [top.value for top in as_tops(asked.extra.slots(part))] if part is not None else []
    return _ends(asked.kind, low, low, high, low == high)


def _sketch(share: Share, place: int, asked: Asked) -> Columns:
    """All slots, 8 bytes each, little-endian: for `CountMin` and `BloomFilter`."""
    whole = _joined(share, place, asked).ljust(asked.extra.most, b"\0")
    doubt = share.cut.n - share.least if share.cut else 0
    return {asked.kind: whole, f"{asked.kind}_doubt": doubt, f"{asked.kind}_exact": share.cut is None}


def _placed(share: Share, place: int, asked: Asked) -> Columns:
    """First, last, and the times of extremes."""
    offered = share.placed[placed.PLACED.index(asked.kind)] if share.placed else ()
    told = placed.answer(offered, asked.kind)
    return _ends(asked.kind, *told) if told else dict.fromkeys(asked.columns)


_ANSWERS: dict[str, Callable[[Share, int, Asked], Columns]] = {
    **dict.fromkeys(_TOLD, _together_in), "time_weighted_mean": _mean_over_time, "quantiles": _quantiles,
    "distinct_count": _distinct, "top_k": _top, "count_min": _sketch, "bloom_filter": _sketch,
    **dict.fromkeys(placed.PLACED, _placed),
}  # fmt: skip
