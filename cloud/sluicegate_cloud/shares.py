"""Counts how many windows are exact: a span counts as often as the windows for which it stands. No Spark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def exact_shares(windows: Iterable[pa.RecordBatch], aggregates: Sequence[str]) -> dict[str, Any]:
    """`rows`; how many windows may hold a reading, how many of these are `in_spans`, and the share that is exact.

    `windows`: rows with `count_high`, `windows` and what of the aggregates is exact; a batch is held at a time.
    """
    rows = some = spans = 0
    exact = dict.fromkeys(aggregates, 0)
    for batch in windows:
        rows += batch.num_rows
        held = batch.filter(pc.greater(batch["count_high"], 0))
        of_rows = held["windows"]
        some += pc.sum(of_rows).as_py() or 0
        spans += pc.sum(of_rows.filter(pc.greater(of_rows, 1))).as_py() or 0
        for name in aggregates:
            exact[name] += pc.sum(of_rows.filter(held[f"{name}_exact"])).as_py() or 0
    shares = {name: count / some if some else None for name, count in exact.items()}
    return {"rows": rows, "with_readings": some, "in_spans": spans, "exact": shares}
