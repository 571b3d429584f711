"""`Aggregate`: the aggregates of `sg.Window` over any window of any kind. Source: SPL's windowing library, 6.1.1.

No readings are walked over: a sliding window's aggregates are a compiled `sg.Window` that follows its insertions and
evictions, so that a trigger costs the same however long the window is. A tumbling one's are a summarizer of a few
buckets: nothing is estimated, since nothing leaves it before all does (a mean may differ in its last bit).
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from sluicegate import policies
from sluicegate.errors import ConfigurationError
from sluicegate.histograms import Constrained
from sluicegate.monoids import Monoid
from sluicegate.policies import MAX_COUNT, MAX_SPAN
from sluicegate.window.configure import Window
from sluicegate.windowing.event_time import Extent
from sluicegate.windowing.events import Clock, WindowSummarizer
from sluicegate.windowing.operator import WindowOperator
from sluicegate.windowing.operators.base import Operator
from sluicegate.windowing.partitions import Partition
from sluicegate.windowing.saving import key_of, key_table
from sluicegate.windowing.spec import WindowSpec

Aggregates = Mapping[str, Monoid] | Monoid
BUCKETS = 8  # any few will do: no edge cuts one


class WindowResult(NamedTuple):
    """The aggregates by name, and of what: `stage` is "early", "revised" or "final", as `Pane` tells it.

    Windows by arrival have no `start` and `end`, and all their results are final. `time`: when it was due.
    """

    key: Hashable
    values: dict[str, Any]
    time: int
    stage: str = "final"
    start: int | None = None
    end: int | None = None
    revision: int = 0
    replaces: tuple[Extent, ...] = ()


class Running(WindowSummarizer):
    """The aggregates of one window that readings enter and do not leave, in any order of time where it goes by that."""

    def __init__(self, aggregates: Aggregates, by_event_time: bool) -> None:
        policy = policies.time(MAX_SPAN) if by_event_time else policies.count(MAX_COUNT)
        self._asked: dict[str, Any] = {"aggregates": aggregates, "policy": policy}
        try:
            self._window = Window(**self._asked, histograms=[Constrained(BUCKETS)])
            self._asked["histograms"] = [Constrained(BUCKETS)]
        except ConfigurationError:  # aggregates that buckets do not carry
            self._window = Window(**self._asked)
        self.query = self._window.query

    def insert(self, reading: Any, time: int) -> None:
        """A reading more."""
        self._window.insert(reading, time)

    def state(self) -> str:
        """Its window, as text."""
        return b64encode(self._window.snapshot()).decode()

    def take_up(self, state: str) -> None:
        """The window again."""
        self._window = Window.restore(b64decode(state), **self._asked)
        self.query = self._window.query


class Aggregate(Operator):
    """A `WindowResult` each time a window is processed: flushed, triggered, or by event time at each of its results.

    `aggregates` as for `sg.Window`; readings are numbers, or mappings with what the aggregates read. `engine` is that
    of sliding windows. Takes all windows.
    """

    def __init__(
        self, spec: WindowSpec, aggregates: Aggregates, *, clock: Clock | None = None, engine: str = "amta"
    ) -> None:
        self.keeps_readings = spec.kind == "session"  # two sessions that join have to be told again
        self._follow = partial(Window, aggregates, policy=policies.count(MAX_COUNT), engine=engine)
        self._read = self._follow()._reader.row
        self._running = partial(Running, aggregates, spec.by_event_time)
        self._following: dict[Hashable, Window] = {}
        self._sliding, self._by_event_time = spec.kind == "sliding", spec.by_event_time
        whole = spec.kind in ("tumbling", "hopping")
        super().__init__(spec, clock=clock, summarizer=self._running if whole else None)
        self.window.makes = self._running

    def insert(self, reading: Any, time: int | None = None) -> list[WindowResult]:
        """The results that it led to. Raises InputError, and nothing changes, where the aggregates cannot read it."""
        self._read(reading)
        return super().insert(reading, time)

    def state(self) -> list[Any]:
        """The windows that follow sliding ones, by key."""
        return [(key_table(key), b64encode(each.snapshot()).decode()) for key, each in self._following.items()]

    def take_up(self, state: list[Any]) -> None:
        """They follow again."""
        given = self._follow.args[0], self._follow.keywords
        self._following = {key_of(key): Window.restore(b64decode(saved), given[0], **given[1]) for key, saved in state}

    # sliding

    def after_insert(self, window: WindowOperator, key: Hashable, reading: Any) -> None:
        """The aggregates follow."""
        if self._sliding:
            following = self._following.get(key)
            if following is None:
                following = self._following[key] = self._follow()
            following.insert(reading, window.time)

    def before_evict(self, window: WindowOperator, key: Hashable, reading: Any) -> None:
        """The oldest leaves them too."""
        self._following[key].evict(1)

    def trigger(self, window: WindowOperator, key: Hashable) -> None:
        """A sliding window's result."""
        following = self._following.get(key)
        if following is not None:
            self.emit(WindowResult(key, following.query(), window.time))

    def partition_eviction(self, window: WindowOperator, partitions: Sequence[Partition]) -> None:
        """What follows a partition leaves with it."""
        for each in partitions:
            self._following.pop(each.key, None)

    # tumbling, and by event time

    def before_flush(self, window: WindowOperator, key: Hashable) -> None:
        """A tumbling window's result, where it goes by arrival."""
        if not self._by_event_time:
            self.emit(WindowResult(key, window.summarizer(key).query(), window.time))

    def before_insert(self, window: WindowOperator, key: Hashable, reading: Any) -> None:
        """A session has no summarizer but this."""
        if window.pane is not None and window.pane.summarizer is None:
            window.pane.summarizer = self._running()

    def joined(self, window: WindowOperator, key: Hashable, other: Any) -> None:
        """The earlier session is told what the later one was."""
        for time, _, reading in other.entries:
            window.summarizer(key).insert(reading, time)

    def result(self, window: WindowOperator, key: Hashable) -> None:
        """Early, revised or final."""
        pane = window.pane
        if pane is not None:
            values, extent = pane.summarizer.query(), (pane.start, pane.end)
            self.emit(WindowResult(key, values, window.time, pane.stage, *extent, pane.revision, pane.replaces))
