"""merge_frames and sliding_windows in Spark promise what the NumPy core promises, per device and for the fleet."""

from __future__ import annotations

import random
import re
from typing import Any

import pandas as pd
import pytest
from cloud_streams import Readings, Row, Stream, fold, older, random_stream, violations
from test_cloud_doubt import marked, without

from sluicegate.format.bucket import FIELDS, Builder, merge

pytestmark = pytest.mark.spark

SLIDE, WIDTH, ORIGIN = 190, 7, -300


def bucket_frame(spark: Any, rows: list[Row]) -> Any:
    """Bucket rows as the DataFrame that read_buckets gives, in an order of Spark's choosing."""
    from sluicegate_cloud.schema import BUCKET_FIELDS, BUCKETS, OWNER

    random.Random(3).shuffle(rows)
    columns = pd.DataFrame(rows)[[*OWNER, *BUCKET_FIELDS, "chunk"]]
    return spark.createDataFrame(columns, BUCKETS).repartition(3)


@pytest.fixture(scope="module")
def fleet() -> list[Stream]:
    """Two metrics of five devices, with different centers and incarnations."""
    return [
        random_stream(100 + 10 * device + metric, f"board-{device}", f"metric {metric}", 1 + device % 3, 900)
        for device in range(5)
        for metric in range(2)
    ]


@pytest.fixture(scope="module")
def rows(spark: Any, fleet: list[Stream]) -> list[dict[str, Any]]:
    """All windows of the fleet, every aggregate, some buckets as format 1 tells them."""
    from sluicegate_cloud.frames import merge_frames
    from sluicegate_cloud.names import ALL
    from sluicegate_cloud.windows import sliding_windows

    rng = random.Random(8)
    told = [older(row) if rng.random() < 0.2 else row for stream in fleet for row in stream.rows()]
    frames = merge_frames(bucket_frame(spark, told), SLIDE, ORIGIN)
    frame = sliding_windows(frames, WIDTH, ALL).toPandas()
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


def test_windows_of_devices_and_fleet_hold_the_truth(rows: list[dict[str, Any]], fleet: list[Stream]) -> None:
    """Every row's intervals hold what the raw readings of its device, or of all devices, say."""
    raw = {(stream.device, stream.name): Readings(stream.readings) for stream in fleet}
    for name in {stream.name for stream in fleet}:
        raw[None, name] = Readings([reading for stream in fleet if stream.name == name for reading in stream.readings])
    wrong = [
        (row["device"], row["stream"], row["window_start"], text)
        for row in rows
        for text in violations(row, raw[row["device"], row["stream"]].window(row["window_start"], row["window_end"]))
    ]
    assert wrong == []
    assert len(rows) > 1_000
    assert {row["device"] for row in rows} == {None, *(f"board-{i}" for i in range(5))}


