"""What is known of an edge node: its last births with the numbers they gave to names, and how far it has counted.

Both are rows of the table `meta` with a checksum, written in the commit that counts what was read by them: the births
when one comes, the count, a few bytes, with each commit that brought a message. A damaged row is no birth at all.
"""

from __future__ import annotations

import logging
import sqlite3
import struct
from collections import OrderedDict

import msgspec
from msgspec import Struct

from sluicegate_agent.checksums import checksum

log = logging.getLogger("sluicegate.sparkplug")
#: Births of a node that are kept: as many as epochs of a sender. A message that comes again is read by its own.
BIRTHS_KEPT = 4


class Table(Struct, array_like=True):
    """A birth of a node or device: its time and number, and of the metrics that are asked for type and alias."""

    time_ms: int
    sequence: int
    kinds: dict[str, int]
    aliases: dict[int, str]


class Birth(Struct, array_like=True):
    """A node's birth and those of its devices since; the node's own metrics are those of the device ""."""

    session: int
    time_ms: int
    devices: dict[str, Table]

    @property
    def epoch(self) -> str:
        """What tells it from every other one: a birth that is asked for has the session of the one before."""
        return f"{self.session}/{self.time_ms}"


class Count(Struct, array_like=True):
    """How far the newest birth has counted, and when; `cut`: something is missing since, perhaps another birth."""

    last: int
    time_ms: int
    cut: bool = False
    dead: bool = False


class Node(Struct):
    """One edge node; `here`: its newest birth came over this connection."""

    births: list[Birth]
    count: Count
    wanted: int
    here: bool = False
    born: bool = False
    counted: bool = False


_CRC = struct.Struct("<q")
_decode = msgspec.msgpack.Decoder(tuple[int, list[Birth]]).decode
_decode_count = msgspec.msgpack.Decoder(Count).decode
_encode = msgspec.msgpack.Encoder().encode


class Nodes:
    """The nodes that were heard lately, `most` of them; one more takes the place of the one silent for longest."""

    def __init__(self, connection: sqlite3.Connection, most: int) -> None:
        self._connection, self._most = connection, most
        self._nodes: OrderedDict[str, Node | None] = OrderedDict()
        self._gone: list[str] = []
        rows = connection.execute("SELECT key FROM meta WHERE key LIKE 'birth %' ORDER BY key")
        self._nodes.update((key.removeprefix("birth "), None) for (key,) in rows)

    def get(self, sender: str, wanted: int) -> Node | None:
        """A node that was born; None too where its births were kept for other streams than are asked for now."""
        if sender not in self._nodes:
            return None
        if self._nodes[sender] is None:
            self._nodes[sender] = self._read(sender)
        node = self._nodes[sender]
        self._nodes.move_to_end(sender)
        return node if node is not None and node.wanted == wanted else None

    def _read(self, sender: str) -> Node | None:
        birth, count = (self._row(key) for key in _keys(sender))
        if birth is None or count is None:
            log.warning("%s: what was kept of its birth is damaged: a new one is needed", sender)
            return None
        wanted, births = _decode(birth)
        return Node(births, _decode_count(count), wanted)

    def _row(self, key: str) -> bytes | None:
        found = self._connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        if found is None or not isinstance(found[0], bytes) or len(found[0]) < _CRC.size:
            return None
        (crc,), body = _CRC.unpack(found[0][: _CRC.size]), found[0][_CRC.size :]
        return body if crc == checksum(key, body) else None

    def add(self, sender: str, node: Node) -> None:
        """A node is born that was not known; the one that was silent for longest may have to go."""
        self._nodes[sender] = node
        self._nodes.move_to_end(sender)
        if len(self._nodes) > self._most:
            gone, _ = self._nodes.popitem(last=False)
            self._gone.append(gone)

    def leave(self, *, session_present: bool) -> None:
        """A new connection: what came with QoS 0 meanwhile is lost; without the session everything is."""
        for sender, each in self._nodes.items():
            node = self._nodes[sender] = each or (None if session_present else self._read(sender))
            if node is not None:
                node.here = False
                if not session_present:
                    node.count.cut = node.counted = True

    @property
    def changed(self) -> bool:
        """Whether anything waits for the commit."""
        return bool(self._gone) or any(node and (node.born or node.counted) for node in self._nodes.values())

    def save(self, connection: sqlite3.Connection) -> None:
        """Write what changed, inside the caller's transaction."""
        for sender in self._gone:
            connection.execute("DELETE FROM meta WHERE key IN (?, ?)", _keys(sender))
        for sender, node in self._nodes.items():
            birth, count = _keys(sender)
            if node and node.born:
                _write(connection, birth, _encode((node.wanted, node.births)))
            if node and (node.born or node.counted):
                _write(connection, count, _encode(node.count))

    def saved(self) -> None:
        """The transaction is durable."""
        self._gone.clear()
        for node in self._nodes.values():
            if node:
                node.born = node.counted = False


def _write(connection: sqlite3.Connection, key: str, body: bytes) -> None:
    connection.execute("REPLACE INTO meta VALUES (?, ?)", (key, _CRC.pack(checksum(key, body)) + body))


def _keys(sender: str) -> tuple[str, str]:
    return f"birth {sender}", f"count {sender}"
