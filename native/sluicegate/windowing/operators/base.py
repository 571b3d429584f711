"""`Operator`: the contract for an operator over one window, the library's and the user's own. Source: 4.1.5 and 5.1.

class Longest(sg.operators.Operator):
    def before_flush(self, window, key):
        self.emit(max(window.readings(key), key=len))

longest = Longest(sg.WindowSpec(kind="tumbling", evict=sg.policies.count(3)))
longest.insert("a")  # [], until the window is full: then ["the longest"]
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from sluicegate.errors import ConfigurationError
from sluicegate.windowing.events import Clock, WindowHandler
from sluicegate.windowing.operator import WindowOperator
from sluicegate.windowing.spec import WindowSpec


class Operator(WindowHandler):
    """Overrides the events it reacts to, and calls `emit` for what it has to say; each call returns what was emitted.

    Where something raised, what had been emitted comes with the next call. Raises ConfigurationError for a window that
    the operator does not support.
    """

    def __init__(
        self, spec: WindowSpec, *, clock: Clock | None = None, summarizer: Callable[[], Any] | None = None
    ) -> None:
        reason = self.unsupported(spec)
        if reason:
            raise ConfigurationError(f"{type(self).__name__}: {reason}")
        self.window = WindowOperator(spec, self, clock, summarizer=summarizer)
        self._emitted: list[Any] = []

    def unsupported(self, spec: WindowSpec) -> str:
        """Why it cannot work with such a window; empty where it can. All windows unless overridden."""
        return ""

    def emit(self, result: Any) -> None:
        """One result, returned by the call that led to it."""
        self._emitted.append(result)

    def insert(self, reading: Any, time: int | None = None) -> list[Any]:
        """As `WindowOperator.insert`; the results."""
        self.window.insert(reading, time)
        return self.taken()

    def advance(self, to: int | None = None) -> list[Any]:
        """As `WindowOperator.advance`; the results."""
        self.window.advance(to)
        return self.taken()

    def punctuate(self) -> list[Any]:
        """As `WindowOperator.punctuate`; the results."""
        self.window.punctuate()
        return self.taken()

    def snapshot(self) -> bytes:
        """The window and what the operator keeps beside it. Raises ConfigurationError where it does not say what."""
        try:
            own = json.dumps(self.state()).encode()
        except (TypeError, ValueError) as error:
            raise ConfigurationError(
                f"snapshot: {error}; readings, keys and states have to be what JSON has"
            ) from error
        return len(own).to_bytes(8, "little") + own + self.window.snapshot()

    def restore(self, saved: bytes) -> None:
        """Go on from a snapshot of the same operator over the same definition. Raises SnapshotError."""
        size = int.from_bytes(saved[:8], "little")
        self.window.restore(saved[8 + size :])
        self.take_up(json.loads(saved[8 : 8 + size]))

    def state(self) -> Any:
        """What it keeps beside its window, of what JSON has. Raises ConfigurationError unless overridden."""
        raise ConfigurationError(f"snapshot: {type(self).__name__} does not say what it keeps: override state")

    def take_up(self, state: Any) -> None:
        """Go on from what `state` said: nothing, unless overridden."""

    def taken(self) -> list[Any]:
        """What has been emitted and not returned."""
        emitted, self._emitted = self._emitted, []
        return emitted
