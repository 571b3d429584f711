"""A real limit on the process: a window in SQLite holds what a window in memory cannot."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import resource, sys
from array import array
import sluicegate as sg

resource.setrlimit(resource.RLIMIT_AS, (64 << 20, 64 << 20))
options = {"store": sg.stores.SQLite(sys.argv[1])} if len(sys.argv) > 1 else {}
size = 1 << 22
window = sg.Window(sg.sum(), policy=sg.policies.count(size), **options)
ones = array("d", [1.0]) * (1 << 14)
try:
    while window.accepted < size + (1 << 18):
        window.insert_many(ones, results=False)
except MemoryError:
    print("memory", window.query()["sum"] == len(window))
    sys.exit()
assert window.query() == {"sum": float(size)}
if options:
    window.close()
peak = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
print("whole", int(peak[0].split()[1]) < 48 << 10)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's account of a process")
@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="the address sanitizer needs more addresses")
@pytest.mark.skipif("QEMU_LD_PREFIX" in os.environ, reason="qemu keeps no program to its limit of addresses")
def test_four_million_readings_in_64_mib(tmp_path: Path) -> None:
    """2^22 readings and their tree are 64 MiB: MemoryError in memory, which the window survives; whole in SQLite."""
    environment = {**os.environ, "MALLOC_ARENA_MAX": "1"}
    said = [
        subprocess.run(
            [sys.executable, "-c", CODE, *place], capture_output=True, text=True, check=True, env=environment
        ).stdout.split()
        for place in ([], [str(tmp_path / "w.db")])
    ]
    assert said == [["memory", "True"], ["whole", "True"]]
