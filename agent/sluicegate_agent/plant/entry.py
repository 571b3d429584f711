"""Lets in a stream that is heard of for the first time: room for its key, its tags, and which key leaves for it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Protocol

from sluicegate_agent.checksums import LEFT, LOST, keep_time, kept_time
from sluicegate_agent.config.formats import Session, payload_of
from sluicegate_agent.config.sources import SourceConfig
from sluicegate_agent.doubts import Doubts
from sluicegate_agent.identity import tally
from sluicegate_agent.identity.clock import Guard
from sluicegate_agent.identity.identities import Identities, is_bare
from sluicegate_agent.identity.returned import Returned
from sluicegate_agent.messages import Columns, Decoded, Message, NotAsked, Unreadable
from sluicegate_agent.payloads import decode, parts_of
from sluicegate_agent.plant.members import Members
from sluicegate_agent.plant.senders import Senders
from sluicegate_agent.plant.shaping import Shaping
from sluicegate_agent.routing.routes import Route, Routes
from sluicegate_agent.state.asked import Asked
from sluicegate_agent.state.windows import forget
from sluicegate_agent.streams import Stream

if TYPE_CHECKING:
    from sluicegate_agent.config import Config
    from sluicegate_agent.state import State


class House(Protocol):
    """What the pipeline does for a stream that comes or goes."""

    windows: Asked
    doubts: dict[str, Doubts]

    def open(self, stream: Stream) -> None:
        """Begin its windows."""

    def shut(self, name: str) -> None:
        """Let go of all that is kept beside it."""

    def note(self, counter: str, amount: int = 1) -> None:
        """Count an event."""

    def refuse(self, message: Message, arrival: int, counter: str, reason: str) -> None:
        """Count it, and keep its beginning."""


class Kept(Protocol):
    """What is written with each commit."""

    @property
    def changed(self) -> bool:
        """Whether anything waits for it."""

    def save(self, connection: sqlite3.Connection) -> None:
        """Write it, inside the caller's transaction."""

    def saved(self) -> None:
        """The transaction is durable."""


def as_it_is(route: SourceConfig | None, stream: str, decoded: Decoded, missing: int) -> str:
    """In place of `Entry.admit` for a stream of the configuration, which needs no room made."""
    return ""


Reading = tuple[str, int, float]


