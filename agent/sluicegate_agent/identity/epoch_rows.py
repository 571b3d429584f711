"""The epochs of one source in the table `sequence`: a row for each head and for each block of numbers it has seen."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b

from sluicegate_agent.checksums import checksum_for, require_sound
from sluicegate_agent.identity.epoch import Epoch, key_of, split
from sluicegate_agent.identity.verdict import DIGEST

#: `Epoch.last` of an epoch that was read: whether its messages were acknowledged is not known.
LOADED = 1 << 62


@lru_cache(maxsize=64, typed=True)
def epoch_key(epoch: str | int | None) -> bytes:
    """What stands for an epoch as its source names it; NO_EPOCH where it names none."""
    return blake2b(f"{type(epoch).__name__}:{epoch}".encode(), digest_size=DIGEST).digest()


NO_EPOCH = epoch_key(None)


def load(connection: sqlite3.Connection, source: str, horizon: int) -> tuple[dict[bytes, list[Epoch]], int]:
    """The epochs by key, oldest first, and how many messages were missing in those that were forgotten."""
    heads: dict[tuple[bytes, int], bytes] = {}
    others: dict[tuple[bytes, int], dict[int, bytes]] = {}
    query = "SELECT epoch, row, crc FROM sequence WHERE source = ?"
    for row_key, row, crc in connection.execute(query, (source,)):
        require_sound("sequence", crc, source, row_key, row)
        key, generation, block = split(row_key, DIGEST)
        if block is None:
            heads[key, generation] = row
        else:
            others.setdefault((key, generation), {})[block] = row
    chains: dict[bytes, list[Epoch]] = {}
    carried = 0
    for (key, generation), row in sorted(heads.items()):
        epoch, before = Epoch.unpack(row, others.get((key, generation), {}), generation, horizon)
        epoch.last = LOADED
        carried = max(carried, before)
        chains.setdefault(key, []).append(epoch)
    return chains, carried


def save(connection: sqlite3.Connection, source: str, epochs: Iterable[tuple[bytes, Epoch]], carried: int) -> None:
    """Write those that changed, inside the caller's transaction."""
    for key, epoch in epochs:
        if epoch.changed:
            for named, row in epoch.rows(key, carried):
                values = source, named, row, checksum_for(connection, source, named, row)
                connection.execute("INSERT OR REPLACE INTO sequence VALUES (?, ?, ?, ?)", values)


def delete(connection: sqlite3.Connection, source: str, gone: Iterable[tuple[bytes, int]]) -> None:
    """Delete the rows of these keys and generations, inside the caller's transaction."""
    for key, generation in gone:
        head, blocks = key_of(key, generation), key + generation.to_bytes(4, "little")
        query = "DELETE FROM sequence WHERE source = ? AND (epoch = ? OR (epoch > ? AND epoch <= ?))"
        connection.execute(query, (source, head, blocks, blocks + b"\xff" * 4))
