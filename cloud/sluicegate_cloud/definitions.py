"""Windows by definition (kinds.md): on which grid the merge answers one, or why it does not. Imports no Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sluicegate.errors import ConfigurationError
from sluicegate.policies import Time
from sluicegate.windowing.calendar import DAY
from sluicegate.windowing.definition import WindowDefinition
from sluicegate.windowing.spec import WindowSpec
from sluicegate_cloud.extras.asked import sorted_out

#: The first Monday since 1970, from which weeks are counted.
MONDAY = 4 * DAY


class Lengths(NamedTuple):
    """Windows of `window_us`, one each `slide_us`, which is a part of it, from `origin_us` on."""

    window_us: int
    slide_us: int
    origin_us: int = 0


def lengths(spec: WindowSpec) -> Lengths:
    """The grid of a window that `unsupported` has no reason against."""
    unit = {"day": DAY, "week": 7 * DAY}.get(spec.aligned or "", 0)
    evict = spec.evict
    window, slide = (evict.span, evict.hop) if isinstance(evict, Time) else (unit, unit)
    return Lengths(window, slide if spec.kind == "hopping" else window, MONDAY if spec.aligned == "week" else 0)


def unsupported(definition: WindowDefinition) -> Iterator[tuple[str, str]]:
    """The place, and the reason, of what makes a window one that the merge does not answer.

    Lateness and early results mean nothing to it: it answers from all that has arrived, and again when more has.
    """
    spec = definition.spec
    if spec.asked:
        yield "kind", 'it is answered when it is asked; write kind = "hopping" with a hop to say when the merge is to'
    elif spec.kind == "session":
        yield "kind", "where a session begins and ends is in the readings, and buckets do not keep each one's time"
    elif not spec.by_event_time:
        yield "evict", 'it goes by arrival, of which buckets say nothing; write lateness = "0s" for event time'
    if spec.key is not None:
        yield "key", "devices and streams are its keys, and each has windows of its own"
    if spec.by_event_time and spec.kind != "session":
        yield from _off_the_grid(spec)
    for name in definition.aggregates:
        try:
            sorted_out([name])
        except ConfigurationError as error:
            yield "aggregate", str(error)


def _off_the_grid(spec: WindowSpec) -> Iterator[tuple[str, str]]:
    evict = spec.evict
    if spec.aligned and (spec.timezone or "UTC") != "UTC":
        yield "timezone", "its frames are of one length, and a day there is not; the agent runs it, or leave UTC"
    if spec.aligned in ("month", "year"):
        yield "aligned", f"its frames are of one length, and a {spec.aligned} is not; the agent runs it"
    if spec.kind == "hopping" and isinstance(evict, Time) and evict.span % evict.hop:
        yield "evict.hop", "a window is a run of frames, so its length must be a whole number of hops"
