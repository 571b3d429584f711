"""Windows → Parquet, partitioned by stream: a rerun gives the same rows, a failed run leaves the former.

OUT/windows/stream=<name>/part-….parquet     of each task one, rows sorted by device and window_start
OUT/summary.json                             what was read, how complete and how exact it is
"""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from sluicegate_cloud.errors import SinkError
from sluicegate_cloud.schema import ddl

WINDOWS, SUMMARY = "windows", "summary.json"
_NEW, _OLD = ".windows-new", ".windows-old"
#: A folder of a run that is under way is younger than this.
_ABANDONED_S = 24 * 3600
#: How often windows are put in place while others do so.
_TRIES = 5
#: Rows of a row group, about 25 MB before they are packed.
_GROUP = 1 << 17
#: Rows of all streams that a task holds.
_HELD = 8 * _GROUP
#: Bytes that a folder's name may have.
_LONGEST = 255
#: What Spark escapes in the name of a folder, with the control characters.
_SPECIAL = frozenset("\"#%'*/:=?\\\x7f{[]^")
#: How the folder of what has no name is called.
_NULLS = "__HIVE_DEFAULT_PARTITION__"
Pass = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def prepare(out: Path) -> None:
    """Make the folder `out`, and see that it can be written. Raises SinkError before any work is spent."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        probe = out / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise SinkError(f"cannot write {str(out)!r}: {error.strerror}; choose a folder that you may write") from error


@dataclass(frozen=True)
class Sink:
    """Writes windows in the workers that answer them: below `folder`, which all of them see, a file a task and stream.

    It tells the files' names, since a task that is tried again leaves some that do not count.
    """

    folder: str
    schema: ClassVar[dict[str, str]] = {"name": "string"}

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows of `windows.window_columns`, the streams of a device one after the other."""
        with self.opened() as files:
            for batch in batches:
                files.take(batch)
        yield pa.RecordBatch.from_pydict({"name": pa.array([name for _, name in files.names], pa.string())})

    @contextmanager
    def opened(self) -> Iterator[Files]:
        """What takes the rows of one task; its files are whole when the block has ended."""
        files = Files(Path(self.folder), _most_open())
        try:
            yield files
        finally:
            files.close()


class Files:
    """The files of one task. `names`: of each its stream and how it is called."""

    def __init__(self, folder: Path, most: int) -> None:
        """`most`: how many may be open at once."""
        self.names: list[tuple[str, str]] = []
        self._folder, self._most = folder, most
        self._writers: dict[str, _Writer] = {}

    def take(self, batch: pa.RecordBatch) -> None:
        """More rows, the streams of a device one after the other. Raises SinkError."""
        writers = self._writers
        for stream, rows in _by_stream(batch):
            writer = writers.pop(stream, None)
            if writer is None:
                if len(writers) >= self._most:  # the one that had no rows for longest; its stream may get another
                    writers.pop(next(iter(writers))).close()
                writer = _Writer.begun(self._folder, stream, rows.schema)
                self.names.append((stream, writer.name))
            writers[stream] = writer
            writer.write(rows)
        if sum(writer.rows for writer in writers.values()) >= _HELD:
            for writer in writers.values():
                writer.flush()

    def close(self) -> None:
        """Nothing more comes."""
        for writer in self._writers.values():
            writer.close()


def _most_open() -> int:
    """How many files a task may have open: a device may have more streams than a process has descriptors."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 1 << 16 if soft == resource.RLIM_INFINITY else max(soft // 2, 1)


@dataclass
class _Writer:
    """One file; rows are held until there are enough for a group of them."""

    name: str
    file: pq.ParquetWriter
    held: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0

    @classmethod
    def begun(cls, folder: Path, stream: str, schema: pa.Schema) -> _Writer:
        """A new file of a stream. Raises SinkError."""
        name = f"stream={_escaped(stream)}/part-{uuid.uuid4().hex}.parquet"
        try:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            file = pq.ParquetWriter(
                folder / name, schema, compression="zstd", compression_level=1, use_dictionary=["device"]
            )
        except OSError as error:
            raise SinkError(f"cannot write {str(folder / name)!r}: {error.strerror or error}") from error
        return cls(name, file)

    def write(self, rows: pa.RecordBatch) -> None:
        """Take rows."""
        self.held.append(rows)
        self.rows += rows.num_rows
        if self.rows >= _GROUP:
            self.flush()

    def close(self) -> None:
        """Nothing more comes."""
        self.flush()
        self.file.close()

    def flush(self) -> None:
        """Write what is held."""
        if self.held:
            self.file.write_table(pa.Table.from_batches(self.held), row_group_size=_GROUP)
            self.held, self.rows = [], 0


def into(windows: Pass, sink: Sink) -> Pass:
    """The pass, with its rows taken by `sink`."""

    def written(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from sink(windows(batches))

    return written


def _by_stream(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Runs of rows of one stream, without its name, which the folder has."""
    if batch.num_rows == 0:
        return
    codes = batch.column("stream").dictionary_encode()
    edges = [0, *(np.flatnonzero(np.diff(codes.indices.to_numpy())) + 1).tolist(), batch.num_rows]
    rest = batch.drop_columns(["stream"])
    for begin, end in pairwise(edges):
        yield batch.column("stream")[begin].as_py(), rest.slice(begin, end - begin)


