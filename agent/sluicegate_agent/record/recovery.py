"""A restart plays the record back: afterwards the tables are as if each commit had written them, to the bit.

Streams take the readings of each frame and close their buckets as they did; windows are told of the same readings and
times; all else stands in the frames as rows, counts and letters. One transaction writes the tables and begins the
record anew, so a process that ends in the middle plays back again.
"""

from __future__ import annotations

import contextlib
import json
import logging
import sqlite3
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate.format.bucket import Builder
from sluicegate_agent import dead_letters
from sluicegate_agent.backlog.rows import insert_rows, sound
from sluicegate_agent.behind import Behind
from sluicegate_agent.checksums import BEFORE, BYTES, count, kept_time, require_sound
from sluicegate_agent.config.carrying import asked_of
from sluicegate_agent.doubts import Doubts
from sluicegate_agent.identity.unsure import lose_memory
from sluicegate_agent.record import file
from sluicegate_agent.record.frame import ADD, ADD_IN_DOUBT, ADVANCE, CLOSE, FEED, Body, Step, Steps, unpack
from sluicegate_agent.record.recorder import begin
from sluicegate_agent.record.rows import Rows
from sluicegate_agent.streams import Closed, Stream
from sluicegate_agent.tables.streams import stored_rows

if TYPE_CHECKING:
    from sluicegate_agent.config import Config, WindowConfig
    from sluicegate_agent.state.opening import Stored

log = logging.getLogger("sluicegate.state")
#: Readings that wait for the windows, over all streams.
_TOGETHER = 65_536
Batch = tuple["array[float]", "array[int]"]
Opening = Callable[[sqlite3.Connection, int, "WindowConfig", "Sequence[WindowConfig]"], "Stored"]


def recover(
    connection: sqlite3.Connection,
    folder: Path,
    config: Config | None = None,
    open_window: Opening | None = None,
    frames: file.Frames | None = None,
) -> bool:
    """Bring the tables up to the last whole frame, inside the caller's transaction.

    Whether the record is of another time than the tables: one of them is from before.

    `open_window` continues a stored window. Without it windows stay as of the last fold: for who looks at a copy of the
    tables. `frames`: what was read of the record already. Raises OSError, and sqlite3.DatabaseError for a row that is
    not as it was written.
    """
    meta = dict(connection.execute("SELECT key, value FROM meta WHERE key = 'record'"))
    if "record" not in meta and not file.has_frames(folder):
        return False
    if not file.is_fold(meta.get("record")):
        frames = None  # the tables do not tell any more which frames follow them
    elif frames is None:
        frames = file.read(folder, meta["record"])
    player = Player(connection, config, open_window)
    before = kept_time(connection, BEFORE)
    is_apart = "record" not in meta  # there are frames, and these tables knew of none
    if frames is not None and before is not None:
        is_apart = frames.is_of_another_time(before)
    lost = _played(player, frames) if frames is not None and not is_apart else Lost(whole=True)
    if lost is None and frames is not None and frames.is_shorter(kept_time(connection, BYTES) or 0):
        lost = Lost()
    if lost is not None:
        readings = lost.readings.total()
        told = "of another time than its tables" if is_apart else "of no use" if frames is None else "damaged"
        log.error(
            "the record of %s is %s: what was acknowledged since the tables were last written is lost with it, %d "
            "readings that can still be told among it", folder, told, readings,
        )  # fmt: skip
        player.count({"record.damaged": 1, "record.readings_lost": readings})
        player.lose(lost)
        lose_memory(connection, max([now_us(), *lost.latest.values()]))
        told = json.dumps({"at_us": now_us(), "readings": readings})
        connection.execute("INSERT OR REPLACE INTO meta VALUES ('record lost', ?)", (told,))
    if player.frames or lost is not None or _has_handed(connection):
        player.save()
        begin(connection, folder if open_window else None)
    return is_apart


def now_us() -> int:
    """The board's clock, µs since 1970 UTC."""
    return time.time_ns() // 1000


def now_or_later(streams: Iterable[Stream]) -> int:
    """Nothing that these streams have had, or may have had, is later, µs."""
    newest = [stream.builder.newest for stream in streams if stream.builder]
    return max([now_us(), *(each for each in newest if each is not None)])


