"""Whether two versions of a table say the same: counts, extremes and flags to the bit, the rest but for rounding."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from sluicegate_cloud.table import read
from sluicegate_cloud.table.answering import REVISION
from sluicegate_cloud.table.grouping.groups import columns_of
from sluicegate_cloud.table.told import ledgers
from sluicegate_cloud.table.versions import Store, Version

#: Rows that differ of which is told.
MOST = 20
_EPSILON = 2.0**-52
_SUMMED, _SQUARED = ("sum",), ("variance", "std")
_DISCRETE = ("count", "min", "max", "range", "min_count", "max_count")


def differences(spark: SparkSession, store: Store, one: Version, other: Version) -> Iterator[str]:
    """The first MOST rows that are in one only, or that differ."""
    keys = ["device", "stream", read.ROLLUP, *columns_of(one.definition.by), "window_start", "window_end"]
    left, right = (read.windows(spark, store, version) for version in (one, other))
    values = [name for name in left.columns if name not in (*keys, REVISION)]
    joined = left.alias("a").join(right.alias("b"), _same_keys(keys), "full")
    greatest = _magnitude(left, right) + _center(store, one)  # as far as a reading may lie from a center
    differs = [_differs(name, left, greatest) for name in values]
    told = sf.concat_ws(", ", *(sf.when(at, sf.lit(name)) for at, name in zip(differs, values, strict=True)))
    named = [sf.coalesce(f"a.{name}", f"b.{name}").alias(name) for name in keys]
    found = joined.where(reduce(Column.__or__, differs)).select(*named, told.alias("what"))
    for row in found.orderBy(*keys).limit(MOST).collect():
        whose = row["device"] or "all devices"
        yield f"{whose}, {row['stream']}, {row['window_start']} to {row['window_end']}: {row['what']}"


def _same_keys(keys: list[str]) -> Column:
    return reduce(Column.__and__, (sf.col(f"a.{name}").eqNullSafe(sf.col(f"b.{name}")) for name in keys))


def _differs(name: str, rows: DataFrame, greatest: float) -> Column:
    """Beyond what sums taken in another order may, and what is exact by the room for rounding that they leave."""
    of = _of(name)
    if name.endswith("_exact") and of not in _DISCRETE:
        ends = [_differs(f"{of}{end}", rows, greatest) for end in ("_low", "_high")]
        return ~sf.col(f"a.{name}").eqNullSafe(sf.col(f"b.{name}")) & (ends[0] | ends[1])
    one, other = sf.col(f"a.{name}"), sf.col(f"b.{name}")
    same = one.eqNullSafe(other)
    if rows.schema[name].dataType.typeName() != "double" or name.startswith(("min", "max")):
        return ~same
    size = sf.lit(greatest)
    count = sf.coalesce(sf.col("a.count_high"), sf.lit(0)) + 8
    most = 64 * _EPSILON * count * size
    if of in _SUMMED:
        most = most * count
    if of in _SQUARED:
        most = most * size
    if of == "std":
        most = sf.sqrt(most)
    near = sf.abs(one - other) <= sf.greatest(most, 1e-9 * sf.abs(one))
    return ~(same | sf.coalesce(near, sf.lit(False)))


def _of(name: str) -> str:
    """The aggregate of a column."""
    for end in ("_low", "_high", "_exact"):
        name = name.removesuffix(end)
    return name


def _magnitude(*tables: DataFrame) -> float:
    """The greatest |value| that any window has: rounding depends on it."""
    greatest = 0.0
    for rows in tables:
        ends = [
            sf.max(sf.abs(name)) for name in ("min_low", "max_high", "mean_low", "mean_high") if name in rows.columns
        ]
        told = rows.agg(*ends).collect()[0] if ends else ()
        greatest = max([greatest, *(end for end in told if end is not None)])
    return greatest


def _center(store: Store, version: Version) -> float:
    """The greatest |center| of any document: a window of one stream is rounded by the greatest of its documents.

    Such windows may be gone, and those that are left may be older than the document.
    """
    columns = (pc.abs(ledger["center"].drop_null()) for ledger in ledgers(store, version, ["center"]))
    return max((pc.max(column).as_py() or 0.0 for column in columns), default=0.0)
