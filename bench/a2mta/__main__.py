"""The A2MTA paper's tables and figures on a stream as long as its own, every answer held to the exact one.

python -m bench.a2mta [--full | --quick | --scale N] [--windows 24] [--trace memory|calm|near-zero|FILE.csv]
                      [--column NAME] [--seed 7] [--only sum-like,max-like,hopping,limits] [--workers 2]
                      [--method LABEL ...] [--json FILE] [--figures DIR] [--docs] [--told JSON ...]

--full (the default): 62,208,000 readings, a window of 2,592,000. --quick: a 120th of both, a minute. Exit code 1
where an interval does not hold the exact result, or a value is beyond the user's error limit. --docs also puts the
tables into bench/results/a2mta.json, and of the memory trace the figures into docs/pictures. --told runs nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from bench import measurements
from bench.a2mta import figures, tables
from bench.a2mta.paper import Setting
from bench.a2mta.run import SCENARIOS, Row, run
from bench.engines.tables import as_text, machine, today
from bench.traces import check

DOCS = Path(__file__).resolve().parents[2] / "docs"
RESULTS = Path(__file__).resolve().parents[1] / "results"
SCALES = {"full": 1, "quick": 120, "tiny": 240}


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
    parser.add_argument("--trace", default="memory", help="memory, calm, steps, near-zero, or a CSV file")
    parser.add_argument("--column", help="of the CSV file; without it the last")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--only", default=",".join(SCENARIOS), help="scenarios, by comma")
    parser.add_argument("--method", action="append", metavar="LABEL", help="this row of them only; may be repeated")
    parser.add_argument("--workers", type=int, default=2, help="processes at a time, a method each; 0: in this one")
    parser.add_argument("--json", type=Path, help="write everything measured to this file")
    parser.add_argument(
        "--told", type=Path, nargs="+", metavar="JSON", help="run nothing: what such files hold, together"
    )
    parser.add_argument(
        "--docs",
        action="store_true",
        help="fill bench/results/a2mta.json, and the figures of docs/pictures",
    )
    parser.add_argument("--figures", type=Path, help="draw Figures 3 to 6 into this folder as SVG")
    parser.set_defaults(scale=1)
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.only.split(",") if name not in SCENARIOS]:
        parser.error(f"--only {unknown[0]!r}: expected one of {', '.join(SCENARIOS)}")
    _check_methods(parser, options)
    if not options.told:
        check(parser, options)
    return options


def _check_methods(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Labels that there are, and no page with rows left out."""
    labels = {each.label for name in options.only.split(",")
              for each in SCENARIOS[name](Setting(options.scale, options.windows)).methods}  # fmt: skip
    if unknown := [label for label in options.method or () if label not in labels]:
        parser.error(f"--method {unknown[0]!r}: expected one of {'; '.join(sorted(labels))}")
    if options.method and options.docs:
        parser.error("--method with --docs: the page would lose the tables' other rows")


def main(arguments: list[str] | None = None) -> int:
    """Run, print the tables, write what is asked for; see the module."""
    options = parse(arguments)
    setting, began = Setting(options.scale, options.windows), time.monotonic()
    if options.told:
        told = [json.loads(file.read_text()) for file in options.told]
        rows = [row for each in told for row in each["rows"]]
    else:
        scenarios, methods = options.only.split(","), options.method
        rows = run(setting, options.trace, options.seed, options.column, scenarios, options.workers, methods)
    seconds = sum(each["seconds"] for each in told) if options.told else time.monotonic() - began
    found = tables.tables(rows, setting, options.trace, seconds)
    print("\n\n".join(as_text(table) for table in found))
    if options.json:
        said = {"trace": options.trace, "seed": options.seed, "scale": options.scale, "seconds": seconds}
        said |= {"machine": machine(), "date": today(), "rows": rows}
        options.json.write_text(json.dumps(said, indent=1) + "\n")
    folders = [options.figures] * bool(options.figures)
    if options.docs:
        measurements.keep(RESULTS / "a2mta.json", found, _command(options))
        folders += [DOCS / "pictures"] * (options.trace == "memory")
    for folder in folders:
        for path in figures.draw(rows, folder):
            print(path)
    for row in failed(rows):
        print(_failure(row), file=sys.stderr)
    return 1 if failed(rows) else 0


def _command(options: argparse.Namespace) -> str:
    """What to say to have the same again."""
    said = "--full" if options.scale == 1 else f"--scale {options.scale}"
    given = {"trace": "memory", "windows": 24, "only": ",".join(SCENARIOS)}
    extra = [f" --{name} {getattr(options, name)}" for name, usual in given.items() if getattr(options, name) != usual]
    return f"python -m bench.a2mta {said}{''.join(extra)}"


def failed(rows: list[Row]) -> list[Row]:
    """Rows with an interval that does not hold the exact result, or with a value beyond the user's limit."""
    return [row for row in rows if row["outside"] or row["over the limit"]]


def _failure(row: Row) -> str:
    """Why the command ends with 1, in words."""
    return (
        f"{row['label']}: {row['outside']:,} of {row['asked']:,} intervals outside, {row['over the limit']:,} of "
        f"{row['checked']:,} values beyond the limit (withhold=True gives out none of those)"
    )


if __name__ == "__main__":
    sys.exit(main())
