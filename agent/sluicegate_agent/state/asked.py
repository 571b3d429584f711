"""Gives each stream its windows by name: those kept from before, and those of streams that begin now."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from sluicegate_agent.record.recovery import lose_history
from sluicegate_agent.state.opening import Stored, begin_anew, forget_others, open_window
from sluicegate_agent.streams import Stream

if TYPE_CHECKING:
    from sluicegate_agent.config import Config
    from sluicegate_agent.doubts import Doubts
    from sluicegate_agent.state import State


class Asked(dict[str, list[Stored]]):
    """Windows by stream; `numbers` are of rows that a commit makes first."""

    def __init__(self, connection: sqlite3.Connection, config: Config, state: State) -> None:
        """Continue those of the store, in the caller's transaction; what is asked no more is forgotten."""
        super().__init__()
        self.config = config
        for name, stream in state.streams.items():
            if config.feeds(name):
                kept = config.kept_of(name)
                self[name] = [
                    open_window(connection, stream.number, each, config.sharing(name, each.name)) for each in kept
                ]
                if stream.accepted and (begun := [each for each in self[name] if each.is_begun]):
                    lose_history(connection, stream, [each for window in begun for each in window.names])
        state.counters.add("windows.begun_anew", sum(window.begun_anew for window in self.all()))
        forget_others(connection, self.all())
        newest = connection.execute("SELECT coalesce(max(id), 0) FROM window").fetchone()[0]
        self.numbers = itertools.count(1 + int(newest))

    def all(self) -> Iterator[Stored]:
        """Every window of every stream."""
        return itertools.chain.from_iterable(self.values())

    def begin(self, connection: sqlite3.Connection, stream: Stream) -> None:
        """Those of a stream that was not there; the commit of its first reading writes them."""
        sharing = partial(self.config.sharing, stream.name)
        self[stream.name] = [
            open_window(connection, stream.number, each, sharing(each.name), self.numbers)
            for each in self.config.kept_of(stream.name)
        ]

    def begin_anew(self, state: State, name: str, latest: int, doubts: Doubts) -> int:
        """Begin those of a stream anew whose time is beyond `latest`, in a transaction; how many names that were.

        What came up to now is not in them: `doubts` are told.
        """
        kept, stream = self[name], state.streams[name]
        with state.transaction() as connection:
            begun = begin_anew(connection, stream.number, kept, latest, self.numbers)
            names = [each for old, new in zip(kept, begun, strict=True) if old is not new for each in old.names]
            doubts.lose(stream.accepted, latest, names)
            doubts.save(connection, stream.number)
        self[name] = begun
        return len(names)

    def squeeze(self, limit: Callable[[int], int]) -> bool:
        """Let each with a bound keep at most limit(its buckets) from now on; whether that is a change."""
        return sum(bool(each.buckets and each.squeeze(limit(each.buckets))) for each in self.all()) > 0

    def renumber(self, name: str, number: int) -> None:
        """A stream goes on under another number."""
        for window in self[name]:
            window.belongs_to(number)


def close_retired(config: Config, state: State) -> None:
    """Streams that the configuration has no more: their open buckets close, and are sent like any others."""
    for name, stream in state.streams.items():
        if not config.feeds(name):
            stream.close()
