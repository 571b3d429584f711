"""The agent beside Telegraf, eKuiper and Hazelcast behind one Mosquitto: processor, memory, kills, late readings.

    python -m bench.peers [--only TEXT] [--messages 20000] [--rounds 2] [--out FILE]

A tool that is not installed is skipped with a word; TELEGRAF, KUIPERD and HAZELCAST say where those are that are not on
PATH. How the figures of comparison.md were made is said there. The least of some rounds for times; losses of each.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from bench.peers import cells
from bench.peers.subjects import Agent, EKuiper, Hazelcast, Subject, Telegraf, TelegrafWindows

from sluicegate_agent.status import table

SUBJECTS = (Agent, Telegraf, TelegrafWindows, EKuiper, Hazelcast)
RATE = 1000.0
GRACE = 5.0


def main() -> None:
    """Measure, print a table a cell, and write JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="tools whose name has this text")
    parser.add_argument("--cells", default="cost,killed,broker,late")
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    if shutil.which("mosquitto") is None:
        sys.exit("mosquitto is not on PATH: nothing can be measured")
    subjects = [kind for kind in SUBJECTS if asked.only in kind.name]
    found: dict[str, Any] = {"cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1)}
    for name in asked.cells.split(","):
        rows: dict[str, dict[str, Any]] = {}
        for _ in range(asked.rounds):
            for kind in subjects:  # in turns
                for each in _settings(kind, name):
                    _add(rows, name, each, asked.messages)
        found[name] = list(rows.values())
        _print(name, found[name])
    if asked.out:
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        asked.out.write_text(json.dumps(found, indent=1) + "\n")


def _settings(kind: type[Subject], cell: str) -> list[Subject]:
    if kind is Agent:
        return [Agent(plain=cell == "cost")]
    if cell != "late":
        return [kind()]
    if kind is Telegraf:  # it has no windows there
        return []
    return [kind(by_time=True), kind(by_time=True, grace=GRACE)]


def _add(rows: dict[str, dict[str, Any]], cell: str, subject: Subject, messages: int) -> None:
    """Runs the cell once more and puts it to what was found before."""
    what = subject.name + (f", {subject.grace:g} s of grace" if cell == "late" and subject.by_time else "")
    row: dict[str, Any] = {"what": what}
    if subject.missing():
        row["skipped"] = subject.missing()
    else:
        try:
            row |= _run(cell, subject, messages)
        except (RuntimeError, OSError) as error:
            row["failed"] = str(error)
    before = rows.get(what, row)
    for key in ("lost", "twice", "unsure"):
        if key in row:
            row[key] = f"{before[key]}, {row[key]}" if before is not row and key in before else str(row[key])
    for key, best in (("us_a_message", min), ("idle_MiB", min), ("most_MiB", max)):
        if key in row and key in before:
            row[key] = best(row[key], before[key])
    rows[what] = row


def _run(cell: str, subject: Subject, messages: int) -> dict[str, Any]:
    if cell == "cost":
        return cells.cost(subject, messages)
    run = {"killed": cells.killed, "broker": cells.broker_killed, "late": cells.late}[cell]
    return run(subject, messages // 2, RATE)


def _print(title: str, rows: list[dict[str, Any]]) -> None:
    keys = list(dict.fromkeys(key for row in rows for key in row))
    print(f"\n{title}")
    print("\n".join(table([tuple(keys), *(tuple(row.get(key, "") for key in keys) for row in rows)])), flush=True)


if __name__ == "__main__":
    main()
