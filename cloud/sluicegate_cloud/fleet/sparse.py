"""Bounds how many windows one device can make: sets aside with a reason what is too much, answers all else.

A reading makes a window's length of windows, and up to `grid.MAX_EMPTY` empty ones before the next: a device that sends
little could make any number of rows. A stream has a row for every bucket that was sent and `grid.MAX_WINDOWS` more, and
each of GROUPS groups of a device's streams no more than that together; those streams with fewest are taken first. Of
one that needs more, the documents that begin before some time are used, and those from then on are set aside: their
readings are missing. What is counted follows from the documents alone, so that every run decides alike.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from sluicegate_cloud import grid as grids
from sluicegate_cloud.documents import buffers_of, fields_of
from sluicegate_cloud.fleet.spread import those
from sluicegate_cloud.fleet.wire import Stream
from sluicegate_cloud.grid import MAX_EMPTY, Grid, Ints, stretches
from sluicegate_cloud.schema import BUCKET_FIELDS, REFUSED, USED

#: Groups of a device's streams: as many as a table's shards, which count apart.
GROUPS = 16
_AT = {name: i for i, name in enumerate(BUCKET_FIELDS)}
_EXTREMES = ("low_t_first", "low_t_last", "high_t_first", "high_t_last")
_STRETCHES = "device string, stream string, since bigint, first bigint, last bigint, buckets bigint"
_COUNTED = "device string, stream string, windows bigint, buckets bigint"
_CUT = "device string, stream string, since bigint"
#: Before all times: nothing of a stream is used.
ALL_TIME = -(1 << 63)


class Rest(NamedTuple):
    """What of a stream is set aside, all of its documents that begin at `since_us` or later, and why."""

    since_us: int
    why: str


#: Of which streams something is set aside.
Aside = dict[Stream, Rest]


class Count(NamedTuple):
    """How many windows a stream has, and how many buckets were sent of it."""

    windows: int
    buckets: int


def too_many(counts: Mapping[Stream, Count]) -> dict[Stream, int]:
    """Of the streams of a group of some devices those that do not fit, and how many windows more than buckets each of
    these may have: first those with fewest are taken.
    """
    beyond = {of: max(count.windows - count.buckets, 0) for of, count in counts.items()}
    left: dict[str, int] = {}
    out: dict[Stream, int] = {}
    for of in sorted(beyond, key=lambda of: (beyond[of], of)):
        room = left.get(of[0], grids.MAX_WINDOWS)
        if beyond[of] > room:
            out[of] = room
        left[of[0]] = max(room - beyond[of], 0)
    return out


def rest_of(of: Stream, count: Count, since_us: int) -> Rest:
    """What is said of a stream that is used up to a time."""
    left_out = "all of it" if since_us == ALL_TIME else f"what begins at {_when(since_us)} or later"
    why = (
        f"its stream {of[1]} has {count.windows:,} windows of {count.buckets:,} buckets; one may have "
        f"{grids.MAX_WINDOWS:,} more than buckets, all of a device {GROUPS} times as many: {left_out} is left out; "
        "choose a longer slide"
    )
    return Rest(since_us, why)


def doubtful(names: Sequence[Stream], beyond: Sequence[int]) -> list[Stream]:
    """The streams of devices that may have too many, if each has at most so many windows more than buckets."""
    taken: dict[str, int] = {}
    large: set[str] = set()
    for (device, _), windows in zip(names, beyond, strict=True):
        taken[device] = taken.get(device, 0) + windows
        if taken[device] > grids.MAX_WINDOWS:
            large.add(device)
    return [of for of in names if of[0] in large]


def at_most(first_us: Ints, last_us: Ints, buckets: Ints, grid: Grid) -> Ints:
    """How many windows more than buckets streams may have whose readings lie between these times."""
    return np.asarray(np.maximum(grid.frame_of(last_us) - grid.frame_of(first_us) + grid.width - buckets, 0))


def of_document(packed: Any, buckets: int, grid: Grid, max_empty: int) -> tuple[Ints, Ints]:
    """The first and last windows of each run that the packed buckets of a document have windows in."""
    told = fields_of(packed, buckets)
    first, last = (grid.frame_of(told[_AT[name]]) for name in ("t_first", "t_last"))
    long = first < last
    extremes = [grid.frame_of(told[_AT[name]][long]) for name in _EXTREMES]
    return stretches(np.concatenate([first, last, *extremes]), grid.width, max_empty)


def is_short(first_us: Any, last_us: Any, grid: Grid, max_empty: int) -> Any:
    """Whether all windows of documents between these times are one run, whatever is in them."""
    return grid.frame_of(last_us) - grid.frame_of(first_us) <= grid.width + max_empty


def joined(firsts: Ints, lasts: Ints, max_empty: int) -> tuple[Ints, Ints]:
    """The runs of windows of several documents, as one stream has them: sorted, and one where no more lie between."""
    order = np.argsort(firsts, kind="stable")
    begins, reach = firsts[order], np.maximum.accumulate(lasts[order])
    breaks = np.flatnonzero(begins[1:] > reach[:-1] + max_empty + 1)
    some = np.concatenate((breaks, [begins.size - 1])) if begins.size else breaks
    return begins[np.concatenate(([0], breaks + 1))] if begins.size else begins, reach[some]


def _when(time_us: int) -> str:
    try:
        return datetime.fromtimestamp(time_us / 1e6, UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):
        return f"{time_us} us"


class Reach:
    """How far a stream may reach: its documents are taken by the time they begin, until it has too many windows."""

    def __init__(self, room: int, max_empty: int) -> None:
        """`room`: how many windows more than buckets it may have."""
        self._room, self._max_empty = room, max_empty
        self._begins, self._ends = list[int](), list[int]()
        self._since: int | None = None
        self._at, self._times, self._beyond = ALL_TIME, 0, 0

    def take(self, since: Ints, first: Ints, last: Ints, buckets: Ints) -> None:
        """Runs of windows of documents that begin at `since` µs, ascending; those of equal times may come in parts."""
        edges = [0, *(np.flatnonzero(np.diff(since)) + 1).tolist(), since.size]
        for begin, end in pairwise(edges):
            if begin == end:
                continue
            if since[begin] != self._at:
                self._close()
                self._at, self._times = int(since[begin]), self._times + 1
            if self._since is None:
                self._beyond += self._added(first[begin:end], last[begin:end]) - int(buckets[begin:end].sum())

    def since_us(self) -> int:
        """From when on its documents are too much; nothing more comes."""
        self._close()
        return ALL_TIME if self._since is None else self._since

    def _close(self) -> None:
        """All documents that begin when the last ones do have come."""
        if self._since is None and self._beyond > self._room:
            self._since = self._at if self._times > 1 else ALL_TIME

    def _added(self, first: Ints, last: Ints) -> int:
        """How many windows the runs have that those before have not."""
        begins, ends = joined(first, last, self._max_empty)
        at = bisect_left(self._ends, int(begins[0]) - self._max_empty - 1)
        before = np.array(self._begins[at:], np.int64), np.array(self._ends[at:], np.int64)
        both = [np.concatenate((old, new)) for old, new in zip(before, (begins, ends), strict=True)]
        begins, ends = joined(both[0], both[1], self._max_empty)
        self._begins[at:], self._ends[at:] = begins.tolist(), ends.tolist()
        return int((ends - begins + 1).sum() - (before[1] - before[0] + 1).sum())


def set_aside(documents: DataFrame, tallied: Sequence[dict[str, Any]], grid: Grid, max_empty: int = MAX_EMPTY) -> Aside:
    """What of the streams of `documents` (`dedupe.catalogue`) is too much; `tallied`: `quality.tally` of them.

    Two Spark jobs where a device's times allow so many windows, two more where it has them; usually none.
    """
    ends = _ends(tallied)
    some = _large(ends, grid)
    if not some:
        return {}
    mine = those(documents.where((sf.col("fate") == USED) | (sf.col("hole") > 0)), some)
    runs = mine.mapInArrow(_runs({of: ends[of][:2] for of in some}, grid, max_empty), _STRETCHES)
    runs = runs.repartition("device", "stream")
    group = sf.pmod(sf.xxhash64("device", "stream"), sf.lit(GROUPS)).alias("group")
    sorted_runs = runs.sortWithinPartitions("device", "stream", "first")
    rows = sorted_runs.mapInArrow(_counts(max_empty), _COUNTED).select("*", group).collect()
    groups: dict[int, dict[Stream, Count]] = {}
    for row in rows:
        counts = groups.setdefault(row["group"], {})
        counts[row["device"], row["stream"]] = Count(row["windows"], row["buckets"])
    counted = {of: count for counts in groups.values() for of, count in counts.items()}
    rooms = {of: room for counts in groups.values() for of, room in too_many(counts).items()}
    if not rooms:
        return {}
    by_time = those(runs, rooms).repartition("device", "stream").sortWithinPartitions("device", "stream", "since")
    cut = {(row[0], row[1]): row[2] for row in by_time.mapInArrow(_reaches(rooms, max_empty), _CUT).collect()}
    return {of: rest_of(of, counted[of], since_us) for of, since_us in cut.items()}


def without(documents: DataFrame, aside: Aside) -> DataFrame:
    """`documents`, what is set aside refused: its readings are missing, but where nothing of a stream is left."""
    spark = documents.sparkSession
    rows = [(*of, rest.since_us, rest.why) for of, rest in aside.items()]
    known = spark.createDataFrame(rows, "of_device string, of_stream string, aside_since bigint, aside string")
    met = (sf.col("of_device") == sf.col("device")) & (sf.col("of_stream") == sf.col("stream"))
    found = documents.join(sf.broadcast(known), met, "left")
    is_whole = sf.coalesce(sf.col("aside_since") == ALL_TIME, sf.lit(False))
    gone = sf.col("aside").isNotNull() & (sf.col("fate") == USED) & (sf.col("t_first") >= sf.col("aside_since"))
    gone = sf.coalesce(gone, sf.lit(False))
    has_hole = sf.col("hole") > 0
    ends = {
        "hole_from": sf.when(has_hole, sf.least("hole_from", "hole_to", "t_first")).otherwise(sf.col("t_first")),
        "hole_to": sf.when(has_hole, sf.greatest("hole_from", "hole_to", "t_last")).otherwise(sf.col("t_last")),
    }
    hole = sf.when(gone, sf.col("hole") + sf.col("readings")).otherwise(sf.col("hole"))
    return found.withColumns(
        {
            "reason": sf.when(gone, sf.col("aside")).otherwise(sf.col("reason")),
            "fate": sf.when(gone, sf.lit(REFUSED)).otherwise(sf.col("fate")),
            "hole": sf.when(is_whole, sf.lit(0)).otherwise(hole),
            "lost": sf.when(is_whole | gone, sf.lit(0)).otherwise(sf.col("lost")),
            **{name: sf.when(~is_whole, sf.col(name)) for name in ("losses", "loss_from", "loss_to")},
            **{name: sf.when(gone, of).otherwise(sf.col(name)) for name, of in ends.items()},
        }
    ).select(documents.columns)


def _ends(tallied: Sequence[dict[str, Any]]) -> dict[Stream, tuple[int, int, int]]:
    """Of each stream in use its first and last time, and how many buckets it has."""
    out: dict[Stream, tuple[int, int, int]] = {}
    for row in tallied:
        if row["fate"] == USED:
            of = row["device"], row["stream"]
            first, last, buckets = out.get(of, (row["first_us"], row["last_us"], 0))
            out[of] = min(first, row["first_us"]), max(last, row["last_us"]), buckets + row["buckets"]
    return out


def _large(ends: Mapping[Stream, tuple[int, int, int]], grid: Grid) -> list[Stream]:
    """The streams of devices that may have too many windows."""
    if not ends:
        return []
    first, last, buckets = np.array([*ends.values()], np.int64).T
    return doubtful([*ends], at_most(first, last, buckets, grid).tolist())


def _runs(
    ends: Mapping[Stream, tuple[int, int]], grid: Grid, max_empty: int
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Documents → the runs of windows of each; holes as far as the stream (`ends`, µs) reaches."""

    def told(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            packed = buffers_of(batch["packed"])
            for at, row in enumerate(batch.drop_columns(["packed", "extras"]).to_pylist()):
                first_us, last_us = ends[row["device"], row["stream"]]
                if row["hole"] > 0:
                    times = np.clip([row["hole_from"], row["hole_to"]], first_us, last_us)
                    yield _found(row, stretches(grid.frame_of(times), grid.width, max_empty), 0, int(times.min()))
                if row["fate"] == USED:
                    first, last = (grid.frame_of(np.array([row[name]])) for name in ("t_first", "t_last"))
                    if (last - first)[0] <= grid.width + max_empty:
                        yield _found(row, (first - (grid.width - 1), last), row["buckets"], row["t_first"])
                    else:
                        found = of_document(packed[at], row["buckets"], grid, max_empty)
                        yield _found(row, found, row["buckets"], row["t_first"])

    return told


def _found(row: Mapping[str, Any], runs: tuple[Ints, Ints], buckets: int, since_us: int) -> pa.RecordBatch:
    size = runs[0].size
    counted = np.zeros(size, np.int64)
    counted[:1] = buckets
    head = {name: pa.repeat(pa.scalar(row[name], pa.string()), size) for name in ("device", "stream")}
    head["since"] = np.full(size, since_us)
    return pa.RecordBatch.from_pydict(head | {"first": runs[0], "last": runs[1], "buckets": counted})


def _counts(max_empty: int) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Runs of windows, sorted by stream and where they begin → how many windows each stream has."""

    def told(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        name: Stream | None = None
        windows = buckets = 0
        open_ = (0, -1)
        for batch in batches:
            names = [*zip(batch["device"].to_pylist(), batch["stream"].to_pylist(), strict=True)]
            edges = [0, *(at for at in range(1, len(names)) if names[at] != names[at - 1]), len(names)]
            for begin, end in pairwise(edges):
                if begin == end:
                    continue
                first, last, some = (batch[of].to_numpy()[begin:end] for of in ("first", "last", "buckets"))
                if name == names[begin]:
                    first, last = np.append(open_[0], first), np.append(open_[1], last)
                else:
                    if name is not None:
                        yield _count(name, windows + open_[1] - open_[0] + 1, buckets)
                    name, windows, buckets = names[begin], 0, 0
                begins, ends = joined(first, last, max_empty)
                windows += int((ends[:-1] - begins[:-1] + 1).sum())
                buckets, open_ = buckets + int(some.sum()), (int(begins[-1]), int(ends[-1]))
        if name is not None:
            yield _count(name, windows + open_[1] - open_[0] + 1, buckets)

    return told


def _count(name: Stream, windows: int, buckets: int) -> pa.RecordBatch:
    columns = {"device": [name[0]], "stream": [name[1]], "windows": [windows], "buckets": [buckets]}
    return pa.RecordBatch.from_pydict(columns)


def _reaches(
    rooms: Mapping[Stream, int], max_empty: int
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Runs of windows, sorted by stream and the time their documents begin → from when on each stream is too much."""

    def told(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reaches: dict[Stream, Reach] = {}
        for batch in batches:
            names = [*zip(batch["device"].to_pylist(), batch["stream"].to_pylist(), strict=True)]
            edges = [0, *(at for at in range(1, len(names)) if names[at] != names[at - 1]), len(names)]
            for begin, end in pairwise(edges):
                if begin < end:
                    name = names[begin]
                    reach = reaches.setdefault(name, Reach(rooms[name], max_empty))
                    reach.take(*(batch[of].to_numpy()[begin:end] for of in ("since", "first", "last", "buckets")))
        found = [(*name, reach.since_us()) for name, reach in reaches.items()]
        schema = pa.schema([("device", pa.string()), ("stream", pa.string()), ("since", pa.int64())])
        yield pa.RecordBatch.from_pylist([dict(zip(schema.names, row, strict=True)) for row in found], schema)

    return told
