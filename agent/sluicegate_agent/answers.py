"""Makes the answer messages of one window: value and interval at a stated time, and how many readings are in doubt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluicegate_agent.doubts import Doubts, opened, widened
from sluicegate_agent.messages import Result, plain
from sluicegate_agent.state.windows import StoredWindow

if TYPE_CHECKING:
    from sluicegate_agent.config import WindowConfig
    from sluicegate_agent.state.opening import Stored
    from sluicegate_agent.streams import Stream


def answers_of(stream: Stream, asked: WindowConfig, stored: Stored, doubts: Doubts | None) -> list[Result]:
    """One result an aggregate; none before the stream's first reading. `stored` may share its buckets with others.

    Of windows that say by themselves when they answer: what they said since the last call.
    """
    newest = stream.builder
    if newest is None:
        return []
    if not isinstance(stored, StoredWindow) or asked.triggered:
        return list(stored.results(stream, doubts))
    return answers_at(stream.name, asked, stored, doubts, newest.next - 1, newest.newest or 0)


def answers_at(
    stream: str, asked: WindowConfig, stored: StoredWindow, doubts: Doubts | None, ordinal: int, newest: int
) -> list[Result]:
    """One result an aggregate, as of the reading of this ordinal, the newest so far being of this time."""
    name, time_us = asked.name, stored.time_of(newest)
    answers, size = stored.told(name)
    doubt = doubts.within(asked, ordinal + 1, time_us) if doubts else None
    lacks = doubts is not None and doubts.lacks_within(asked, ordinal + 1, time_us)
    found = []
    for aggregate, (value, low, high, exact) in answers.items():
        told = plain(value), plain(low), plain(high), exact
        if doubt:
            told = widened(aggregate, told, asked, size[0], doubt)
        if lacks:
            told = opened(aggregate, told, asked)
        found.append(Result(stream, name, aggregate, ordinal, time_us, *told, *size, doubt.n if doubt else 0))
    return found
