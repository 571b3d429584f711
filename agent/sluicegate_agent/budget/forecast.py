"""What a configuration sends, by a document made for the purpose: bytes a reading, a day, and what a budget allows."""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from sluicegate.format import chunk as chunks
from sluicegate.format.bucket import Builder
from sluicegate_agent.config.units import show_size
from sluicegate_agent.streams import SINGLES_MOST

if TYPE_CHECKING:
    from sluicegate_agent.config import Config

_DAY = 86_400
_MONTH = 30
#: Buckets of the document that is tried, at most.
_TRIED = 256


class Forecast(NamedTuple):
    """Bytes of a document, the readings in it, and bytes that the budget allows in a day; 0: no limit."""

    document: int
    readings: int
    allowed: int

    @property
    def each(self) -> float:
        """Bytes a reading."""
        return self.document / self.readings


def forecast(config: Config) -> Forecast:
    """By one full document of a reading a second: a random walk in hundredths, as a sensor of a room gives it."""
    rng, buckets, singles = random.Random(1), [], []  # noqa: S311  readings that anybody may know
    builder, value, time = Builder(20.0), 20.0, 0
    for _ in range(min(config.outbox.chunk_buckets, _TRIED)):
        times, values = array("q"), array("d")
        for _ in range(config.bucket.readings):
            value, time = round(value + rng.gauss(0, 0.03), 2), time + 1_000_000
            builder.add(value, time)
            times.append(time)
            values.append(value)
        buckets.append(builder.close())
        singles.append((times, values) if config.bucket.readings <= SINGLES_MOST else None)
    chunk = chunks.Chunk(config.device.id, "stream", "0" * 16, 20.0, buckets, singles, None)
    budget = config.sync.budget
    allowed = int(budget.bytes) // (_MONTH if budget.per == "month" else 1)
    if budget.rate:
        allowed = min(allowed or 1 << 62, int(budget.rate) * _DAY)
    return Forecast(len(chunks.encode(chunk)), config.bucket.readings * len(buckets), allowed)


def lines(config: Config) -> Iterator[str]:
    """For `plan`: nothing where nothing is sent."""
    if config.sync.target == "none":
        return
    found = forecast(config)
    yield (
        f"sent at these settings: {found.each:.2f} bytes a reading (by a trial document of {found.readings:,}); "
        f"a stream at 1/s {show_size(round(found.each * _DAY))} a day"
    )
    if found.allowed:
        rate = found.allowed / found.each
        yield (
            f"[sync.budget] allows {show_size(found.allowed)} a day: {rate:,.0f} readings ({rate / _DAY:,.2f}/s, "
            "all streams together); beyond, buckets grow coarser"
        )
