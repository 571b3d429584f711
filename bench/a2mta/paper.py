"""What A2MTA, section III, says: its setting and its tables. Figures are read off by no one: only what is printed."""

from __future__ import annotations

from typing import NamedTuple

WINDOW, READINGS = 2_592_000, 62_208_000
BUFFER = 512  # buckets kept before they are stored (III-A)
HOP, DEVIATION = 864_000, 100

#: Table I, footprint in % of AMTA's, by the sum-like error (a share), and by the max-like block size.
SUM_LIKE = {1e-6: 44.02, 1e-5: 6.591, 1e-4: 8.335e-1, 1e-3: 9.9e-2, 1e-2: 1.022e-2, 1e-1: 9.854e-4}
MAX_LIKE = {10**1: 91.33, 10**2: 91.1, 10**3: 95.49, 10**4: 60.97, 10**5: 4.394, 10**6: 19.88}
HOPPING = 5.229e-1
#: Table II, by the most buckets: sum-like, max-like, hopping.
CONSTRAINED = {
    10**6: (33.33, 42.98, 38.56), 10**5: (3.846, 11.75, 4.583), 10**4: (3.845e-1, 2.189, 4.679e-1),
    10**3: (3.858e-2, 3.368e-1, 4.69e-2), 10**2: (3.864e-3, 3.676e-2, 4.7e-3), 10**1: (4.018e-4, 3.298e-3, 4.9e-4),
}  # fmt: skip


class Setting(NamedTuple):
    """The paper's, or a part of it: everything that is a number of readings is `scale` times smaller."""

    scale: int = 1
    windows: int = READINGS // WINDOW  # the stream's length in windows

    @property
    def window(self) -> int:
        """The most readings that are aggregated."""
        return WINDOW // self.scale

    @property
    def readings(self) -> int:
        """The stream's length."""
        return self.windows * WINDOW // self.scale

    @property
    def asked(self) -> int:
        """Readings a piece: of each 16 one is timed, 14 are asked for their intervals."""
        return 3_989 if self.window >= 200_000 else 1_499 if self.window >= 30_000 else 199

    @property
    def block(self) -> int:
        """Readings that are made, and whose exact answers are, at a time: groups of 16 pieces."""
        return 16 * self.asked * max(1, min(2, self.window // (64 * self.asked)))

    def footprint(self, percent: float, *, grows: bool = True) -> float | None:
        """The paper's figure here: a bucket is a share of the window, and a smaller window has more of them a reading.

        None where that cannot be less than every reading.
        """
        scaled = percent * (self.scale if grows else 1)
        return scaled if scaled < 100.0 else None
