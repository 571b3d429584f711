"""A pipeline of one configuration: messages in, killed and started again, and what was counted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sluicegate_agent import dead_letters
from sluicegate_agent.config import build
from sluicegate_agent.messages import Message
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.record.recorder import Recorder
from sluicegate_agent.state import State

NOON = 1_700_000_000_000_000
ALL = {"name": "all", "policy": {"count": 100_000}, "aggregate": ["sum", "count"]}
NEWEST = {"name": "newest", "policy": {"count": 1}, "aggregate": "max"}


class Desk:
    """An agent's inner half on a folder; its clock stands at noon."""

    def __init__(
        self, folder: Path, source: dict[str, Any] | Sequence[dict[str, Any]], *, recorded: bool = False, **tables: Any
    ) -> None:
        """`recorded`: with the record, as an agent runs; else each commit writes the tables."""
        self._is_recorded = recorded
        sources = [source] if isinstance(source, dict) else [*source]
        raw = {"device": {"id": "d"}, "state": {"path": str(folder / "state")}, "source": sources} | tables
        raw.setdefault("window", [ALL, NEWEST])
        self.config = build(raw, folder / "agent.toml")
        self.now = NOON
        self._open()

    def _open(self) -> None:
        self.state = State(self.config)
        recorder = Recorder(self.config, self.state) if self._is_recorded else None
        self.pipeline = Pipeline(self.config, self.state, lambda: self.now, recorder)

    def take(self, *messages: Message | tuple[str, bytes], commit: bool = True) -> None:
        """Accept messages, and commit."""
        for message in messages:
            whole = message if isinstance(message, Message) else Message(*message, 0, 0)
            assert self.pipeline.accept(whole)
        if commit:
            self.pipeline.commit()

    def killed(self) -> None:
        """As after kill -9: memory is gone, what was committed is there."""
        self.state.close()
        self._open()

    def sums(self) -> dict[str, tuple[float, int]]:
        """Sum and count by stream, of all that was counted."""
        found: dict[str, dict[str, Any]] = {}
        for stream in self.state.streams:
            for answer in self.pipeline.answers(stream, "all"):
                found.setdefault(stream, {})[answer.aggregate] = answer.value
        return {stream: (answers["sum"], answers["count"]) for stream, answers in found.items()}

    def reasons(self) -> list[str]:
        """Why messages were refused, the oldest first."""
        return [letter.reason for letter in dead_letters.read(self.state.store.connection)][::-1]
