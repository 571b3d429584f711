"""What AMTA, section 5.6 (Experiment 3), says: its setting and Table 2, mean nanoseconds an update."""

from __future__ import annotations

from typing import NamedTuple

READINGS, WINDOW = 62_208_000, 1 << 20
AGGREGATES = ("sum", "mean", "geometric_mean", "std", "max", "longest_run")
ALGORITHMS = ("naive", "log_mta in a store", "log_mta", "daba", "amta in a store", "amta")

_ROWS = {
    "naive": (3.69e8, 3.26e8, 2.83e8, 3.5e8, 2_554, 19_294),
    "log_mta in a store": (14_320, 14_027, 15_267, 15_439, 8_501, 22_306),
    "log_mta": (10_341, 10_378, 11_166, 12_934, 6_188, 19_794),
    "daba": (4_288, 4_389, 4_795, 4_880, 3_500, 10_027),
    "amta in a store": (6_253, 6_111, 6_198, 6_131, 2_886, 7_350),
    "amta": (4_163, 4_033, 4_183, 3_864, 1_763, 6_476),
}
#: Table 2: (algorithm, aggregate) → ns.
TABLE = {(name, aggregate): ns for name, row in _ROWS.items() for aggregate, ns in zip(AGGREGATES, row, strict=True)}


class Setting(NamedTuple):
    """The paper's, or a part of it: readings and the window are `scale` times fewer."""

    scale: int = 1
    piece: int = 1 << 15  # readings taken at once, a result each
    naive_seconds: float = 2.0  # of the naive algorithm's part

    @property
    def window(self) -> int:
        """The most readings that are aggregated."""
        return WINDOW // self.scale

    @property
    def readings(self) -> int:
        """The stream's length."""
        return READINGS // self.scale
