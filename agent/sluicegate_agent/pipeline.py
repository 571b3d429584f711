"""From a message to a durable count of one: decode, know it again, fold it, commit, and only then acknowledge.

`accept` changes memory alone. `commit` writes everything that changed in one transaction and returns the packet ids
that may be acknowledged. A commit that fails leaves what waits in memory, still unacknowledged and still known as seen,
and the next one tries it again with whatever came since: memory is ahead of the disk for a while, never behind it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from sluicegate.format.bucket import LARGEST
from sluicegate_agent import faults
from sluicegate_agent.answers import answers_of
from sluicegate_agent.doubts import load_doubts
from sluicegate_agent.identity import Found, Verdict
from sluicegate_agent.identity.clock import FAR, Guard
from sluicegate_agent.identity.identities import Identities
from sluicegate_agent.identity.waiting import EXPLAINED, WaitingRoom
from sluicegate_agent.intake.folding import Folding
from sluicegate_agent.intake.runs import Runs
from sluicegate_agent.logs.repeats import Repeats
from sluicegate_agent.messages import Columns, Decoded, Message, Result, Unreadable
from sluicegate_agent.payloads import decode
from sluicegate_agent.plant.entry import Entry, as_it_is, feed_streams
from sluicegate_agent.record.recovery import now_or_later
from sluicegate_agent.record.saving import Saving
from sluicegate_agent.routing.routes import Route
from sluicegate_agent.state import State
from sluicegate_agent.state.asked import Asked, close_retired
from sluicegate_agent.streams import Stream
from sluicegate_agent.sync.silence import Silence

if TYPE_CHECKING:
    from array import array

    from sluicegate_agent.config import Config, SourceConfig
    from sluicegate_agent.each_reading import EachReading
    from sluicegate_agent.record.recorder import Recorder
    from sluicegate_agent.state.beside import Beside

log = logging.getLogger("sluicegate.readings")
#: A commit is due at so many readings, however few messages brought them.
READINGS_MOST = 4_096
#: Where each reading is answered so many messages wait for others no longer than so many seconds.
SOME, SOON = 125, 0.05
#: While commits fail, so many times Receive Maximum (and READINGS_MOST) are taken into memory, then no more.
BACKLOG = 2
#: Of what one window says several times, the oldest goes out first.
_DUE = attrgetter("ordinal", "time_us")


def now_us() -> int:
    """The board's clock, µs since 1970 UTC."""
    return time.time_ns() // 1000


