"""What every handle does: holds one reference of the library's, gives it back once, and refuses to be used after.

`close()` gives it back; `with` calls it; a handle that was forgotten is closed when it is collected, with a
ResourceWarning. A database knows its open parts and closes them first, so that none outlives what it points into.
"""

from __future__ import annotations

import atexit
import contextlib
import warnings
import weakref
from types import TracebackType
from typing import Any, Self

from sluicegate.cblite.errors import ClosedError, fail
from sluicegate.cblite.loading import Library, library


class Handle:
    """One counted reference. `_pointer` raises ClosedError after `close`."""

    _held: Any = None

    def __init__(self, pointer: Any, parent: Handle | None = None) -> None:
        self._library: Library = parent._library if parent is not None else library()
        self._held = pointer
        self._parent = parent
        self._parts: weakref.WeakSet[Handle] = weakref.WeakSet()  # closed before this
        (_roots if parent is None else parent._parts).add(self)

    @property
    def _pointer(self) -> Any:
        if self._held is None:
            raise ClosedError(f"{type(self).__name__} is closed; open another one")
        return self._held

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._held is None

    def _call(self, what: str, function: Any, *arguments: Any) -> Any:
        """One call on it that answers something, or nothing and fills in an error, which is raised."""
        ffi, lib = self._library[:2]
        error = ffi.new("CBLError *")
        answer = function(self._pointer, *arguments, error)
        if not answer:
            raise fail(ffi, lib, error, what)
        return answer

    def close(self) -> None:
        """Give the reference back; again is harmless. Parts that are still open are closed first."""
        if self._held is None:
            return
        self._close_parts()
        held, self._held = self._held, None
        self._release(held)

    def _close_parts(self) -> None:
        for part in list(self._parts):
            part.close()

    def _release(self, held: Any) -> None:
        self._library.lib.CBL_Release(held)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        if self._held is not None:
            if self._warns:
                warnings.warn(f"{type(self).__name__} was not closed", ResourceWarning, source=self, stacklevel=2)
            self.close()

    #: Whether forgetting to close it is worth a word: small handles without state of their own are not.
    _warns = True


#: Open databases: closed when the interpreter ends, before the library's threads could call into what is gone.
_roots: weakref.WeakSet[Handle] = weakref.WeakSet()


@atexit.register
def _close_roots() -> None:
    for root in list(_roots):
        with contextlib.suppress(Exception):
            root.close()
