"""Resolves Sparkplug B's aliases to names by the births before them; refuses what cannot be resolved.

An alias is believed while nothing can have come between it and its birth: no number is missing, and with QoS 0 the
connection is the same. Else the node is asked for a new birth. A message that may come again is read by the birth by
which it was counted, so that it is a repeat however the aliases have changed since.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol
from zlib import crc32

from sluicegate_agent.config.model import LimitsConfig
from sluicegate_agent.config.sources import SourceConfig
from sluicegate_agent.messages import Message, Unreadable
from sluicegate_agent.payloads.sparkplug import wire
from sluicegate_agent.payloads.sparkplug.nodes import BIRTHS_KEPT, Birth, Count, Node, Nodes, Table
from sluicegate_agent.payloads.sparkplug.reading import Resolved, encode
from sluicegate_agent.payloads.sparkplug.topics import SPACE
from sluicegate_agent.payloads.sparkplug.wire import Metric, Report

log = logging.getLogger("sluicegate.sparkplug")
#: Seconds between two commands to one node.
ASKED_EVERY = 10.0
_REBIRTH = "Node Control/Rebirth"
_SESSION = "bdSeq"
_YEAR_10000_MS = 253_402_300_800_000


class House(Protocol):
    """What the pipeline knows and counts."""

    def known(self, source: SourceConfig, message: Message) -> bool:
        """Whether a message, as the session would give it, was counted before."""

    def newest(self, stream: str) -> int | None:
        """The time of a stream's newest reading, µs."""

    def note(self, counter: str, amount: int = 1) -> None:
        """Count an event."""


class Topic(NamedTuple):
    """The parts of a topic: the kind of message, the node that it is of, and its device or ""."""

    kind: str
    sender: str
    device: str
    command: str


def topic_of(topic: str) -> Topic | None:
    """The parts; None for commands, states and whatever else says nothing of a metric."""
    levels = topic.split("/")
    if levels[0] != SPACE or len(levels) not in (4, 5) or levels[2] not in _KINDS:
        return None
    _, group, kind, node, *device = levels
    if (kind[0] == "D") != bool(device):
        return None
    return Topic(kind, f"{SPACE}/{group}/{node}", device[0] if device else "", f"{SPACE}/{group}/NCMD/{node}")


_KINDS = ("NBIRTH", "NDATA", "NDEATH", "DBIRTH", "DDATA", "DDEATH")


class Session:
    """All nodes of an agent; its state is written by `save` in the commit, and clean after `saved`."""

    def __init__(self, connection: sqlite3.Connection, sources: Iterable[SourceConfig], house: House) -> None:
        self._nodes = Nodes(connection, sum(source.keys.most for source in sources))
        self._house = house
        self._asked: dict[str, float] = {}
        self._asks: dict[str, None] = {}

    # messages

    def resolve(self, source: SourceConfig, message: Message, limits: LimitsConfig) -> Message | None:
        """A message by names; None where it says nothing to count. Raises Unreadable with the reason why not."""
        topic = topic_of(message.topic)
        if topic is None:
            return None
        report = wire.read(message.payload, limits.readings)
        wanted = crc32("\n".join(sorted(source.streams.values())).encode())
        node = self._nodes.get(topic.sender, wanted)
        if topic.kind == "NDEATH":
            self._died(node, report)
            return None
        if report.time_ms is None or report.sequence is None:
            raise Unreadable(f"{topic.kind} without {'timestamp' if report.time_ms is None else 'seq'}")
        if report.sequence > 255 or report.time_ms >= _YEAR_10000_MS:
            raise Unreadable(f"{topic.kind}: seq or timestamp is out of range")
        resolve = _One(self, source, message, topic, report, wanted)
        return resolve.birth(node) if topic.kind == "NBIRTH" else resolve.other(node)

    def _died(self, node: Node | None, report: Report) -> None:
        """A node's last will: its session is over, if it is the one that is known."""
        session = _session_of(report)
        if node is not None and node.births[-1].session == session and not node.count.dead:
            node.count.dead = node.counted = True
            self._house.note("sparkplug.deaths")

    # commands

    def ask(self, command: str) -> None:
        """Ask a node for a birth, at most once in ASKED_EVERY seconds."""
        now = time.monotonic()
        if now - self._asked.get(command, float("-inf")) >= ASKED_EVERY:
            if len(self._asked) > 4096:
                self._asked.clear()
            self._asked[command] = now
            self._asks[command] = None
            self._house.note("sparkplug.rebirths_asked")

    def commands(self, publish: Callable[[str, bytes], bool]) -> None:
        """Send what waits to be asked."""
        for command in [*self._asks]:
            now = time.time_ns() // 1_000_000
            asked = Metric(_REBIRTH, None, now, wire.BOOLEAN, is_null=False, value=1)
            if not publish(command, wire.write(Report(now, None, [asked]))):
                return
            log.info("%s: asked for a birth", command)
            del self._asks[command]

    # commits

    def connected(self, *, session_present: bool) -> None:
        """A new connection to the broker."""
        self._nodes.leave(session_present=session_present)

    @property
    def changed(self) -> bool:
        """Whether anything waits for the commit."""
        return self._nodes.changed

    def save(self, connection: sqlite3.Connection) -> None:
        """Write what changed, inside the caller's transaction."""
        self._nodes.save(connection)

    def saved(self) -> None:
        """The transaction is durable."""
        self._nodes.saved()


