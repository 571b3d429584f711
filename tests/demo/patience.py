"""A wait for an event, as long as a slow machine needs: only a failure takes all of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

SECONDS = 120.0


def until(true: Callable[[], Any]) -> bool:
    """Wait for something to become true; says whether it did."""
    end = time.monotonic() + SECONDS
    while not true():
        if time.monotonic() > end:
            return bool(true())
        time.sleep(0.005)
    return True
