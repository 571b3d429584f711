"""Runs a window by count that answers after every n-th reading; its count is stored, so a restart does not shift it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import sluicegate as sg
from sluicegate_agent.doubts import Doubts, opened, widened
from sluicegate_agent.messages import Result, plain
from sluicegate_agent.state.windows import StoredWindow

if TYPE_CHECKING:
    from array import array

    from sluicegate_agent.streams import Stream

#: Answers that wait to be asked for; of more the oldest go.
WAITING = 64


class _Fired(NamedTuple):
    """What the window said when so many readings had been accepted, the newest of this time."""

    accepted: int
    time: int
    answers: dict[str, sg.Bounded]
    size: tuple[int, int]


class TriggeredWindow(StoredWindow):
    """Nothing of its trigger is stored: the readings that the window has accepted say where it stands."""

    may_sleep = False  # what it said and nobody asked for yet is in no row

    def __init__(self, *given: Any) -> None:
        """See `StoredWindow`."""
        super().__init__(*given)
        self._fired: deque[_Fired] = deque(maxlen=WAITING)
        self._lost = 0  # answers for which there was no room, since somebody asked

    def insert_many(self, values: array[float], times: array[int]) -> int:
        """Fold readings in their order; after each n-th the window is asked. How many it refused."""
        refused = begin = 0
        every = self.asked[0].triggered
        while begin < len(values):
            end = begin + every - self.window.accepted % every
            refused += super().insert_many(values[begin:end], times[begin:end])
            if self.window.accepted % every == 0 and self._is_full():
                self._fire(times[min(end, len(times)) - 1])
            begin = end
        return refused

    def _is_full(self) -> bool:
        """Whether it has been full, or answers before that too."""
        config = self.asked[0]
        return config.partial or self.window.accepted >= (config.policy.count or 0)

    def _fire(self, time: int) -> None:
        if not self._fired or self._fired[-1].accepted < self.window.accepted:
            self._lost += len(self._fired) == WAITING
            self._fired.append(_Fired(self.window.accepted, time, self.answers(), self.size()))

    def results(self, stream: Stream, doubts: Doubts | None) -> Iterator[Result]:
        """What waits, one result an aggregate, the newest first."""
        config = self.asked[0]
        following = stream.builder.next if stream.builder else 0
        for fired in reversed(self._fired):
            ordinal = following - 1 - (self.window.accepted - fired.accepted)
            doubt = doubts.within(config, ordinal + 1, fired.time) if doubts else None
            lacks = doubts is not None and doubts.lacks_within(config, ordinal + 1, fired.time)
            for name, (value, low, high, exact) in fired.answers.items():
                told = plain(value), plain(low), plain(high), exact
                if doubt:
                    told = widened(name, told, config, fired.size[0], doubt)
                if lacks:
                    told = opened(name, told, config)
                (count, buckets), in_doubt = fired.size, doubt.n if doubt else 0
                yield Result(stream.name, self.name, name, ordinal, fired.time, *told, count, buckets, in_doubt)

    def given_out(self) -> int:
        """What waited has been taken; how many results nobody will get."""
        self._fired.clear()
        lost, self._lost = self._lost, 0
        return lost * len(self.asked[0].aggregates)
