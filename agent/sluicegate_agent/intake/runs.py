"""Takes a batch of messages of one topic in columns, up to the first message that is not a usual one.

As it mostly is: an object of numbers with a time of its own, which has the number after the one before; or a list of
objects with times, known by what it says (`lists`); or a number alone (`numbers`). All are read into columns, known as
new and folded at once, in the order in which they came. Whatever asks for more is left to the pipeline's closer look,
message by message: the first message that does ends the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from sluicegate.constants import LARGEST
from sluicegate.format.items import columns, run_length
from sluicegate_agent.identity.identities import comes_until_acknowledged
from sluicegate_agent.identity.verdict import contents_of
from sluicegate_agent.intake import across, lists, numbers
from sluicegate_agent.messages import Message, Unreadable
from sluicegate_agent.payloads.documents import EARLIEST, LATEST, epoch_of, plain_paths
from sluicegate_agent.payloads.text import parse

if TYPE_CHECKING:
    from sluicegate_agent.config import SourceConfig
    from sluicegate_agent.pipeline import Pipeline


#: By how much more is read at once after a run of which all was taken, and the most messages that are.
_GROWTH, _LONGEST = 8, 1 << 16


class Runs:
    """What a pipeline's messages have in common with those before them."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline, self._lists, self._numbers = pipeline, lists.Lists(pipeline), numbers.Numbers(pipeline)
        self.across = across.Across(pipeline, self._source)
        self._most = int(pipeline.config.limits.payload)
        #: Messages to read at once. What stands behind one that ends a run is read again, so after it few are.
        self._ahead = _LONGEST

    def take(self, messages: Sequence[Message], begin: int) -> int:
        """Take messages from place `begin` on; how many were taken: none where that one asks for a closer look."""
        taken, read = self._take(messages, begin)
        if read:
            self._ahead = min(self._ahead * _GROWTH, _LONGEST) if taken == read else max(1, taken)
        return taken

    def _take(self, messages: Sequence[Message], begin: int) -> tuple[int, int]:
        """How many were taken, and how many were read for it."""
        pipeline = self._pipeline
        source = self._source(messages[begin])
        if source is None or len(pipeline.waiting_room.held):
            return 0, 0
        if numbers.may_hold(source):
            return self._numbers.take(source, self._alike(messages, begin)), 0
        plain = plain_paths(source)
        if plain is None or not plain.is_numbered:
            return 0, 0
        if lists.may_hold(source):
            return self._lists.take(source, plain, self._alike(messages, begin)), 0
        if plain.sequence is None or plain.time is None:
            return 0, 0
        most = min(self._ahead, self._room(len(plain.paths)))
        if begin + 1 < len(messages) and messages[begin + 1].topic != messages[begin].topic:
            return self.across.take(messages, begin, most, plain)
        documents = self._documents(messages, begin, most)
        read = len(documents)
        sequences = pipeline.identities.sequences.get(source.topic)
        if not documents or sequences is None:
            return 0, read
        try:
            epoch = epoch_of(plain, documents[0])
        except Unreadable:
            return 0, read
        series = sequences.run_of(epoch)
        if series is None:
            return 0, read
        arrival = pipeline.clock()
        earliest, latest = pipeline.identities.unsure.after(EARLIEST), min(pipeline.guard.undisputed(arrival), LATEST)
        run = documents[: run_length(documents, plain.sequence, series.awaited, plain.epoch, epoch)]
        found = columns(run, plain.time, plain.scale, earliest, latest, plain.paths) if run else None
        if found is None or found[3] > LARGEST:
            return 0, read
        times, values, taken = found[0], found[1], messages[begin : begin + len(run)]
        contents = contents_of(source.streams.items(), times, values)
        sequences.take_run(series, contents, times[-1], comes_again=comes_until_acknowledged(source, taken[0]))
        pipeline.guard.heard(source.topic, times[-1] - arrival)
        pipeline.identities.bare.all_passed(taken)
        pipeline.take_run(source, taken, times, values)
        return len(run), read

    def _source(self, message: Message) -> SourceConfig | None:
        """The source of a message, where its messages may be taken together."""
        entry = self._pipeline.entry
        try:
            source = entry.routes.find(message.topic)
        except Unreadable:
            return None
        if source is None or entry.shaping or not entry.is_ready(source):
            return None
        identities, is_posted = self._pipeline.identities, message.packet_id > 0 and not message.qos
        if identities.under_way.holds(source) or (is_posted and identities.bare.unanswered):
            return None
        return source if source.format == "json" or numbers.may_hold(source) or lists.may_hold(source) else None

    def _room(self, readings: int) -> int:
        """How many messages of so many readings the open batch takes before its commit is due, at least one."""
        messages, left = self._pipeline.room
        return max(1, min(messages, left // readings))

    def _alike(self, messages: Sequence[Message], begin: int) -> Iterator[Message]:
        """The message at place `begin` and those after it, up to one of another topic or too large."""
        topic, qos = messages[begin].topic, messages[begin].qos
        is_copied = self._pipeline.identities.under_way.is_copied
        for message in islice(messages, begin, None):
            if message.topic != topic or message.qos != qos or message.whole or len(message.payload) > self._most:
                return
            if is_copied and message.dup:
                return
            yield message

    def _documents(self, messages: Sequence[Message], begin: int, most: int) -> list[dict[str, Any]]:
        """The objects of such messages, at most so many, up to one that is no JSON object."""
        found: list[dict[str, Any]] = []
        try:
            for message in islice(self._alike(messages, begin), most):
                document = parse(message.payload)
                if document.__class__ is not dict:
                    break
                found.append(document)
        except (ValueError, OverflowError, RecursionError):
            pass  # the closer look says why
        return found
