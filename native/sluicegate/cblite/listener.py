"""Listeners: the library calls on threads of its own; here it only copies and enqueues, and your thread takes it.

A listener has a file descriptor that is readable while something waits, for `select`, and `take(timeout)`.
What waits is bounded: beyond MOST the oldest are dropped and counted in `lost`; ask for the state itself then.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
from collections import deque
from typing import Any, ClassVar, Generic, TypeVar

from sluicegate.cblite.errors import ClosedError
from sluicegate.cblite.handle import Handle

MOST = 65_536
Event = TypeVar("Event")


class Mailbox(Generic[Event]):
    """A bounded queue that any thread puts into and one takes from, with a descriptor to wait on."""

    def __init__(self, most: int = MOST) -> None:
        self._waiting: deque[Event] = deque()
        self._guard = threading.Lock()
        self._most = most
        self._signal = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.lost = 0

    def put(self, events: list[Event]) -> None:
        """Add events and wake the taker; after `close` they are let go. Raises nothing."""
        with self._guard:
            if self._signal < 0:
                return
            self._waiting.extend(events)
            while len(self._waiting) > self._most:
                self._waiting.popleft()
                self.lost += 1
            os.eventfd_write(self._signal, 1)

    def take(self, timeout: float | None = 0.0) -> list[Event]:
        """What waits, oldest first; waits up to `timeout` seconds (None: for ever) for the first."""
        if not self._waiting and timeout != 0.0:
            self._wait(timeout)
        with self._guard:
            taken = list(self._waiting)
            self._waiting.clear()
            if self._signal >= 0:
                with contextlib.suppress(BlockingIOError):
                    os.eventfd_read(self._signal)
            return taken

    def _wait(self, timeout: float | None) -> None:
        ready = select.poll()
        ready.register(self.fileno(), select.POLLIN)
        ready.poll(None if timeout is None else timeout * 1000)

    def fileno(self) -> int:
        """Readable while something waits. Raises ClosedError."""
        if self._signal < 0:
            raise ClosedError("the listener is closed; open another one")
        return self._signal

    def close(self) -> None:
        """Give the descriptor back; what waits can still be taken."""
        with self._guard:
            if self._signal >= 0:
                os.close(self._signal)
                self._signal = -1


class Listener(Handle, Generic[Event]):
    """A listener's token with its mailbox. `close` returns when no call of it is under way any more.

    Subclasses name the library's function that registers, the C type of what it calls, and what a call becomes.
    """

    _registers: ClassVar[str]
    _signature: ClassVar[str]

    def __init__(self, parent: Handle) -> None:
        """Registered with `parent`."""
        ffi, lib = parent._library[:2]
        self.mailbox: Mailbox[Event] = Mailbox()
        self._callback = ffi.callback(self._signature, self._taking(parent._library, self.mailbox))
        super().__init__(getattr(lib, self._registers)(parent._pointer, self._callback, ffi.NULL), parent)

    @staticmethod
    def _taking(library: Any, mailbox: Mailbox[Any]) -> Any:
        """The function that the library calls: it must hold neither the handle nor a lock of ours."""
        raise NotImplementedError

    @property
    def lost(self) -> int:
        """Events dropped because nobody took them."""
        return self.mailbox.lost

    def fileno(self) -> int:
        """Readable while something waits."""
        return self.mailbox.fileno()

    def take(self, timeout: float | None = 0.0) -> list[Event]:
        """What waits, oldest first; waits up to `timeout` seconds (None: for ever) for the first."""
        self._pointer  # noqa: B018  nothing comes any more after close
        return self.mailbox.take(timeout)

    def _release(self, held: Any) -> None:
        self._library.lib.CBLListener_Remove(held)
        self.mailbox.close()
