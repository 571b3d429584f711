"""How the way to the target is: up, down since when and why, and when to try again; back-off doubles, with jitter."""

from __future__ import annotations

import random
import time
from typing import Any

FIRST_DELAY, LONGEST_DELAY = 1.0, 300.0
_JITTER = 0.25


class Link:
    """State of the link; times of schedule are the caller's monotonic seconds, times for people µs since 1970."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.state = "unused" if target == "none" else "unknown"
        self.error = ""
        self.since_us = time.time_ns() // 1000
        self.failures = 0
        self.retry_at = float("-inf")
        self.changed = True

    def is_due(self, now: float) -> bool:
        """Whether the target may be tried now."""
        return now >= self.retry_at

    def succeeded(self, now: float) -> None:
        """The target took what it was given."""
        self._turn("up", "")
        self.failures = 0
        self.retry_at = now

    def failed(self, now: float, error: str, retry_after: float) -> None:
        """The target did not; wait as long as it asks, else twice as long as the last time."""
        self._turn("down", error)
        delay = min(LONGEST_DELAY, FIRST_DELAY * 2 ** min(self.failures, 16))
        # A fleet that lost its target together should not come back together.
        self.retry_at = now + max(retry_after, delay * (1 + _JITTER * random.random()))  # noqa: S311
        self.failures += 1

    def rest(self, now: float, seconds: float) -> None:
        """Nothing is left to send: look again later."""
        self.retry_at = now + seconds

    def _turn(self, state: str, error: str) -> None:
        if (state, error) != (self.state, self.error):
            self.since_us = self.since_us if state == self.state else time.time_ns() // 1000
            self.state, self.error, self.changed = state, error, True

    def as_dict(self) -> dict[str, Any]:
        """For `status`."""
        return {"target": self.target, "state": self.state, "since_us": self.since_us, "error": self.error}
