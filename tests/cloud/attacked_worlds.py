"""What is sent, lost, late, keyed and mistimed at once, by the agent's own numbers: and what of each stream is missing.

A device sends numbered messages. One stream is in each of them, one of three keys is, and one stream is in few. Its
clock may be set back. What comes late has its own time, or that at which it came. The agent may be started anew.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from memory_stores import empty
from sent_worlds import sealed, squeezed

from sluicegate_agent.identity import Sequences, Verdict
from sluicegate_agent.identity.returned import Returned
from sluicegate_agent.streams import Stream

SECOND = 1_000_000


@dataclass(frozen=True)
class Message:
    """Its number, the device's clock when its readings were taken, the streams that it has readings of."""

    number: int
    time: int
    streams: tuple[str, ...]


@dataclass
class Line:
    """Of one stream, in the order in which the agent took them: numbers and times; and its documents, with which of
    these each has.
    """

    numbers: list[int] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    documents: list[tuple[bytes, range]] = field(default_factory=list)


@dataclass
class Attack:
    """What a device sent, and what the agent made of what arrived; `restarts`: it took the numbers for another run."""

    device: str
    sent: list[Message]
    lines: dict[str, Line]
    restarts: bool


def attack(
    rng: random.Random, device: str, *, whole: bool, back: bool, stamps: bool, step: int = 1, horizon: int = 4096
) -> Attack:
    """`whole`: each stream is in each message; `back`: clocks are set back; `stamps`: late ones may have no time.

    `step`: µs by which the device's clock goes on; `horizon`: so many numbers are remembered.
    """
    sent = [replace(each, time=each.time // step * step) for each in _sent(rng, whole=whole, back=back)]
    arrivals = [*_arriving(rng, sent, stamps=stamps and rng.random() < 0.7)]
    agent = _Agent(rng, horizon)
    for message, time in arrivals:
        agent.hear(message, time)
    restarts = "sequence_restarts" in agent.told
    lines = {name: agent.lines[name] for name in agent.streams}
    for name, line in lines.items():
        line.documents = [*_documents(rng, device, name, agent.streams[name])]
    return Attack(device, sent, lines, restarts)


def _sent(rng: random.Random, *, whole: bool, back: bool) -> Iterator[Message]:
    clock, step = 1_000_000 * SECOND + rng.randrange(500) * SECOND, rng.choice([2, 10]) * SECOND
    turns = {rng.randrange(3, 120) for _ in range(rng.randrange(1, 3))} if back else set[int]()
    for number in range(rng.randrange(20, 150)):
        clock += rng.randrange(1, step)
        clock += rng.choice([0] * 40 + [300]) * SECOND
        if number in turns:
            clock -= rng.choice([3, 40, 400, 900_000]) * SECOND
        few = ("few",) if whole or rng.random() < 0.15 else ()
        keys = ("k[0]", "k[1]", "k[2]")
        yield Message(number, clock, ("all", *(keys if whole else [rng.choice(keys)]), *few))


def _arriving(rng: random.Random, sent: list[Message], *, stamps: bool) -> Iterator[tuple[Message, int | None]]:
    """Messages with their own time, or None: the agent's clock, which is that of the newest message sent."""
    lost, late, gone = rng.choice([0.0, 0.03, 0.2]), rng.choice([0.0, 0.05, 0.3]), 0
    waits: list[tuple[int, Message]] = []
    for at, message in enumerate(sent):
        for due in [each for each in waits if each[0] <= at]:
            waits.remove(due)
            yield due[1], (None if stamps else due[1].time)
        gone = rng.randrange(1, 12) if at and rng.random() < 0.01 else max(0, gone - 1)
        if at and (gone or rng.random() < lost):
            continue
        if at and rng.random() < late:
            waits.append((at + rng.randrange(1, 20), message))
        else:
            yield message, message.time


class _Agent:
    """The agent's memory of numbers and its streams, without what is around them."""

    def __init__(self, rng: random.Random, horizon: int) -> None:
        self._rng, self._horizon = rng, horizon
        self._store = empty()
        self._sequences = Sequences(self._store, "source", horizon)
        self.streams: dict[str, Stream] = {}
        self.lines: dict[str, Line] = {}
        self.told: dict[str, int] = {}
        self._held: dict[int, Message] = {}
        self._now = 0
        self._size = rng.choice([1, 3, 20, 64]), rng.choice([30, 3_600]) * SECOND
        self._dies = rng.choice([0.0, 0.0, 0.05])

    def hear(self, message: Message, time: int | None) -> None:
        """As the pipeline does: what waited and is decided first."""
        self._now = max(self._now, message.time) if time is not None and not self._now else (time or self._now)
        found = self._sequences.check(message.number, None, 2 + message.number, time)
        for each in found.released:
            held = self._held.pop(each.number)
            if each.verdict is Verdict.NEW:
                self._count(held, held.time)
        if found.verdict is Verdict.WAITS:
            self._held[message.number] = message
            self._sequences.waits(message.number)
        elif found.verdict is Verdict.NEW:
            self._count(message, self._now if time is None else time)
        self.told |= self._sequences.told()
        if self._rng.random() < self._dies and not self._held:
            self._restart()

    def _count(self, message: Message, time: int) -> None:
        said = self._sequences.tally(message.number)
        for name in message.streams:
            stream = self.streams.setdefault(name, Stream(1, name, *self._size))
            stream.without = stream.without or Returned()
            stream.add(float(message.number % 9), time, said)
            line = self.lines.setdefault(name, Line())
            line.numbers.append(message.number)
            line.times.append(time)
        for name in self.streams.keys() - {*message.streams} if said < 0 else ():
            self.streams[name].is_without(said)

    def _restart(self) -> None:
        store: sqlite3.Connection = self._store
        self._sequences.save(store)
        self._sequences = Sequences(store, "source", self._horizon)
        for name, stream in self.streams.items():
            row, closed = stream.pack(), stream.closed
            self.streams[name] = Stream(1, name, *self._size)
            self.streams[name].restore(row)
            self.streams[name].closed = closed


def _documents(rng: random.Random, device: str, name: str, stream: Stream) -> Iterator[tuple[bytes, range]]:
    stream.close()
    squeezed(rng, stream.closed, rng.choice([0, 0, len(stream.closed) // 3, len(stream.closed)]))
    yield from sealed(rng, device, name, stream.closed)


def missing(attacked: Attack, name: str, ordinals: set[int]) -> Iterator[int]:
    """The times of readings that were sent and are not merged, between the stream's first and newest number that are.

    But for those of which nothing came that tells of them: neither their document nor that of the next one in order.
    """
    line = attacked.lines[name]
    came = {line.numbers[at] for at in ordinals}
    if not came:
        return
    since = max(line.numbers[0], min(came))
    for message in attacked.sent:
        if name in message.streams and message.number not in came and since < message.number < max(came):
            if message.number in line.numbers:
                mine = line.numbers.index(message.number)
                before = [at for at in range(mine) if line.numbers[at] > message.number]
                if before and before[0] not in ordinals:
                    continue
                yield line.times[mine]
            else:
                told = next(at for at, number in enumerate(line.numbers) if number > message.number)
                if told in ordinals:
                    yield message.time