def lose_history(connection: sqlite3.Connection, stream: Stream, windows: Iterable[str] = ()) -> None:
    """What windows had of a stream is lost: their answers say so for as long as they would have held it.

    `windows`: only these lack it, and nothing later than what the stream has; none: all do, up to now.
    """
    found = connection.execute("SELECT row FROM doubtful WHERE stream = ?", (stream.number,)).fetchone()
    doubts, newest = Doubts(found[0] if found else None), stream.builder.newest if stream.builder else None
    latest = newest if windows and newest is not None else max(now_us(), newest or 0)
    doubts.lose(stream.accepted, latest, windows)
    doubts.save(connection, stream.number)


class Lost:
    """What a damaged record lost, as far as it can be read: readings by stream, and the latest time of each.

    `whole`: nothing of the record can be read.
    """

    def __init__(self, *, whole: bool = False) -> None:
        self.readings: Counter[int] = Counter()
        self.latest: dict[int, int] = {}
        self.whole = whole

    def add(self, body: bytes) -> None:
        """A frame that is not played back."""
        with contextlib.suppress(ValueError):
            for step in Steps.unpack(unpack(body).steps):
                if step.times:
                    self.readings[step.stream] += len(step.times)
                    latest = max(step.times)
                    self.latest[step.stream] = max(self.latest.get(step.stream, latest), latest)


def _played(player: Player, frames: file.Frames) -> Lost | None:
    """Play back what follows without a hole; what the frames beyond one say, None where there is no hole."""
    lost: Lost | None = None
    for place, body in enumerate(frames):
        if lost is None:
            try:
                player.play(unpack(body))
                continue
            except ValueError as error:
                log.error("frame %d of the record says nonsense: %s", place + 1, error)
                lost = Lost()
        lost.add(body)
    if frames.is_next_damaged():
        lost = lost or Lost()
    for body in frames.beyond():
        lost = lost or Lost()
        lost.add(body)
    return lost


