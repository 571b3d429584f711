"""Numbered steps at which the kill tests end this process; without a fault set, a step does nothing.

`SLUICEGATE_FAULT_AT=n` in the environment, or `arm(n)`, ends the process with SIGKILL as it passes its n-th step:
nothing is flushed and no handler runs. `SLUICEGATE_FAULT_AT=n@name` counts only the steps of that name. For tests only.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

VARIABLE = "SLUICEGATE_FAULT_AT"


def _pass(name: str) -> None:
    """Nothing happens at a step unless a fault was set."""


def _counting(at: int, trace: list[str] | None, only: str) -> Callable[[str], None]:
    passed = 0

    def step(name: str) -> None:
        nonlocal passed
        passed += not only or name == only
        if trace is not None:
            trace.append(name)
        if passed == at and (not only or name == only):
            os.kill(os.getpid(), signal.SIGKILL)

    return step


step: Callable[[str], None] = _pass


def arm(at: int, trace: list[str] | None = None, only: str = "") -> None:
    """Kill this process as it passes its `at`-th step from now, or step named `only`; 0 never does.

    `trace` collects the names passed.
    """
    global step
    step = _counting(at, trace, only)


def disarm() -> None:
    """Steps do nothing again."""
    global step
    step = _pass


if VARIABLE in os.environ:
    _at, _, _name = os.environ[VARIABLE].partition("@")
    arm(int(_at), only=_name)
