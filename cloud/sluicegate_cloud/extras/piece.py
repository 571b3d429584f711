"""Holds one bucket, or merged neighbours, with its extras, and says what of it a window may contain. No Spark."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

from sluicegate_cloud.extras.asked import Asked
from sluicegate_cloud.extras.placed import PLACED, Candidate, Record, Window, candidates, settled

Placed = tuple[tuple[Candidate, ...], ...]


class Piece(NamedTuple):
    """`least` to `n` of its readings count (fewer are certain where some may be repeats); parts by place of `asked`.

    `first`: line (incarnation and key) and ordinal of its first reading, which say what came earlier of equal times.
    `ordered`: its readings are by time, and those of equal times as they came. Where it is asked which reading is
    first, last or greatest: `record`, or what several offer that are inside.
    """

    t_first: int
    t_last: int
    first: tuple[str, int]
    n: int
    least: int
    low: float
    high: float
    ordered: bool
    parts: tuple[bytes | None, ...]
    record: Record | None = None
    offered: Placed = ()

    def certain(self, start: int, end: int) -> bool:
        """Whether all of its readings are in [start, end), each once."""
        return self.least == self.n and start <= self.t_first and self.t_last < end

    def inside(self, start: int, end: int) -> tuple[int, int]:
        """How many of its readings are in [start, end), at least and at most; it touches that."""
        cuts = (self.t_first < start) + (self.t_last >= end)
        if not cuts:
            return self.least, self.n
        most = self.n - cuts if self.ordered else self.n
        least = 1 if cuts == 1 and self.ordered else 0
        return max(0, least - (self.n - self.least)), most

    def offers(self, start: int, end: int) -> Placed:
        """What it has inside [start, end), which it touches, in the order of PLACED; () where nobody asks."""
        if self.record is None:
            return self.offered
        least, most = self.inside(start, end)
        if not most:
            return ((),) * len(PLACED)
        return tuple((each,) for each in candidates(self.record, Window(start, end, least > 0)))


def merged(pieces: Sequence[Piece], asked: Sequence[Asked]) -> Piece:
    """Neighbours as one, at least one of them; a part is unknown where one of theirs is."""
    return reduce(lambda a, b: _pair(a, b, asked), pieces)


def _pair(a: Piece, b: Piece, asked: Sequence[Asked]) -> Piece:
    parts = tuple(
        None if x is None or y is None else each.combine(x, y)
        for each, x, y in zip(asked, a.parts, b.parts, strict=True)
    )
    t_first, t_last = min(a.t_first, b.t_first), max(a.t_last, b.t_last)
    offered = together([each.offers(t_first, t_last + 1) for each in (a, b)], one_device=True)
    return Piece(
        t_first, t_last, min(a.first, b.first), a.n + b.n, a.least + b.least, min(a.low, b.low), max(a.high, b.high),
        a.ordered and b.ordered and a.t_last <= b.t_first, parts, None, offered,
    )  # fmt: skip


def together(every: Sequence[Placed], *, one_device: bool) -> Placed:
    """What several offer, in the order of PLACED; () where nobody asks."""
    if not any(every):
        return ()
    some = zip(PLACED, zip(*every, strict=True), strict=True)
    return tuple(settled((x for each in of for x in each), kind, one_device=one_device) for kind, of in some)


class Held(NamedTuple):
    """Σ value × µs over `time` µs are known to be `area`; up to `more` µs besides, values there are in [low, high]."""

    area: float
    time: float
    more: float
    low: float
    high: float


class Share(NamedTuple):
    """What a window [start, end) has of one device: all that is certainly inside, and what is cut or in doubt."""

    start: int
    end: int
    inside: Piece | None
    cut: Piece | None
    least: int  # of the cut ones' readings, inside
    most: int
    held: Held | None  # where a mean over time is asked for, and known
    placed: Placed = ()  # where it is asked which reading is first, last or greatest


def share_of(pieces: Sequence[Piece], start: int, end: int, asked: Sequence[Asked]) -> Share | None:
    """Of pieces in the order of their times those that touch [start, end); None where no reading can be inside."""
    here = [piece for piece in pieces if piece.t_last >= start and piece.t_first < end]
    sure = [piece for piece in here if piece.certain(start, end)]
    cut = [piece for piece in here if not piece.certain(start, end)]
    counts = [piece.inside(start, end) for piece in cut]
    if not sure and not any(most for _, most in counts):
        return None
    inside = merged(sure, asked) if sure else None
    in_part = merged(cut, asked) if cut else None
    least, most = (sum(each) for each in zip(*counts, strict=True)) if counts else (0, 0)
    apart = inside is None or all(_before(p, inside) or p.t_first >= inside.t_last for p in cut)
    held = _held(inside, in_part, (start, end), apart, asked)
    placed = together([piece.offers(start, end) for piece in here], one_device=True)
    return Share(start, end, inside, in_part, least, most, held, placed)


def _before(piece: Piece, other: Piece) -> bool:
    """Whether what holds from the beginning of `other` on is none of the piece's readings."""
    meets = piece.t_last == other.t_first and piece.ordered and piece.first < other.first
    return piece.t_last < other.t_first or meets


