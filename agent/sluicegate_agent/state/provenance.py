"""What a state directory knows beside its store: its last incarnation, and which damage is still to be told."""

from __future__ import annotations

import json
import os
from pathlib import Path

from sluicegate_agent import private

NAME = "incarnation.json"


def read(folder: Path) -> dict[str, int]:
    """`last`: the last incarnation; `set_aside`: how many damaged stores this directory has seen; `lost`, where what
    follows from the last of these is not durable yet: the incarnation that it had. 0 where the file is missing or
    damaged.
    """
    try:
        kept = json.loads((folder / NAME).read_bytes())
        lost = {"lost": int(kept["lost"])} if "lost" in kept else {}
        return {"last": int(kept["last"]), "set_aside": int(kept["set_aside"]), **lost}
    except (OSError, ValueError, KeyError, TypeError):
        return {"last": 0, "set_aside": 0}


def write(folder: Path, content: dict[str, int]) -> None:
    """The same, durably."""
    path = folder / NAME
    partial = path.with_suffix(".new")
    with open(partial, "w", opener=private.opener) as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    sync_folder(folder)


def sync_file(path: Path) -> None:
    """Make what a file holds durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
