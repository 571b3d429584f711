"""From outbox rows to a document that never changes: just before it is sent, so that a backlog can still shrink."""

from __future__ import annotations

import sqlite3
import time
from typing import TYPE_CHECKING, Any

from sluicegate.constants import MOST_EXTRAS
from sluicegate.format import chunk as chunks
from sluicegate.format.at_hand import usable
from sluicegate.format.bucket import PACKED
from sluicegate.format.late import LATE_NAME
from sluicegate_agent import carried, faults
from sluicegate_agent.backlog.rows import READING_COST, ROW_COST, encoded, parts_of, unpacked
from sluicegate_agent.carried import unpack_readings
from sluicegate_agent.naming.names import device_of, title_of
from sluicegate_agent.outbox import DOCUMENT_COST, Sealed
from sluicegate_agent.state import State
from sluicegate_agent.streams import Stream
from sluicegate_agent.sync.fresh import Shares
from sluicegate_agent.sync.pace import Pace

if TYPE_CHECKING:
    from sluicegate_agent.backlog.lanes import Lane
    from sluicegate_agent.budget.keeping import Keeping

#: Chunks sealed and not acknowledged, at most, and in how many of the largest all of them together have room: what is
#: sealed cannot be merged while the target is away.
DOCUMENTS_MOST = 256
IN_FLIGHT = 4
#: About the most bytes of rows in one document, whatever `outbox.chunk_buckets` says.
CHUNK_BYTES = 512 << 10
#: The outbox's share in use from which on more is sealed than is due by size and age, and down to which: a target that
#: takes documents leaves nothing to be merged.
CROWDED, EASED = 0.5, 0.25