def _escaped(name: str) -> str:
    """As Spark escapes a partition's value: readers bring every name back, also that of a folder of nulls."""
    if name in ("", _NULLS):
        return name.replace("_", "%5F", 1) or _NULLS
    return "".join(f"%{ord(c):02X}" if c in _SPECIAL or ord(c) < 32 else c for c in name)


def has_folder(stream: str) -> bool:
    """Whether a folder may have the name of a stream's: characters that are escaped take three bytes."""
    return len(f"stream={_escaped(stream)}".encode()) <= _LONGEST


def new_windows(out: Path) -> Path:
    """An empty folder for a `Sink`, for `replace_windows` afterwards: no other run has it. Raises SinkError as
    `prepare` does.
    """
    prepare(out)
    for path in out.glob(f"{_NEW}-*"):
        if path.stat().st_mtime < time.time() - _ABANDONED_S:  # of a run that died
            shutil.rmtree(path, ignore_errors=True)
    new = (out / f"{_NEW}-{uuid.uuid4().hex}").absolute()
    new.mkdir()
    return new


def replace_windows(names: Iterable[str], new: Path) -> Path:
    """Replace OUT/windows by those files of a folder of `new_windows`. Raises SinkError where any is gone."""
    named = {*names}
    there = {path.relative_to(new).as_posix() for path in new.rglob("*.parquet")}
    if gone := named - there:
        raise SinkError(
            f"{len(gone)} files of windows are gone from {str(new)!r}: run it again, and remove nothing there"
        )
    for name in there - named:
        (new / name).unlink()
    return _replaced(new)


def write_windows(windows: DataFrame, out: Path) -> Path:
    """Replace OUT/windows by the rows of `windows`, a task for some devices. Raises SinkError as `prepare` does."""
    sink = Sink(str(new := new_windows(out)))
    ordered = windows.repartition("stream", "device").sortWithinPartitions("stream", "device", "window_start")
    names = ordered.mapInArrow(into(iter, sink), ddl(sink.schema)).collect()
    return replace_windows((row["name"] for row in names), new)


def _replaced(new: Path) -> Path:
    """Who dies between leaves the former windows, which `windows_at` finds."""
    out = new.parent
    final = out / WINDOWS
    for _ in range(_TRIES):
        with suppress(FileNotFoundError):
            final.rename(out / f"{_OLD}-{uuid.uuid4().hex}")
        try:
            new.rename(final)
            break
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:  # else another run was faster
                raise SinkError(f"cannot write {str(final)!r}: {error.strerror}") from error
    else:
        raise SinkError(f"other merges write to {str(out)!r} all the time: choose another --out for each")
    for old in out.glob(f"{_OLD}-*"):
        shutil.rmtree(old, ignore_errors=True)
    return final


def read_windows(out: Path, columns: list[str] | None = None) -> pa.Table:
    """The rows that `write_windows` stored, or some of their columns, without Spark. Raises SinkError for none."""
    return windows_at(out).to_table(columns)


def windows_at(out: Path) -> ds.Dataset:
    """The same, to be read a batch at a time; a stream "007" stays text. Raises SinkError when there are none."""
    former = sorted(out.glob(f"{_OLD}-*"), key=lambda path: path.stat().st_mtime)
    found = [path for path in (*former, out / WINDOWS) if path.is_dir()]
    if not found:
        raise SinkError(f"{str(out)!r} holds no windows: give the folder that `sluicegate cloud merge --out` wrote")
    stream = ds.HivePartitioning(pa.schema([("stream", pa.string())]), null_fallback="\0")  # every stream has a name
    return ds.dataset(found[-1], format="parquet", partitioning=stream)


def write_summary(summary: dict[str, Any], out: Path) -> Path:
    """Replace OUT/summary.json by rename. Raises SinkError."""
    path, new = out / SUMMARY, out / f".{SUMMARY}-new"
    try:
        new.write_text(json.dumps(summary, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
        new.replace(path)
    except OSError as error:
        raise SinkError(f"cannot write {str(path)!r}: {error.strerror}") from error
    return path
