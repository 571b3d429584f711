"""How long commits take, counted into a few lengths, for metrics."""

from __future__ import annotations

from bisect import bisect_left

#: Upper ends in seconds; a card that writes slowly shows in the last ones.
LENGTHS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


class CommitTimes:
    """A histogram of commits, and their sum."""

    def __init__(self) -> None:
        self._counts = [0] * (len(LENGTHS) + 1)
        self.seconds = 0.0

    def took(self, seconds: float) -> None:
        """Count one."""
        self._counts[bisect_left(LENGTHS, seconds)] += 1
        self.seconds += seconds

    def as_dict(self) -> dict[str, float | int | list[tuple[float | None, int]]]:
        """Count, sum in seconds, and how many took at most so long (None: any length)."""
        below, ends = 0, list[tuple[float | None, int]]()
        for end, count in zip((*LENGTHS, None), self._counts, strict=True):
            below += count
            ends.append((end, below))
        return {"count": below, "seconds": self.seconds, "at_most": ends}
