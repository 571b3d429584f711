"""What three years of one stream take in a folder of chunks: python -m bench.history [--days 1095] [--seed 7].

Replays a reading a minute, to a tenth of a degree, with the configuration of docs/how-to/history.md.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from math import cos, pi
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs/how-to/history.md"


def write_readings(file: Path, days: int, seed: int) -> None:
    """A yearly and a daily cycle, and noise that remembers hours."""
    chance, level, start = random.Random(seed), 0.0, datetime(2023, 1, 1, tzinfo=UTC)
    with file.open("w") as out:
        print("time,temp", file=out)
        for minute in range(days * 1440):
            level = 0.995 * level + chance.gauss(0, 0.06)
            celsius = 11 - 10 * cos(2 * pi * minute / 525_600) - 4 * cos(2 * pi * minute / 1440) + level
            print(f"{start + timedelta(minutes=minute):%Y-%m-%dT%H:%M:%SZ},{celsius:.1f}", file=out)


def main() -> None:
    """Replay, then count the bytes of all documents."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=1095)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    (configuration,) = re.findall(r"^```toml\n(.*?)^```$", PAGE.read_text("utf-8"), re.S | re.M)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "agent.toml").write_text(configuration)
        (place / "buckets").mkdir()
        write_readings(place / "readings.csv", options.days, options.seed)
        command = [sys.executable, "-m", "sluicegate", "replay", "agent.toml", "--csv", "readings.csv", "--drain"]
        subprocess.run(command, check=True, cwd=place, stdout=subprocess.DEVNULL)
        sizes = [file.stat().st_size for file in (place / "buckets").rglob("*.json")]
    readings = options.days * 1440
    print(json.dumps({"readings": readings, "bytes": sum(sizes), "files": len(sizes), "each": sum(sizes) / readings}))


if __name__ == "__main__":
    main()
