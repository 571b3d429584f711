"""What a stream takes in a folder of chunks, a document a day: python -m bench.history [--days 60] [--seed 7].

Replays a reading a minute, to a tenth of a degree, with the configuration of docs/how-to/history.md, a day at a time
and all of it handed on: what a live agent sends, of which no bucket has to be merged. Three years are 1,095 such days.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from math import cos, pi
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs/how-to/history.md"


def readings_of(days: int, seed: int) -> Iterator[list[str]]:
    """The lines of each day: a yearly and a daily cycle, and noise that remembers hours."""
    chance, level, start = random.Random(seed), 0.0, datetime(2023, 1, 1, tzinfo=UTC)
    for day in range(days):
        lines = ["time,temp"]
        for minute in range(day * 1440, (day + 1) * 1440):
            level = 0.995 * level + chance.gauss(0, 0.06)
            celsius = 11 - 10 * cos(2 * pi * minute / 525_600) - 4 * cos(2 * pi * minute / 1440) + level
            lines.append(f"{start + timedelta(minutes=minute):%Y-%m-%dT%H:%M:%SZ},{celsius:.1f}")
        yield lines


def main() -> None:
    """Replay day after day, then count the bytes of all documents."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=60)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    (configuration,) = re.findall(r"^```toml\n(.*?)^```$", PAGE.read_text("utf-8"), re.S | re.M)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "agent.toml").write_text(configuration)
        (place / "buckets").mkdir()
        command = [sys.executable, "-m", "sluicegate", "replay", "agent.toml", "--csv", "readings.csv", "--drain"]
        for lines in readings_of(options.days, options.seed):
            (place / "readings.csv").write_text("\n".join(lines) + "\n")
            subprocess.run(command, check=True, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        sizes = [file.stat().st_size for file in (place / "buckets").rglob("*.json")]
    readings = options.days * 1440
    found = {"readings": readings, "bytes": sum(sizes), "files": len(sizes), "each": round(sum(sizes) / readings, 3)}
    print(json.dumps(found | {"three_years": round(sum(sizes) / options.days * 1095)}))


if __name__ == "__main__":
    main()
