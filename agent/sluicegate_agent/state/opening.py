"""How each window of a configuration is kept; what is not configured is not loaded."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Union

if TYPE_CHECKING:
    from sluicegate_agent.config import WindowConfig
    from sluicegate_agent.state.slices import StoredSlices
    from sluicegate_agent.state.windows import StoredWindow

log = logging.getLogger("sluicegate.windows")
Stored = Union["StoredWindow", "StoredSlices"]


def open_window(
    connection: sqlite3.Connection,
    stream: int,
    config: WindowConfig,
    sharing: Sequence[WindowConfig] = (),
    numbers: Iterator[int] | None = None,
) -> Stored:
    """Continue the stored window, or begin one where none has this definition; in the caller's transaction.

    `numbers`: of rows that `save` makes first, so that a new stream's windows can begin outside of a transaction.
    """
    if config.sliced:
        from sluicegate_agent.state.slices import StoredSlices

        return StoredSlices(connection, stream, config, sharing, numbers)
    if config.triggered:
        from sluicegate_agent.state.triggered import TriggeredWindow

        return TriggeredWindow(connection, stream, config, sharing, numbers)
    from sluicegate_agent.state.windows import StoredWindow

    return StoredWindow(connection, stream, config, sharing, numbers)


def begin_anew(
    connection: sqlite3.Connection, stream: int, kept: Sequence[Stored], latest: int, numbers: Iterator[int]
) -> list[Stored]:
    """The same windows, new where their time is beyond `latest`; in the caller's transaction."""
    from sluicegate_agent.state.windows import forget

    windows = list(kept)
    for place, window in enumerate(kept):
        if window.is_ahead_of(latest):
            for name in window.names:
                forget(connection, "stream = ? AND name = ?", (stream, name))
            windows[place] = open_window(connection, stream, *window.asked, numbers)
            log.warning("window %s begins anew: its time is beyond the clock and guard.future", window.name)
    return windows


def forget_others(connection: sqlite3.Connection, kept: Iterable[Stored]) -> None:
    """Delete what is stored of windows that are not among these."""
    from sluicegate_agent.state.windows import forget

    ours = {number for window in kept for number in window.numbers}
    for (number,) in connection.execute("SELECT id FROM window").fetchall():
        if number not in ours:
            forget(connection, "id = ?", (number,))
