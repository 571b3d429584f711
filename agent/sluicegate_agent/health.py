"""How the agent itself is doing, as a small dictionary that travels with its chunks and stands beside its state."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import resource
import sqlite3
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sluicegate.version import VERSION
from sluicegate_agent import private
from sluicegate_agent.record import wear

FILE = "agent.json"
_LARGEST_FILE = 1 << 20
_PAGE = 4096
_STARTED = time.monotonic()
_VERSIONS = {
    "sluicegate": VERSION,
    "python": platform.python_version(),
    "sqlite": sqlite3.sqlite_version,
    "machine": platform.machine(),
}


def brief() -> dict[str, Any]:
    """What travels with a chunk: uptime in seconds, resident bytes now and at most, the clock in µs, the version."""
    return {
        "uptime_s": round(time.monotonic() - _STARTED),
        "rss_bytes": resident(),
        "peak_rss_bytes": peak(),
        "clock_us": time.time_ns() // 1000,
        "version": _VERSIONS["sluicegate"],
    }


def process() -> dict[str, Any]:
    """The same with the versions of what the agent stands on, and the bytes that it had written to the disk."""
    return brief() | {"versions": _VERSIONS, "written_bytes": wear.written()}


def resident() -> int:
    """Bytes resident now; 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def peak() -> int:
    """Bytes resident at most since the start."""
    # Not ru_maxrss on Linux: it is kept across exec, so it may be the size of whoever started the agent.
    with (
        contextlib.suppress(OSError, ValueError, IndexError, StopIteration),
        Path("/proc/self/status").open("rb") as lines,
    ):
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(b"VmHWM:"))
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def write(folder: Path, health: Mapping[str, Any]) -> None:
    """Leave the dictionary beside the state for `status`: replaced whole; not synced, as nothing depends on it.

    Padded to whole pages, so that on a full disk, where no new file can be made, this one is written over: `status`
    must not go on saying what was true before.
    """
    text = json.dumps(health).encode()
    text += b" " * (-len(text) % _PAGE)
    partial = folder / (FILE + ".new")
    try:
        private.write(partial, text)
        partial.replace(folder / FILE)
    except OSError:
        with contextlib.suppress(OSError):
            partial.unlink()
        _write_over(folder / FILE, text)


def _write_over(path: Path, text: bytes) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        longer = os.fstat(file).st_size - len(text)
        os.pwrite(file, text + b" " * max(longer, 0), 0)
    finally:
        os.close(file)


def read(folder: Path) -> dict[str, Any] | None:
    """What the running (or last) agent left; None where there is nothing readable."""
    try:
        with (folder / FILE).open("rb") as file:
            found = json.loads(file.read(_LARGEST_FILE))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None
