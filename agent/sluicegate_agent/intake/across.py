"""Takes messages of many topics that came in turn together, where each sends one and each is as it mostly is.

A plant's sensors send a reading each: no two messages of one topic stand together, and what is done once for a run of
one topic would be done for each message. So what all have in common is asked once, and the values are read in columns.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sluicegate.constants import LARGEST
from sluicegate.format.items import columns
from sluicegate_agent import faults
from sluicegate_agent.identity.verdict import content_in, form_of
from sluicegate_agent.messages import Message, Unreadable
from sluicegate_agent.payloads.documents import EARLIEST, LATEST, Plain, epoch_of
from sluicegate_agent.payloads.text import parse

if TYPE_CHECKING:
    from sluicegate_agent.config import SourceConfig
    from sluicegate_agent.identity.sequences import Sequences
    from sluicegate_agent.pipeline import Pipeline

Epoch = str | int | None
#: As many as sources are kept ready.
FORMS_MOST = 4096


class Asked(NamedTuple):
    """Whose message it is, its memory, and the epoch that it names."""

    source: SourceConfig
    sequences: Sequences
    epoch: Epoch


class Across:
    """What a pipeline's messages of several topics have in common."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        #: By what messages of a source say beside time and values, so that it is made once a source.
        self._forms: dict[tuple[tuple[str, str], ...], str] = {}

    def take(self, messages: Sequence[Message], found: Sequence[tuple[SourceConfig, Plain]]) -> tuple[int, int]:
        """Take the first of these messages, whose sources read the same parts; how many, and how many were read."""
        asked, documents = self._awaited(messages, found)
        read, plain = len(documents), found[0][1]
        pipeline = self._pipeline
        arrival = pipeline.clock()
        earliest, latest = pipeline.identities.unsure.after(EARLIEST), min(pipeline.guard.undisputed(arrival), LATEST)
        while documents:
            taken = columns(documents, plain.time, plain.scale, earliest, latest, plain.paths)
            if taken is not None and taken[3] <= LARGEST:
                self._count(messages[: len(documents)], asked, found, arrival, taken[0], taken[1])
                break
            documents = documents[: len(documents) // 2]  # the one that asks for a closer look is in the other half
        return len(documents), read

    def _awaited(
        self, messages: Sequence[Message], found: Sequence[tuple[SourceConfig, Plain]]
    ) -> tuple[list[Asked], list[dict[str, Any]]]:
        """The objects of the first messages, up to one that is none, or whose number is not the next of its topic."""
        known: dict[str, tuple[Asked, int]] = {}
        asked, documents = list[Asked](), list[dict[str, Any]]()
        try:
            for message, (source, plain) in zip(messages, found, strict=True):
                document = parse(message.payload)
                if document.__class__ is not dict:
                    break
                epoch, before = epoch_of(plain, document), known.get(message.topic)
                who, awaited = before or self._first(message.topic, source, epoch)
                number = document.get(plain.sequence)
                if awaited is None or number != awaited or number.__class__ is not int or epoch != who.epoch:
                    break
                known[message.topic] = who, number + 1
                asked.append(who)
                documents.append(document)
        except (ValueError, OverflowError, RecursionError, Unreadable):
            pass  # the closer look says why
        return asked, documents

    def _first(self, topic: str, source: SourceConfig, epoch: Epoch) -> tuple[Asked, int | None]:
        """A topic's memory, and the number that goes on with it; None where that takes a closer look."""
        sequences = self._pipeline.identities.sequences[topic]
        return Asked(source, sequences, epoch), sequences.awaited(epoch)

    def _count(
        self,
        messages: Sequence[Message],
        asked: list[Asked],
        found: Sequence[tuple[SourceConfig, Plain]],
        arrival: int,
        times: array[int],
        values: list[array[float]],
    ) -> None:
        """Count messages that are new, one after the other."""
        pipeline = self._pipeline
        faults.step("accept: begin")
        pipeline.identities.bare.all_passed(messages)
        pipeline.wait_for_commit(messages)
        rows = zip(*values, strict=True)
        for message, (source, sequences, epoch), (_, plain), time, row in zip(
            messages, asked, found, times, rows, strict=False
        ):
            content = content_in(self._form(plain), time, row)
            sequences.take_next(epoch, content, time, comes_again=message.qos > 0)
            pipeline.guard.heard(message.topic, time - arrival)
            missing = sequences.missing
            pipeline.entry.heard_run(source, missing)
            pipeline.folding.row(source.streams, row, time, missing)
        pipeline.note("accepted", len(times) * len(values))
        faults.step("accept: end")

    def _form(self, plain: Plain) -> str:
        form = self._forms.get(plain.streams)
        if form is None:
            if len(self._forms) >= FORMS_MOST:
                self._forms.clear()
            form = self._forms[plain.streams] = form_of(plain.streams)
        return form
