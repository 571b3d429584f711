"""Numbered readings as a device sends them, lost, delayed and kept back on the way; and how complete each window is.

The truth is made of what was sent, what arrived and which documents came. Buckets are those of the agent.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from sluicegate.format.bucket import Bucket
from sluicegate.format.chunk import Chunk, encode
from sluicegate_agent import carried
from sluicegate_agent.backlog.rows import one_of
from sluicegate_agent.carried import unpack_readings
from sluicegate_agent.identity import tally
from sluicegate_agent.identity.epoch import Epoch
from sluicegate_agent.identity.returned import Returned
from sluicegate_agent.streams import SINGLES_MOST, Closed, Stream

SECOND = 1_000_000


@dataclass(frozen=True)
class Sent:
    """A message: its number, the time of its reading (µs), and the streams that it has a reading for."""

    number: int
    time: int
    streams: tuple[str, ...]


@dataclass
class Held:
    """Of one stream: when its readings were taken, by number; the messages that arrived, by ordinal; of each number
    that is not there when a later one comes the ordinal that shows it, −1: none does.
    """

    times: dict[int, int]
    arrived: list[Sent] = field(default_factory=list)
    told: dict[int, int] = field(default_factory=dict)
    documents: list[tuple[bytes, range]] = field(default_factory=list)


@dataclass
class World:
    """What one device sent, and what became of it: by stream."""

    device: str
    sent: list[Sent]
    streams: dict[str, Held]


def random_world(
    rng: random.Random,
    device: str = "d",
    *,
    stamped: bool = False,
    lossless: bool = False,
    merged: int = 0,
    rare: float = 0.0,
    clock: int = 1,
) -> World:
    """Losses and outages; what was kept back comes after later readings, at once or among them.

    Each message has a reading of every stream: else a message that comes late takes something back at another time.

    `stamped`: a reading that comes late has the time at which it came. `lossless`: all come. `merged`: of so many
    buckets the agent makes one, about. `rare`: the share of messages without a reading of stream t. `clock`: µs by
    which the sensor's clock goes on.
    """
    streams = ("s", "t") if rare else rng.choice([("s",), ("s",), ("s", "t")])
    sent = [Sent(one.number, one.time // clock * clock, one.streams) for one in _sent(rng, streams)]
    sent[1:-1] = [Sent(one.number, one.time, ("s",)) if rng.random() < rare else one for one in sent[1:-1]]
    order = [*_on_the_way(rng, sent, stamped=stamped, lossless=lossless)]
    world = World(device, sent, {})
    for stream in streams:
        held = _arrived(Held({one.number: one.time for one in sent if stream in one.streams}), order, stream)
        if held.arrived:
            held.documents = [*_documents(rng, world.device, stream, order, merged)]
            world.streams[stream] = held
    return world


def _sent(rng: random.Random, streams: Sequence[str]) -> Iterator[Sent]:
    now, step, silent = rng.randrange(600) * SECOND, rng.choice([1, 3, 20]) * SECOND, rng.choice([0.0, 0.03])
    since = rng.randrange(1, 100)
    for number in range(since, since + rng.randrange(2, 160)):
        now += rng.randrange(1, step + 1)
        now += rng.randrange(400) * SECOND if rng.random() < silent else 0
        yield Sent(number, now, tuple(streams))


def _on_the_way(rng: random.Random, sent: Sequence[Sent], *, stamped: bool, lossless: bool) -> Iterator[Sent]:
    """In the order in which they arrive, those that do."""
    lost, late, outage = rng.choice([0.0, 0.02, 0.2]), rng.choice([0.0, 0.03, 0.3]), rng.choice([0.0, 0.0, 0.03])
    lost *= not lossless
    kept: list[tuple[int, Sent]] = []
    until, keeps = 0, False
    for at, one in enumerate(sent):
        if at >= until and rng.random() < outage:
            until, keeps = at + rng.randrange(1, 30), lossless or rng.random() < 0.7
        due = [old for when, old in kept if when <= at]
        kept = [each for each in kept if each[0] > at]
        yield from (Sent(old.number, one.time, old.streams) if stamped else old for old in due)
        if lossless and at in (0, len(sent) - 1):  # what is before the first is not known, nor what the last one tells
            yield from (old for _, old in kept)
            yield one
            continue
        if rng.random() < lost or (at < until and not keeps):
            continue
        if at < until:
            kept.append((until + rng.choice([0, 1, at - until + 30, 60]), one))
        elif rng.random() < late:
            kept.append((at + rng.randrange(1, 30), one))
        else:
            yield one


def _arrived(held: Held, order: Sequence[Sent], stream: str) -> Held:
    seen = set[int]()
    for one in order:
        seen.add(one.number)
        if stream in one.streams:
            low, high = min(seen), max(seen)
            for number in range(low, high) if one.number == high else ():  # what comes late tells of none
                held.told.setdefault(number, len(held.arrived) or -1)
            held.arrived.append(one)
    return held


def _documents(
    rng: random.Random, device: str, stream: str, order: Sequence[Sent], merged: int
) -> Iterator[tuple[bytes, range]]:
    """What the agent seals; now and then it merged neighbours before, as it does where its disk is full."""
    made = buckets(order, stream, Stream(1, stream, rng.choice([1, 4, 30, 100]), rng.choice([15, 3_600]) * SECOND))
    squeezed(rng, made, len(made) - len(made) // merged if merged else rng.choice([0, 0, len(made) // 3, len(made)]))
    yield from sealed(rng, device, stream, made)


def sealed(rng: random.Random, device: str, stream: str, made: Sequence[Closed]) -> Iterator[tuple[bytes, range]]:
    """Documents of these rows, and the ordinals that each has."""
    at = 0
    while at < len(made):
        here = made[at : at + rng.randrange(1, 7)]
        at += len(here)
        yield document(device, stream, here, made[0]), range(here[0].first, here[-1].first + here[-1].n)


def document(device: str, stream: str, made: Sequence[Closed], first: Closed) -> bytes:
    """One of these rows; `first`: the stream's first."""
    records = [Bucket.unpack(carried.parted(each.bucket)[0]) for each in made]
    parts = [carried.parted(each.bucket)[1] for each in made]
    readings = [unpack_readings(each.readings) if each.readings else None for each in made]
    extras = {name: [each.get(name) for each in parts] for name in {*chain.from_iterable(parts)}}
    center = Bucket.unpack(carried.parted(first.bucket)[0]).x_first
    return encode(Chunk(device, stream, f"{1:016x}", center, records, readings, extras=extras))


