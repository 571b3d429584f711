"""Tells which acknowledgements a broker has certainly taken: those before a ping that it has answered.

A broker reads a connection in order, so an answer to a ping says that it has read every PUBACK before it. One ping is
under way at a time; paho's own, which keeps the connection alive, is counted as one that asks for nothing.
"""

from __future__ import annotations


class Barrier:
    """The commits of one connection: `asked` with the ping that is under way, `next` with the one after it."""

    def __init__(self) -> None:
        self._asked = self._next = 0
        self.passed = 0

    def ask(self, generation: int, *, is_out: bool) -> bool:
        """The PUBACKs of a commit are on their way; whether to ping now, or after the ping that is out."""
        if is_out:
            self._next = generation
            return False
        self._asked = generation
        return True

    def answered(self) -> bool:
        """An answer came; whether to ping again for what was asked meanwhile."""
        self.passed = max(self.passed, self._asked)
        self._asked, self._next = self._next, 0
        return self._asked > 0
