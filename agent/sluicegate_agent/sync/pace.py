"""How much a link carries: the bytes of a request, small at first, twice as many after success, half after silence."""

from __future__ import annotations

#: Bytes of a request's documents: the first, the fewest, the most (a gateway holds a request whole).
FIRST, LEAST, MOST = 32 << 10, 2 << 10, 1 << 20
#: Seconds that a request should take at most: what is lost with a connection is no more than that.
LONGEST = 8.0


class Pace:
    """`bytes` is what the next request should have; `is_slow` whether the link has failed at what it was given."""

    def __init__(self) -> None:
        self.bytes = FIRST
        self.is_slow = False

    def took(self, sent: int, seconds: float) -> None:
        """A request of so many bytes was answered after so long."""
        fits = int(sent / max(seconds, 0.001) * LONGEST)
        self.bytes = max(LEAST, min(MOST, 2 * self.bytes, max(fits, sent if seconds < LONGEST else 0)))
        self.is_slow = self.is_slow and self.bytes < FIRST

    def silent(self) -> None:
        """A request was not answered."""
        self.bytes = max(LEAST, self.bytes // 2)
        self.is_slow = True
