"""Files that only their owner may read: the state, and what secrets are in."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

FILE, FOLDER = 0o600, 0o700
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
#: How the names of everything in a state directory begin.
_OURS = ("state.", "sync.", "lock", "agent.json", "incarnation.", "damaged", "rescued-", "target", "salvaged")


def opener(path: str, flags: int) -> int:
    """For `open`: what it makes is private."""
    return os.open(path, flags | os.O_CLOEXEC, FILE)


def write(path: Path, data: bytes) -> None:
    """Write a whole file that is private from its first byte on."""
    with open(path, "wb", opener=opener) as file:
        file.write(data)


def touch(path: Path) -> None:
    """Make a private file where there is none, so that whoever opens it next need not."""
    os.close(opener(str(path), os.O_WRONLY | os.O_CREAT))


def make_private(folder: Path) -> None:
    """Take others' rights from a state directory, as older versions left them, and from all of ours in it.

    The folder itself keeps its rights where something that is not ours lies in it. What another user owns is left.
    """
    names = list(folder.iterdir())
    ours = [path for path in names if path.name.startswith(_OURS)]
    for path in [*([folder] if len(ours) == len(names) else []), *ours]:
        with contextlib.suppress(OSError):
            _restrict(path)


def _restrict(path: Path) -> None:
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode):
        return
    if found.st_mode & _OTHERS:
        path.chmod(stat.S_IMODE(found.st_mode) & ~_OTHERS)
    if stat.S_ISDIR(found.st_mode) and path.suffix == ".cblite2":
        for inner in path.iterdir():
            _restrict(inner)


def exposed(path: Path) -> bool:
    """Whether a file may be read by others than its owner."""
    try:
        return bool(path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH))
    except OSError:
        return False
