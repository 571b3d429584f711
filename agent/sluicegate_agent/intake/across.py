"""Takes a batch of messages of many topics, one reading each, in columns, as long as each message is a usual one.

A plant's sensors send a reading each: no two messages of one topic stand together, and what is done once for a run of
one topic would be done for each message. So what all have in common is asked once, and the values are read in columns.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from sluicegate.constants import LARGEST
from sluicegate.format.items import columns
from sluicegate_agent import faults
from sluicegate_agent.identity.verdict import content_in, form_of, said_of
from sluicegate_agent.messages import Message, Unreadable
from sluicegate_agent.payloads.documents import EARLIEST, LATEST, Plain, epoch_of, plain_paths
from sluicegate_agent.payloads.text import parse
from sluicegate_agent.routing.routes import ready_most

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluicegate_agent.config import SourceConfig
    from sluicegate_agent.identity.epoch import Epoch
    from sluicegate_agent.identity.sequences import Sequences
    from sluicegate_agent.pipeline import Pipeline

#: Topics of sources without keys that are known so, at least.
LANES_LEAST = 4096


class Lane(NamedTuple):
    """What is known of a topic whose messages may be taken so: its source, and what they say beside time and values."""

    source: SourceConfig
    plain: Plain
    form: str


class Awaited(NamedTuple):
    """A message that has the number after the one before of its topic, its run of numbers, and the epoch it names."""

    lane: Lane
    sequences: Sequences
    run: Epoch
    epoch: str | int | None


class Across:
    """What a pipeline's messages of several topics have in common; `source_of`: of one that may be taken together."""

    def __init__(self, pipeline: Pipeline, source_of: Callable[[Message], SourceConfig | None]) -> None:
        self._pipeline, self._source_of = pipeline, source_of
        self._lanes: dict[str, Lane] = {}
        self._largest = int(pipeline.config.limits.payload)
        self._most = max(LANES_LEAST, ready_most(pipeline.config))

    def forget(self) -> None:
        """A stream came or left, or whose messages may be taken so has to be asked anew."""
        self._lanes.clear()

    def take(self, messages: Sequence[Message], begin: int, most: int, first: Plain) -> tuple[int, int]:
        """Take messages from place `begin` on, at most so many, whose sources read the same parts as the first one's.

        How many, and how many were read.
        """
        awaited, documents = self._awaited(messages, begin, most, first)
        read = len(documents)
        pipeline = self._pipeline
        arrival = pipeline.clock()
        earliest, latest = pipeline.identities.unsure.after(EARLIEST), min(pipeline.guard.undisputed(arrival), LATEST)
        while documents:
            taken = columns(documents, first.time, first.scale, earliest, latest, first.paths)
            if taken is not None and taken[3] <= LARGEST:
                self._count(messages[begin : begin + len(documents)], awaited, arrival, taken[0], taken[1])
                break
            documents = documents[: len(documents) // 2]  # the one that asks for a closer look is in the other half
        return len(documents), read

    def _awaited(
        self, messages: Sequence[Message], begin: int, most: int, first: Plain
    ) -> tuple[list[Awaited], list[dict[str, Any]]]:
        """The objects of the first messages, up to one that is none, or whose number is not the next of its topic."""
        identities, lanes, largest = self._pipeline.identities, self._lanes, self._largest
        if identities.strangers.is_open or not identities.under_way.is_empty:
            lanes.clear()
        is_copied, name = identities.under_way.is_copied, first.sequence
        known: dict[str, tuple[Awaited, int]] = {}
        awaited, documents = list[Awaited](), list[dict[str, Any]]()
        try:
            for message in islice(messages, begin, begin + most):
                topic, payload = message.topic, message.payload
                lane = lanes.get(topic) or self._lane(message)
                if lane is None or message.whole or len(payload) > largest or (is_copied and message.dup):
                    break
                document = parse(payload)
                if document.__class__ is not dict or (lane.plain is not first and lane.plain != first):
                    break
                epoch = None if first.epoch is None else epoch_of(first, document)
                before = known.get(topic)
                if before is None:
                    sequences = identities.sequences.get(topic)
                    run = None if sequences is None else sequences.run_of(epoch)
                    if sequences is None or run is None:
                        break
                    who, number = Awaited(lane, sequences, run, epoch), run.awaited
                else:
                    who, number = before
                found = document.get(name)
                if found != number or found.__class__ is not int or epoch != who.epoch:
                    break
                known[topic] = who, number + 1
                awaited.append(who)
                documents.append(document)
        except (ValueError, OverflowError, RecursionError, Unreadable):
            pass  # the closer look says why
        return awaited, documents

    def _lane(self, message: Message) -> Lane | None:
        """Of a topic that is not known yet; None where its messages are not taken so."""
        source = self._source_of(message)
        plain = None if source is None or source.format != "json" else plain_paths(source)
        if source is None or plain is None:
            return None
        if len(self._lanes) >= self._most:
            self._lanes.clear()
        lane = self._lanes[message.topic] = Lane(source, plain, form_of(source.streams.items()))
        return lane

    def _count(
        self,
        messages: Sequence[Message],
        awaited: list[Awaited],
        arrival: int,
        times: array[int],
        values: list[array[float]],
    ) -> None:
        """Count messages that are new, one after the other."""
        pipeline = self._pipeline
        faults.step("accept: begin")
        pipeline.identities.bare.all_passed(messages)
        pipeline.wait_for_commit(messages)
        guard, entry, folding = pipeline.guard, pipeline.entry, pipeline.folding
        columns = said_of(times, values), times, zip(*values, strict=True)
        for message, (lane, sequences, run, _), said, time, row in zip(messages, awaited, *columns, strict=False):
            sequences.take_next(run, content_in(lane.form, said), time, comes_again=message.qos > 0)
            guard.heard(message.topic, time - arrival)
            missing = sequences.missing
            entry.heard_run(lane.source, message.topic, missing)
            folding.row(lane.source.streams, row, time, missing)
        pipeline.note("accepted", len(times) * len(values))
        faults.step("accept: end")
