"""How many windows are exact: a row of a span counts as often as there are windows for which it stands. No Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def exact_shares(windows: pa.Table, aggregates: Sequence[str]) -> dict[str, Any]:
    """`rows`; how many windows may hold a reading, how many of these are `in_spans`, and the share that is exact."""
    held = windows.filter(pc.greater(windows["count_high"], 0))
    of_rows = held["windows"]
    some, spans = pc.sum(of_rows).as_py() or 0, pc.sum(of_rows.filter(pc.greater(of_rows, 1))).as_py() or 0
    shares = {name: exact_share(held, name) for name in aggregates}
    return {"rows": windows.num_rows, "with_readings": some, "in_spans": spans, "exact": shares}


def exact_share(held: pa.Table, name: str) -> float | None:
    """Of the windows that the rows stand for, how many are exact; None where there is none."""
    in_all = pc.sum(held["windows"]).as_py()
    return (pc.sum(held["windows"].filter(held[f"{name}_exact"])).as_py() or 0) / in_all if in_all else None