def squeezed(rng: random.Random, made: list[Closed], steps: int) -> None:
    """So often a row is merged with the next, or the last one loses its single readings."""
    for _ in range(steps):
        at = rng.randrange(len(made))
        few = [len(each.readings or b"") // 16 for each in made[at : at + 2]]
        keeps = len(few) == 2 and all(few) and sum(few) <= SINGLES_MOST
        made[at : at + 2] = [one_of(made[at : at + 2], (), keeps=keeps)]


def buckets(order: Sequence[Sent], stream: str, agent: Stream) -> list[Closed]:
    """By the agent's stream, told what each message says of the numbers that were passed over."""
    agent.without = Returned()
    epoch = Epoch(1, 4096, order[0].number) if order else None
    for at, one in enumerate(order):
        before = epoch.missing if epoch else 0
        is_late = epoch is not None and at > 0 and epoch.put(one.number, 1, None)
        lost = epoch.missing if epoch and one.number >= epoch.high else before
        said = tally.late(epoch.passed_at(one.number), lost, at) if epoch and is_late else lost
        if stream in one.streams:
            agent.add(float(one.number % 7), one.time, said)
        elif is_late:
            agent.is_without(said)
    agent.close()
    return agent.closed


@dataclass
class Found:
    """Windows that were looked at: `right`, `lower` than the truth, of those complete in truth how many `say` so."""

    windows: int = 0
    right: int = 0
    lower: int = 0
    complete: int = 0
    say: int = 0
    hidden: int = 0
    wrong: list[str] = field(default_factory=list)

    def judge(
        self, rows: Iterable[Mapping[str, Any]], came: Sequence[tuple[Held, set[int]]], slide: int, width: int
    ) -> None:
        """Hold the rows of streams together to what was sent: `came` has each stream's ordinals that were merged."""
        merged = [held.arrived[at].time for held, ordinals in came for at in ordinals]
        missing = [time for held, ordinals in came for time in _missing(held, ordinals, slide, width)]
        seen: set[int] = set()
        for row in rows:
            for start in range(row["window_start"], row["window_end"] - width + 1, slide):
                seen.add(start)
                self._one(row["completeness"], start, start + width, merged, missing)
        self._without_a_row(seen, merged, missing, slide, width)

    def _one(self, value: float | None, start: int, end: int, merged: list[int], missing: list[int]) -> None:
        here = sum(start <= time < end for time in merged)
        gone = sum(start <= time < end for time in missing)
        truth = here / (here + gone) if here + gone else None
        said = None if value is None or math.isnan(value) else value
        self.windows += 1
        if truth is None or said is None:
            if gone:
                self.wrong.append(f"window {start}: null, {gone} are missing")
            return
        self.complete += gone == 0
        self.say += gone == 0 and said == 1.0
        self.right += abs(said - truth) < 1e-9
        self.lower += said < truth - 1e-9
        if said > truth + 1e-9:
            self.wrong.append(f"window {start}: {said}, in truth {truth}: {here} are there, {gone} missing")
            self.hidden += said == 1.0

    def _without_a_row(self, seen: set[int], merged: list[int], missing: list[int], slide: int, width: int) -> None:
        """Between the first and the last reading a window of which something is missing has a row."""
        for time in missing:
            for start in range((time - width) // slide * slide + slide, time // slide * slide + 1, slide):
                inside = min(merged) // slide * slide <= start <= max(merged)
                if start not in seen and inside:
                    self.wrong.append(f"window {start}: no row, a reading of {time} is missing")


def _missing(held: Held, ordinals: set[int], slide: int, width: int) -> Iterator[int]:
    """The times of what is missing as far as the device has windows: from its first reading that came to its last."""
    times = [held.arrived[at].time for at in ordinals] or [0]
    begin, end = min(times) // slide * slide - width + slide, max(times) // slide * slide + slide
    yield from (time for time in _gone(held, ordinals) if begin <= time < end)


def _gone(held: Held, ordinals: set[int]) -> Iterator[int]:
    """The times of readings that documents which came say exist, and that are in none of them.

    Where the document of a late reading did not come, nor the one that told of its loss, nobody knows when it was.
    """
    newest, latest = max(ordinals, default=-1), 0
    for at, one in enumerate(held.arrived):
        known = one.time >= latest or held.told.get(one.number) in ordinals
        latest = max(latest, one.time)
        if at not in ordinals and at < newest and known:
            yield one.time
    numbers = {one.number for one in held.arrived}
    for number, at in held.told.items():
        if number not in numbers and at in ordinals and number in held.times:
            yield held.times[number]