def test_every_window_that_holds_a_reading_has_a_row(rows: list[dict[str, Any]], fleet: list[Stream]) -> None:
    """The grid is whole: windows aligned to the origin, none with a reading left out, none twice."""
    for stream in fleet:
        starts = [row["window_start"] for row in rows if (row["device"], row["stream"]) == (stream.device, stream.name)]
        times = [time for time, _ in stream.readings]
        first = ORIGIN + ((min(times) - ORIGIN) // SLIDE - WIDTH + 1) * SLIDE
        last = ORIGIN + (max(times) - ORIGIN) // SLIDE * SLIDE
        assert sorted(starts) == list(range(first, last + 1, SLIDE))


def test_the_fleets_mean_is_as_sharp_as_its_devices(spark: Any) -> None:
    """Parts are combined in the direction of the fleet's mean: centers far apart do not widen its interval."""
    from sluicegate_cloud.frames import merge_frames
    from sluicegate_cloud.windows import sliding_windows

    rng, rows = random.Random(1), []
    for device in range(6):
        readings, center = [(i * 10, 70.0 + rng.gauss(0, 1)) for i in range(3_000)], 70.0 + 50.0 * (device - 3)
        head = {"device": str(device), "stream": "s", "incarnation": "0", "key": None, "center": center, "chunk": ""}
        rows += [{**head, **fold(readings[at : at + 70], center, at)} for at in range(0, 3_000, 70)]
    windows = sliding_windows(merge_frames(bucket_frame(spark, rows), 1_000), 10).toPandas()
    inner = windows[(windows.window_start > 2_000) & (windows.window_end < 28_000)]
    width = (inner.mean_high - inner.mean_low).groupby(inner.device.isna()).mean()
    assert width[True] < 1.1 * width[False]
    assert width[False] < 0.5


def rain(seed: int, device: str) -> Stream:
    """Zeros, rarely some rain; buckets of four readings, merged at random into eight as a full outbox does."""
    rng = random.Random(seed)
    readings = [(i * 40, rng.choice([0.0] * 9 + [0.01, 0.02, 0.13, 0.31])) for i in range(240)]
    builder, leaves = Builder(readings[0][1]), []
    for number, (time, value) in enumerate(readings, 1):
        builder.add(value, time)
        if number % 4 == 0:
            leaves.append(builder.close())
    while len(leaves) > 8:
        at = rng.randrange(len(leaves) - 1)
        leaves[at : at + 2] = [merge(*leaves[at : at + 2])]
    rows = [{name: getattr(leaf, name) for name in FIELDS} for leaf in leaves]
    return Stream(device, f"precip {seed % 40}", readings, [("0" * 16, readings[0][1], rows)])


def test_a_fleet_of_zeros_beside_rare_rain_stays_inside(spark: Any) -> None:
    """Sums of merged buckets were rounded at the rain's size, and so were the fleet's: its windows of zeros hold 0."""
    from sluicegate_cloud.frames import merge_frames
    from sluicegate_cloud.names import ALL
    from sluicegate_cloud.windows import sliding_windows

    streams = [rain(40 * device + metric, f"board-{device}") for device in range(3) for metric in range(40)]
    frames = merge_frames(bucket_frame(spark, [row for stream in streams for row in stream.rows()]), 40)
    rows = sliding_windows(frames, 24, ALL).where("device is null").toPandas().to_dict("records")
    assert len(rows) > 10_000
    for name in {stream.name for stream in streams}:
        raw = Readings([reading for stream in streams if stream.name == name for reading in stream.readings])
        for row in (row for row in rows if row["stream"] == name):
            assert violations(row, raw.window(row["window_start"], row["window_end"])) == [], name


def test_doubt_of_devices_and_fleet_is_inside(spark: Any) -> None:
    """Readings in doubt of four devices, some of format 1: whichever are repeats, device and fleet hold the result."""
    from sluicegate_cloud.frames import merge_frames
    from sluicegate_cloud.names import ALL
    from sluicegate_cloud.windows import sliding_windows

    rng = random.Random(4)
    streams = [random_stream(500 + device, f"board-{device}", "s", 1 + device % 2, 400) for device in range(4)]
    found = [marked(stream, rng, 0.4) for stream in streams]
    told = [
        older(row) | {"doubt": row["doubt"]} if rng.random() < 0.1 else row for buckets, _ in found for row in buckets
    ]
    frame = sliding_windows(merge_frames(bucket_frame(spark, told), SLIDE, ORIGIN), WIDTH, ALL).toPandas()
    rows = [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]
    assert sum(row["count_low"] < row["count_high"] for row in rows) > 100
    for share in (0.0, 0.5, 1.0):
        kept = [
            without(stream, {i for i in marks if rng.random() < share})
            for stream, (_, marks) in zip(streams, found, strict=True)
        ]
        raw: dict[str | None, Readings] = {stream.device: one for stream, one in zip(streams, kept, strict=True)}
        raw[None] = Readings([(int(t), x) for one in kept for t, x in zip(one.times, one.values, strict=True)])
        for row in rows:
            window = raw[row["device"]].window(row["window_start"], row["window_end"])
            assert violations(row, window) == [], (share, row["device"], row["window_start"])


def test_frames_fold_inside_and_keep_what_crosses(spark: Any) -> None:
    """Three buckets in one frame are one row; one that crosses an edge is a row of its own with both frames."""
    from sluicegate_cloud.frames import merge_frames

    spans = [(0, 100), (200, 300), (400, 999), (1_000, 2_500), (2_600, 2_700)]
    head = {"device": "d", "stream": "s", "incarnation": "0", "key": None, "center": 1.0, "chunk": ""}
    rows = [{**head, **fold([(a, 1.0), (b, 2.0)], 1.0, 2 * i, gap=i)} for i, (a, b) in enumerate(spans)]
    frames = merge_frames(bucket_frame(spark, rows), 1_000).orderBy("first_frame", "last_frame").collect()
    assert [(f.first_frame, f.last_frame, f.buckets, f.n, f.gap, f.span_us) for f in frames] == [
        (0, 0, 3, 6, 3, 799),
        (1, 2, 1, 2, 3, 1_500),
        (2, 2, 1, 2, 4, 100),
    ]


def test_buckets_are_shuffled_once(spark: Any) -> None:
    """One exchange carries buckets, used for the devices' windows and for the fleet's; the other a task's shares.

    What no asked aggregate needs is not among the columns that travel.
    """
    from sluicegate_cloud.frames import place_in_frames
    from sluicegate_cloud.windows import sliding_windows

    head = {"device": "d", "stream": "s", "incarnation": "0", "key": None, "center": 1.0, "chunk": ""}
    frames = place_in_frames(bucket_frame(spark, [{**head, **fold([(0, 1.0)], 1.0, 0)}]), 1_000)
    windows = sliding_windows(frames, 3)
    windows.collect()
    plan = windows._jdf.queryExecution().executedPlan().toString()
    plan = plan.split("== Initial Plan ==")[0]  # what ran, where Spark changed its mind on the way
    assert len(re.findall(r"[+:]- Exchange hashpartitioning\(device", plan)) == 1
    assert len(re.findall(r"[+:]- Exchange hashpartitioning\(stream", plan)) == 1
    assert "ReusedExchange" in plan
    (travels,) = re.findall(r"MapInArrow answered\((device[^)]*)\)#", plan.split("Exchange")[0])
    assert {"incarnation", "key", "m2", "log_total"}.isdisjoint(re.findall(r"([a-z_0-9]+)#", travels))
    assert "Generate" not in plan
    assert "Expand" not in plan


@pytest.mark.parametrize(("slide", "width", "said"), [(0, 5, "slide_us is 0"), (10, 0, "frames_per_window is 0")])
def test_impossible_lengths_are_refused(spark: Any, slide: int, width: int, said: str) -> None:
    """A message names the parameter and its value."""
    from sluicegate_cloud.frames import merge_frames
    from sluicegate_cloud.schema import BUCKETS
    from sluicegate_cloud.windows import sliding_windows

    with pytest.raises(ValueError, match=said):
        sliding_windows(merge_frames(spark.createDataFrame([], BUCKETS), slide), width)


def test_what_is_no_frame_table_is_refused(spark: Any) -> None:
    """A DataFrame that merge_frames did not make has no slide to go by."""
    from sluicegate_cloud.windows import sliding_windows

    with pytest.raises(ValueError, match="merge_frames"):
        sliding_windows(spark.range(3), 2)


def test_windows_of_files_are_those_of_their_rows(spark: Any, fleet: list[Stream], tmp_path: Any) -> None:
    """By device, so that workers read the files, and mixed, so that Spark brings streams together; of the fleet too."""
    from sluicegate_cloud.frames import place_in_frames
    from sluicegate_cloud.windows import sliding_windows, windows_of_files

    buckets = bucket_frame(spark, [row for stream in fleet[:4] for row in stream.rows()])
    frames = place_in_frames(buckets, SLIDE, ORIGIN)
    expected = sliding_windows(frames, WIDTH, ("mean", "std")).orderBy("device", "stream", "window_start").toArrow()
    by_device, mixed = tmp_path / "by-device", tmp_path / "mixed"
    buckets.repartitionByRange(2, "device").sortWithinPartitions("device").write.parquet(str(by_device))
    buckets.write.parquet(str(mixed))
    for folder in (by_device, mixed):
        windows = windows_of_files(spark, folder, SLIDE, WIDTH, ("mean", "std"), origin_us=ORIGIN)
        found = windows.orderBy("device", "stream", "window_start").toArrow()
        assert found.num_rows == expected.num_rows > 100
        for name in ("device", "stream", "window_start", "windows", "mean_exact", "std_exact"):
            assert found[name].equals(expected[name]), name
        for name in ("mean_low", "mean_high", "std_low", "std_high", "completeness"):
            one, other = (pd.Series(table[name].to_pandas()) for table in (found, expected))
            pd.testing.assert_series_equal(one, other, rtol=1e-12, check_names=False)
