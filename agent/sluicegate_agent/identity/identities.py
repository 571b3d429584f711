"""One memory of what was seen for each source, by what its messages tell of themselves."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from sluicegate_agent.config.inputs import BUILT_IN, MQTT
from sluicegate_agent.identity.allowance import Allowance
from sluicegate_agent.identity.bare import Bare
from sluicegate_agent.identity.contents import Contents
from sluicegate_agent.identity.deliveries import kept
from sluicegate_agent.identity.posted import Posted
from sluicegate_agent.identity.said import forget_what_is_read_otherwise
from sluicegate_agent.identity.sequences import Sequences
from sluicegate_agent.identity.strangers import Strangers
from sluicegate_agent.identity.under_way import UnderWay
from sluicegate_agent.identity.unsure import Unsure
from sluicegate_agent.identity.verdict import Found, Verdict, content_of, digest_of
from sluicegate_agent.messages import Decoded, Message

if TYPE_CHECKING:
    from sluicegate_agent.config import Config, SourceConfig


def epochs_in_flight(config: Config) -> int:
    """How many epochs may be kept, over all sources, because a message of theirs is on its way.

    Where sensors name theirs each message may be of another; where none does, one begins with two messages that differ
    from what was, and few do while a batch is on its way.
    """
    return 3 * config.mqtt.receive_maximum if any(source.epoch for source in config.sources) else 64


#: Inputs that say themselves what may come again.
KNOWN = frozenset({MQTT, *BUILT_IN})


def comes_until_acknowledged(source: SourceConfig, message: Message) -> bool:
    """Whether a message comes again until it is acknowledged."""
    return message.qos > 0 or source.input not in KNOWN


def is_bare(source: SourceConfig) -> bool:
    """Whether its messages have neither number nor time."""
    return source.sequence is None and source.time is None


def found_of(verdict: Verdict) -> Found:
    """What a verdict on a message of a bare topic comes to: what cannot be decided counts, in doubt."""
    return Found(Verdict.NEW, 1) if verdict is Verdict.UNDECIDABLE else Found(verdict)


class Identities:
    """The memories of all sources; `note` counts what happens to their numbers."""

    def __init__(
        self, connection: sqlite3.Connection, config: Config, note: Callable[[str, int], None], until_us: int
    ) -> None:
        """`until_us`: no message that was counted has a later time."""
        self.sequences: dict[str, Sequences] = {}
        self.contents: dict[str, Contents] = {}
        self.posted: Posted | None = None
        self._connection, self._note = connection, note
        self._generation = 0
        self._in_flight = config.mqtt.receive_maximum
        self._horizon = max(config.identity.horizon, self._in_flight)
        self._allowance = Allowance(epochs_in_flight(config))
        self.bare = Bare(connection, set(), kept(self._in_flight))
        senders = sum(source.keys.most if source.is_plant else 1 for source in config.sources)
        self.unsure = Unsure(connection, kept(self._in_flight), self._horizon * senders)
        self.strangers = Strangers(connection)
        self.under_way = UnderWay(connection, config, kept(self._in_flight), until_us)
        self._fixed = {source.topic for source in config.sources if not source.is_plant}
        self.bare.is_asked = any(is_bare(source) for source in config.sources)
        forget_what_is_read_otherwise(connection, config, self._horizon_of)
        for source in config.sources:
            if not source.is_plant:
                self.know(source, source.topic)

    def know(self, source: SourceConfig, sender: str) -> None:
        """Have the memory of a sender ready: of the topic of a source, or of topic and key."""
        if source.sequence is not None:
            if sender not in self.sequences:
                place = self._connection, sender, self._horizon_of(source), self._allowance, self._in_flight
                self.sequences[sender] = Sequences(*place, width=8 if source.format == "sparkplug" else 0)
                self.sequences[sender].committed(self._generation)
        elif source.time is not None:
            if sender not in self.contents:
                horizon = self._horizon_of(source)
                self.contents[sender] = Contents(self._connection, sender, horizon, source.clock_step)
        elif source.topic not in self.bare.topics:
            self.bare.heard(self._connection, source.topic)

    def _horizon_of(self, source: SourceConfig) -> int:
        return max(source.horizon or self._horizon, self._in_flight)

    def put_away(self, sender: str) -> bool:
        """Let the memory of a sender go: it is durable, and read again when the sender is heard of.

        False where a message of it waits for a second one.
        """
        sequences = self.sequences.get(sender)
        if sequences is not None and not sequences.put_away():
            return False
        self.sequences.pop(sender, None)
        self.contents.pop(sender, None)
        self.bare.forget(sender)
        return True

    def put_away_silent(self, senders: Iterable[str], since: float) -> bool:
        """The same of those that said nothing since this monotonic second; whether there were any."""
        found = False
        for sender in senders:
            kept = self.sequences.get(sender) or self.contents.get(sender)
            if kept is not None and kept.heard_at < since:
                found |= self.put_away(sender)
        return found

    def __iter__(self) -> Iterator[Sequences | Contents | Bare | Unsure | UnderWay | Posted]:
        yield from self.sequences.values()
        yield from self.contents.values()
        if self.posted:
            yield self.posted
        yield self.bare
        yield self.unsure
        yield self.under_way

    def touched(self) -> Iterator[Sequences | Contents | Bare | Unsure | UnderWay | Posted]:
        """Those that may have something to save: of many sources a commit's messages are of few."""
        yield from (each for each in self.sequences.values() if each.touched)
        yield from (each for each in self.contents.values() if each.touched)
        if self.posted and self.posted.touched:
            yield self.posted
        yield self.bare
        yield self.unsure
        yield self.under_way

    def committed(self, generation: int) -> None:
        """The commit just made has this number."""
        self._generation = generation
        for sequences in self.sequences.values():
            sequences.committed(generation)
        self.bare.committed(generation)
        self.strangers.committed(generation)

    def confirmed(self, generation: int) -> None:
        """The broker knows the messages of commit number `generation`, and of those before, to be acknowledged."""
        for sequences in self.sequences.values():
            if sequences.unconfirmed:
                sequences.confirmed(generation)
        self.bare.confirmed(generation)
        self.strangers.confirmed(generation)

    def missing(self, sender: str) -> int:
        """How many numbers of a sender were passed over so far; 0 where it has none."""
        sequences = self.sequences.get(sender)
        return sequences.missing if sequences else 0

    def tally(self, sender: str, number: int | None) -> int:
        """What a sender's message that is counted says of losses (`tally`), by its number; 0 where it has none."""
        sequences = self.sequences.get(sender)
        return sequences.tally(number) if sequences else 0

    def missing_of_former(self, connection: sqlite3.Connection, topic: str) -> int:
        """The same of a source that the configuration may have no more."""
        return Sequences(connection, topic, self._horizon).missing if topic else 0

    def connected(self, *, session_present: bool) -> None:
        """A new connection to the broker."""
        self.bare.connected(session_present=session_present)
        self.strangers.connected(session_present=session_present)
        for contents in self.contents.values():
            contents.connected()

    def check(self, source: SourceConfig, message: Message, decoded: Decoded, *, is_new: bool = False) -> Found:
        """The verdict on a message, which is known from now on; `is_new`: the caller knows that it was not counted."""
        found = Found(Verdict.NEW) if is_new else self._found(source, message, decoded)
        if found.verdict is Verdict.NEW:
            doubt = self.unsure.of_file if is_new else self.unsure.doubt
            is_strange = self._is_strange(source, message, decoded.source)
            may_repeat = self.under_way.doubt(source, message, decoded)
            if doubt(decoded.time_us if source.time is not None else None) or is_strange or may_repeat:
                found = found._replace(doubt=1)
        return found

    def _is_strange(self, source: SourceConfig, message: Message, sender: str) -> bool:
        """Whether what looks new may have counted before its sender, or its epoch, was forgotten."""
        is_fixed, unanswered = sender in self._fixed, self.bare.unanswered
        if not is_fixed and self.strangers.doubt(message, sender):
            return True
        may_be_forgotten = not is_fixed or source.epoch is not None
        is_posted = bool(unanswered) and may_be_forgotten and not message.qos
        return is_posted and unanswered.take(message, digest_of(message))

    def _found(self, source: SourceConfig, message: Message, decoded: Decoded) -> Found:
        is_timed, sender = source.time is not None, decoded.source
        if sender not in self.sequences and sender not in self.contents:
            self.know(source, sender)
        if decoded.sequence is not None:
            return self._check_number(source, message, decoded, timed=is_timed)
        if is_timed:
            # Of an input that others added nothing says whether it hands out again what it did before.
            may_be_copy = source.input not in KNOWN or self.bare.copies.may_be(message)
            return self.contents[sender].check(message, decoded.time_us, may_be_copy=may_be_copy)
        return found_of(self.bare.check(message))

    def knows(self, source: SourceConfig, message: Message, decoded: Decoded) -> bool:
        """Whether a message with a number was counted before; nothing is marked."""
        self.know(source, decoded.source)
        content = content_of(message, decoded, timed=source.time is not None)
        return self.sequences[decoded.source].knows(decoded.sequence or 0, decoded.epoch, content)

    def _check_number(self, source: SourceConfig, message: Message, decoded: Decoded, *, timed: bool) -> Found:
        sequences = self.sequences[decoded.source]
        content, time_us = content_of(message, decoded, timed=timed), decoded.time_us if timed else None
        number, comes_again = decoded.sequence or 0, comes_until_acknowledged(source, message)
        if decoded.epoch is not None and sequences.knows(number, None, content, fresh=True):
            return Found(Verdict.DUPLICATE)  # it counted before the configuration named epochs
        found = sequences.check(number, decoded.epoch, content, time_us, comes_again=comes_again, dup=message.dup)
        if told := sequences.told():
            for counter, amount in told.items():
                self._note(counter, amount)
        return found
