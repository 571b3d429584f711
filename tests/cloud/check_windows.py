"""The nightly form of test_cloud_exact: random windows of devices and fleets against exact arithmetic, by the million.

    make exact [WINDOWS=1000000] [FLEETS=10] [SECONDS=…] [SEED=1]
    python tests/cloud/check_windows.py --windows 1000000 --fleets 10 --seed 1 [--again SEED:WORLD]

Ends with exit code 1 and what is wrong if any window is outside its interval, missing or falsely `exact`.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from exact_worlds import Score, devices_windows, fleets_windows


def devices(windows: int, seconds: float, seed: str) -> Score:
    """Worlds of one device, until so many windows are checked or the time is over."""
    score, begun = Score(), time.monotonic()
    while score.windows < windows and time.monotonic() - begun < seconds:
        world = f"{seed}:{score.worlds}"
        found = devices_windows(random.Random(world))
        found.wrong = [f"{world}: {text}" for text in found.wrong]
        score.add(found)
    return score


def fleets(worlds: int, seconds: float, seed: str) -> Score:
    """Worlds of six streams of three devices each, through Spark; the time is looked at between them."""
    from sluicegate_cloud.session import QUICK, spark_session

    score, begun = Score(), time.monotonic()
    if worlds == 0:
        return score
    spark = spark_session("local[2]", {**QUICK, "spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "2"})
    while score.worlds < worlds and time.monotonic() - begun < seconds:
        world = f"{seed}:{score.worlds}"
        found = fleets_windows(spark, random.Random(world), streams=6, boards=3)
        found.wrong = [f"{world}: {text}" for text in found.wrong]
        score.add(found)
    spark.stop()
    return score


def main() -> int:
    """Check, print a table, write JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--windows", type=int, default=1_000_000)
    parser.add_argument("--fleets", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=3_600.0, help="at most so long for devices, and for fleets")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--again", metavar="SEED:WORLD", help="the device's world that was named, alone")
    parser.add_argument("--out", type=Path, help="where to write the figures as JSON")
    asked = parser.parse_args()
    if asked.again:
        print(*devices_windows(random.Random(asked.again)).wrong, sep="\n")
        return 0
    begun = time.monotonic()
    scores = {
        "devices": devices(asked.windows, asked.seconds, asked.seed),
        "fleets": fleets(asked.fleets, asked.seconds, asked.seed),
    }
    return _told(scores, asked, time.monotonic() - begun)


def _told(scores: dict[str, Score], asked: Any, took: float) -> int:
    print(f"{'':<10}{'worlds':>8}{'windows':>12}{'spans':>8}{'exact':>8}{'missing':>9}{'wrong':>7}")
    for name, score in scores.items():
        share = f"{100 * score.exact / max(score.windows, 1):.0f} %"
        counts = f"{score.missing:>9,}{len(score.wrong):>7,}"
        print(f"{name:<10}{score.worlds:>8,}{score.windows:>12,}{score.spans:>8,}{share:>8}{counts}")
    found = [text for score in scores.values() for text in score.wrong[:20]]
    print(*found, sep="\n")
    if asked.out:
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        told = {name: asdict(score) for name, score in scores.items()}
        asked.out.write_text(json.dumps({"seed": asked.seed, "seconds": round(took), **told}, indent=2) + "\n")
    return int(bool(found) or any(score.missing for score in scores.values()))


if __name__ == "__main__":
    sys.exit(main())
