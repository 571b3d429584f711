"""The A2MTA paper's tables and figures on a stream as long as its own, every answer held to the exact one.

python -m bench.a2mta [--full | --quick | --scale N] [--windows 24] [--trace memory|calm|near-zero|FILE.csv]
                      [--column NAME] [--seed 7] [--only sum-like,max-like,hopping,limits] [--workers 2]
                      [--json FILE] [--markdown FILE] [--figures DIR] [--told JSON ...]

--full (the default): 62,208,000 readings, a window of 2,592,000. --quick: a sixtieth of both, a minute. Exit code 1
where an interval does not hold the exact result, or a value is beyond the user's error limit.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from bench.a2mta import figures, tables
from bench.a2mta.paper import Setting
from bench.a2mta.run import SCENARIOS, Row, run
from bench.engines.tables import machine, today

SCALES = {"full": 1, "quick": 60, "tiny": 240}


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.a2mta", description=(__doc__ or "").splitlines()[0])
    scale = parser.add_mutually_exclusive_group()
    for name, times in SCALES.items():
        scale.add_argument(
            f"--{name}", dest="scale", action="store_const", const=times, help=f"1/{times} of the paper's"
        )
    scale.add_argument("--scale", type=int, metavar="N", help="1/N of the paper")
    parser.add_argument("--windows", type=int, default=24, metavar="N", help="the stream's length; 24 in the paper")
    parser.add_argument("--trace", default="memory", help="memory, calm, near-zero, or a CSV file")
    parser.add_argument("--column", help="of the CSV file; without it the last")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--only", default=",".join(SCENARIOS), help="scenarios, by comma")
    parser.add_argument("--workers", type=int, default=2, help="processes at a time, a method each; 0: in this one")
    parser.add_argument("--json", type=Path, help="write everything measured to this file")
    parser.add_argument(
        "--told", type=Path, nargs="+", metavar="JSON", help="run nothing: what such files hold, together"
    )
    parser.add_argument("--markdown", type=Path, help="write the tables to this file for a page")
    parser.add_argument("--figures", type=Path, help="draw Figures 3 to 6 into this folder as SVG")
    parser.set_defaults(scale=1)
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.only.split(",") if name not in SCENARIOS]:
        parser.error(f"--only {unknown[0]!r}: expected one of {', '.join(SCENARIOS)}")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Run, print the tables, write what is asked for; see the module."""
    options = parse(arguments)
    setting, began = Setting(options.scale, options.windows), time.monotonic()
    if options.told:
        rows = [row for file in options.told for row in json.loads(file.read_text())["rows"]]
    else:
        rows = run(setting, options.trace, options.seed, options.column, options.only.split(","), options.workers)
    seconds = time.monotonic() - began
    print(tables.text(rows, setting))
    print(f"\n{seconds:,.0f} s, trace {options.trace}, seed {options.seed}")
    if options.json:
        said = {"trace": options.trace, "seed": options.seed, "scale": options.scale, "seconds": seconds}
        said |= {"machine": machine(), "date": today(), "rows": rows}
        options.json.write_text(json.dumps(said, indent=1) + "\n")
    if options.markdown:
        options.markdown.write_text(tables.markdown(rows, setting))
    if options.figures:
        for path in figures.draw(rows, options.figures):
            print(path)
    return 1 if failed(rows) else 0


def failed(rows: list[Row]) -> list[Row]:
    """Rows with an interval that does not hold the exact result, or with a value beyond the user's limit."""
    return [row for row in rows if row["outside"] or row["over the limit"]]


if __name__ == "__main__":
    sys.exit(main())
