"""What the agent shows of itself while it runs, as one bounded dictionary; looked at in the agent's own thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from sluicegate_agent import health

if TYPE_CHECKING:
    from sluicegate_agent.config import Config
    from sluicegate_agent.inputs.no_broker import NoLink
    from sluicegate_agent.link import Link
    from sluicegate_agent.messages import Result
    from sluicegate_agent.pipeline import Pipeline
    from sluicegate_agent.sync import Sync
    from sluicegate_agent.web.commits import CommitTimes
    from sluicegate_agent.web.errors import LastErrors

#: Buckets that one question may ask for.
BUCKETS_MOST = 2_000
#: Alerts that are shown.
ALERTS_MOST = 100


class View:
    """Looks at an agent's parts. `refusal` is why the store takes no commits, empty where it does."""

    def __init__(
        self, config: Config, pipeline: Pipeline, sync: Sync, link: Link | NoLink, commits: CommitTimes,
        errors: LastErrors, planned: int,
    ) -> None:  # fmt: skip
        """`planned`: bytes of memory that `plan` says at most."""
        self.config, self.pipeline, self.sync, self.link = config, pipeline, sync, link
        self.commits, self.errors, self.planned = commits, errors, planned
        self.refusal = ""
        self.alerts: Callable[[], list[dict[str, Any]]] = list
        self.answers: dict[tuple[str, str, str], Result] = {}

    def note(self, answers: Iterable[Result]) -> None:
        """Keep the newest answer of each window: each rests on a commit."""
        for answer in answers:
            self.answers[answer.stream, answer.window, answer.aggregate] = answer

    def status(self, stream: str | None = None) -> dict[str, Any]:
        """All there is, of `metrics.streams_most` streams, or of the one that is named."""
        shown = self._shown(stream)
        return {
            "device": self.config.device.id,
            **health.process(),
            "planned_bytes": self.planned,
            "memory_budget": int(self.config.state.memory),
            "broker": self.link.status(),
            "target": self.sync.link.as_dict(),
            "budget": self.sync.keeping.account.as_dict() if self.sync.keeping else None,
            "store": {"refuses": self.refusal},
            "outbox": self._outbox(),
            "counters": self.pipeline.state.counters.as_dict(),
            "commits": self.commits.as_dict(),
            "streams_in_all": len(self.pipeline.windows),
            "streams": [self._stream(name) for name in shown],
            "windows": [window for name in shown for window in self._windows(name)],
            "answers": self._answers(set(shown)),
            "alerts": self.alerts()[:ALERTS_MOST],
            "errors": self.errors.as_list(),
        }

    def ready(self) -> dict[str, Any]:
        """Whether readings come in and are counted; the reasons where they are not."""
        reasons = [] if self.link.subscribed else [f"broker: {self.link.state}"]
        reasons += [f"the store refuses: {self.refusal}"] if self.refusal else []
        return {"ready": not reasons, "reasons": reasons, "clock_us": time.time_ns() // 1000}

    def buckets(self, stream: str, window: str, start: int, end: int) -> tuple[list[str], list[tuple[Any, ...]]]:
        """The aggregates, and a window's buckets that reach into [start, end] µs, oldest first, at most BUCKETS_MOST.

        Raises KeyError where there is no such window.
        """
        of_stream = self.pipeline.windows.get(stream, [])
        stored = next((each for each in of_stream if window in each.names), None)
        if stored is None:
            raise KeyError(f"stream {stream} has no window {window}")
        rows: list[tuple[Any, ...]] = []
        for row in stored.rows():
            if row[2] >= start and row[1] <= end and len(rows) < BUCKETS_MOST:
                rows.append(row)
        return [*stored.aggregates], rows

    def _shown(self, stream: str | None) -> list[str]:
        if stream is not None:
            return [stream] if stream in self.pipeline.windows else []
        names = iter(self.pipeline.windows)
        return [name for _, name in zip(range(self.config.metrics.streams_most), names, strict=False)]

    def _stream(self, name: str) -> dict[str, Any]:
        stream = self.pipeline.state.streams[name]
        lane = self.pipeline.state.outbox.lanes.get(stream.number)
        return {
            "stream": name,
            "readings": stream.accepted,
            "late": stream.late,
            "missing": stream.told + stream.owed,
            "newest_us": stream.builder.newest if stream.builder else None,
            "buckets_waiting": len(lane) if lane else 0,
        }

    def _windows(self, name: str) -> Iterator[dict[str, Any]]:
        for stored in self.pipeline.windows[name]:
            told = {"buckets": stored.held, "limit": stored.limit if stored.buckets else 0}
            yield {"stream": name, "window": stored.name, **told, "bytes": stored.nbytes}

    def _answers(self, shown: set[str]) -> list[Result]:
        return [answer for answer in self.answers.values() if answer.stream in shown]

    def _outbox(self) -> dict[str, int]:
        outbox = self.pipeline.state.outbox
        return {
            "buckets": outbox.rows,
            "buckets_most": outbox.rows_most,
            "bytes": outbox.bytes_held,
            "bytes_most": outbox.bytes_most,
            "chunks_sealed": outbox.sealed,
            "chunks_rejected": outbox.rejected,
        }
