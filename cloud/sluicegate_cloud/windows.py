"""Frames → sliding windows per device and fleet-wide, each with value, low, high, exact, completeness and resolution.

One shuffle brings what belongs to a stream together; a pass over Arrow batches then answers the windows of many streams
at once (`fleet`). A fleet's windows add up what each task has of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from sluicegate_cloud.fleet import wire
from sluicegate_cloud.frames import frame_times
from sluicegate_cloud.grid import MAX_EMPTY, Grid
from sluicegate_cloud.merging import answers
from sluicegate_cloud.names import AGGREGATES, ALL
from sluicegate_cloud.schema import ddl

_HEAD = {"device": "string", "stream": "string", "window_start": "bigint", "window_end": "bigint"}


def sliding_windows(
    frames: DataFrame,
    frames_per_window: int,
    aggregates: Sequence[str] = AGGREGATES,
    *,
    fleet: bool = True,
    max_empty: int = MAX_EMPTY,
) -> DataFrame:
    """Windows of `frames_per_window` frames, sliding by one: the rows of each device, and of all (`device` null).

    `frames` as `place_in_frames` or `merge_frames` gives them. Windows are [window_start, window_end) in µs on the grid
    of the frames, from the first that holds a reading of the stream to the last, so those at both ends are partial;
    empty ones between are rows of count 0. Where more than `max_empty` in a row hold no reading whose time is known,
    they have one row in all: what it says holds for each of its `windows`, the last of which ends at `window_end`; none
    if they are empty for certain. Columns: `window_columns(aggregates)`. Raises ValueError for frames that are not
    frames, a width below 1, a negative `max_empty` or an unknown aggregate.
    """
    if frames_per_window < 1:
        raise ValueError(f"frames_per_window is {frames_per_window}: a window holds at least 1 frame")
    if max_empty < 0:
        raise ValueError(f"max_empty is {max_empty}: expected how many windows in a row may hold nothing, 0 or more")
    aggregates = tuple(aggregates)
    schema = ddl(window_columns(aggregates))
    slide_us, origin_us = frame_times(frames)
    grid = Grid(slide_us, frames_per_window, origin_us)
    wanted = wire.fields(aggregates, folded="buckets" in frames.columns)
    rows = wire.laid_out(frames, wanted)
    windows = rows.mapInArrow(answers.devices(grid, wanted, aggregates, max_empty), schema)
    if not fleet:
        return windows
    shares = rows.mapInArrow(
        answers.shares(grid, wanted, aggregates, max_empty), ddl(answers.share_columns(aggregates))
    )
    by_stream = shares.repartition("stream").sortWithinPartitions("stream", "kind", "frame")
    return windows.unionByName(by_stream.mapInArrow(answers.whole(grid, aggregates, max_empty), schema))


def window_columns(aggregates: Sequence[str] = AGGREGATES) -> dict[str, str]:
    """The columns of window rows and their SQL types: each aggregate, `_low`, `_high` and `_exact`, then the quality.

    Raises ValueError for an unknown aggregate.
    """
    if unknown := [name for name in aggregates if name not in ALL]:
        raise ValueError(f"unknown aggregate {unknown[0]!r}: choose from {', '.join(ALL)}")
    columns = dict(_HEAD)
    for name in aggregates:
        kind = "bigint" if name.endswith("count") else "double"
        columns |= {name: kind, f"{name}_low": kind, f"{name}_high": kind, f"{name}_exact": "boolean"}
    return columns | {"completeness": "double", "resolution_us": "double", "buckets": "bigint", "windows": "bigint"}
