"""A thing that happens again and again is told when it begins, and then once a minute with how often it happened."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

EVERY = 60.0
#: So many different things are told apart; what else there is within a minute is counted together.
STATES = 16


class Repeats:
    """Tells each message of a log at most once a minute; the next minute's line says how often it came meanwhile."""

    def __init__(self, log: logging.Logger, clock: Callable[[], float] = time.monotonic) -> None:
        self._log, self._clock = log, clock
        self._told: dict[str, tuple[int, float, int]] = {}  # message → level, when it was told, how often since

    def tell(self, level: int, message: str, more: str = "") -> None:
        """Log `message` with `more` behind it, which is not compared, unless it was told within the last minute."""
        self.tick()
        if message not in self._told and len(self._told) >= STATES:
            message, more = "further messages of this kind", ""
        if message not in self._told:
            self._told[message] = level, self._clock(), 0
            self._log.log(level, "%s%s", message, more)
            return
        level, then, count = self._told[message]
        self._told[message] = level, then, count + 1

    def tick(self) -> None:
        """Tell what came again, where a minute has passed; call it now and then."""
        now = self._clock()
        for message, (level, then, count) in list(self._told.items()):
            if now - then < EVERY:
                continue
            if count:
                self._log.log(level, "%s (%d times more in the last %.0f s)", message, count, now - then)
                self._told[message] = level, now, 0
            else:
                del self._told[message]
