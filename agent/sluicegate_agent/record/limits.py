"""How much may stand in the record, and wait in memory, before the tables are written although it is not time yet.

More spares the card, takes memory and disk, and makes a start play back longer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sluicegate_agent.config import Config

#: Streams that have the least of the bytes in memory together; each beyond them adds its own, up to the most.
FEW = 8
#: Streams beyond those that fit into the default `state.disk`: with them the database's log grows.
FIT = 40


class Limits(NamedTuple):
    """`readings` that a start plays back; bytes of the `file`, of closed `buckets` and `rows` of identities in memory.

    `level`: of deflate, for frames. `log`: bytes of the database's own log; what several folds write anew in it goes to
    the database once. Played back were 150,000 readings a second of an x86-64 processor (`python -m
    bench.wear` filled the record), which is about 25,000 of a Raspberry Pi 3.
    """

    readings: int
    file: int
    buckets: int
    rows: int
    level: int
    log: int


def limits(config: Config) -> Limits:
    """By profile and number of streams."""
    beyond = max(0, streams_of(config) - FEW)
    log = min((2 << 20) + max(0, beyond - FIT) * (128 << 10), 128 << 20)
    if config.commit.profile == "low-wear":
        buckets, rows = min(beyond * (160 << 10), 16 << 20), min(beyond * (64 << 10), 16 << 20)
        return Limits(2_000_000, 32 << 20, (256 << 10) + buckets, (256 << 10) + rows, 6, log)
    buckets, rows = min(beyond * (40 << 10), 4 << 20), min(beyond * (40 << 10), 8 << 20)
    readings, file = min(600_000 + beyond * 400, 900_000), min((8 << 20) + beyond * (96 << 10), 16 << 20)
    return Limits(readings, file, (32 << 10) + buckets, (32 << 10) + rows, 1, log)


def streams_of(config: Config) -> int:
    """How many streams there may be, those that come as they are heard of among them."""
    return len(config.streams) + sum(len(each.streams) * each.keys.most for each in config.plants)
