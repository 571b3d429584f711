"""The AMTA paper's Experiment 3 (Table 2) on a stream as long as its own, every answer held to the exact one.

python -m bench.amta [--full | --quick | --scale N] [--trace memory|calm|steps|FILE.csv] [--column NAME] [--seed 7]
                     [--only sum,mean,geometric_mean,std,max,longest_run] [--workers 2] [--json FILE] [--docs]

--full (the default): 62,208,000 readings, a window of 1,048,576. --quick: a fortieth of both. Exit code 1 where an
answer is not the exact one. --docs also puts the tables into bench/results/amta.json.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from bench import measurements
from bench.amta import tables
from bench.amta.paper import AGGREGATES, Setting
from bench.amta.run import Row, run
from bench.engines.tables import machine, today
from bench.traces import check

RESULTS = Path(__file__).resolve().parents[1] / "results"
SCALES = {"full": 1, "quick": 40, "tiny": 480}


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.amta", description=(__doc__ or "").splitlines()[0])
    scale = parser.add_mutually_exclusive_group()
    for name, times in SCALES.items():
        scale.add_argument(f"--{name}", dest="scale", action="store_const", const=times, help=f"1/{times} of it")
    scale.add_argument("--scale", type=int, metavar="N", help="1/N of the paper")
    parser.add_argument("--trace", default="memory", help="memory, calm, steps, or a CSV file of positive numbers")
    parser.add_argument("--column", help="of the CSV file; without it the last")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--only", default=",".join(AGGREGATES), help="aggregates, by comma")
    parser.add_argument("--workers", type=int, default=2, help="processes at a time, an aggregate each")
    parser.add_argument("--json", type=Path, help="write everything measured to this file")
    parser.add_argument("--docs", action="store_true", help="put the tables into bench/results/amta.json")
    parser.set_defaults(scale=1)
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.only.split(",") if name not in AGGREGATES]:
        parser.error(f"--only {unknown[0]!r}: expected one of {', '.join(AGGREGATES)}")
    check(parser, options, positive="geometric_mean" in options.only.split(","))
    return options


def main(arguments: list[str] | None = None) -> int:
    """Run, print the tables, write what is asked for; see the module."""
    options = parse(arguments)
    setting, began = Setting(options.scale), time.monotonic()
    rows = run(setting, options.trace, options.seed, options.column, options.only.split(","), options.workers)
    seconds = time.monotonic() - began
    print(tables.text(rows, setting))
    print(f"\n{seconds:,.0f} s, trace {options.trace}, seed {options.seed}")
    if options.json:
        said = {"trace": options.trace, "seed": options.seed, "scale": options.scale, "seconds": seconds}
        said |= {"machine": machine(), "date": today(), "rows": rows}
        options.json.write_text(json.dumps(said, indent=1) + "\n")
    if options.docs:
        command = "python -m bench.amta " + ("--full" if options.scale == 1 else f"--scale {options.scale}")
        measurements.keep(RESULTS / "amta.json", tables.tables(rows, setting), command)
    return 1 if failed(rows) else 0


def failed(rows: list[Row]) -> list[Row]:
    """Rows with an answer that is not the exact one, or with none compared."""
    return [row for row in rows if row["wrong"] or not row["compared"]]


if __name__ == "__main__":
    sys.exit(main())
