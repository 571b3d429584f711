"""Where messages wait that cannot be judged yet: for a second one of their source, or for the board's clock.

They are acknowledged once their row of the table `held` is durable, and each is counted or refused in the end: when a
later message decides, when the clock is set, by age, or as the oldest when there is no more room.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

from sluicegate_agent.identity.clock import CLOCK_NEVER_SET, Guard, boot
from sluicegate_agent.identity.held import FUTURE, UNSET, Held, Row
from sluicegate_agent.identity.identities import Identities
from sluicegate_agent.identity.verdict import Released, Verdict, content_of
from sluicegate_agent.messages import Decoded, Message, Unreadable
from sluicegate_agent.payloads import decode

if TYPE_CHECKING:
    from sluicegate_agent.config import Config, SourceConfig

EXPLAINED = {
    Verdict.BEYOND_HORIZON: "older than identity.horizon, so it cannot be told whether it was counted; a sender that "
    "begins again needs an epoch",
    Verdict.SEQUENCE_CONFLICT: "another message had this number, and the next one went on after that",
    Verdict.SEQUENCE_JUMP: "too far ahead of the last one, and no second message confirmed it",
}


class Desk(Protocol):
    """What the pipeline does with a message once it is judged."""

    @property
    def has_room(self) -> bool:
        """Whether the open batch takes more readings."""

    def count(
        self, message: Message, decoded: Decoded, arrival: int, *, doubt: int, after: int | None = None, latest: int = 0
    ) -> None:
        """Fold its readings later than `after`, as far as they are not later than `latest`."""

    def refuse(self, message: Message, arrival: int, counter: str, reason: str) -> None:
        """Count it, and keep its beginning."""

    def note(self, counter: str, amount: int = 1) -> None:
        """Count an event."""


class WaitingRoom:
    """The table `held`, the guard of the clock, and the identities that what waits is known by."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        config: Config,
        desk: Desk,
        guard: Guard,
        identities: Identities,
        find: Callable[[str], SourceConfig | None],
        clock: Callable[[], int],
    ) -> None:
        """`find`: the source of a topic; raises NotLetIn."""
        self.config, self.desk, self.guard = config, desk, guard
        self.held = Held(connection, config.held.rows, int(config.held.bytes))
        self.changed = False
        self._identities, self._find, self._clock = identities, find, clock
        self._unfinished = False
        self._began: tuple[str, int] | None = None
        for number in sorted(set(self.held.numbers) - set(self.held.futures)):
            self._wait_again(number)

    def _wait_again(self, number: int) -> None:
        """Tell the source's numbers of a message that waited for a second one when the agent ended."""
        row = self.held.get(number)
        source, decoded = self._read(row)
        if source is None or decoded is None or decoded.sequence is None:
            return  # by the rules that there are now it is judged when it comes to its turn
        self._identities.know(source, decoded.source)
        self._identities.sequences[decoded.source].wait_again(
            number,
            Verdict(row.why),
            row.doubt,
            decoded.sequence,
            decoded.epoch,
            content_of(row.message, decoded, timed=source.time is not None),
            decoded.time_us if source.time is not None else None,
        )

    def _decoded(self, row: Row) -> Decoded | None:
        return self._read(row)[1]

    def _read(self, row: Row) -> tuple[SourceConfig | None, Decoded | None]:
        """The source of a row, and what it says; None for what the configuration does not read any more."""
        source = None
        try:
            source = self._find(row.topic)
            return source, None if source is None else decode(source, row.message, row.arrival_us, self.config.limits)
        except Unreadable:
            return source, None

    # in

    def hold_for_second(self, message: Message, decoded: Decoded, arrival: int) -> None:
        """Keep a message that its source's numbers cannot judge without another."""
        sequences = self._identities.sequences[decoded.source]
        why, doubt = sequences.waiting
        sequences.waits(self._hold(Row(why.value, doubt, arrival, -(1 << 62), message.topic, message.payload)))
        self._make_room()

    def hold_for_clock(self, message: Message, arrival: int, counted_to: int, doubt: int) -> None:
        """Keep a message whose readings later than `counted_to` are too far ahead of the clock."""
        self._hold(Row(FUTURE, doubt, arrival, counted_to, message.topic, message.payload))
        self._make_room()

    def hold_while_unset(self, source: SourceConfig, message: Message, arrival: int, doubt: int) -> bool:
        """Keep a message without a time of its own where the clock is not set yet: it is placed when it is."""
        if source.time is not None or not self.guard.is_unset():
            return False
        name, since = boot()
        self._hold(Row(UNSET + name, doubt, arrival, since, message.topic, message.payload))
        self._make_room()
        return True

    def _hold(self, row: Row) -> int:
        self.changed = True
        self.desk.note("held")
        return self.held.add(row)

    def _make_room(self) -> None:
        while self.held.is_over:
            number = self.held.oldest()
            if self.held.get(number).came_unset:
                self._place(number)
                continue
            row = self._take(number)
            if row.why == FUTURE:
                self._refuse_future(row)
                continue
            decoded = self._decoded(row)
            if decoded is not None and (sequences := self._identities.sequences.get(decoded.source)):
                sequences.dropped(number)
            self._refuse(row, Verdict(row.why))

    # out

    def settle(self, released: Iterable[Released]) -> None:
        """Count or refuse what waited and is decided."""
        for each in released:
            row = self._take(each.number)
            source, decoded = self._read(row)
            if decoded is not None and source is not None and each.verdict is Verdict.NEW:
                if self.hold_while_unset(source, row.message, row.arrival_us, each.doubt):
                    continue
                self.desk.count(row.message, decoded, row.arrival_us, doubt=each.doubt)
            else:
                self._refuse(row, each.verdict)

    def _take(self, number: int) -> Row:
        self.changed = True
        return self.held.take(number)

    def _refuse(self, row: Row, verdict: Verdict) -> None:
        verdict = Verdict(row.why) if verdict is Verdict.NEW else verdict
        self.desk.refuse(row.message, row.arrival_us, verdict.value, EXPLAINED[verdict])

    def _refuse_future(self, row: Row) -> None:
        """It is new again when it comes again, unless some of its readings were counted."""
        decoded = self._decoded(row)
        late = [each for each in decoded.readings if each[1] > row.counted_to] if decoded else []
        for stream, time_us, _ in late:
            self.desk.refuse(
                row.message,
                row.arrival_us,
                FUTURE,
                f"{stream}: time {time_us} µs is beyond the clock and guard.future, and held is full",
            )
        if decoded is not None and len(late) == len(decoded.readings):
            self.take_back(row.message, decoded)

    def take_back(self, message: Message, decoded: Decoded) -> None:
        """Nothing of a message was counted, for its time: it is not known as seen."""
        source, sender = self._find(message.topic), decoded.source
        if source is None:
            return
        if decoded.sequence is not None:
            content = content_of(message, decoded, timed=source.time is not None)
            self._identities.know(source, sender)
            self._identities.sequences[sender].take_back(decoded.sequence, decoded.epoch, content)
        elif source.time is not None:
            self._identities.know(source, sender)
            self._identities.contents[sender].take_back(message)

    # time

    def heard(self, source: SourceConfig, decoded: Decoded, arrival: int) -> None:
        """A message with a time of its own says how the board's clock stands to its source's."""
        if source.time is not None and decoded.readings:
            self.guard.heard(source.topic, decoded.time_us - arrival)
        if len(self.held):
            self.look()

    def look(self) -> None:
        """Judge what waits for the clock again where that was set; as much at once as a batch takes."""
        was_set = self.guard.was_set(waiting=self.held.has_futures)
        if was_set:
            self._began = None
        if was_set or self._unfinished:
            self._unfinished = False
            latest = self.guard.latest(self._clock())
            for number in self.held.futures:
                if not self.desk.has_room:
                    self._unfinished = True
                    return
                self._judge(number, latest)

    def _judge(self, number: int, latest: int) -> None:
        row = self.held.get(number)
        if row.came_unset:
            if not self.guard.is_unset():
                self._place(number)
            return
        decoded = self._decoded(row)
        if decoded is None:
            row = self._take(number)
            self.desk.refuse(row.message, row.arrival_us, "unknown_topic", "no [[source]] reads it any more")
        elif any(row.counted_to < time_us <= latest for _, time_us, _ in decoded.readings):
            self._take(number)
            self.desk.count(row.message, decoded, row.arrival_us, doubt=row.doubt, after=row.counted_to, latest=latest)

    def _place(self, number: int) -> None:
        """Count a message that came before the clock was set, at the time when it came by the clock as it is now.

        Of an earlier boot only the time by its own clock is known, and that it was before this boot.
        """
        row = self._take(number)
        name, began = self._booted()
        if row.why == UNSET + name:
            arrival, counter = began + row.counted_to, "placed.unset_clock" if self.guard.is_unset() else "placed"
        else:
            counter = "placed.earlier_boot"
            arrival = min(row.arrival_us, began) if row.arrival_us >= CLOCK_NEVER_SET else began
        row = row._replace(arrival_us=arrival)
        decoded = self._decoded(row)
        if decoded is None:
            self.desk.refuse(row.message, arrival, "unknown_topic", "no [[source]] reads it any more")
            return
        self.desk.note(counter)
        self.desk.count(row.message, decoded, arrival, doubt=row.doubt)

    def _booted(self) -> tuple[str, int]:
        """This boot, and when it began by the clock as it is: found once after a step, so that the order stays."""
        if self._began is None:
            now = self._clock()  # before the other one: what is placed lies before what comes now
            name, since = boot()
            self._began = name, now - since
        return self._began

    def age(self) -> None:
        """Decide what has waited too long for a second message."""
        now = time.monotonic()
        for sequences in [*self._identities.sequences.values()]:
            self.settle(sequences.due(now))

    def save(self, connection: sqlite3.Connection) -> None:
        """Write what changed, inside the caller's transaction."""
        self.held.save(connection)

    def saved(self) -> None:
        """The transaction is durable."""
        self.held.saved()
        self.changed = False
