"""One memory of what was seen for each source, by what its messages tell of themselves."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from sluicegate_agent.identity.bare import Bare
from sluicegate_agent.identity.contents import Contents
from sluicegate_agent.identity.deliveries import kept
from sluicegate_agent.identity.sequences import Allowance, Sequences
from sluicegate_agent.identity.verdict import Found, Verdict, content_of
from sluicegate_agent.messages import Decoded, Message

if TYPE_CHECKING:
    from sluicegate_agent.config import Config, SourceConfig


def epochs_in_flight(config: Config) -> int:
    """How many epochs may be kept, over all sources, because a message of theirs is on its way.

    Where sensors name theirs each message may be of another; where none does, one begins with two messages that differ
    from what was, and few do while a batch is on its way.
    """
    return 3 * config.mqtt.receive_maximum if any(source.epoch for source in config.sources) else 64


class Identities:
    """The memories of all sources; `note` counts what happens to their numbers."""

    def __init__(self, connection: sqlite3.Connection, config: Config, note: Callable[[str, int], None]) -> None:
        self.sequences: dict[str, Sequences] = {}
        self.contents: dict[str, Contents] = {}
        self._note = note
        self._horizon = max(config.identity.horizon, config.mqtt.receive_maximum)
        allowance, in_flight = Allowance(epochs_in_flight(config)), config.mqtt.receive_maximum
        for source in config.sources:
            topic = source.topic
            if source.sequence is not None:
                self.sequences[topic] = Sequences(connection, topic, self._horizon, allowance, in_flight)
            elif source.time is not None:
                self.contents[topic] = Contents(connection, topic, self._horizon, source.clock_step)
        bare = {source.topic for source in config.sources if source.sequence is None and source.time is None}
        self.bare = Bare(connection, bare, kept(config.mqtt.receive_maximum))

    def __iter__(self) -> Iterator[Sequences | Contents | Bare]:
        yield from self.sequences.values()
        yield from self.contents.values()
        yield self.bare

    def missing(self, topic: str) -> int:
        """What the numbers of a source say is lost; 0 where it has none."""
        sequences = self.sequences.get(topic)
        return sequences.missing if sequences else 0

    def missing_of_former(self, connection: sqlite3.Connection, topic: str) -> int:
        """The same of a source that the configuration may have no more."""
        return Sequences(connection, topic, self._horizon).missing if topic else 0

    def connected(self, *, session_present: bool) -> None:
        """A new connection to the broker."""
        self.bare.connected(session_present=session_present)
        for contents in self.contents.values():
            contents.connected()

    def check(self, source: SourceConfig, message: Message, decoded: Decoded) -> Found:
        """The verdict on a message, which is known from now on."""
        is_timed = source.time is not None
        if decoded.sequence is not None:
            return self._check_number(self.sequences[source.topic], message, decoded, timed=is_timed)
        if is_timed:
            return self.contents[source.topic].check(message, decoded.time_us)
        verdict = self.bare.check(message)
        return Found(Verdict.NEW, 1) if verdict is Verdict.UNDECIDABLE else Found(verdict)

    def _check_number(self, sequences: Sequences, message: Message, decoded: Decoded, *, timed: bool) -> Found:
        content, time_us = content_of(message, decoded, timed=timed), decoded.time_us if timed else None
        comes_again = message.qos > 0
        found = sequences.check(
            decoded.sequence or 0, decoded.epoch, content, time_us, comes_again=comes_again, dup=message.dup
        )
        for counter, amount in sequences.told().items():
            self._note(counter, amount)
        return found
