"""What merges did, as Spark's own metrics: whatever sink Spark has (Prometheus, Graphite, JMX, CSV) tells of it.

They are accumulators of the driver that Spark's `AccumulatorSource` shows as gauges, named APP.driver.AccumulatorSource
and NAMES below. Through Spark Connect the driver is the server's, and there are none.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from pyspark.sql import SparkSession

from sluicegate_cloud.session import is_remote

#: Sums since the session began: runs that made something new, documents read, those known before, those that were not
#: used, rows of windows written; seconds of those runs, in ms.
COUNTED = ("runs", "documents", "copies", "refused", "windows", "milliseconds")
#: What the newest run says: the number of the table's version, and when it was made, in ms since 1970.
LAST = ("version", "made_ms")
NAMES = {name: f"sluicegate.{name}" for name in (*COUNTED, *LAST)}
_known: dict[str, dict[str, Any]] = {}


def tell(spark: SparkSession, **values: int) -> None:
    """Add to COUNTED, replace LAST. Raises KeyError for a name of neither."""
    if is_remote(spark):
        return
    there = _accumulators(spark)
    for name, value in values.items():
        if name in LAST:
            there[name].reset()
        there[name].add(int(value))


@contextmanager
def timed(spark: SparkSession) -> Iterator[None]:
    """A run, which counts where the block ends without an error."""
    begun = time.monotonic()
    yield
    taken = round(1000 * (time.monotonic() - begun))
    tell(spark, runs=1, milliseconds=taken, made_ms=time.time_ns() // 1_000_000)


def _accumulators(spark: SparkSession) -> dict[str, Any]:
    """Those of the session's driver, registered once."""
    context = spark.sparkContext
    if context.applicationId not in _known:
        java, jvm = context._jsc.sc(), cast("Any", context._jvm)
        made = {name: java.longAccumulator(spelled) for name, spelled in NAMES.items()}
        shown = jvm.PythonUtils.toScalaMap({NAMES[name]: of for name, of in made.items()})
        source = getattr(jvm.org.apache.spark.metrics.source, "LongAccumulatorSource$")  # the Scala object
        getattr(source, "MODULE$").register(java, shown)
        _known[context.applicationId] = made
    return _known[context.applicationId]