class Sealer:
    """Decides which streams have a chunk due, and seals them."""

    def __init__(self, state: State, pace: Pace | None = None) -> None:
        """`pace`: of the link that documents go by; a slow one gets short documents."""
        self.state, self._pace = state, pace
        config = state.config.outbox
        self.rows = config.chunk_buckets
        self.age_seconds = config.chunk_age.seconds
        self._cost = min(CHUNK_BYTES, config.bytes // (2 * IN_FLIGHT))
        self.keeping: Keeping | None = None
        self._since: dict[int, float] = {}
        self._begun: set[int] = set()
        self.shares = Shares(state.config.sync.budget.fresh)
        first = state.config.sync.budget.first
        self._rank = {name: place for place, name in enumerate(first)}

    @property
    def cost(self) -> int:
        """About the most bytes of rows in one document, now."""
        cost = self._cost if self._pace is None else min(self._cost, self._pace.bytes)
        return cost if self.keeping is None else min(cost, self.keeping.largest(time.monotonic()))

    def due(self, now: float, *, flush: bool, ahead: bool = False) -> list[Stream]:
        """The streams with a full chunk, or rows that have waited long enough; all with rows where `flush`.

        With `ahead` those with most in a crowded outbox, too.
        """
        found = []
        for stream in (*self.state.retired, *self.state.streams.values()):
            lane = self.state.outbox.lanes.get(stream.number)
            if not lane:
                self._since.pop(stream.number, None)
                continue
            waited = now - self._since.setdefault(stream.number, now)
            if flush or self._is_full(lane) or waited >= self.age_seconds:
                found.append(stream)
        if ahead and not flush and self.is_crowded:
            found += self._largest(found)
        return sorted(found, key=lambda each: self._rank.get(each.name, 1 << 30)) if self._rank else found

    def _is_full(self, lane: Lane) -> bool:
        return len(lane) >= self.rows or lane.cost >= self.cost

    def has_backlog(self, stream: Stream) -> bool:
        """Whether more than a document of it waits."""
        lane = self.state.outbox.lanes.get(stream.number)
        return lane is not None and self._is_full(lane)

    @property
    def is_crowded(self) -> bool:
        """Whether the outbox, as it is configured, fills up."""
        return self.used >= CROWDED

    @property
    def used(self) -> float:
        """The share of the outbox in use, as it is configured: a link's budget may leave less of it."""
        outbox, asked = self.state.outbox, self.state.config.outbox
        return max(outbox.rows / asked.rows, outbox.bytes_held / int(asked.bytes))

    def _largest(self, found: list[Stream]) -> list[Stream]:
        """Of the streams that are not due those with most in the outbox, until it is eased."""
        lanes, due = self.state.outbox.lanes, {stream.number for stream in found}
        others = [each for each in (*self.state.retired, *self.state.streams.values()) if each.number not in due]
        held = [stream for stream in others if lanes.get(stream.number)]
        held.sort(key=lambda stream: -lanes[stream.number].cost)
        rows = sum(len(lanes[number]) for number in due if number in lanes)
        size = sum(lanes[number].cost for number in due if number in lanes)
        outbox, asked, taken = self.state.outbox, self.state.config.outbox, []
        for stream in held:
            if outbox.rows - rows <= EASED * asked.rows and outbox.bytes_held - size <= EASED * int(asked.bytes):
                break
            taken.append(stream)
            rows, size = rows + len(lanes[stream.number]), size + lanes[stream.number].cost
        return taken

    def seal(self, due: list[Stream], now: float, *, flush: bool = False, ahead: bool = False) -> int:
        """Seal chunks of the streams that are due, one of each in turn, while there is room; how many.

        In one transaction. Raises sqlite3.Error where the store refuses: nothing is sealed then.
        """
        faults.step("seal: begin")
        sealed, room = 0, IN_FLIGHT * self.cost
        with self.state.transaction() as connection:
            # After a transaction that failed the index has rows which the table never got, until a next one begins.
            due = [stream for stream in due if self.state.outbox.lanes.get(stream.number)]
            while due:
                for stream in self.shares.in_turn(due):
                    if self._may(room, sealed):
                        # The first carries the agent's health: saying it in all of them would only cost bytes.
                        cost = self._seal(connection, stream, None if sealed else self.state.health())
                        self.shares.sealed(stream, cost)
                        room -= cost
                        self._since[stream.number] = now
                        sealed += 1
                    else:
                        room = 0
                due = self.due(now, flush=flush, ahead=ahead) if room else []
            self.state.squeeze(connection)
        return sealed

    def _may(self, room: int, sealed: int) -> bool:
        """Whether one more may be sealed where so many are: the first always."""
        crowded = room < self.cost or self.state.outbox.sealed >= DOCUMENTS_MOST
        return self._has_room() and not (sealed and crowded)

    def _has_room(self) -> bool:
        """The first document always has: what is left shrinks; further ones only where the budget stays kept."""
        outbox = self.state.outbox
        return outbox.sealed == 0 or outbox.bytes_held + DOCUMENT_COST <= outbox.bytes_most

    def _seal(self, connection: sqlite3.Connection, stream: Stream, health: dict[str, Any] | None) -> int:
        """Seal a stream's oldest rows; what the outbox counted them with."""
        inherited = stream in self.state.retired and not stream.has_left
        # A copied state's backlog goes in another cut than the original's, which uses the same ids.
        most = 1 if inherited and stream.number not in self._begun else self.rows
        self._begun.add(stream.number)
        rows = self.state.outbox.oldest(connection, stream.number, most, self.cost)
        chunk = self._chunk(stream, rows, health)
        document = chunks.encode(chunk)
        faults.step("seal: encoded")
        first, readings = chunk.buckets[0].first, sum(bucket.n for bucket in chunk.buckets)
        number = connection.execute("SELECT coalesce(max(number), 0) + 1 FROM chunk").fetchone()[0]
        sealed = Sealed(number, chunks.document_id(chunk), readings, document)
        self.state.outbox.seal(connection, stream.number, len(rows), sealed, first)
        faults.step("seal: rows replaced")
        cost = sum(ROW_COST + len(singles or b"") // 16 * READING_COST for _, singles in rows)
        cost += sum(encoded(max(0, len(row) - PACKED)) for row, _ in rows)
        if self.keeping:
            self.keeping.sealed(len(document), cost)
        return cost

    def _chunk(
        self, stream: Stream, rows: list[tuple[bytes, bytes | None]], health: dict[str, Any] | None
    ) -> chunks.Chunk:
        if stream.builder is None:
            raise sqlite3.DatabaseError(
                f"database disk image is malformed: stream {stream.name} has buckets, no center"
            )
        buckets = [unpacked(bucket) for bucket, _ in rows]
        readings = [unpack_readings(singles) if singles else None for _, singles in rows]
        state = self.state
        device, title = device_of(stream.name) or state.config.device.id, title_of(stream.name)
        named = (device, title, stream.incarnation or state.incarnation, stream.builder.center)
        chunk = chunks.Chunk(*named, buckets, readings, health, stream.key or None, tags=stream.tags or None)
        chunk.extras = self._extras(stream, rows, chunk)
        return chunk

    def _extras(
        self, stream: Stream, rows: list[tuple[bytes, bytes | None]], chunk: chunks.Chunk
    ) -> dict[str, list[bytes | None]]:
        """By name, what each row carries. A document has room for so many: what came late, then what is asked for now.

        A document leaves out single readings that do not say all of their bucket, such as those of a loss amid merged
        ones: these are folded here.
        """
        asked = self.state.outbox.carries.get(stream.number, ())
        told = usable(chunk.buckets, chunk.readings, chunk.center, None) if asked else chunk.readings
        each_row = zip(rows, told, strict=True)
        parts = [parts_of(row, None if stays else singles, asked) for (row, singles), stays in each_row]
        former = {name for each in parts for name in each if carried.is_known(name)} - {*asked}
        late = former & {LATE_NAME}
        names = (*late, *asked, *sorted(former - late))[:MOST_EXTRAS]
        return {name: [each.get(name) for each in parts] for name in names}
