"""Passes questions from the listener's thread to the agent's, which answers between two messages.

So the listener never looks at a window while it takes a reading, and nothing in the agent needs a lock.
"""

from __future__ import annotations

import contextlib
import logging
import socket
from collections import deque
from collections.abc import Callable
from typing import Any

from sluicegate_agent.web.http import Response

log = logging.getLogger("sluicegate.web")
#: Questions that wait at most; the listener has fewer connections than that by default.
_WAITING_MOST = 1024


class Ticket:
    """One question: `look` runs in the agent's thread, `tell` makes a response of what it found in the listener's."""

    def __init__(self, look: Callable[[], Any], tell: Callable[[Any], Response]) -> None:
        self.look, self._tell = look, tell
        self.found: Any = None
        self.failed = False
        self.is_done = False

    def lost(self) -> None:
        """Who asked was not told, or may not have heard it; called in the listener's thread."""

    def ended(self) -> None:
        """Who asked says no more, and may be gone; called in the listener's thread, before the answer."""

    def heard(self) -> None:
        """Who asked has the answer; called in the listener's thread."""

    def withdraw(self) -> None:
        """Who asked was told to ask again; called in the listener's thread."""

    def response(self) -> Response:
        """What was found, told; an apology where looking failed."""
        if self.failed:
            return Response(503, b"the agent could not answer; see its log\n")
        return self._tell(self.found)


class Desk:
    """Where questions wait. `wake` becomes readable when there is one; `answered` is called when all are answered."""

    def __init__(self, answered: Callable[[], None]) -> None:
        self.wake, self._woken = socket.socketpair()
        self.wake.setblocking(False)
        self._woken.setblocking(False)
        self._answered = answered
        self._asked: deque[Ticket] = deque(maxlen=_WAITING_MOST)

    def ask(self, look: Callable[[], Any], tell: Callable[[Any], Response]) -> Ticket:
        """Put a question; from the listener's thread."""
        ticket = Ticket(look, tell)
        self._asked.append(ticket)
        with contextlib.suppress(OSError):  # full of earlier calls, or closed
            self._woken.send(b"\0")
        return ticket

    def serve(self) -> None:
        """Answer what waits; from the agent's thread."""
        if not self._asked:
            return
        with contextlib.suppress(OSError):
            self.wake.recv(4096)
        for _ in range(len(self._asked)):
            ticket = self._asked.popleft()
            try:
                ticket.found = ticket.look()
            except Exception:
                # Whatever a question trips over must not end the agent: who asked is told, with a trace in the log.
                log.exception("a question of the listener failed")
                ticket.failed = True
            ticket.is_done = True
        self._answered()

    def close(self) -> None:
        """Let the sockets go."""
        self.wake.close()
        self._woken.close()