class _One:
    """One message on its way from aliases to names."""

    def __init__(
        self, session: Session, source: SourceConfig, message: Message, topic: Topic, report: Report, wanted: int
    ) -> None:
        self._session, self._house, self._nodes = session, session._house, session._nodes
        self._source, self._message, self._topic, self._report = source, message, topic, report
        self._wanted = wanted
        self._time, self._number = report.time_ms or 0, report.sequence or 0

    def _refused(self, reason: str) -> Unreadable:
        """A reason, with a new birth asked for."""
        self._session.ask(self._topic.command)
        return Unreadable(f"{self._topic.kind}: {reason}; its node was asked for a birth")

    # births

    def birth(self, node: Node | None) -> Message | None:
        """The node's own: an epoch begins, unless it is one that is known."""
        session = _session_of(self._report)
        made = Birth(-1 if session is None else session, self._time, {"": self._table()})
        if node is None:
            node = Node([], Count(0, 0), self._wanted)
            self._nodes.add(self._topic.sender, node)
        elif any(each.epoch == made.epoch for each in node.births):
            self._house.note("duplicates")
            return None
        elif self._message.dup and self._time < node.births[0].time_ms:
            raise Unreadable("NBIRTH: sent again, and older than those that are kept")
        node.births = [*node.births, made][-BIRTHS_KEPT:]
        node.count, node.born, node.here = Count(self._number, self._time), True, True
        self._house.note("sparkplug.births")
        return self._resolved(made, self._restated())

    def _table(self) -> Table:
        """What it says of the metrics that are asked for."""
        asked = set(self._source.streams.values())
        mine = [each for each in self._report.metrics if each.name in asked]
        aliases = {each.alias: each.name for each in mine if each.alias is not None}
        return Table(self._time, self._number, {each.name: each.kind for each in mine}, aliases)

    def _restated(self) -> list[tuple[str, Metric]]:
        """The values of a birth that are newer than what is known of their streams: it says old ones once more."""
        streams = {name: stream for stream, name in self._source.streams.items()}
        found = []
        for each in self._report.metrics:
            if each.name in streams:
                newest = self._house.newest(streams[each.name])
                if newest is not None and 1000 * self._at(each) <= newest:
                    self._house.note("sparkplug.restated")
                else:
                    found.append((each.name, each))
        return found

    def _at(self, metric: Metric) -> int:
        time_ms = self._time if metric.time_ms is None else metric.time_ms
        if time_ms >= _YEAR_10000_MS:
            raise Unreadable(f"{metric.name or metric.alias}: its timestamp is out of range")
        return time_ms

    # what comes after

    def other(self, node: Node | None) -> Message | None:
        """Data, and births and deaths of devices."""
        if node is None:
            raise self._refused("before a birth of its node")
        newest = node.births[-1]
        is_behind = not 1 <= (self._number - node.count.last) % 256 < 128
        if self._message.dup or self._time < newest.time_ms or is_behind:
            if self._was_counted(node):
                self._house.note("duplicates")
                return None
            if self._message.dup and self._time < newest.time_ms:
                raise Unreadable(f"{self._topic.kind}: sent again, of a birth before that is not known any more")
        if node.count.dead:
            raise self._refused("after the death of its node")
        self._advance(node)
        newest = node.births[-1]
        device = self._topic.device
        if self._topic.kind == "DBIRTH":
            newest.devices[device] = self._table()
            node.born = True
            self._house.note("sparkplug.births")
            return self._resolved(newest, self._restated())
        if self._topic.kind == "DDEATH":
            node.born |= newest.devices.pop(device, None) is not None
            self._house.note("sparkplug.deaths")
            return self._resolved(newest, [])
        if device not in newest.devices:
            raise self._refused("before a birth of its device")
        return self._resolved(newest, self._named(node, newest.devices[device]))

    def _advance(self, node: Node) -> None:
        """Count on; where a number is missing no alias is believed until the next birth."""
        ahead = (self._number - node.count.last) % 256
        if ahead != 1 and not node.count.cut:
            node.count.cut = True
            self._house.note("sparkplug.gaps")
            self._session.ask(self._topic.command)
        if not 1 <= ahead < 128 and self._time > node.count.time_ms and not self._message.dup:
            self._begun_unseen(node)
        elif ahead < 128:
            node.count.last, node.count.time_ms = self._number, max(node.count.time_ms, self._time)
        node.counted = True

    def _begun_unseen(self, node: Node) -> None:
        """Later than all, under a number that was: a birth did not come. What has names keeps them, no alias does."""
        before = node.births[-1]
        tables = {name: Table(each.time_ms, each.sequence, each.kinds, {}) for name, each in before.devices.items()}
        node.births = [*node.births, Birth(before.session, self._time, tables)][-BIRTHS_KEPT:]
        node.count, node.born = Count(self._number, self._time, cut=True), True
        self._house.note("sparkplug.births_missed")

    def _was_counted(self, node: Node) -> bool:
        """Whether it was counted by one of the births that are known, with its aliases believed or not."""
        for birth in reversed(node.births):
            table = birth.devices.get(self._topic.device)
            if self._topic.kind == "DBIRTH":
                if table is not None and (table.time_ms, table.sequence) == (self._time, self._number):
                    return True
                continue
            named = self._by_table(table) if table is not None and self._topic.kind != "DDEATH" else []
            ways = [named, [_unbelieved(each) for each in named]] if any(not m.name for _, m in named) else [named]
            if any(self._house.known(self._source, self._resolved(birth, way)) for way in ways):
                return True
        return False

    def _by_table(self, table: Table) -> list[tuple[str, Metric]]:
        """Metrics by their names, or by the names of their aliases, those that are asked for."""
        found, asked = [], set(self._source.streams.values())
        for each in self._report.metrics:
            name = each.name or (table.aliases.get(each.alias, "") if each.alias is not None else "")
            if name in asked:
                found.append((name, each._replace(kind=each.kind or table.kinds.get(name, 0))))
        return found

    def _named(self, node: Node, table: Table) -> list[tuple[str, Metric]]:
        """The same, where aliases can be believed; else those by name, and a reason for the others."""
        found = self._by_table(table)
        if not node.count.cut and (node.here or self._message.qos > 0):
            return found
        if alone := sum(not metric.name for metric in self._report.metrics):
            self._session.ask(self._topic.command)
            self._house.note("sparkplug.aliases_refused", alone)
        return [_unbelieved(each) for each in found]

    def _resolved(self, birth: Birth, named: list[tuple[str, Metric]]) -> Message:
        values = [(name, 1000 * self._at(each), _value(each)) for name, each in named]
        said = Resolved(self._topic.sender, birth.epoch, self._number, 1000 * self._time, values)
        return self._message._replace(payload=encode(said), whole=0)


_UNBELIEVED = -1


def _unbelieved(named: tuple[str, Metric]) -> tuple[str, Metric]:
    """The same with a reason for its value, where only an alias says whose it is."""
    name, metric = named
    return named if metric.name else (name, metric._replace(kind=_UNBELIEVED, value=None))


def _value(metric: Metric) -> float | int | str | None:
    """A number, None, or what it is instead."""
    if metric.kind == _UNBELIEVED:
        return "an alias that may have another name since messages are missing"
    if metric.is_null:
        return None
    if metric.value is None or metric.kind in wire.NO_NUMBER:
        return wire.NO_NUMBER.get(metric.kind, "of a type that is not known")
    return wire.signed(metric.value, metric.kind)


def _session_of(report: Report) -> int | None:
    """The number of a node's connection, in its birth and its death."""
    found = (each.value for each in report.metrics if each.name == _SESSION)
    return next((value for value in found if isinstance(value, int)), None)
