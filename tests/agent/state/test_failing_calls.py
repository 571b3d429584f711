"""A disk that refuses any system call, or some in a row: told, nothing acknowledged is lost, nothing counts twice."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from thorough import WHOLE

HERE = Path(__file__).parent
#: Which calls, the error (0: a short write), how many in a row, and every which N begins in `make test`.
CALLS = [
    ("write", errno.ENOSPC, 1, 79), ("write", errno.EIO, 6, 149), ("write", errno.EDQUOT, 40, 199),
    ("write", errno.EROFS, 1, 199), ("write", errno.EINTR, 1, 199), ("write", 0, 1, 91),
    ("sync", errno.EIO, 1, 13), ("sync", errno.EIO, 5, 29),
    ("open", errno.EROFS, 1, 13), ("open", errno.ENOSPC, 3, 17), ("read", errno.EIO, 1, 47),
    ("rename", errno.ENOSPC, 1, 1), ("truncate", errno.EIO, 1, 1), ("unlink", errno.EROFS, 1, 1),
]  # fmt: skip


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`failing_calls.c`, compiled."""
    target = tmp_path_factory.mktemp("shim") / "shim.so"
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    command = [compiler, "-shared", "-fPIC", "-o", target, HERE / "failing_calls.c", "-ldl"]
    try:
        subprocess.run(command, check=True)
    except FileNotFoundError:
        pytest.skip("there is no C compiler")
    return target


@pytest.mark.parametrize(("kind", "error", "times", "each"), CALLS)
def test_a_call_that_fails_loses_nothing_and_counts_nothing_twice(
    kind: str, error: int, times: int, each: int, shim: Path, tmp_path: Path
) -> None:
    """The N-th, for each N of a short life: the agent says so, goes on, or ends with a clear line and starts again."""
    environment = {**os.environ, "LD_PRELOAD": str(shim), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    numbers = map(str, (error, times, 1 if WHOLE else each))
    command = [sys.executable, HERE / "failing_calls.py", tmp_path / "life", kind, *numbers]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["calls"] >= {"write": 100, "sync": 20, "open": 10, "read": 20}.get(kind, 1)
    assert found["wrong"] == {}
    assert found["told"] > 0 or error == errno.EINTR  # that is tried again at once