class Pipeline:
    """All streams and windows of one agent, on its state; `clock` gives the arrival time of messages in µs."""

    def __init__(
        self, config: Config, state: State, clock: Callable[[], int] = now_us, recorder: Recorder | None = None
    ) -> None:
        """Continue where the last commit left off. Without `recorder` each commit writes the tables.

        Raises StoreDamaged, and sqlite3.Error where the store refuses.
        """
        self.config, self.state, self.clock = config, state, clock
        self.guard = Guard(config.guard.future, clock, unset=config.guard.unset_seconds)
        with state.transaction() as connection:
            self.identities = Identities(connection, config, self.note, now_or_later(state.streams.values()))
            feed_streams(connection, config, state, self.identities)
            self.windows = Asked(connection, config, state)
        self._most, self._enough = BACKLOG * config.mqtt.receive_maximum, config.commit_messages
        self._unacknowledged: list[int] = []
        self._messages, self._readings, self.generation, self._since, self.limits_wait = 0, 0, 0, 0.0, False
        self.beside: Beside | None = None
        self.recorder, self.saving = recorder, Saving(self, recorder)
        self._touched: dict[tuple[str, str], None] = {}
        self.repeats = Repeats(log)
        self.each = self._each_reading() if config.results.answers_each else None
        self.unfed: dict[str, None] = {}  # streams that took readings which their windows were not handed
        for stream in state.streams.values():
            self._listen(stream)
        self.silence = Silence(self, state, clock)
        close_retired(config, state)
        with state.transaction() as connection:
            self.doubts = load_doubts(connection)
            self.entry = Entry(config, state, self.identities, self.guard, self)
            judges = self.guard, self.identities, self.entry.routes.find, clock
            self.waiting_room = WaitingRoom(connection, config, self, *judges)
        self.folding, self._runs = Folding(self), Runs(self)

    def _each_reading(self) -> EachReading:
        """Imported where it is asked for."""
        from sluicegate_agent.each_reading import EachReading

        return EachReading(self.config, self.note)

    # messages in

    @property
    def pending(self) -> int:
        """Messages that wait for a commit."""
        return self._messages

    @property
    def is_full(self) -> bool:
        """Whether commits have failed for so long that no more is taken: stop reading from the broker, and commit."""
        return self._messages >= self._most or self._readings >= BACKLOG * READINGS_MOST

    def due(self, now: float) -> bool:
        """Whether to commit now, in monotonic seconds: enough waits, or long enough, or a stream has fallen silent."""
        self.silence.look(now)
        if not self._messages:
            return self.silence.waits or self.limits_wait or self.waiting_room.changed or self.saving.is_asked
        return self.has_enough or self.left(now) <= 0

    def left(self, now: float) -> float:
        """Seconds that the first message of the open batch waits for others yet; without one, for ever."""
        every = SOON if self.each is not None and self._messages >= SOME else self.config.commit.every.seconds
        return max(0.0, self._since + every - now) if self._messages else float("inf")

    @property
    def has_enough(self) -> bool:
        """Whether so much waits that a commit is due, however short a time."""
        return self._messages >= self._enough or self._readings >= READINGS_MOST or self.entry.senders.is_full

    def connected(self, *, session_present: bool) -> None:
        """A new connection to the broker: packet ids of the old one mean nothing now.

        With its session the broker sends again what it does not know to be acknowledged, and that is known here.
        """
        self._unacknowledged.clear()
        self.entry.connected(session_present=session_present)
        # That a session is gone is written soon, or after a restart its messages would be held against the next one's.
        self.limits_wait |= not session_present

    def confirmed(self, generation: int) -> None:
        """The broker has taken the acknowledgements of the commits up to this one; called when what came is accepted.

        `generation` counts the commits: right after `commit` it is that one's number.
        """
        self.identities.confirmed(generation)

    def accept(self, message: Message, *, is_new: bool = False) -> bool:
        """Take one message: its readings are counted in memory, or it is known and counted as what it is.

        `is_new`: the caller knows that it was not counted, whatever it says.

        Its packet id is among those that a later `commit` returns. False where `is_full`: it is left to the broker,
        and so must be all that follows over this connection, or they would be acknowledged out of their order.
        """
        if is_new and not self.is_full:
            self._take(message, is_new=True)
            return True
        return self.accept_all((message,)) > 0

    def accept_all(self, messages: Sequence[Message]) -> int:
        """Take messages from the first on, until a commit is due; how many: none where `is_full`, as in `accept`."""
        taken = 0
        while taken < len(messages) and not self.is_full and not (taken and self.has_enough):
            run = self._runs.take(messages, taken)
            if not run:
                self._take(messages[taken])
            taken += run or 1
        if not taken:
            self.state.counters.add("refused.backlog")
        return taken

    @property
    def room(self) -> tuple[int, int]:
        """How many messages, and readings, the open batch takes before its commit is due."""
        return self._enough - self._messages, READINGS_MOST - self._readings

    def _take(self, message: Message, *, is_new: bool = False) -> None:
        faults.step("accept: begin")
        arrival = self.clock()
        try:
            try:
                source = self.entry.source(message)
            finally:  # those of bare topics are known by now
                self.identities.bare.all_passed((message,))
                self.wait_for_commit((message,))
            for part in self.entry.parts(source, message):
                self._take_part(source, part, arrival, is_new=is_new)
        except Unreadable as reason:
            self.refuse(message, arrival, reason.counter, str(reason))
        faults.step("accept: end")

    def _take_part(self, source: SourceConfig, message: Message, arrival: int, *, is_new: bool) -> None:
        """A message, or one of several in it that are known each for itself."""
        try:
            decoded = decode(source, message, arrival, self.config.limits)
        except Unreadable as reason:
            self.refuse(message, arrival, reason.counter, str(reason))
            return
        if why := self.entry.heard(source, decoded):
            self.refuse(message, arrival, "key", why)
            return
        self.waiting_room.heard(source, decoded, arrival)
        found = self.identities.check(source, message, decoded, is_new=is_new)
        self.judged(source, message, decoded, arrival, found)

    def judged(self, source: SourceConfig, message: Message, decoded: Decoded, arrival: int, found: Found) -> None:
        """Do with a message what was found about it."""
        if found.released:
            self.waiting_room.settle(found.released)
        if found.verdict is Verdict.NEW:
            if not self.waiting_room.hold_while_unset(source, message, arrival, found.doubt):
                self.count(message, decoded, arrival, doubt=found.doubt, source=source)
        elif found.verdict is Verdict.WAITS:
            self.waiting_room.hold_for_second(message, decoded, arrival)
        else:
            self._known(message, decoded, arrival, found.verdict)

    def wait_for_commit(self, messages: Sequence[Message]) -> None:
        """Messages came that are to be acknowledged after the next commit."""
        if not self._messages:
            self._since = time.monotonic()
        self._messages += len(messages)
        self._unacknowledged += [message.packet_id for message in messages if message.qos]
        self.note("messages", len(messages))

    def _known(self, message: Message, decoded: Decoded, arrival: int, verdict: Verdict) -> None:
        if verdict is Verdict.DUPLICATE:
            self.note("duplicates")
            self.note("duplicate_readings", len(decoded.readings))
        else:
            self.refuse(message, arrival, verdict.value, f"sequence {decoded.sequence}: {EXPLAINED[verdict]}")

    def note(self, counter: str, amount: int = 1) -> None:
        """Count an event."""
        self.state.counters.add(counter, amount)

    def refuse(self, message: Message, arrival: int, counter: str, reason: str) -> None:
        """Count it, keep its beginning; it is acknowledged like any other."""
        self.entry.let_go(message.topic)
        self.state.counters.add(f"refused.{counter}")
        self.repeats.tell(logging.WARNING, f"refused ({counter}) of {message.topic}", f": {reason[:200]}")
        size = message.whole or len(message.payload)
        self.state.dead_letters.add(arrival, message.topic, reason, message.payload, size)

    @property
    def has_room(self) -> bool:
        """Whether the open batch takes more readings without growing beyond its bound."""
        return self._readings < READINGS_MOST

    def count(
        self,
        message: Message,
        decoded: Decoded,
        arrival: int,
        *,
        doubt: int,
        after: int | None = None,
        latest: int | None = None,
        source: SourceConfig | None = None,
    ) -> None:
        """Fold the readings of a message that was never counted; with `doubt` it may be a repeat after all.

        What is later than `latest` (or than the clock allows) waits for the clock; what is not later than `after` was
        counted before. `source`: the message's, where the caller has it at hand.
        """
        route, missing = self.entry.lost(message, decoded, source)
        latest = self.guard.latest(arrival) if latest is None else latest
        accepted = waiting = future = 0
        many, admit = decoded.readings, self.entry.admit if isinstance(route, Route) else as_it_is
        is_plain = isinstance(many, Columns) and not doubt and after is None
        if is_plain and self._take_many(route, decoded, many, latest, missing):
            return
        for stream, time_us, value in self.entry.shaped(message, arrival, many, after, latest):
            if after is not None and time_us <= after:
                continue
            if time_us > latest + FAR:
                self.refuse(
                    message, arrival, "future", f"{stream}: time {time_us} µs is beyond the clock and guard.future"
                )
                future += 1
            elif time_us > latest:
                waiting += 1
            elif abs(value) > LARGEST:
                self.refuse(message, arrival, "value", f"{stream}: {value!r} is too large to be summed")
            elif why := admit(route, stream, decoded, missing):
                self.refuse(message, arrival, "key", why)
            else:
                self.folding.one(stream, time_us, value, missing, doubt)
                accepted += 1
        self.note("accepted", accepted)
        if doubt:
            self.note("undecidable", accepted)
        if waiting:
            self.waiting_room.hold_for_clock(message, arrival, latest, doubt)
        elif future == len(decoded.readings) > 0:
            self.waiting_room.take_back(message, decoded)
        if after is None:
            for stream, reason in decoded.refused:
                self.refuse(message, arrival, "value", f"{stream}: {reason}")
            if decoded.absent:
                self.note("absent", decoded.absent)

    def _take_many(self, route: SourceConfig | None, decoded: Decoded, many: Any, latest: int, missing: int) -> bool:
        """Fold readings that are Columns; False, and nothing is done, where one of them takes a closer look."""
        changes = self.entry.shaping or (isinstance(route, Route) and (route.told or route.asked))
        are_there = all(stream in self.state.streams for stream in many.streams)
        if many.newest > latest or many.largest > LARGEST or changes or not are_there:
            return False
        for name in many.streams:
            self.entry.admit(route, name, decoded, missing)
        self.folding.many(many.streams, many.values, many.times, missing)
        return True

    def take_run(
        self, source: SourceConfig, messages: Sequence[Message], times: array[int], values: list[array[float]]
    ) -> None:
        """Count messages of one source that are new and need no closer look: a time, and a value a stream, of each."""
        faults.step("accept: begin")
        self.wait_for_commit(messages)
        missing = self.identities.missing(source.topic)
        self.entry.heard_run(source, source.topic, missing)
        self.folding.many(source.streams, values, times, missing)
        faults.step("accept: end")

    def heard(self, stream: str, readings: int) -> None:
        """So many readings of a stream wait for its windows and for the commit."""
        self.unfed[stream] = None
        self.silence.heard[stream] = self._since
        self._readings += readings

    def _listen(self, stream: Stream) -> None:
        """Have the record told of what a stream takes."""
        stream.tell = self.recorder.took if self.recorder else None

    def open(self, stream: Stream) -> None:
        """Begin the windows of a stream that was not there; the commit of its first reading writes them."""
        self.windows.begin(self.state.store.connection, stream)
        self._listen(stream)

    def shut(self, name: str) -> None:
        """Let go of all that is kept beside a stream that leaves."""
        for kept in (self.windows, self.unfed, self.doubts):
            kept.pop(name, None)
        self._runs.across.forget()
        self.silence.forget(name)
        if self.each is not None:
            self.each.forget(name)
        self._touched = {each: None for each in self._touched if each[0] != name}

    def feed_windows(self) -> None:
        """Hand the windows what came since, in one compiled batch a stream: the same bits as one after the other."""
        if not self.unfed:
            return
        handed = [(name, *self.state.streams[name].handed()) for name in self.unfed]
        self.unfed.clear()
        if self.recorder:
            self.recorder.fed()
        self.silence.ticks.heard([(name, max(times)) for name, _, times in handed])
        for name, values, times in handed:
            for window in self.windows[name]:
                if self.each is None or not self.each.feeds(window):
                    self.refused(window.insert_many(values, times))
                for each in window.names:
                    self._touched[name, each] = None

    def refused(self, readings: int) -> None:
        """So many readings were refused by a window; they count elsewhere."""
        if readings:
            self.note("refused.window", readings)

    def squeeze_windows(self, limit: Callable[[int], int]) -> None:
        """Let each window with a bound keep at most limit(its buckets) buckets from now on; durable with the commit."""
        self.feed_windows()
        self.limits_wait |= self.windows.squeeze(limit)
        if self.recorder:
            self.recorder.must_fold |= self.limits_wait

    @property
    def squeezed(self) -> list[tuple[int, int]]:
        """(most buckets now, buckets of the configuration) of every window with a bound."""
        return [(window.limit, window.buckets) for window in self.windows.all() if window.buckets]

    # commits

    def flush(self) -> None:
        """Close every open bucket, so that the next commit hands all readings to the outbox: at an orderly end."""
        for stream in self.state.streams.values():
            self.silence.close(stream)

    def fold_next(self) -> None:
        """Have the next commit write the tables, and be one: at an orderly end."""
        if self.recorder:
            self.recorder.must_fold = self.limits_wait = True

    def commit(self) -> list[int]:
        """Make all that waits durable in one transaction; the packet ids that may be acknowledged, in order of arrival.

        Raises sqlite3.OperationalError where the store refuses (a full disk): nothing is acknowledged then, what waits
        keeps waiting, and the next commit tries again. Raises StoreDamaged: then end, and start again.
        """
        if not self._has_changes():
            return []
        self.feed_windows()
        faults.step("commit: begin")
        self.saving.commit()
        self._messages = self._readings = 0
        self.silence.waits = self.limits_wait = False
        self.generation += 1
        self.identities.committed(self.generation)
        acknowledged = list(dict.fromkeys(self._unacknowledged))
        self._unacknowledged.clear()
        faults.step("commit: durable, not acknowledged")
        self.saving.make_room()
        return acknowledged

    def _has_changes(self) -> bool:
        waits = self._messages or self.limits_wait or self.waiting_room.changed or self.entry.changed
        return bool(waits) or self.saving.has_changes

    # answers out

    @property
    def touched(self) -> dict[tuple[str, str], None]:
        """The (stream, window) that took a reading, or lost a bucket, since answers were last asked for."""
        return self._touched

    def answer_again(self) -> None:
        """Have `results` give the answers of every window, whether it took a reading or not."""
        for stream, windows in self.windows.items():
            self._touched |= dict.fromkeys((stream, name) for window in windows for name in window.names)

    def results(self) -> list[Result]:
        """The answers of every window that took a reading since the last call."""
        self.feed_windows()
        touched, self._touched = self._touched, {}
        found = [result for stream, name in touched for result in sorted(self.answers(stream, name), key=_DUE)]
        if lost := sum(window.given_out() for window in self.windows.all()):
            self.note("results.dropped", lost)
        return found

    def answers(self, stream: str, name: str) -> list[Result]:
        """One window's answers, one an aggregate, as of its event time; none before its stream's first reading."""
        self.feed_windows()
        if stream not in self.windows:
            return []  # it made room for another
        stored = next(window for window in self.windows[stream] if name in window.names)
        return answers_of(self.state.streams[stream], self.config.named[name], stored, self.doubts.get(stream))
