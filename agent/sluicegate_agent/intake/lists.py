"""Takes a batch of messages that each hold a plain list of readings, in columns.

Plain is an array of objects with a number under the time and under each stream's path. Such a message is known by
its content; one that was said before, and whatever else asks for more, is left to the pipeline's closer look.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

from sluicegate.constants import LARGEST
from sluicegate.format.items import columns
from sluicegate_agent.messages import Message
from sluicegate_agent.payloads.documents import EARLIEST, LATEST, Plain
from sluicegate_agent.payloads.text import parse

if TYPE_CHECKING:
    from sluicegate_agent.config import SourceConfig
    from sluicegate_agent.pipeline import Pipeline


class Lists:
    """What a pipeline's messages with lists have in common with those before them."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    def take(self, source: SourceConfig, plain: Plain, messages: Iterable[Message]) -> int:
        """Take messages of a source until a commit is due; how many: none where the first asks for a closer look."""
        pipeline, taken = self._pipeline, list[Message]()
        contents = pipeline.identities.contents.get(source.topic)
        if contents is None or plain.time is None:
            return 0
        arrival = pipeline.clock()
        earliest = pipeline.identities.unsure.after(EARLIEST)
        latest = min(pipeline.guard.undisputed(arrival), LATEST)
        most = pipeline.config.limits.readings // len(plain.paths)
        times, values = array("q"), [array("d") for _ in plain.paths]
        room, readings = pipeline.room
        for message in islice(messages, max(1, room)):
            items = _items(message.payload, most)
            found = columns(items, plain.time, plain.scale, earliest, latest, plain.paths) if items else None
            if found is None or found[3] > LARGEST or not contents.take_new(message, found[0][0]):
                break
            taken.append(message)
            pipeline.guard.heard(source.topic, found[0][0] - arrival)
            times += found[0]
            for column, more in zip(values, found[1], strict=True):
                column += more
            if len(times) * len(values) >= readings:
                break
        if taken:
            pipeline.identities.bare.all_passed(taken)
            pipeline.take_run(source, taken, times, values)
        return len(taken)


def _items(payload: bytes, most: int) -> list[Any] | None:
    """What a JSON array holds, at most so many; None for anything else."""
    try:
        found = parse(payload)
    except (ValueError, OverflowError, RecursionError):
        return None  # the closer look says why
    return found if found.__class__ is list and len(found) <= most else None


def may_hold(source: SourceConfig) -> bool:
    """Whether messages of a source are lists that may be plain: JSON, with times, known by their contents."""
    return source.format == "array" and not source.items and source.time is not None and source.sequence is None
