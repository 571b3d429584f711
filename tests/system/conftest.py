"""The command line as a user calls it, and the proof over what it leaves."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def sluicegate() -> Run:
    """Run `sluicegate ARGS…` in a process of its own; its output as text."""

    def run(*arguments: object, timeout: float = 900, **environment: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "sluicegate", *map(str, arguments)]
        env = {**os.environ, **environment}
        return subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=env, check=False)

    return run


@pytest.fixture
def data() -> Callable[[str], Path]:
    """A file of real readings that lie beside the project; skips where they do not."""

    def find(name: str) -> Path:
        if not (DATA / name).is_file():
            pytest.skip(f"{name} is not in {DATA}: these readings are not copied into the project")
        return DATA / name

    return find