class Entry:
    """The streams by key of one pipeline, and whose messages feed them."""

    def __init__(self, config: Config, state: State, identities: Identities, guard: Guard, house: House) -> None:
        self.config, self.state, self.identities, self.house = config, state, identities, house
        self.routes = Routes(config)
        self.members = Members(config, state.streams.values(), self._leave)
        self.senders = Senders(state.store.connection, config, identities)
        self._guard = guard
        self._sessions = self._sessions_of(config)
        self.shaping = Shaping(state.store.connection, config, house.note)
        #: What is written with each commit.
        self.kept: list[Kept] = [self.shaping, *self._sessions.values()]
        self._fixed = {source.topic for source in config.sources if not source.is_plant}
        self._timed = sum(source.time is not None for source in config.sources if not source.is_plant)
        self._some = any(source.time is not None for source in config.plants)
        self._count_timed()
        self._left_until = kept_time(state.store.connection, LEFT)
        self._before: tuple[str, int, int | None] = ("", 0, None)
        self._lost_until = kept_time(state.store.connection, LOST)

    def _count_timed(self) -> None:
        """Tell the guard how many have times of their own: one alone moves no clock."""
        self._guard.sources = self._timed + self._some * len(self.senders)

    def source(self, message: Message) -> SourceConfig:
        """The source that reads a message. Raises NotAsked, NotLetIn."""
        source = self.routes.find(message.topic)
        if source is None:
            raise NotAsked("no [[source]] has this topic")
        if is_bare(source):
            self.identities.know(source, source.topic)
        return source

    def _sessions_of(self, config: Config) -> dict[str, Session]:
        """Of formats whose messages need what was said before."""
        found = {}
        for name in dict.fromkeys(source.format for source in config.sources):
            if make := payload_of(name).session:
                asked = [source for source in config.sources if source.format == name]
                found[name] = make(self.state.store.connection, asked, self)
        return found

    def parts(self, source: SourceConfig, message: Message) -> Iterable[Message]:
        """The messages in a message, each to be judged for itself. Raises Unreadable."""
        if session := self._sessions.get(source.format):
            resolved = session.resolve(source, message, self.config.limits)
            return () if resolved is None else (resolved,)
        return parts_of(source, message, self.config.limits)

    # what a session asks

    def known(self, source: SourceConfig, message: Message) -> bool:
        """Whether a message with a number was counted before."""
        try:
            decoded = decode(source, message, 0, self.config.limits)
        except Unreadable:
            return False
        return self.identities.knows(source, message, decoded)

    def newest(self, stream: str) -> int | None:
        """The time of a stream's newest reading, µs; None before the first."""
        found = self.state.streams.get(stream)
        return found.builder.newest if found and found.builder else None

    def note(self, counter: str, amount: int = 1) -> None:
        """Count an event."""
        self.house.note(counter, amount)

    def connected(self, *, session_present: bool) -> None:
        """A new connection to the broker."""
        self.identities.connected(session_present=session_present)
        for session in self._sessions.values():
            session.connected(session_present=session_present)

    def command(self, publish: Callable[[str, bytes], bool]) -> None:
        """Publish what sessions ask of senders."""
        for session in self._sessions.values():
            session.commands(publish)

    # messages

    def heard(self, source: SourceConfig, decoded: Decoded) -> str:
        """A message came of a source whose streams come as they are heard of: why none of it can count, if so."""
        if not isinstance(source, Route) or not source.is_member:
            return ""
        if why := self._why_none(source, decoded):
            self.let_go(source.topic)
            return why
        if self.senders.heard(source.topic if is_bare(source) else decoded.source):
            self._count_timed()
        self.identities.know(source, decoded.source)
        if source.sequence is not None and decoded.readings and decoded.readings[0][0] not in self.state.streams:
            sequences = self.identities.sequences.get(decoded.source)
            run = sequences.run_of(decoded.epoch) if sequences else None
            self._before = decoded.source, self.identities.missing(decoded.source), run.high_time if run else None
        return ""

    def _why_none(self, route: Route, decoded: Decoded) -> str:
        """Why a message has no stream that exists or may begin; empty where it has one."""
        there, readings = self.state.streams, decoded.readings
        if not readings or readings[0][0] in there:
            return ""
        streams = dict.fromkeys(stream for stream, _, _ in readings)
        if any(stream in there or not self.members.is_full_for(route, stream) for stream in streams):
            return ""
        return self.members.refuses(route, next(iter(streams)))

    def is_ready(self, source: SourceConfig) -> bool:
        """Whether all streams of a source are there, and its messages change nothing of them."""
        if isinstance(source, Route) and (source.told or source.asked or source.unfilled):
            return False
        if self.identities.strangers.is_open:
            return False
        return all(stream in self.state.streams for stream in source.streams)

    def heard_run(self, source: SourceConfig, sender: str, missing: int) -> None:
        """Messages came of `sender` to a source that `is_ready`; `missing`: how many numbers they passed over."""
        if isinstance(source, Route) and source.is_member:
            if self.senders.heard(sender):
                self._count_timed()
            for stream in source.streams:
                self._fed(source, stream, sender, missing)

    def let_go(self, topic: str) -> None:
        """Nothing of a message counts. Of topics that were never let in nothing is kept, as there may be many."""
        if topic not in self.senders and topic not in self._fixed:
            self.identities.bare.forget(topic)

    def lost(
        self, message: Message, decoded: Decoded, source: SourceConfig | None = None
    ) -> tuple[SourceConfig | None, int]:
        """The source of a message that is to be counted, and what it says of its sender's losses (`tally`)."""
        if source is None:
            source = self.routes.find(message.topic)
        if source is not None:
            self.identities.know(source, decoded.source)
        said = self.identities.tally(decoded.source, decoded.sequence)
        if said < 0 and source is not None and not isinstance(source, Route):
            readings = decoded.readings
            there = {*readings.streams} if isinstance(readings, Columns) else {stream for stream, _, _ in readings}
            for name in source.streams.keys() - there:
                self.state.streams[name].is_without(said)
        return source, said

    def shaped(
        self, message: Message, arrival: int, readings: Iterable[Reading], after: int | None, latest: int
    ) -> Iterable[Reading]:
        """The readings as they count: scaled, without those that are refused or passed over; later ones as they are."""
        return self._shaped(message, arrival, readings, after, latest) if self.shaping else readings

    def _shaped(
        self, message: Message, arrival: int, readings: Iterable[Reading], after: int | None, latest: int
    ) -> Iterator[Reading]:
        for stream, time_us, raw in readings:
            if time_us > latest or (after is not None and time_us <= after):
                yield stream, time_us, raw
                continue
            value, why = self.shaping.shape(stream, time_us, raw)
            if value is not None:
                yield stream, time_us, value
            elif why:
                self.house.refuse(message, arrival, "range", f"{stream}: {why}")

    def admit(self, route: SourceConfig | None, stream: str, decoded: Decoded, missing: int) -> str:
        """Have a stream ready, with the tags that it has now; or why it cannot be."""
        if not isinstance(route, Route):
            return ""
        if stream not in self.state.streams:
            why = (
                "" if self.state.has_room_for_stream else "outbox.rows and outbox.bytes have no room for a stream more"
            )
            if why := why or self.members.room_for(route, stream):
                self.shaping.forget(stream)
                return why
            self._begin(stream, decoded.source, missing)
            until = self._left_until if self.members.may_have_left(route) else None
            for each in (until, self._lost_until):
                if each is not None:
                    self.house.doubts.setdefault(stream, Doubts()).lose(0, each)
        elif route.is_member:
            self._fed(route, stream, decoded.source, missing)
        if route.told or route.asked:
            self._tag(stream, route, decoded)
        return ""

    def _begin(self, name: str, sender: str, missing: int) -> None:
        """A stream that was never there, or that left: what its sender lost while it was away is owed, since then."""
        stream = self.state.begin(name, sender)
        known, before, since = self._before
        if known == sender and tally.lost(missing) > before:
            stream.missing_seen = before
            stream.without = Returned(int(self.state.incarnation, 16) if since is None else since, before)
        self.house.open(stream)

    def _fed(self, route: Route, stream: str, sender: str, missing: int) -> None:
        self.members.heard(route, stream)
        if route.sequence is not None and self.state.streams[stream].source != sender:
            former = partial(self.identities.missing_of_former, self.state.store.connection)
            self.state.streams[stream].fed_by(sender, tally.lost(missing), former)

    def _leave(self, name: str) -> None:
        """A stream makes room for another: its open bucket goes to the outbox, its windows end.

        Nobody remembers whose windows those were: what comes new may have been here until then.
        """
        newest = self.newest(name)
        if newest is not None:
            self._left_until = max(newest, self._left_until or newest)
        self.state.leave(name)
        self.shaping.forget(name)
        self.house.shut(name)
        self.house.note("keys.evicted")

    def _tag(self, name: str, route: Route, decoded: Decoded) -> None:
        before = self.state.streams[name].tags
        kept = {tag: before[tag] for tag in route.asked if tag in before}
        tags = kept | route.told | decoded.tags.get(name, {})
        if tags == before:
            return
        if not self.state.retag(name, tags):
            self.house.note("tags.late")
            return
        self.house.windows.renumber(name, self.state.streams[name].number)

    # commits

    @property
    def changed(self) -> bool:
        """Whether a stream has left, or anything else has to be written."""
        return (
            bool(self.state.leaving)
            or self.shaping.changed
            or any(session.changed for session in self._sessions.values())
        )

    def save(self, connection: sqlite3.Connection) -> None:
        """Write which streams left, before any other stream; inside the caller's transaction."""
        state = self.state
        for each in self.kept:
            each.save(connection)
        state.renumber(connection)
        for stream in state.leaving:
            state.outbox.insert(connection, stream.number, stream.closed)
            stream.keep(connection)
            forget(connection, "stream = ?", (stream.number,))
        if state.leaving:
            if self._left_until is not None:
                keep_time(connection, LEFT, self._left_until)
            state.drop_drained(connection)

    def saved(self) -> None:
        """It is durable."""
        for stream in self.state.leaving:
            stream.saved()
        for each in self.kept:
            each.saved()
        self.state.left()
        self.senders.saved()
        self._count_timed()


def feed_streams(connection: sqlite3.Connection, config: Config, state: State, identities: Identities) -> None:
    """Tell each stream whose numbers say what it misses: what a former source's said stays with the stream.

    Of sources whose streams come as they are heard of, each is told then.
    """
    former = partial(identities.missing_of_former, connection)
    for source in config.sources:
        if not source.is_plant:
            topic = source.topic if source.sequence is not None else ""
            for stream in source.streams:
                state.streams[stream].fed_by(topic, identities.missing(topic), former)
                if topic and len(source.streams) > 1:
                    state.streams[stream].without = state.streams[stream].without or Returned()
