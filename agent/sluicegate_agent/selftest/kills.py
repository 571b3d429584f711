"""A replay that is killed again and again on this disk, and its chunks there and back: each reading counts once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from sluicegate.format.chunk import decode, encode
from sluicegate_agent.faults import VARIABLE
from sluicegate_agent.selftest.windows import DifferenceError

READINGS = 3_000
#: Steps of a commit at which the process is killed: before it, after it, in the middle of a later one.
FAULTS = ("2@transaction: before commit", "3@transaction: after commit", "40", "90")

_CONFIGURATION = """
[device]
id = "self-test"
[state]
path = "state"
[commit]
every = "10ms"
[bucket]
readings = 16
[outbox]
chunk_buckets = 32
[sync]
target = "directory"
path = "out"
[[source]]
topic = "self-test"
time = "t"
time_format = "s"
streams = { x = "x" }
"""


class Found(NamedTuple):
    """Kills that hit, and what the chunks on disk say."""

    kills: int
    chunks: int
    readings: int


def killed(folder: Path, readings: int = READINGS) -> Found:
    """Kills a replay of so many readings at each of FAULTS, lets it end, and reads its chunks. `folder` is empty.

    Raises:
        DifferenceError: a kill did not hit, a reading is missing or counts twice, or a chunk is not the same after it
            was read and written.
        OSError: the folder cannot be written.
    """
    (folder / "agent.toml").write_text(_CONFIGURATION)
    (folder / "out").mkdir()
    lines = (f"{1_700_000_000 + 60 * i},{i % 97}" for i in range(readings))
    (folder / "readings.csv").write_text("\n".join(("t,x", *lines)) + "\n")
    kills = sum(_replay(folder, fault) == -signal.SIGKILL for fault in FAULTS)
    if kills != len(FAULTS):
        raise DifferenceError(f"only {kills} of {len(FAULTS)} kills hit the replay: nothing is shown by it")
    status = _replay(folder, "")
    if status:
        raise DifferenceError(f"the replay after {kills} kills ended with status {status}")
    return _read(folder / "out", readings, kills)


def _replay(folder: Path, fault: str) -> int:
    command = [sys.executable, "-m", "sluicegate", "replay", str(folder / "agent.toml")]
    command += ["--csv", str(folder / "readings.csv"), "--drain"]
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    environment |= {VARIABLE: fault} if fault else {}
    silent = subprocess.DEVNULL
    return subprocess.run(command, env=environment, stdout=silent, stderr=silent, timeout=600, check=False).returncode


def _read(folder: Path, readings: int, kills: int) -> Found:
    chunks, ordinals, total = 0, list[tuple[int, int]](), 0.0
    for file in sorted(folder.rglob("*.json")):
        data = file.read_bytes()
        chunk = decode(data)
        if encode(chunk) != data.rstrip():
            raise DifferenceError(f"{file.name}: written again it is another document")
        chunks += 1
        for bucket in chunk.buckets:
            ordinals.append((bucket.first, bucket.first + bucket.n))
            total += bucket.total + bucket.n * chunk.center
    ordinals.sort()
    counted = sum(end - begin for begin, end in ordinals)
    if counted != readings or any(before[1] != after[0] for before, after in pairwise(ordinals)):
        raise DifferenceError(f"{readings} readings were sent, {counted} are in {chunks} chunks")
    expected = sum(i % 97 for i in range(readings))
    if abs(total - expected) > 1e-6 * expected:
        raise DifferenceError(f"the readings' sum is {expected}, that of the chunks {total}")
    return Found(kills, chunks, counted)
