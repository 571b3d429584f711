"""The jars that `make dev` got from Maven's repository, as deploy/make/jars.list names them; no test downloads one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def pinned_jars(name: str) -> dict[str, str]:
    """The jars of that name in the list, and their SHA-256."""
    lines = [line.split() for line in (ROOT / "deploy/make/jars.list").read_text("utf-8").splitlines()]
    return {f"{line[3]}-{line[4]}.jar": line[0] for line in lines if line[1] == name}


def listed_jars(name: str) -> Path:
    """The folder with them, which make checked. Skips where one is not there."""
    folder = Path(sys.prefix) / "jars" / name
    if lacking := [jar for jar in pinned_jars(name) if not (folder / jar).is_file()]:
        pytest.skip(f"needs {lacking[0]}: deploy/make/jars.sh did not get it (its log: {sys.prefix}/jars.log)")
    return folder
