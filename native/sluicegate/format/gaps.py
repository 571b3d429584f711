"""Between which readings the ones were taken that a chunk says are missing, and when those that came late after all.

A bucket that was merged does not say which of its readings came late: the extra "late" beside it does.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice

from sluicegate.constants import LATE, ORDERED
from sluicegate.format.late import NEVER as NEVER
from sluicegate.format.late import CameLate
from sluicegate.format.payload import AS_READINGS, Body

#: Of a loss in a bucket in which a clock was set back.
NOWHERE = -(1 << 61)
#: Numbers of a row of `gaps`: ordinal, gap, since, first, last, until.
WIDTH = 6


class BoardClock:
    """Where the times of a document's buckets have come to, bucket after bucket.

    `recent`: of the last reading that did not come late, NEVER: there is none yet; `is_back`: whether the clock was
    set back and has not come to the newest time again, None: the document does not say; `began_back`: whether it was
    so at the first reading that did not come late.
    """

    __slots__ = ("_oldest", "began_back", "is_back", "recent")

    def __init__(self) -> None:
        self.recent = NEVER
        self._oldest: int | None = None
        self.is_back: bool | None = None
        self.began_back = False

    def _shows_back(self, kind: int, first: int) -> bool:
        """Of one that is merged and begins a document nobody knows."""
        if kind & ORDERED:
            return self._oldest is None or first >= self._oldest
        return self.recent != NEVER

    def take(self, kind: int, gap: int, n: int, first: int, last: int, late: CameLate | None = None) -> None:
        """The next bucket. Of one that is not LATE and takes something back nobody knows which readings came late.

        One that is LATE and takes nothing back is not late: so the clock was set back. One older than all others may
        also have numbers below all others, of which the next bucket tells; so may one in which times go back.
        """
        before = self.recent
        if not kind & LATE:
            self.is_back = False
        elif late is None and gap >= 0 and self._shows_back(kind, first):
            self.is_back = True
        self._oldest = first if self._oldest is None else min(first, self._oldest)
        if late is not None:
            self.recent = self.recent if late.recent == NEVER else late.recent
        elif gap >= 0 or (kind & LATE and n > -gap and not self.is_back):
            self.recent = last if kind & ORDERED else first
        if self.recent != before:
            self.began_back |= before == NEVER and bool(self.is_back)


def gaps(content: Body, late: Mapping[int, bytes]) -> array[int]:
    """Rows of WIDTH numbers, by ordinal, of all that buckets say is missing (gap > 0), or came late (gap < 0).

    `late`: by first ordinal the extra "late"; what a bucket with it takes back stands there. Raises ValueError.

    First a row of gap 0 where times go back in or before any bucket, or a bucket has what came late: `since`, `first`
    and `last` are a BoardClock's `recent`, `is_back` (NEVER: it does not say) and `began_back`, after the last bucket.

    What is missing before the last reading of a bucket: `first` and `last` are its times, `since` that of the last
    reading before it that did not come late. `until`, where times went back before it: the oldest time so far;
    NOWHERE, where they did in it, and nothing says where.
    What came late: it has a time between `first` and `last`; a reading alone where the document says which. `until` is
    0 where the clock is not set back, NEVER where the document does not say.
    """
    if not late and min(content.gap) >= 0 and all(kind & (LATE | ORDERED) == ORDERED for kind in {*content.kinds}):
        return _going_on(content)
    out, clock = array("q", (content.first, 0, NEVER, NEVER, 0, NEVER)), BoardClock()
    at, oldest = 0, None
    for kind, gap, (ordinal, n, first, last) in zip(content.kinds, content.gap, content.placed(), strict=True):
        single = content.times[at : at + n] if kind & AS_READINGS else None
        at += n if single is not None else 0
        oldest = first if oldest is None else min(oldest, first)
        told = CameLate.unpack(late[ordinal]) if ordinal in late else None
        if told is not None:
            for row in _told(gap, ordinal, last, told, clock):
                out.extend(row)
        elif gap > 0:
            until = NOWHERE if not kind & ORDERED else oldest if kind & LATE else NEVER
            out.extend((ordinal, gap, clock.recent, first, last, until))
        elif gap < 0:
            for row in _late(kind, gap, (ordinal, n, first, last), single, clock.is_back):
                out.extend(row)
        clock.take(kind, gap, n, first, last, told)
    is_back = NEVER if clock.is_back is None else int(clock.is_back)
    out[2:5] = array("q", (clock.recent, is_back, int(clock.began_back)))
    return out


def _going_on(content: Body) -> array[int]:
    """The same where times go on all the way, and nothing came late."""
    placed = [*content.placed()] if any(content.gap) else []
    rows = zip(content.gap, [NEVER, *(last for *_, last in placed)], placed, strict=False)
    return array("q", chain.from_iterable((of[0], gap, since, *of[2:], NEVER) for gap, since, of in rows if gap))


def _told(gap: int, ordinal: int, last: int, told: CameLate, clock: BoardClock) -> Iterator[Iterable[int]]:
    """Of a bucket that says by itself what came late: what is lost is so after the last one that did not."""
    if gap > 0:
        yield ordinal, gap, clock.recent, last if told.begin == NEVER else told.begin, last, NEVER
    for count, first, until in () if clock.is_back else told.rows:
        yield ordinal, -count, NEVER, first, until, NEVER if clock.is_back is None else 0


def _late(
    kind: int, gap: int, bucket: tuple[int, int, int, int], single: array[int] | None, is_back: bool | None
) -> Iterator[tuple[int, int, int, int, int, int]]:
    """In a bucket that is ordered those that come late come first: it closes when time goes back.

    What has no time before the newest has the time at which it came, and after a clock was set back nobody knows.
    """
    ordinal, n, first, last = bucket
    if not kind & LATE or is_back:
        yield ordinal, gap, NEVER, NEVER, NEVER, NEVER
        return
    some, said = min(n, -gap), NEVER if is_back is None else 0
    if single is not None and kind & ORDERED:
        for place, time in enumerate(islice(single, some)):
            yield ordinal + place, -1, NEVER, time, time, said
    else:
        yield ordinal, -some, NEVER, first, first if some == 1 and kind & ORDERED else last, said
    if gap + some:  # of messages that the stream has no reading of
        yield ordinal, gap + some, NEVER, NEVER, NEVER, NEVER
