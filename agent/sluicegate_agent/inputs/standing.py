"""Reads standard input: each line is a message, until its end. `kill -9` loses what was read and not committed."""

from __future__ import annotations

import os
import select
from typing import TextIO

from sluicegate_agent.config.inputs import Opened
from sluicegate_agent.config.sources import SourceConfig
from sluicegate_agent.inputs.lines import Lines
from sluicegate_agent.messages import Message

_PIECE = 65_536


#: By descriptor: what is read of it is nowhere else.
_ONE: dict[int, StandardInput] = {}


class StandardInput(Opened):
    """Lines as they come; `is_over` at the end."""

    def __init__(self, source: SourceConfig, most: int, stream: TextIO) -> None:
        self.stream = self.wakes = stream
        self.topic = source.topic
        self.is_over = False
        self._lines = Lines(source.topic, most)
        self._ready: list[tuple[int, Message | None]] = []

    @classmethod
    def of(cls, source: SourceConfig, most: int, stream: TextIO) -> StandardInput:
        """The one of this process: what it has read already goes on to another configuration."""
        found = _ONE.get(stream.fileno())
        if found is None or found.topic != source.topic:
            found = _ONE[stream.fileno()] = cls(source, most, stream)
        return found

    def take(self) -> Message | None:
        """The next line, without waiting for any."""
        while self._ready or (found := self._read()):
            self._ready = self._ready or found
            _, message = self._ready.pop(0)
            if message is not None:
                return message
        return None

    @property
    def is_busy(self) -> bool:  # type: ignore[override]  # it is only looked at
        """Whether there is more to take at once."""
        return bool(self._ready)

    def _read(self) -> list[tuple[int, Message | None]]:
        if self.is_over or not select.select([self.stream], [], [], 0)[0]:
            return []
        piece = os.read(self.stream.fileno(), _PIECE)
        if not piece:
            self.is_over = True
            return self._lines.last()
        return self._lines.cut(piece)
