"""Chunks for tests: real ones, of any number of buckets, and the target that puts them."""

from __future__ import annotations

import random

from gateway import databases
from sluicegate.format import chunk as chunks
from sluicegate.format.bucket import Bucket, merge
from sluicegate_agent.sync.connection import Connection
from sluicegate_agent.sync.contract import Document
from sluicegate_agent.sync.sync_gateway import Basic, Login, Session, SyncGatewayTarget

NOON = 1_750_000_000_000_000
INCARNATION = "00060a24181e4000"


def chunk(
    count: int = 4, first: int = 0, device: str = "board-1", stream: str = "level", seed: int = 1
) -> chunks.Chunk:
    """So many buckets of eight readings each, from ordinal `first` on."""
    source = random.Random(seed)
    center, buckets = 20.0, []
    for number in range(count):
        at = first + 8 * number
        whole = Bucket.single(source.gauss(20, 5), NOON + at, center, at)
        for ordinal in range(at + 1, at + 8):
            whole = merge(whole, Bucket.single(source.gauss(20, 5), NOON + ordinal, center, ordinal))
        buckets.append(whole)
    return chunks.Chunk(device, stream, INCARNATION, center, buckets, [None] * count, {"seed": seed})


def document(count: int = 4, first: int = 0, **named: object) -> Document:
    """The chunk's document."""
    made = chunk(count, first, **named)  # type: ignore[arg-type]
    return Document(chunks.document_id(made), chunks.encode(made))


def target(
    url: str, database: str = databases.PLAIN, user: str = "board-1", *, basic: bool = False, timeout: float = 60.0
) -> SyncGatewayTarget:
    """The target over the gateway at `url`, as one of its users."""
    login: Login = Basic(user, databases.PASSWORD) if basic else Session(user, databases.PASSWORD)
    return SyncGatewayTarget(Connection(f"{url}/{database}", None, None, timeout), login)
