"""A pipeline with one growing file as its input, read, killed and begun again at will."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from desk import Desk

from sluicegate.format.bucket import Bucket
from sluicegate_agent.inputs.inputs import Inputs
from sluicegate_agent.inputs.no_broker import NoLink
from sluicegate_agent.inputs.tail import Tail


class Reader:
    """A pipeline with one file as its input; killed and begun again at will."""

    def __init__(self, folder: Path, *, recorded: bool = False, **keys: Any) -> None:
        self.file = folder / f"meter.{keys.pop('suffix', 'log')}"
        source = {"topic": "meter", "input": "tail", "file": str(self.file), "format": "number", "streams": {"x": ""}}
        self.desk = Desk(folder, source | keys, recorded=recorded)
        self.begin()

    def begin(self) -> None:
        """Open the file where the state says."""
        self.inputs = Inputs(self.desk.config, self.desk.pipeline, NoLink())

    @property
    def tail(self) -> Tail:
        """The file as it is read."""
        found = self.inputs._running[0].opened
        assert isinstance(found, Tail)
        return found

    def killed(self) -> None:
        """What was not committed is forgotten."""
        self.inputs.close()
        self.desk.killed()
        self.begin()

    def read(self, *, commit: bool = True) -> None:
        """Take all there is, as an agent does in its turns."""
        for _ in range(8):
            while self.inputs.step():
                if commit or not self.desk.pipeline.has_room or self.desk.pipeline.pending > 100:
                    self.desk.pipeline.commit()
        if commit:
            self.desk.pipeline.commit()

    def write(self, *values: Any, end: str = "\n") -> None:
        """Lines at the end of the file."""
        with self.file.open("a") as handle:
            handle.write("".join(f"{value}{end}" for value in values))

    def total(self) -> tuple[float, int]:
        """Sum and count of what was counted."""
        return self.desk.sums().get("x", (0.0, 0))


def gaps(one: Reader) -> list[int]:
    """What the buckets of each stream say is missing, the open one included."""
    one.desk.pipeline.flush()
    one.desk.pipeline.fold_next()
    one.desk.pipeline.commit()
    found = dict.fromkeys((stream.number for stream in one.desk.state.streams.values()), 0)
    for number, bucket in one.desk.state.store.connection.execute("SELECT stream, bucket FROM outbox"):
        found[number] += Bucket.unpack(bucket).gap
    return list(found.values())
