"""One thread at a time in calls that may be put aside half-way: another is refused at once, and nothing has changed."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from sluicegate.errors import BusyError

Given = ParamSpec("Given")
Found = TypeVar("Found")


def alone(call: Callable[Concatenate[Any, Given], Found]) -> Callable[Concatenate[Any, Given], Found]:
    """A method that raises BusyError where another thread is in any of its object's calls of this kind.

    The object has the lock as `_alone`; the thread itself may come again.
    """

    @wraps(call)
    def guarded(self: Any, /, *args: Given.args, **named: Given.kwargs) -> Found:
        if not self._alone.acquire(blocking=False):
            raise BusyError("window: another thread is using it; use one thread a window")
        try:
            return call(self, *args, **named)
        finally:
            self._alone.release()

    return guarded
