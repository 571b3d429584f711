"""Lines of a stream of bytes as messages: no longer than allowed, whatever is between two ends of a line."""

from __future__ import annotations

from sluicegate_agent.messages import Message


class Lines:
    """Cuts pieces into lines; a line longer than `most` bytes is cut there, and its rest is passed over."""

    def __init__(self, topic: str, most: int) -> None:
        self._topic, self._most = topic, most
        self._begun = bytearray()
        self._length = 0

    @property
    def begun(self) -> int:
        """Bytes of a line that has no end yet."""
        return self._length

    def cut(self, piece: bytes) -> list[tuple[int, Message | None]]:
        """The lines that end in a piece: bytes with the end, and the message, None for a blank one."""
        *whole, rest = piece.split(b"\n")
        found = [self._end(line) for line in whole]
        self._add(rest)
        return found

    def last(self) -> list[tuple[int, Message | None]]:
        """What has no end and will get none."""
        return [(self._length, self._end(b"")[1])] if self._length else []

    def _add(self, piece: bytes) -> None:
        self._begun += piece[: max(0, self._most + 1 - len(self._begun))]
        self._length += len(piece)

    def _end(self, piece: bytes) -> tuple[int, Message | None]:
        self._add(piece)
        line, length = bytes(self._begun), self._length
        self._begun, self._length = bytearray(), 0
        if length <= self._most + 1:
            line = line.strip()
        whole = length if len(line) > self._most else 0
        return length + 1, Message(self._topic, line[: self._most], 0, 0, whole) if line else None
