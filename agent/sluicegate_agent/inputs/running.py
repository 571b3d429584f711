"""One input as the agent turns it: opened where it was, its messages counted, its position kept, its faults told."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from sluicegate_agent.config.inputs import BUILT_IN, Opened, Opening, input_of
from sluicegate_agent.config.sources import SourceConfig, may_feed
from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.logs.repeats import Repeats
from sluicegate_agent.messages import Message
from sluicegate_agent.state.positions import POSITION, POSITION_MOST, packed, read_position

if TYPE_CHECKING:
    import sqlite3

    from sluicegate_agent.pipeline import Pipeline
    from sluicegate_agent.streams import Stream

log = logging.getLogger("sluicegate.inputs")
#: Seconds until an input that failed is opened again, at first and at most.
_FIRST_DELAY, _LONGEST_DELAY = 1.0, 60.0
#: Seconds that an input of others, which may read ahead, has to hand out what was there before nothing means the end.
_READ_AHEAD = 60.0
_Found = TypeVar("_Found")


class Waiter(Protocol):
    """What the agent waits with: the link."""

    def wake_for(self, sock: Any) -> None:
        """Let it end a wait."""

    def sleep_through(self, sock: Any) -> None:
        """Let it end none any more."""


class _FailedError(Exception):
    """An input raised; it was told."""


class Running:
    """The input of one source; what is written with each commit (`plant.entry.Kept`)."""

    def __init__(self, source: SourceConfig, most: int, pipeline: Pipeline, link: Waiter) -> None:
        """Open it. Raises EnvironmentRefused where it does; after anything else it is tried again."""
        self._source, self._most, self._pipeline, self._link = source, most, pipeline, link
        self._input = input_of(source.input)
        self._is_ours = source.input in BUILT_IN  # it keeps its own rows, and what it raises is a fault of the agent
        self._row = f"{POSITION}{source.input} {source.topic}"  # what another input said means nothing to this one
        self.opened: Opened | None = None
        self._wakes: Any = None
        self._has_more = self._was_handed = False
        self._next_opening, self._delay = 0.0, _FIRST_DELAY
        self._may_be_at_end = time.monotonic() + (0.0 if self._is_ours else _READ_AHEAD)
        self._repeats = Repeats(log)
        with pipeline.state.transaction() as connection:  # where it begins, before anything of it
            found = connection.execute("SELECT value FROM meta WHERE key = ?", (self._row,)).fetchone()
            self._position = None if found is None else read_position(self._row, found[0])
            self._kept = self._saving = self._position
            was_read = pipeline.identities.unsure.is_set and any(each.accepted for each in self._fed())
            self._is_lost = was_read and self._position is None
            self._open(is_start=True)
            self.save(connection)
            for stream in self._fed():
                if stream.owed:
                    stream.keep(connection)

    def _fed(self) -> Iterator[Stream]:
        streams, source = self._pipeline.state.streams.values(), self._source
        return (each for each in streams if each.name in source.streams or may_feed(source, each.name))

    # opening

    def _open(self, *, is_start: bool = False) -> bool:
        """Raises EnvironmentRefused at the start."""
        make = self._input.open
        assert make is not None, "the configuration opens it"  # noqa: S101
        source, store = self._source, self._pipeline.state.store.connection
        is_lost = self._is_lost and self._position is None
        opening = Opening(source, source.options, self._most, self._position, is_lost, self._lost, store)
        try:
            self.opened = make(opening)
        except EnvironmentRefused as error:
            if is_start:
                raise
            self._failed(error)
        except Exception as error:  # whatever the code of others does
            self._failed(error)
        if self.opened is not None:
            self._listen()
        return self.opened is not None

    def _listen(self) -> None:
        """Wait with what it waits for."""
        wakes = None if self.opened is None or self.opened.is_over else self.opened.wakes
        if wakes is not self._wakes:
            if self._wakes is not None:
                self._link.sleep_through(self._wakes)
            if wakes is not None:
                self._link.wake_for(wakes)
            self._wakes = wakes

    def _failed(self, error: Exception) -> None:
        if self._is_ours:
            raise error
        self._pipeline.note("inputs.failed")
        what = f'input "{self._source.input}" of {self._source.topic}: {type(error).__name__}: {error}'[:300]
        self._repeats.tell(logging.ERROR, what, f"; it is opened again in {self._delay:.0f} s")
        self._next_opening = time.monotonic() + self._delay
        self._delay = min(2 * self._delay, _LONGEST_DELAY)
        self.close()

    def _asked(self, what: Callable[[], _Found]) -> _Found:
        """Ask the input. Raises _FailedError where it raises anything."""
        try:
            return what()
        except Exception as error:  # whatever the code of others does
            self._failed(error)
            raise _FailedError from error

    def _lost(self, why: str = "") -> None:
        """Messages may be lost: one reading at least is missing in each stream, where no number will say how many."""
        self._pipeline.note("tail.lost" if self._is_ours else "inputs.lost")
        if why:
            self._repeats.tell(logging.WARNING, f'input "{self._source.input}" of {self._source.topic}: {why}')
        if self._source.sequence is None:
            for stream in self._fed():
                stream.owe(1)

    # taking

    def step(self, room: int) -> int:
        """Take at most `room` messages without waiting for any; how many came."""
        taken = 0
        if self.opened is None and (time.monotonic() < self._next_opening or not self._open()):
            return 0
        with contextlib.suppress(_FailedError):
            # One at a time: a message that was handed out has to be counted.
            self._has_more = self._has_more or room > 0
            while taken < room and self._pipeline.has_room:
                message = self._asked(self._next)
                if message is None:
                    self._has_more = False
                    self._at_end()
                    break
                self._count(message)
                taken += 1
            self._asked(self._listen)
        return taken

    def _next(self) -> Message | None:
        """The next message, its place noted."""
        opened = self.opened
        message = opened.take() if opened else None
        position = opened.position if opened else None
        if message is not None and not self._is_ours:
            message = self._sound(message)
        if position is not None:
            if not isinstance(position, bytes | bytearray):
                raise TypeError(f"its position is of the type {type(position).__name__}, not bytes")
            if len(position) > POSITION_MOST:
                raise ValueError(f"its position has {len(position)} bytes, {POSITION_MOST} are kept")
            self._position = bytes(position)  # as it is now
        if message is not None:
            self._was_handed, self._delay = True, _FIRST_DELAY
        return message

    def _sound(self, message: Any) -> Message:
        """What others handed out, with nothing of it that brokers alone can say. Raises TypeError where it is none."""
        if not isinstance(message, Message):
            raise TypeError(f"it gives a {type(message).__name__}, not a Message")
        topic, payload = message.topic, message.payload
        if not isinstance(topic, str) or not isinstance(payload, bytes | bytearray):
            kinds = type(topic).__name__, type(payload).__name__
            raise TypeError("it gives a Message of {} and {}, not of a topic (str) and bytes".format(*kinds))
        return Message(topic, bytes(payload[: self._most]), whole=len(payload) if len(payload) > self._most else 0)

    def _at_end(self) -> None:
        """Nothing is there: what comes from now on was not read before."""
        if not (self.opened and self.opened.is_busy) and time.monotonic() >= self._may_be_at_end:
            self._pipeline.identities.under_way.caught_up(self._source)

    def _count(self, message: Message) -> None:
        """It counts because it was handed out once; its number says what is missing, and whether it came before."""
        source, topic = self._source, message.topic
        if topic != source.topic and source.filter.match(topic) is None:
            why = f'input "{source.input}" gives messages of {source.subscribed}'
            self._pipeline.refuse(message, self._pipeline.clock(), "unknown_topic", why)
            return
        may_repeat = (
            self._input.repeats or source.sequence is not None or (self._is_lost and self._position is not None)
        )
        self._pipeline.accept(message, is_new=not may_repeat)

    @property
    def is_busy(self) -> bool:
        """Whether there is more to take at once."""
        return self.opened is not None and (self._has_more or self.opened.is_busy)

    @property
    def is_over(self) -> bool:
        """Whether nothing more can come."""
        return self.opened is not None and self.opened.is_over and not self.is_busy

    def committed(self) -> None:
        """What was taken is durable."""
        if self._was_handed and self.opened is not None:
            self._was_handed = False
            with contextlib.suppress(_FailedError):
                self._asked(self.opened.committed)

    def close(self) -> None:
        """Let it go."""
        opened, self.opened = self.opened, None
        with contextlib.suppress(Exception):
            self._listen()
        if opened is not None:
            with contextlib.suppress(Exception):  # it ends anyhow
                opened.close()

    # commits

    @property
    def changed(self) -> bool:
        """Whether anything waits for a commit."""
        return self._position != self._kept or (self.opened is not None and self.opened.changed)

    def save(self, connection: sqlite3.Connection) -> None:
        """Write where reading goes on, inside the caller's transaction."""
        self._saving = self._position
        if self._saving is not None and self._saving != self._kept:
            row = self._row, packed(self._row, self._saving)
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", row)
        if self.opened is not None:
            self.opened.save(connection)

    def saved(self) -> None:
        """The transaction is durable."""
        self._kept = self._saving
        if self.opened is not None:
            self.opened.saved()
