"""Queues an answer for each reading (`results.every = "reading"`), in order and bounded, until the link takes it.

Windows with ends and triggers say by themselves when they answer: what they say is not repeated here.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from sluicegate_agent.answers import answers_at
from sluicegate_agent.results import EACH_MOST
from sluicegate_agent.state.windows import StoredWindow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sluicegate_agent.config import Config
    from sluicegate_agent.doubts import Doubts
    from sluicegate_agent.messages import Result
    from sluicegate_agent.state.opening import Stored
    from sluicegate_agent.streams import Stream


#: A stream, its windows, the values that it took, and its readings in doubt.
Taken = tuple["Stream", "list[Stored]", "Sequence[float]", "Doubts | None"]


class _Followed:
    """One stream whose readings are answered, from the ordinal `first` on; `newest`: its newest time so far."""

    def __init__(
        self,
        name: str,
        windows: list[StoredWindow],
        values: Sequence[float],
        doubts: Doubts | None,
        first: int,
        newest: int,
    ) -> None:
        self.name, self.newest = name, newest
        self._values, self._doubts, self._first = values, doubts, first
        self._windows = [(window, (window.asked[0], *window.asked[1])) for window in windows]

    def took(self, place: int, time: int, waiting: deque[Result]) -> int:
        """Hand on one reading; how many windows refused it."""
        refused, ordinal = 0, self._first + place
        self.newest = max(self.newest, time)
        for stored, every in self._windows:
            refused += not stored.inserted(self._values[place], time)
            for asked in every:
                waiting += answers_at(self.name, asked, stored, self._doubts, ordinal, self.newest)
        return refused


class EachReading:
    """The answers that wait, the oldest first, at most `most` of them; of more the oldest are dropped, and counted.

    They rest on a commit when the pipeline has nothing pending.
    """

    def __init__(self, config: Config, note: Callable[[str, int], None], most: int = EACH_MOST) -> None:
        """`note`: told "results.dropped" and how many."""
        self.waiting: deque[Result] = deque()
        self.most = most
        self._config, self._note = config, note
        self._newest: dict[str, int] = {}

    def feeds(self, window: Stored) -> bool:
        """Whether a window is handed each reading here, not with those of a batch."""
        return isinstance(window, StoredWindow) and not window.asked[0].triggered

    def follow(self, stream: Stream) -> None:
        """A stream is about to take readings: know its newest time."""
        if stream.name not in self._newest and stream.builder and stream.builder.newest is not None:
            self._newest[stream.name] = stream.builder.newest

    def took(self, taken: Iterable[Taken], times: Sequence[int]) -> int:
        """Streams have taken a reading each at these times: hand them to their windows, keep what those say.

        Time by time, stream by stream. How many readings a window refused.
        """
        followed = [self._followed(each, times) for each in taken]
        refused = 0
        for place, time in enumerate(times):
            for one in followed:
                refused += one.took(place, time, self.waiting)
        self._newest.update((one.name, one.newest) for one in followed)
        if (beyond := len(self.waiting) - self.most) > 0:
            for _ in range(beyond):
                self.waiting.popleft()
            self._note("results.dropped", beyond)
        return refused

    def _followed(self, taken: Taken, times: Sequence[int]) -> _Followed:
        stream, windows, values, doubts = taken
        fed = [each for each in windows if isinstance(each, StoredWindow) and self.feeds(each)]
        newest = self._newest.get(stream.name, times[0])
        return _Followed(stream.name, fed, values, doubts, stream.taken - len(times), newest)

    def forget(self, name: str) -> None:
        """A stream left."""
        self._newest.pop(name, None)

    def speaks_for(self, window: str) -> bool:
        """Whether the answers of the window of this name come from here, not from who asks now and then."""
        return all(not (each.sliced or each.triggered) for each in self._config.windows if each.name == window)
