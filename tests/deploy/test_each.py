"""A share of a suite has tests of every file, the same ones in every run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

WHEELS = Path(__file__).resolve().parents[2] / "deploy/wheels"


def test_every_third_of_each_file(tmp_path: Path) -> None:
    """The first of each file is in it, however few it has."""
    for name, number in (("many", 7), ("one", 1)):
        tests = "".join(f"def test_{name}_{i}(): pass\n" for i in range(number))
        (tmp_path / f"test_{name}.py").write_text(tests)
    command = [sys.executable, "-m", "pytest", "-p", "each", "-p", "no:cacheprovider", "-q", "--collect-only", tmp_path]
    environment = os.environ | {"PYTHONPATH": str(WHEELS), "EACH": "3"}
    said = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=True).stdout
    found = [line.rsplit("::", 1)[1] for line in said.splitlines() if "::" in line]
    assert found == ["test_many_0", "test_many_3", "test_many_6", "test_one_0"]
