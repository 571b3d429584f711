"""Answers after each reading (`results.every = "reading"`), in their order, until the link takes them; so many wait.

Windows with ends and triggers say by themselves when they answer: what they say is not repeated here.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from sluicegate_agent.answers import answers_at
from sluicegate_agent.results import EACH_MOST
from sluicegate_agent.state.windows import StoredWindow

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluicegate_agent.config import Config
    from sluicegate_agent.doubts import Doubts
    from sluicegate_agent.messages import Result
    from sluicegate_agent.state.opening import Stored
    from sluicegate_agent.streams import Stream


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

    def took(self, stream: Stream, windows: list[Stored], value: float, time: int, doubts: Doubts | None) -> int:
        """A stream took one reading: hand it to its windows, keep what they say; how many refused it."""
        name, refused = stream.name, 0
        newest = self._newest.get(name)
        if newest is None:
            newest = (stream.builder.newest if stream.builder else None) or time
        self._newest[name] = newest = max(newest, time)
        ordinal = stream.taken - 1
        for stored in windows:
            if isinstance(stored, StoredWindow) and not stored.asked[0].triggered:
                refused += not stored.inserted(value, time)
                own, sharing = stored.asked
                for asked in (own, *sharing):
                    self.waiting += answers_at(name, asked, stored, doubts, ordinal, newest)
        if (beyond := len(self.waiting) - self.most) > 0:
            for _ in range(beyond):
                self.waiting.popleft()
            self._note("results.dropped", beyond)
        return refused

    def forget(self, name: str) -> None:
        """A stream left."""
        self._newest.pop(name, None)

    def speaks_for(self, window: str) -> bool:
        """Whether the answers of the window of this name come from here, not from who asks now and then."""
        return all(not (each.sliced or each.triggered) for each in self._config.windows if each.name == window)
