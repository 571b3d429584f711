"""How long to wait before the next connection: twice as long after each one of no use, to a minute, with jitter."""

from __future__ import annotations

import random

FIRST, LONGEST = 0.25, 60.0
#: Seconds a connection has to stand with its subscriptions granted until it was of use; shorter where messages came.
STANDS, STANDS_WITH_MESSAGES = 5.0, 1.0
#: After so many in a row that ended early, though granted, another client of the same name is suspected.
CUT_OFTEN = 4
#: So many in a row that ended early, though they brought messages, are waited after no longer than this.
CUTS, LONGEST_WHEN_CUT = 8, 2.0


class Backoff:
    """Counts connections in a row that were of no use. One was of use that stood twice as long as was waited for it.

    Two clients that throw each other out so come to rest, and a link that is cut again and again spends at most a third
    of its time waiting.
    """

    def __init__(self) -> None:
        self.failures = 0
        self.delay = 0.0
        self._cut = 0
        self._base = 0.0

    @property
    def is_cut_often(self) -> bool:
        """Whether connection after connection ended early although its subscriptions had been granted."""
        return self._cut >= CUT_OFTEN

    def failed(self) -> float:
        """A connection that never came to its subscriptions, or that another took over; seconds to wait."""
        return self._next(LONGEST)

    def ended(self, stood: float, *, messages: bool) -> float:
        """A connection ended `stood` seconds after its subscriptions were granted; seconds to wait."""
        if stood >= max(STANDS_WITH_MESSAGES if messages else STANDS, 2 * self.delay):
            self.failures = self._cut = 0
        else:
            self._cut += 1
        return self._next(LONGEST_WHEN_CUT if messages and self._cut < CUTS else LONGEST)

    def _next(self, longest: float) -> float:
        self._base = min(2 * self._base if self.failures else FIRST, longest)
        # A fleet that lost its broker together does not come back together.
        self.delay = self._base * random.uniform(0.5, 1.0)  # noqa: S311
        self.failures += 1
        return self.delay
