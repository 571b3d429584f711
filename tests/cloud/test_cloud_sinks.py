"""Windows that workers write promise to come back as they were, and a run that fails or is repeated leaves no more."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sluicegate_cloud import sinks
from sluicegate_cloud.errors import SinkError

NAMES = ["temp", "a/b=c", "100 %", "naïve ∑", "007", '"quoted"', "[x]^{y}", "tab\tbed"]
NAMES += ["null", "__HIVE_DEFAULT_PARTITION__"]


def batches(task: int) -> list[pa.RecordBatch]:
    """Two devices of a task, each with all streams, in batches that end anywhere."""
    rows: list[dict[str, Any]] = [
        {"device": f"d{task}{device}", "stream": name, "window_start": at, "count": at * task}
        for device in range(2)
        for name in NAMES
        for at in range(5)
    ]
    return pa.Table.from_pylist(rows).to_batches(7)


def told(sink: sinks.Sink, task: int) -> list[str]:
    """The files that a task says it wrote."""
    return [name for batch in sink(batches(task)) for name in batch["name"].to_pylist()]


def test_rows_of_any_stream_come_back_in_order(tmp_path: Path) -> None:
    """A file a task and stream, sorted by device and window; names as Spark writes them."""
    sink = sinks.Sink(str(new := sinks.new_windows(tmp_path)))
    names = [name for task in (1, 2) for name in told(sink, task)]
    assert len(names) == 2 * len(NAMES)
    assert any(name.startswith("stream=a%2Fb%3Dc/") for name in names)
    sinks.replace_windows(names, new)
    found = sinks.read_windows(tmp_path)
    expected = pa.Table.from_batches([batch for task in (1, 2) for batch in batches(task)])
    by = [(name, "ascending") for name in ("stream", "device", "window_start")]
    assert found.select(expected.column_names).sort_by(by).equals(expected.sort_by(by))
    for file in (tmp_path / sinks.WINDOWS).rglob("*.parquet"):
        table = pq.ParquetFile(file).read()
        assert table.equals(table.sort_by(by[1:]))


def test_rows_of_a_data_frame_come_back_in_spark_too(spark: Any, tmp_path: Path) -> None:
    """Spark itself names the folder of a stream as that of nulls, and reads none of its names back."""
    rows = pa.Table.from_batches([batch for task in (1, 2) for batch in batches(task)])
    sinks.write_windows(spark.createDataFrame(rows), tmp_path)
    found = spark.read.parquet(str(tmp_path / sinks.WINDOWS)).select(rows.column_names).toArrow()
    by = [(name, "ascending") for name in ("stream", "device", "window_start")]
    assert found.sort_by(by).to_pylist() == rows.sort_by(by).to_pylist()


def test_more_streams_than_a_process_may_have_files_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of any device, one after the other and mixed; what is held for all of them together is bounded too."""
    monkeypatch.setattr(sinks, "_HELD", 50)
    sink, wanted = sinks.Sink(str(new := sinks.new_windows(tmp_path))), []
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, before[1]))
    try:
        for device in ("a", "b"):
            wanted += [{"device": device, "stream": f"s{at}", "window_start": at, "count": 1} for at in range(200)]
        told_of = [name for one in sink(pa.Table.from_pylist(wanted).to_batches(7)) for name in one["name"].to_pylist()]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    sinks.replace_windows(told_of, new)
    found = sinks.read_windows(tmp_path).select(["device", "stream", "window_start", "count"]).to_pylist()
    assert sorted(map(str, found)) == sorted(map(str, wanted))


@pytest.mark.parametrize("name", ["x" * 248, "x" * 249, "*" * 82, "*" * 83, "∑" * 82, "∑" * 83, "a/" * 62, "a/" * 63])
def test_a_name_has_a_folder_or_it_is_known_that_it_has_none(name: str, tmp_path: Path) -> None:
    """The file system decides."""
    try:
        sinks._Writer.begun(tmp_path, name, pa.schema([("count", pa.int64())])).close()
        made = True
    except SinkError:
        made = False
    assert sinks.has_folder(name) is made


def test_only_what_was_told_of_counts(tmp_path: Path) -> None:
    """A task that ran twice, a run that never ended, and the windows of the run before."""
    for task in (1, 2):
        sink = sinks.Sink(str(new := sinks.new_windows(tmp_path)))
        told(sink, 9)  # and is not told of: its answer was lost
        sinks.replace_windows(told(sink, task), new)
    told(sinks.Sink(str(sinks.new_windows(tmp_path))), 3)  # a run that ends before it replaces anything
    assert set(sinks.read_windows(tmp_path)["device"].to_pylist()) == {"d20", "d21"}
    new = sinks.new_windows(tmp_path)
    sinks.replace_windows(told(sinks.Sink(str(new)), 4), new)
    assert set(sinks.read_windows(tmp_path)["device"].to_pylist()) == {"d40", "d41"}


def test_of_two_runs_at_once_each_has_all_of_its_rows(tmp_path: Path) -> None:
    """One begins while the other writes, and both end: the rows are those of one, whole."""
    one = sinks.new_windows(tmp_path)
    files = told(sinks.Sink(str(one)), 1)
    other = sinks.new_windows(tmp_path)
    more = told(sinks.Sink(str(other)), 2)
    files += told(sinks.Sink(str(one)), 3)
    sinks.replace_windows(files, one)
    assert {*sinks.read_windows(tmp_path)["device"].to_pylist()} == {"d10", "d11", "d30", "d31"}
    sinks.replace_windows(more, other)
    assert {*sinks.read_windows(tmp_path)["device"].to_pylist()} == {"d20", "d21"}
    new = sinks.new_windows(tmp_path)
    with pytest.raises(SinkError, match="1 files of windows are gone"):
        sinks.replace_windows(["stream=temp/part-0.parquet"], new)


def test_who_dies_while_windows_are_replaced_leaves_the_former(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each rename; the next run replaces them."""
    for task, renames in ((1, 9), (2, 0), (2, 1)):
        new, left, rename = sinks.new_windows(tmp_path), [renames], Path.rename

        def dying(path: Path, to: Path, left: list[int] = left, rename: Any = rename) -> Path:
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
            return rename(path, to)  # type: ignore[no-any-return]

        files = told(sinks.Sink(str(new)), task)
        monkeypatch.setattr(Path, "rename", dying)
        if task == 2:
            with pytest.raises(KeyboardInterrupt):
                sinks.replace_windows(files, new)
        else:
            sinks.replace_windows(files, new)
        monkeypatch.undo()
        assert {*sinks.read_windows(tmp_path)["device"].to_pylist()} == {"d10", "d11"}
    new = sinks.new_windows(tmp_path)
    sinks.replace_windows(told(sinks.Sink(str(new)), 3), new)
    assert {*sinks.read_windows(tmp_path)["device"].to_pylist()} == {"d30", "d31"}
    assert not [*tmp_path.glob(".windows-old*")]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """The worker says which file."""
    folder = sinks.new_windows(tmp_path)
    (folder / "stream=temp").touch()
    with pytest.raises(SinkError, match="stream=temp"):
        list(sinks.Sink(str(folder))(batches(1)))
