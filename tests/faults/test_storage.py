"""What a killed campaign leaves behind in memory is taken away by the next one; what a living one has is not."""

from __future__ import annotations

import mmap
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("paho.mqtt.client", reason="the campaign needs the extra `agent`")
from campaign import storage

BEGUN = """
import sys
from campaign import storage
folder = storage.base()
disk = (storage.PowerDisk if storage.can_cut_power() else storage.Plain)(folder)
disk.open()
(disk.path / "file").write_text("x")
if storage.can_cut_power():
    disk.hang()
print(folder, flush=True)
sys.stdin.read()
"""


def _begun() -> tuple[subprocess.Popen[str], Path]:
    command = [sys.executable, "-c", BEGUN]
    folder = Path(storage.__file__).parents[1]
    one = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert one.stdout is not None
    return one, Path(one.stdout.readline().strip())


def test_the_next_campaign_takes_away_what_a_killed_one_left() -> None:
    """Files, and a file system that is frozen, with its loop device."""
    living, kept = _begun()
    killed, left = _begun()
    try:
        killed.kill()
        killed.wait()
        assert (left / "disk").exists()
        mine = storage.base()
        assert mine.exists()
        assert not left.exists()
        assert (kept / "disk").exists()
        assert str(left) not in Path("/proc/self/mounts").read_text()
    finally:
        living.kill()
        living.wait()
        for each in (kept, left):
            storage.take_away(each)
    storage.take_away(mine)


def test_clocks_of_dead_agents_are_taken_away(tmp_path: Path) -> None:
    """What libfaketime leaves behind is, once no process has it; other files are not."""
    dead, living, other = tmp_path / "faketime_shm_1", tmp_path / "sem.faketime_sem_2", tmp_path / "my_faketime_shm_1"
    for each in (dead, living, other):
        each.write_bytes(bytes(4096))
    with living.open("r+b") as file, mmap.mmap(file.fileno(), 4096):
        storage._forget_clocks(tmp_path)
        assert not dead.exists()
        assert living.exists()
        assert other.exists()
