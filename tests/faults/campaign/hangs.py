"""A share that hangs: every call below a folder waits while a file beside it is there. For the launcher's agents only.

As in a hung network mount the caller sits in the call; here SIGKILL still ends it at once.
"""

from __future__ import annotations

import builtins
import io
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

FOLDER, FLAG = "SLUICEGATE_TEST_SHARE", ".hangs"


def _wait(path: Any) -> None:
    share = os.environ.get(FOLDER)
    if share is None:
        return
    if isinstance(path, int):
        try:
            path = Path(f"/proc/self/fd/{path}").readlink()
        except OSError:
            return
    if os.fsdecode(path).startswith(share):
        flag = share + FLAG
        while os.path.lexists(flag):
            time.sleep(0.01)


def _waiting(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(path: Any, *rest: Any, **named: Any) -> Any:
        if isinstance(path, str | bytes | int | Path):
            _wait(path)
        return function(path, *rest, **named)

    return call


def install() -> None:
    """Let open, fsync, link, rename, mkdir, listdir and unlink wait."""
    for name in ("open", "fsync", "fdatasync", "link", "rename", "replace", "mkdir", "listdir", "unlink", "stat"):
        setattr(os, name, _waiting(getattr(os, name)))
    io.open = builtins.open = _waiting(builtins.open)  # type: ignore[assignment]
