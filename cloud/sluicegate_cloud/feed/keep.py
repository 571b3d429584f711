"""What was read from a feed, kept in a folder with the sequences to go on from: a run reads what is new, and only that.

A run writes its documents to Parquet, a file a channel, and then replaces `positions.json`, which names every file and
every channel's sequence. Files that it does not name are of a run that ended too early: they are removed, and what they
held is read again. So a document is kept once, wherever a run ends; dedupe would tell copies apart.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from sluicegate_cloud.documents import ARROW, DOCUMENTS, kept_batches
from sluicegate_cloud.errors import SinkError, SourceError, SparkError
from sluicegate_cloud.feed import access, changes, rows
from sluicegate_cloud.feed.client import Client
from sluicegate_cloud.feed.gateway import Gateway
from sluicegate_cloud.feed.provision import shards
from sluicegate_cloud.places.folder import locked
from sluicegate_cloud.session import is_remote

POSITIONS, FOLDER = "positions.json", "documents"
#: Files of one channel beyond which a run makes one of them all.
MOST_FILES = 24
_TASK = "channel string, since string, files array<string>, name string"
_DONE_DDL = "channel string, last string, files array<string>"
_DONE = pa.schema([("channel", pa.string()), ("last", pa.string()), ("files", pa.list_(pa.string()))])
_MOST_POSITIONS = 64 << 20
Task = dict[str, Any]
Run = Callable[[Callable[[Task], Task], list[Task]], list[Task]]


@dataclass
class Kept:
    """What `positions.json` says: by channel the sequence to go on from, and the files with what was read before it.

    They hold for one `reader`. What a gateway did not show to this one would stay unread by another.
    """

    url: str
    reader: str = ""
    run: int = 0
    positions: dict[str, str] = field(default_factory=dict)
    files: dict[str, list[str]] = field(default_factory=dict)


def fetch(spark: SparkSession, at: Gateway, folder: Path, channels: Sequence[str] = ()) -> DataFrame:
    """Read what is new at the gateway into `folder`; all that is kept there, as rows of `documents.DOCUMENTS`.

    Raises what `refresh` raises.
    """
    return documents(spark, folder, refresh(at, folder, partial(_by_spark, spark), channels))


def refresh(at: Gateway, folder: Path, run: Run | None = None, channels: Sequence[str] = ()) -> Kept:
    """Read what is new at the gateway into `folder`, each channel a task of `run` (None: one after the other, here).

    Raises GatewayError (what was kept before stays), SourceError where the folder belongs to another gateway, SinkError
    where the folder cannot be written or another run has it.
    """
    with _locked(folder):
        kept = load(folder, at.url)
        reader = _reader(at, kept)
        _remove_unnamed(folder, kept)
        tasks = _tasks(kept, channels or shards())
        done = (run or _here)(partial(_read, at, folder / FOLDER), tasks)
        positions = kept.positions | {task["channel"]: task["last"] for task in done}
        kept = Kept(
            at.url, reader, kept.run + 1, positions, kept.files | {task["channel"]: task["files"] for task in done}
        )
        _store(folder, kept)
        _remove_unnamed(folder, kept)
    return kept


def documents(spark: SparkSession, folder: Path, kept: Kept) -> DataFrame:
    """The documents that `kept` names."""
    paths = [(folder / FOLDER / name).absolute().as_uri() for names in kept.files.values() for name in names]
    return spark.read.schema(DOCUMENTS).parquet(*paths) if paths else spark.createDataFrame([], DOCUMENTS)


def load(folder: Path, url: str) -> Kept:
    """What was kept of `url`, nothing at first. Raises SourceError."""
    path = folder / POSITIONS
    try:
        with path.open("rb") as file:
            said = json.loads(file.read(_MOST_POSITIONS))
        files = {name: list(of) for name, of in said["files"].items()}
        kept = Kept(said["url"], said["reader"], int(said["run"]), dict(said["positions"]), files)
    except FileNotFoundError:
        return Kept(url)
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        raise SourceError(
            f"{path} is damaged ({error}): remove the folder to read the feed from its beginning"
        ) from error
    if kept.url != url:
        raise SourceError(f"{folder} keeps what was read from {kept.url}: give another --keep for {url}")
    return kept


def _reader(at: Gateway, kept: Kept) -> str:
    """Who reads. Raises GatewayError, and SourceError where another user's reading is kept."""
    name = access.require_access(at)
    if kept.reader not in ("", name):
        raise SourceError(
            f"what {kept.reader!r} read is kept there, and this reader is {name!r}, who may see other documents: "
            f"read as {kept.reader!r}, or give another --keep"
        )
    with Client(at) as client:
        access.require_same_feed(client, kept.positions.values())
    return name


