"""Spark's own functions read the sketches that a window on the board answers with, and merge them."""

from __future__ import annotations

import random
from typing import Any

import pytest

import sluicegate as sg

pytestmark = pytest.mark.spark


def answers(values: list[float]) -> dict[str, Any]:
    """The sketches of a device's window."""
    window = sg.Window({"d": sg.distinct_count(lg_k=12), "q": sg.quantiles()}, policy=sg.policies.count(10**6))
    window.insert_many(values, results=False)
    return window.query()


def test_spark_reads_and_merges_them(spark: Any) -> None:
    """Each device's estimate and median as the device has them; the fleet's from merged bytes, within the errors."""
    from pyspark.sql import functions as f

    rng = random.Random(3)
    streams = [[round(rng.gauss(device, 1), 3) for _ in range(n)] for device, n in enumerate((0, 1, 20, 300, 3000))]
    found = [answers(values) for values in streams]
    rows = [(i, bytearray(a["d"].sketch), bytearray(a["q"].sketch)) for i, a in enumerate(found)]
    frame = spark.createDataFrame(rows, "device int, d binary, q binary")
    read = frame.select(
        "device", f.hll_sketch_estimate("d").alias("distinct"), f.kll_sketch_get_n_double("q").alias("n")
    ).collect()
    for row in sorted(read):
        ours = found[row.device]
        assert row.n == len(streams[row.device])
        assert row.distinct == pytest.approx(ours["d"].estimate, rel=0.02, abs=0.5)
    full = frame.where("device > 0")
    medians = full.select("device", f.kll_sketch_get_quantile_double("q", f.lit(0.5)).alias("median")).collect()
    assert {row.device: row.median for row in medians} == {i: found[i]["q"].quantile(0.5) for i in range(1, 5)}
    fleet = full.agg(
        f.hll_sketch_estimate(f.hll_union_agg("d")).alias("distinct"),
        f.kll_sketch_get_n_double(f.kll_merge_agg_double("q")).alias("n"),
        f.kll_sketch_get_rank_double(f.kll_merge_agg_double("q"), f.lit(4.0)).alias("rank"),
    ).collect()[0]
    every = [x for values in streams for x in values]
    assert fleet.n == len(every)
    assert fleet.distinct == pytest.approx(len(set(every)), rel=5 * found[-1]["d"].error)
    assert fleet.rank == pytest.approx(sum(x <= 4.0 for x in every) / len(every), abs=2 * found[-1]["q"].error)
