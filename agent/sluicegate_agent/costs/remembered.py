"""What is known of messages, so that each counts once: bytes at worst, of memory and of disk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sluicegate_agent import identity
from sluicegate_agent.config import Config, SourceConfig
from sluicegate_agent.identity.epoch import RUNS
from sluicegate_agent.identity.identities import epochs_in_flight
from sluicegate_agent.identity.posted import AGAIN_MOST, KEYS_LEAST

#: A digest in a deque, a list and a set.
DIGEST_OBJECTS = 160
#: An epoch beside its ring; one of a few numbers; a message that waits beside its payload.
EPOCH_OBJECTS = 1024
FEW_OBJECTS = 800
HELD_OBJECTS = 128
#: A request's key as it was counted, and as an older Sluicegate did; a message that may be posted again, and its row.
KEY_OBJECTS = 256
AGAIN_OBJECTS = 288
#: Rows in pages that are not full, times their bytes.
PAGE_FILL = 1.4
EPOCH_ROW = 340
#: Of a source, the runs of numbers that were passed over.
PASSED = 24 * RUNS
FEW_ROW = 200
HELD_ROW = 128
#: What a bare topic said last and what of it was retained: digests of 32 messages each way.
RETAINED = 1536


class Line(NamedTuple):
    """One part of the plan: where it comes from, bytes of memory and of disk at worst."""

    part: str
    memory: int
    disk: int


def identities_of(config: Config) -> Iterator[Line]:
    """The memories of all senders, what waits to be judged, and deliveries that may be repeated."""
    for source in config.sources:
        one = _memory_of(config, source)
        if source.is_plant:  # in memory as many senders as keys, and the rows of as many that were put away
            yield Line(f"identities of {source.topic}", source.keys.most * one.memory, 2 * source.keys.most * one.disk)
        elif one.memory:
            yield one
    if any(source.sequence is not None for source in config.sources):
        most = epochs_in_flight(config)
        yield Line("epochs of messages on their way", most * FEW_OBJECTS, int(most * FEW_ROW * PAGE_FILL))
    if any(source.input == "http" for source in config.sources):
        keys = _digests("", max(config.identity.horizon, KEYS_LEAST), KEY_OBJECTS)
        yield Line("posted requests", keys.memory + AGAIN_MOST * AGAIN_OBJECTS, keys.disk + 8 * AGAIN_MOST)
    rows, size = config.held.rows, int(config.held.bytes)
    yield Line("messages that wait to be judged", rows * HELD_OBJECTS + size, int((rows * HELD_ROW + size) * PAGE_FILL))
    if any(source.sequence is None and source.time is None for source in config.sources):
        yield _digests("deliveries that may be repeated", identity.kept(config.mqtt.receive_maximum))


def _memory_of(config: Config, source: SourceConfig) -> Line:
    """What is known of the messages of one sender; of bare ones only what is retained."""
    horizon, part = max(config.horizon_of(source), config.mqtt.receive_maximum), source.topic
    if source.sequence is not None:
        numbers = (identity.EPOCHS_KEPT + 1) * (4 * horizon + EPOCH_OBJECTS)
        rows = (identity.EPOCHS_KEPT + 1) * (-(-horizon // 64) * EPOCH_ROW + 8 * EPOCH_ROW) + PASSED
        return Line(f"identities of {part}", numbers, int(rows * PAGE_FILL))
    if source.time is not None:
        return _digests(f"identities of {part}", horizon)
    return Line(part, RETAINED * source.is_plant, RETAINED * source.is_plant)


def _digests(part: str, most: int, objects: int = DIGEST_OBJECTS) -> Line:
    # A row of the table holds a batch, and goes when all of it is beyond the horizon: single-message batches cost most.
    return Line(part, most * objects, int(most * 64 * PAGE_FILL))
