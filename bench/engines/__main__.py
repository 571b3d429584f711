"""The papers' experiments and the comparisons, on every engine.

python -m bench.engines [COMMAND …] [--quick] [--engines amta,daba] [--json FILE] [--pictures DIR]
    (what is measured goes to bench/results/engines/COMMAND.json, too, but with --tiny)

Commands: latency, throughput, break-even (DABA paper: Tables 2 and 3, Figure 13); sizes, bulk, stream, memory,
dimensions (AMTA paper: Experiments 1 to 5); kvs (windows in SQLite in 64 MiB); peers (pandas, river, C), batches (a
batch into a window made anew, by count and by time, beside pandas), real (../shared/data), generic (one reading at a
time from compiled code), calls (one Python call a reading), board (what the agent asks). Without any: all of them.
--quick takes some minutes, all of it many. `python -m bench.measurements` puts some of it into a page.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.engines import amta, batches, board, daba, generic, kvs, memory, peers, pictures, real, stream
from bench.engines.tables import Table, as_json, as_text
from bench.engines.timing import FULL, QUICK, TINY, Effort

import sluicegate as sg

Command = Callable[[Sequence[str], Effort], list[Table]]
COMMANDS: dict[str, Command] = {}
for module in (batches, board, peers, generic, real, daba, amta, stream, memory, kvs):
    COMMANDS |= module.COMMANDS
EFFORTS = {
    "full": (FULL, "some minutes (the default)"),
    "quick": (QUICK, "some minutes"),
    "tiny": (TINY, "seconds: whether it runs; the figures mean nothing"),
}
ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench/results/engines"


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.engines", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("commands", nargs="*", metavar="COMMAND", help=", ".join(COMMANDS))
    effort = parser.add_mutually_exclusive_group()
    for name in EFFORTS:
        effort.add_argument(f"--{name}", dest="effort", action="store_const", const=name, help=EFFORTS[name][1])
    parser.add_argument("--engines", default=",".join(sg.ENGINES), help="names of sg.ENGINES, with commas")
    parser.add_argument("--json", type=Path, help="write everything measured to this file")
    parser.add_argument("--pictures", type=Path, help="draw SVG pictures into this folder")
    parser.set_defaults(effort="full")
    options = parser.parse_args(arguments)
    for given, known in ((options.commands, COMMANDS), (options.engines.split(","), sg.ENGINES)):
        for name in given:
            if name not in known:
                parser.error(f"{name!r}: expected one of {', '.join(known)}")
    return options


def run(commands: Sequence[str], engines: Sequence[str], effort: Effort) -> Iterator[tuple[str, Table]]:
    """Each command's tables as they come."""
    for name in commands:
        start = time.monotonic()
        for table in COMMANDS[name](engines, effort):
            yield name, table
        print(f"[{name}: {time.monotonic() - start:.1f} s]\n", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, write."""
    options = parse(arguments)
    said = "" if options.effort == "full" else f" --{options.effort}"
    measured = []
    for name, table in run(options.commands or list(COMMANDS), options.engines.split(","), EFFORTS[options.effort][0]):
        print(as_text(table), end="\n\n", flush=True)
        command = f"python -m bench.engines {name}{said}"
        measured.append(as_json(table, command))
        if options.pictures:
            pictures.draw(table, options.pictures)
        if options.effort != "tiny":
            write(RESULTS / f"{name}.json", [found for found in measured if found["command"] == command])
    if options.json:
        write(options.json, measured)


def write(path: Path, measured: list[dict[str, Any]]) -> None:
    """As JSON, a table after the other."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
