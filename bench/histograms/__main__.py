"""The histograms' benchmarks.

python -m bench.histograms tenth|joining|readings|shared|budget [--help] [options]

tenth: the papers' setting at a tenth of its scale, over four seeded traces. joining: nanoseconds of a reading that
joins a bucket or opens one. readings: a constrained footprint by levels and by pairs over real readings.
shared: several windows from one set of buckets. budget: the paper's answer from a number of buckets, and ours.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from bench.histograms import budget, joining, readings, shared, tenth

COMMANDS: dict[str, Callable[[Sequence[str]], None]] = {
    "tenth": tenth.main, "joining": joining.main, "readings": readings.main, "shared": shared.main,
    "budget": budget.main,
}  # fmt: skip


def main(arguments: Sequence[str]) -> None:
    """Run the part that is named first."""
    if not arguments or arguments[0] not in COMMANDS:
        sys.exit(__doc__)
    COMMANDS[arguments[0]](arguments[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
