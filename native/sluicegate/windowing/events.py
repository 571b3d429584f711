"""What a window tells its operator: handlers of events and summarizers. Source: SPL's windowing library, 4.1.3, 4.1.6.

A handler overrides the events it wants; those that it does not override are not delivered and cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from sluicegate.errors import ConfigurationError

if TYPE_CHECKING:
    from sluicegate.windowing.event_time import Pane
    from sluicegate.windowing.operator import WindowOperator
    from sluicegate.windowing.partitions import Partition


class WindowHandler:
    """The events of a window, none of them handled. `key` is the partition's, None where the window has no key.

    Inside an event `window.readings(key)` are what the window then holds, oldest first, and `window.now` is the time at
    which the event was due. A handler that never asks for readings sets `keeps_readings` to False: the window then
    keeps no more than its policies need.
    """

    keeps_readings: bool = True

    def before_insert(self, window: WindowOperator, key: Hashable, reading: Any) -> None:
        """The reading is about to enter (tumbling and sliding)."""

    def after_insert(self, window: WindowOperator, key: Hashable, reading: Any) -> None:
        """The reading is in (tumbling and sliding)."""

    def before_flush(self, window: WindowOperator, key: Hashable) -> None:
        """A tumbling window is full and still holds its readings: this is where it is processed."""

    def after_flush(self, window: WindowOperator, key: Hashable) -> None:
        """A tumbling window has been emptied."""

    def before_evict(self, window: WindowOperator, key: Hashable, reading: Any) -> None:
        """The oldest reading is about to leave a sliding window."""

    def after_evict(self, window: WindowOperator, key: Hashable, reading: Any) -> None:
        """The oldest reading has left a sliding window."""

    def trigger(self, window: WindowOperator, key: Hashable) -> None:
        """A sliding window is to be processed."""

    def initial_full(self, window: WindowOperator, key: Hashable) -> None:
        """A sliding window is full for the first time."""

    def partition_eviction(self, window: WindowOperator, partitions: Sequence[Partition]) -> None:
        """These partitions are about to leave, with all that they hold."""

    def partition_selection(self, window: WindowOperator, partitions: Iterable[Partition]) -> Iterable[Hashable]:
        """Choose at least one: the keys of the partitions that leave. Asked where `select` is "user"."""
        raise NotImplementedError

    def joined(self, window: WindowOperator, key: Hashable, other: Pane) -> None:
        """A late reading fills the pause between two sessions: `window.pane` now holds what `other` held."""

    def result(self, window: WindowOperator, key: Hashable) -> None:
        """A window by event time gives a result: `window.pane` says of which window, and whether it is final."""


class WindowSummarizer:
    """What a tumbling window keeps in place of its readings: one for each window of each partition (4.1.6)."""

    def open(self, key: Hashable) -> None:
        """The window has been made, and this summarizer with it."""

    def insert(self, reading: Any, time: int) -> None:
        """The reading enters the window, which does not keep it. `time`: of arrival, or its own by event time."""

    def close(self) -> None:
        """The window has been processed, or its partition leaves; this summarizer goes with it."""

    def state(self) -> Any:
        """What a snapshot keeps of it, of what JSON has. Raises ConfigurationError unless overridden."""
        raise ConfigurationError(f"snapshot: {type(self).__name__} does not say what to keep of it: override state")

    def take_up(self, state: Any) -> None:
        """Go on from `state`; called instead of `open`."""
        raise ConfigurationError(f"restore: {type(self).__name__} takes nothing up: override take_up")


class Clock(Protocol):
    """What time it is in µs."""

    def __call__(self) -> int:
        """Now."""


def registered(handler: Any, event: str) -> Callable[..., Any] | None:
    """The handler's own method for an event; None where it has none, or only the empty one of `WindowHandler`."""
    method = getattr(handler, event, None)
    if method is None or getattr(method, "__func__", None) is getattr(WindowHandler, event):
        return None
    return method  # type: ignore[no-any-return]
