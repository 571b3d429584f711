"""The table `[sync.budget]`: what the link to the target may carry."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from sluicegate_agent.config.errors import Problem
from sluicegate_agent.config.table import Table
from sluicegate_agent.config.units import Share, Size

_HOURS = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)")
_LEAST = 64 << 10


class BudgetConfig(Table, frozen=True):
    """[sync.budget]: bytes a day or month (UTC), bytes a second, local hours without traffic, streams that go first.

    `fresh`: the share of what is new beside the backlog of an outage.
    """

    bytes: Size = Size(0)
    per: Literal["day", "month"] = "day"
    rate: Size = Size(0)
    quiet: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    fresh: Share = Share(0)

    @property
    def is_set(self) -> bool:
        """Whether anything is limited or ordered."""
        return bool(self.bytes or self.rate or self.quiet or self.first)

    @property
    def quiet_minutes(self) -> tuple[tuple[int, int], ...]:
        """The quiet hours in minutes of the day; what cannot be read is none."""
        found = (_HOURS.fullmatch(hours) for hours in self.quiet)
        return tuple((60 * int(m[1]) + int(m[2]), 60 * int(m[3]) + int(m[4])) for m in found if m)


def budget_problems(budget: BudgetConfig, streams: tuple[str, ...], target: str) -> Iterator[Problem]:
    """Every finding in [sync.budget]."""
    if (budget.is_set or budget.fresh) and target == "none":
        yield Problem("sync.budget", None, "there is no link to limit: give sync.target")
    if budget.bytes and not _LEAST <= budget.bytes <= 1 << 50:
        yield Problem("sync.budget.bytes", int(budget.bytes), "expected 0 (no limit), or 64KiB or more")
    if budget.rate and not 16 <= budget.rate <= 1 << 40:
        yield Problem("sync.budget.rate", int(budget.rate), "expected 0 (no limit), or 16B or more a second")
    if not 0 <= budget.fresh <= 1:
        yield Problem("sync.budget.fresh", float(budget.fresh), 'expected "0%" (the oldest first) to "100%"')
    for hours in budget.quiet:
        if not _HOURS.fullmatch(hours):
            yield Problem("sync.budget.quiet", hours, 'expected local hours such as "22:00-06:00"')
        elif hours[:5] == hours[6:]:
            yield Problem("sync.budget.quiet", hours, "is no time at all: give two different hours")
    for stream in budget.first:
        if stream not in streams:
            yield Problem("sync.budget.first", stream, f"no source feeds it; there are: {', '.join(streams)}")