def in_order(pieces: Sequence[Piece]) -> list[Piece]:
    """Pieces of one device; those that end where one begins that may have come earlier are not `ordered`.

    Of one line that is one of lesser ordinals; of another line nobody knows.
    """
    begins: dict[int, dict[str, int]] = {}
    longer: dict[int, dict[str, int]] = {}
    for piece in pieces:
        line, ordinal = piece.first
        for of in (begins, longer) if piece.t_last > piece.t_first else (begins,):
            there = of.setdefault(piece.t_first, {})
            there[line] = min(there.get(line, ordinal), ordinal)

    def may_follow(piece: Piece) -> bool:
        line, ordinal = piece.first
        same = (begins if piece.t_last > piece.t_first else longer).get(piece.t_last, {})
        return same.get(line, ordinal) < ordinal or bool(begins.get(piece.t_last, {}).keys() - {line})

    return [piece._replace(ordered=False) if may_follow(piece) else piece for piece in pieces]


def _held(
    inside: Piece | None, cut: Piece | None, window: tuple[int, int], apart: bool, asked: Sequence[Asked]
) -> Held | None:
    place = next((i for i, each in enumerate(asked) if each.kind == "time_weighted_mean"), None)
    if place is None:
        return None
    longest = float(window[1] - 1 - window[0])
    if inside is None:
        return Held(0.0, 0.0, longest, cut.low, cut.high) if cut else None
    part = inside.parts[place]
    if part is None:
        return None
    area, lost, first, last, value, back = asked[place].extra.slots(part)
    if back or not apart or not inside.ordered:  # which reading holds until which is not known
        some = [each for each in (inside, cut) if each]
        return Held(0.0, 0.0, longest, min(each.low for each in some), max(each.high for each in some))
    time = float(last - first)
    if cut is None:
        return Held(area + lost, time, 0.0, value, value)
    return Held(area + lost, time, longest - time, min(value, cut.low), max(value, cut.high))


def added(a: Share, b: Share, asked: Sequence[Asked]) -> Share:
    """Of one window what two devices have."""
    inside = [each for each in (a.inside, b.inside) if each is not None]
    cut = [each for each in (a.cut, b.cut) if each is not None]
    held = None
    if a.held and b.held:
        x, y = a.held, b.held
        held = Held(x.area + y.area, x.time + y.time, x.more + y.more, min(x.low, y.low), max(x.high, y.high))
    return Share(
        a.start, a.end, merged(inside, asked) if inside else None, merged(cut, asked) if cut else None,
        a.least + b.least, a.most + b.most, held, together([a.placed, b.placed], one_device=False),
    )  # fmt: skip
