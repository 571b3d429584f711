"""What the agent costs: processor a message by the pipeline alone, and with a real Mosquitto beside paho's own client.

    python -m bench.agent messages|plant|standing|broker|drain|results|alerts|all [--messages 20000] [--rounds 3]
        [--only TEXT] [--out FILE]

The machines are shared: each figure is the least of some rounds, and ratios say more than times.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from pathlib import Path
from typing import Any

from bench.agent import alerts, broker, drain, messages, plant, results, standing

from sluicegate_agent.status import table

#: Messages that the broker holds, as many times those that are published beside an agent.
HELD = 10


def main() -> None:
    """Measure, print a table and write JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ways = ("messages", "plant", "standing", "broker", "drain", "results", "alerts", "all")
    parser.add_argument("what", choices=ways)
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="worlds whose name has this text")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    found: dict[str, Any] = {
        "python": platform.python_version(), "cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1)
    }  # fmt: skip
    if asked.what in ("messages", "all"):
        found["messages"] = messages.measured(asked.messages, asked.rounds, asked.only)
        _print("The pipeline alone, µs of processor a message", found["messages"])
    if asked.what in ("plant", "all"):
        found["plant"] = plant.measured(asked.messages, asked.rounds)
        _print("Sensors that send one reading each, in turn: the pipeline alone, a message", found["plant"])
    if asked.what in ("standing", "all"):
        found["standing"] = standing.measured(asked.only)
        _print(
            "A start, and MiB resident: with every stream silent, once each has spoken, as planned", found["standing"]
        )
    if asked.what in ("broker", "all"):
        found["broker"] = broker.measured(asked.messages, asked.rounds, asked.only)
        _print("With Mosquitto, QoS 1", found["broker"])
    if asked.what in ("drain", "all"):
        found["drain"] = drain.measured(HELD * asked.messages, asked.rounds, asked.only)
        _print("What Mosquitto held, without a publisher", found["drain"])
    if asked.what in ("results", "all"):
        found["results"] = results.measured(asked.only)
        _print("Results with Mosquitto, from the newest reading to its answer", found["results"])
    if asked.what in ("alerts", "all"):
        found["alerts"] = alerts.measured(asked.only)
        _print("Alerts with Mosquitto, from the reading's publication to the message at the broker", found["alerts"])
    if asked.out:
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        asked.out.write_text(json.dumps(found, indent=1) + "\n")


def _print(title: str, rows: list[dict[str, Any]]) -> None:
    if not rows:
        return  # no world of this name is measured so
    print(f"\n{title}")
    print("\n".join(table([tuple(rows[0]), *(tuple(row.values()) for row in rows)])))


if __name__ == "__main__":
    main()