def _has_handed(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM handed LIMIT 1").fetchone() is not None


class Player:
    """The streams and windows of the tables, on which frames are played."""

    def __init__(self, connection: sqlite3.Connection, config: Config | None, open_window: Opening | None) -> None:
        self._connection = connection
        self._streams = StoredStreams(connection, config)
        self._windows = StoredWindows(connection, config, open_window)
        self._rows = Rows()
        self._counted = Counter[str]()
        self.frames, self._nobodys = 0, Counter[int]()

    def play(self, body: Body) -> None:
        """Take over one frame. Raises ValueError where it says nonsense: then nothing of it was taken over."""
        steps = Steps.unpack(body.steps)
        self._rows.apply(body.rows)
        self.count(body.counters)
        dead_letters.write(self._connection, body.letters)
        for step in steps:
            if step.kind == FEED:
                self._windows.feed()
                continue
            stream = self._streams.get(step.stream, body)
            if stream is None:
                self._nobodys[step.stream] += len(step.times)
            else:
                self._step(stream, step)
        self._streams.hand_on()
        self.frames += 1

    def _step(self, stream: Stream, step: Step) -> None:
        if step.kind == CLOSE:
            stream.close()
        elif step.kind == ADVANCE:
            self._windows.advance(stream, step.number)
        elif step.times:
            doubt = int(step.kind == ADD_IN_DOUBT)
            if doubt:
                self._streams.doubt(stream, step)
            stream.add_many(step.values, step.times, 0, step.number, doubt)
            self._windows.add(stream, step)
        elif step.kind == ADD:
            stream.is_without(step.number)

    def count(self, amounts: dict[str, int]) -> None:
        """Count, with the tables."""
        self._counted.update(amounts)

    def lose(self, lost: Lost) -> None:
        """Have each stream say that readings of it are lost."""
        self._streams.lost = lost

    def save(self) -> None:
        """Write the tables."""
        if lost := self._nobodys.total():
            log.error("%d readings in the record are of streams that the store does not have", lost)
            self.count({"record.readings_lost": lost})
            self._streams.owe(self._nobodys)
        self._rows.save(self._connection)
        self._streams.save()
        begun_anew = self._windows.save()
        self.count({"windows.begun_anew": begun_anew})
        for number, names in self._windows.damaged.items():
            if (stream := self._streams.get(number)) is not None:
                lose_history(self._connection, stream, names)
        count(self._connection, self._counted)


class StoredStreams:
    """The streams of the tables, and what they have to hand on."""

    def __init__(self, connection: sqlite3.Connection, config: Config | None) -> None:
        self._connection, self._config = connection, config
        self._handed = _handed(connection)
        self._found: dict[int, Stream | None] = {}
        self._doubts: dict[int, Doubts] = {}
        self._waiting: dict[int, list[Closed]] = {}
        self.lost: Lost | None = None

    def get(self, number: int, body: Body | None = None) -> Stream | None:
        """A stream, with the bucket's size that it had at a frame; None where the tables have none."""
        if number not in self._found:
            self._found[number] = self._loaded(number)
        stream = self._found[number]
        if stream is not None and body is not None:
            stream.readings, stream.span_us = body.readings, body.span
        return stream

    def _loaded(self, number: int) -> Stream | None:
        found = next(stored_rows(self._connection, "id = ?", number), None)
        if found is None:
            return None
        stream = Stream(number, found.name, 1, 1)
        stream.restore(found.row)
        stream.incarnation, stream.key, stream.is_retired = found.incarnation, found.key, bool(found.retired)
        if self._config is not None:
            stream.carries = asked_of(self._config, stream.name)
        is_known = self._connection.execute("SELECT 1 FROM origin WHERE stream = ?", (number,)).fetchone()
        stream.is_known = is_known is not None
        return stream

    def doubt(self, stream: Stream, step: Step) -> None:
        """The readings that come next are in doubt."""
        for place, (at, value) in enumerate(zip(step.times, step.values, strict=True)):
            self._doubts_of(stream).add(stream.accepted + place, at, value)

    def _doubts_of(self, stream: Stream) -> Doubts:
        if stream.number not in self._doubts:
            query = "SELECT row FROM doubtful WHERE stream = ?"
            found = self._connection.execute(query, (stream.number,)).fetchone()
            self._doubts[stream.number] = Doubts(found[0] if found else None)
        return self._doubts[stream.number]

    def _lose(self, lost: Lost) -> None:
        """Any stream may have had readings in a frame that cannot be read; none of them is later than the clock says,
        or than what is known of the stream before and after. A sensor whose clock is ahead may have gone on with that.

        What numbers tell of them when the next one comes becomes the gap of a bucket; without numbers it is owed.
        """
        fold = int(self._config.commit.fold) if self._config else 0
        for (number,) in self._connection.execute("SELECT id FROM stream WHERE retired = 0").fetchall():
            stream = self.get(number)
            if stream is None:
                continue
            now, newest = now_us(), (stream.builder.newest if stream.builder else None) or 0
            latest = max(now, newest, lost.latest.get(number, 0))
            self._doubts_of(stream).lose(stream.accepted, latest + fold * (lost.whole or newest > now))
            if self._config is not None and not self._config.is_numbered(stream.name):
                stream.owed, stream.changed = stream.owed + lost.readings[number] + 1, True

    def owe(self, lost: Mapping[int, int]) -> None:
        """So many readings are lost of streams whose rows are: those that took their places say so."""
        taken_over = "SELECT id FROM stream JOIN origin USING (name) WHERE origin.stream = ? AND stream.retired = 0"
        for number, readings in lost.items():
            for (place,) in self._connection.execute(taken_over, (number,)).fetchall():
                if (stream := self.get(place)) is not None:
                    stream.owe(readings)

    def hand_on(self) -> None:
        """Closed buckets wait for the outbox, unless they are there."""
        for stream in self._found.values():
            if stream is not None and stream.closed:
                before = self._handed.get(stream.number, 0)
                closed = [each for each in stream.closed if each.first >= before]
                self._waiting.setdefault(stream.number, []).extend(closed)
                stream.closed.clear()

    def save(self) -> None:
        """Write their rows. Of readings that were lost none takes an ordinal that is in use."""
        for number, before in self._handed.items():
            stream = self.get(number)
            if stream is not None and stream.builder is not None and _begins(stream.builder) < before:
                stream.builder = Builder(stream.builder.center, before)
                stream.forget_readings()
        if self.lost is not None:
            self._lose(self.lost)
        for stream in self._found.values():
            if stream is not None and stream.changed:
                stream.keep(self._connection)
        self._write()
        rows = [(number, doubts.pack()) for number, doubts in self._doubts.items()]
        self._connection.executemany("INSERT OR REPLACE INTO doubtful VALUES (?, ?)", rows)

    def _write(self) -> None:
        """What waits becomes rows; of a stream that has packed ones, another packed one, since these are the newest."""
        behind = Behind()
        has_packed = {stream for stream, _ in behind.load(self._connection)}
        for number, closed in self._waiting.items():
            if number in has_packed:
                behind.pack(self._connection, number, closed)
            else:
                insert_rows(self._connection, number, closed)


def _handed(connection: sqlite3.Connection) -> dict[int, int]:
    """Up to which ordinal the buckets of each stream have left the record; by their own where a row of that is lost."""
    found = Counter[int]()
    for stream, before, crc in connection.execute("SELECT stream, before, crc FROM handed"):
        require_sound("handed", crc, stream, before)
        found[stream] = before
    found |= Counter(dict(connection.execute("SELECT stream, max(first + readings) FROM chunk GROUP BY stream")))
    query = "SELECT stream, max(first), bucket, readings, crc FROM outbox GROUP BY stream"
    for row in connection.execute(query):
        bucket, _ = sound(*row)
        found |= Counter({row[0]: row[1] + int.from_bytes(bucket[8:16], "little")})
    found |= Counter({stream: shape.first + shape.n for stream, shape in Behind().load(connection)})
    return found


def _begins(builder: Builder) -> int:
    """The ordinal of the first reading that no closed bucket has."""
    return builder.next - builder.n


class StoredWindows:
    """The windows of the tables that the configuration still asks for; others begin anew or are forgotten anyway."""

    def __init__(self, connection: sqlite3.Connection, config: Config | None, open_window: Opening | None) -> None:
        self._connection, self._config, self._open_window = connection, config, open_window
        self._found: dict[int, list[Stored]] = {}
        self._waiting: dict[int, Batch] = {}
        self._with_ends: dict[int, list[Stored]] = {}
        self._since: dict[int, Batch] = {}
        self._count = 0

    def _of(self, stream: Stream) -> list[Stored]:
        if stream.number not in self._found:
            found = [*self._loaded(stream)]
            self._found[stream.number] = found
            self._with_ends[stream.number] = [window for window in found if window.asked[0].sliced]
        return self._found[stream.number]

    def _loaded(self, stream: Stream) -> Iterable[Stored]:
        if (
            self._config is None
            or self._open_window is None
            or stream.is_retired
            or not self._config.feeds(stream.name)
        ):
            return
        query = "SELECT 1 FROM window WHERE stream = ? AND name IN (?, ?) AND definition = ?"
        for each in self._config.kept_of(stream.name):
            key = stream.number, each.name, each.was or each.name, each.definition
            if self._connection.execute(query, key).fetchone() is not None:
                sharing = self._config.sharing(stream.name, each.name)
                yield self._open_window(self._connection, stream.number, each, sharing)

    @property
    def damaged(self) -> dict[int, list[str]]:
        """The windows whose rows were not as they were written, by stream."""
        damaged = {
            number: [name for window in found if window.is_damaged for name in window.names]
            for number, found in self._found.items()
        }
        return {number: names for number, names in damaged.items() if names}

    def add(self, stream: Stream, step: Step) -> None:
        """Readings, in compiled batches: the same bits as one after the other."""
        if not self._of(stream):
            return
        number, empty = stream.number, step.values[:0]
        if type(self._waiting.get(number, (empty,))[0]) is not type(empty):
            self._feed_others(number)
        for waiting in (self._waiting, self._since) if self._with_ends[number] else (self._waiting,):
            values, times = waiting.setdefault(
                number, (empty[:] if waiting is self._waiting else array("d"), array("q"))
            )
            values += step.values
            times += step.times
        self._count += len(step.times)

    def feed(self) -> None:
        """They were handed what had come: those with ends are now, in the same batches; the others when it is much."""
        for number, (values, times) in self._since.items():
            for window in self._with_ends[number]:
                window.insert_many(values, times)
        self._since.clear()
        if self._count >= _TOGETHER:
            self._feed_others(*self._waiting)

    def _feed_others(self, *numbers: int) -> None:
        for number in numbers:
            values, times = self._waiting.pop(number, (array("d"), array("q")))
            self._count -= len(values)
            for window in self._found.get(number, ()) if values else ():
                if window not in self._with_ends[number]:
                    window.insert_many(values, times)

    def advance(self, stream: Stream, time: int) -> None:
        """It is so late for a stream that says nothing."""
        self._feed_others(stream.number)
        for window in self._of(stream):
            window.advance(time)

    def save(self) -> int:
        """Write their rows; how many had begun anew."""
        self.feed()
        self._feed_others(*self._waiting)
        windows = [window for found in self._found.values() for window in found]
        for window in windows:
            window.save(self._connection)
        return sum(window.begun_anew for window in windows)