def _tasks(kept: Kept, names: Sequence[str]) -> list[Task]:
    """For each channel: since when, what is kept of it, and the file for what is new."""
    return [
        {
            "channel": name,
            "since": kept.positions.get(name, changes.BEGINNING),
            "files": kept.files.get(name, []),
            "name": f"{kept.run + 1:08d}-{number:03d}.parquet",
        }
        for number, name in enumerate(names)
    ]


def _here(work: Callable[[Task], Task], tasks: list[Task]) -> list[Task]:
    return [work(task) for task in tasks]


def _by_spark(spark: SparkSession, work: Callable[[Task], Task], tasks: list[Task]) -> list[Task]:
    """A Spark task each."""

    def worker(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pylist([work(task) for task in batch.to_pylist()], _DONE)

    if is_remote(spark):
        raise SparkError("a gateway is read by a driver of its own: not through Spark Connect; give another --master")
    rows = [(task["channel"], task["since"], task["files"], task["name"]) for task in tasks]
    split = spark.createDataFrame(spark.sparkContext.parallelize(rows, len(rows)), _TASK)
    return [row.asDict() for row in split.mapInArrow(worker, _DONE_DDL).collect()]


def _read(at: Gateway, place: Path, task: Task) -> Task:
    """Read one channel's news into a file, together with all that is kept of it where that is many files."""
    last, files, name = task["since"], task["files"], task["name"]

    def noted(pages: Iterable[changes.Page]) -> Iterator[changes.Page]:
        nonlocal last
        for page in pages:
            yield page
            last = page.last

    with Client(at) as client:
        news = rows.batches(client, noted(changes.pages(client, task["channel"], last)))
        gathered = files if len(files) >= MOST_FILES else []
        if not _written(place, name, gathered, news):
            return {"channel": task["channel"], "last": last, "files": files}
    return {
        "channel": task["channel"],
        "last": last,
        "files": [file for file in files if file not in gathered] + [name],
    }


def _written(place: Path, name: str, gathered: list[str], news: Iterator[pa.RecordBatch]) -> bool:
    """Whether there was any news: `name` is then whole on the disk, and has what the `gathered` files have too."""
    first = next(news, None)
    if first is None:
        return False
    new = place / f".{name}.{os.getpid()}"
    with pq.ParquetWriter(new, ARROW, compression="zstd") as writer:
        for file in gathered:
            for old in kept_batches(pq.ParquetFile(place / file)):
                writer.write_batch(old)
        for batch in chain([first], news):
            writer.write_batch(batch)
    _sync(new)
    new.replace(place / name)
    return True


def _store(folder: Path, kept: Kept) -> None:
    """Replace `positions.json`: from here on it counts. Raises SinkError."""
    path = folder / POSITIONS
    new = path.with_suffix(".new")
    try:
        _sync(folder / FOLDER)  # the files' names, before what names them
        new.write_text(json.dumps({"format": 1, **asdict(kept)}, indent=1) + "\n")
        _sync(new)
        new.replace(path)
        _sync(folder)
    except OSError as error:
        raise SinkError(f"cannot write {str(path)!r}: {error.strerror}") from error


def _remove_unnamed(folder: Path, kept: Kept) -> None:
    named = {name for names in kept.files.values() for name in names}
    for path in (folder / FOLDER).iterdir():
        if path.name not in named:
            path.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """The folder, with its own of documents, for one run at a time. Raises SinkError."""
    busy = SinkError(f"another run is reading into {str(folder)!r}: wait for it to end")
    with locked(folder, busy, holds=FOLDER):
        yield
