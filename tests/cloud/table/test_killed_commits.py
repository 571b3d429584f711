"""A table promises its last version whoever is killed at whichever step, and that a rerun comes to the same rows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from thorough import number

PROGRAM = Path(__file__).with_name("killed_steps.py")


@pytest.mark.faults
def test_a_commit_that_is_killed_at_any_step_is_made_up_for(tmp_path: Path) -> None:
    """SIGKILL before each step of the version's own file, and of what comes before; of merges and of retentions."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, PROGRAM, tmp_path, str(each := number(1, 32))]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stderr
    for name, told in json.loads(done.stdout).items():
        assert told["wrong"] == []
        assert told["killed"] > told["steps"] // each, (name, told)
