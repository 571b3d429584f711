"""The cloud half's work: chunks → windows as Parquet → the report, and the windows read back for the comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sluicegate_demo.truth import AGGREGATES

WINDOWS = "windows"
BATCH = 20_000


def merge(chunks: Path, out: Path, length_us: int, slide_us: int, say: Callable[[str], None]) -> Path:
    """Merge the chunks into windows, per device and fleet-wide, and write the report; the report's path."""
    from sluicegate_cloud.commands import cloud as _commands  # noqa: F401

    raise NotImplementedError


def windows(out: Path) -> Iterator[dict[str, Any]]:
    """Every window row of the Parquet table, a batch in memory at a time."""
    import pyarrow.dataset as dataset

    ends = ("", "_low", "_high", "_exact")
    columns = ["device", "stream", "window_start", "window_end"]
    columns += [aggregate + end for aggregate in AGGREGATES for end in ends]
    for batch in dataset.dataset(out / WINDOWS, format="parquet").to_batches(columns=columns, batch_size=BATCH):
        yield from batch.to_pylist()
