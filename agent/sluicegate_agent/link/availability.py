"""How coarse the windows are while the target is away: fewer buckets step by step, and back again after (A2MTA, I).

Two thresholds apart and a pause between steps keep a link that flickers from squeezing and freeing windows for ever.
A step costs resolution alone: counts, sums and extremes stay exact, and every interval still holds the result.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sluicegate_agent.config.model import AvailabilityConfig

LEAST_BUCKETS = 4
STEP = 0.75
MOST_STEPS = 64
#: Of `availability.backlog`: below this share of it the backlog is no reason any more to stay coarse.
CALM = 0.5


class Availability:
    """Decides how many steps the windows are squeezed; times are the caller's monotonic seconds."""

    def __init__(self, config: AvailabilityConfig, steps: int = 0) -> None:
        """`steps`: what the stored windows are squeezed by already, so that a restart frees nothing at once."""
        self.config, self.steps = config, steps
        self._strained_since = self._calm_since = inf
        self._next = -inf

    def step(self, now: float, link: str, backlog: float) -> bool:
        """Note the link's state ("up", "down", else unknown) and the outbox's share in use; whether steps changed."""
        high = link == "down" and backlog >= self.config.backlog
        calm = link == "up" and backlog <= CALM * self.config.backlog
        self._strained_since = min(self._strained_since, now) if link == "down" else inf
        self._calm_since = min(self._calm_since, now) if calm else inf
        if now < self._next:
            return False
        if high or now - self._strained_since >= self.config.away.seconds:
            return self._turn(now, min(self.steps + 1, self._most))
        if now - self._calm_since >= self.config.back.seconds:
            return self._turn(now, max(self.steps - 1, 0))
        return False

    @property
    def _most(self) -> int:
        return next((k for k in range(MOST_STEPS) if STEP**k <= self.config.floor), MOST_STEPS)

    def _turn(self, now: float, steps: int) -> bool:
        if steps == self.steps:
            return False
        self.steps, self._next = steps, now + self.config.every.seconds
        return True

    def limit(self, buckets: int) -> int:
        """How many of a window's `buckets` it may keep now: never under the floor, nor under four."""
        return limit_after(self.steps, buckets, self.config.floor)


def limit_after(steps: int, buckets: int, floor: float) -> int:
    """The limit of a window of `buckets` after so many steps."""
    return min(buckets, max(LEAST_BUCKETS, round(buckets * max(floor, STEP**steps))))


def steps_of(limits: Iterable[tuple[int, int]], floor: float) -> int:
    """The steps behind stored limits, (limit now, buckets) of each window: what the largest of them says."""
    now, buckets = max(limits, key=lambda pair: pair[1], default=(0, 0))
    return next((k for k in range(MOST_STEPS) if limit_after(k, buckets, floor) <= now), MOST_STEPS)
