"""Takes a batch of messages that are one number each, as long as their delivery says that they are new.

Their delivery alone says whether they are: each is still asked about, in its turn. All else is done once for all of
them. A message that is no number, and whatever else asks for more, is left to the pipeline's closer look.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING

from sluicegate.constants import LARGEST
from sluicegate_agent.identity import Verdict
from sluicegate_agent.identity.identities import found_of
from sluicegate_agent.messages import Message
from sluicegate_agent.payloads import decode
from sluicegate_agent.payloads.text import number_in

if TYPE_CHECKING:
    from sluicegate_agent.config import SourceConfig
    from sluicegate_agent.pipeline import Pipeline


class Numbers:
    """What a pipeline's messages with one number have in common with those before them."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    def take(self, source: SourceConfig, messages: Iterable[Message]) -> int:
        """Take messages of a source until a commit is due; how many: none where the first asks for a closer look."""
        pipeline, taken = self._pipeline, list[Message]()
        bare, clock = pipeline.identities.bare, pipeline.clock
        if pipeline.guard.is_unset() or pipeline.identities.unsure.is_open:
            return 0
        pipeline.identities.know(source, source.topic)
        times, values = array("q"), array("d")
        known: tuple[Message, int, Verdict] | None = None
        for message in islice(messages, max(1, min(pipeline.room))):
            value = None if message.retain else number_in(message.payload)
            if value is None or not abs(value) <= LARGEST:
                break
            arrival = clock()
            bare.passed(message)
            verdict = bare.check(message)
            if verdict is not Verdict.NEW:
                known = message, arrival, verdict
                break
            taken.append(message)
            times.append(arrival)
            values.append(value)
        if taken:
            pipeline.take_run(source, taken, times, [values])
        if known is not None:
            message, arrival, verdict = known
            pipeline.wait_for_commit((message,))
            decoded = decode(source, message, arrival, pipeline.config.limits)
            pipeline.judged(source, message, decoded, arrival, found_of(verdict))
        return len(taken) + (known is not None)


def may_hold(source: SourceConfig) -> bool:
    """Whether messages of a source are numbers, and nothing beside."""
    return source.format == "number"
