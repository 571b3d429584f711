"""Long checks in several processes at once: as many cores as there are, and the same cases as in one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PATHS = [str(HERE), *map(str, sorted(HERE.iterdir()))]  # the helpers, and the tests that others take from


def in_processes(module: str, *expressions: str) -> list[Any]:
    """What each expression is in the test module, all worked out at once; must be JSON. A failure shows its output."""
    head = f"import json, sys; sys.path[:0] = {PATHS!r}; from {module} import *; print(json.dumps("
    running = [
        subprocess.Popen(
            [sys.executable, "-c", f"{head}{expression}))"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for expression in expressions
    ]
    found = []
    try:
        for expression, process in zip(expressions, running, strict=True):
            told, errors = process.communicate()
            assert process.returncode == 0, f"{expression}: {errors}"
            found.append(json.loads(told))
    finally:
        for process in running:
            process.kill()
            process.wait()
    return found
