"""Decoding promises Arrow columns with the same bits, and a reason for each document it refuses. No Spark here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from cloud_streams import fold

from sluicegate.format.bucket import Bucket
from sluicegate.format.chunk import Chunk, decode, encode
from sluicegate_cloud.documents import decode_files, unpack
from sluicegate_cloud.schema import BUCKET_FIELDS
from sluicegate_cloud.sources import list_sources


def chunk(first: int = 0, buckets: int = 3, value: float = 1.0) -> Chunk:
    """A chunk of small buckets, ten readings each, one a second."""
    rows = []
    for at in range(first, first + 10 * buckets, 10):
        readings = [(1_000_000 * (at + i), value + 0.25 * ((at + i) % 7)) for i in range(10)]
        rows.append(Bucket(**fold(readings, 1.0, at)))
    return Chunk("board", "temp", f"{1:016x}", 1.0, rows, [None] * buckets)


def decoded(*paths: Path) -> list[dict[str, Any]]:
    """The document rows of files."""
    batch = pa.RecordBatch.from_pydict({"path": [str(path) for path in paths]})
    return [row for out in decode_files([batch]) for row in out.to_pylist()]


def test_a_documents_buckets_come_out_with_the_same_bits(tmp_path: Path) -> None:
    """Encoded, decoded and unpacked, every field of every bucket is what the chunk held."""
    path = tmp_path / "a.json"
    path.write_bytes(encode(chunk()))
    row = decoded(path)[0]
    assert (row["reason"], row["readings"], row["first"], row["t_last"]) == (None, 30, 0, 29_000_000)
    batch = pa.RecordBatch.from_pylist([row | {"fate": "used", "lost": 0, "hole": 0, "hole_from": 0, "hole_to": 0}])
    holes, buckets = list(unpack([batch]))
    assert holes.num_rows == 0
    got = [Bucket(**{name: got[name] for name in BUCKET_FIELDS}) for got in buckets.to_pylist()]
    assert [bucket.pack() for bucket in got] == [bucket.pack() for bucket in decode(path.read_bytes()).buckets]
    assert set(buckets.column("chunk").to_pylist()) == {row["id"]}


def test_tags_and_devices_of_one_agent_are_read(tmp_path: Path) -> None:
    """Documents of several devices, with tags or without, are those devices' own; what they hold stays the same."""
    plain, tagged = tmp_path / "a.json", tmp_path / "b.json"
    plain.write_bytes(encode(chunk()))
    tagged.write_bytes(encode(replace(chunk(), device="press-1", tags={"site": "north"})))
    one, other = decoded(plain, tagged)
    assert (one["device"], other["device"], one["reason"], other["reason"]) == ("board", "press-1", None, None)
    assert one["packed"] == other["packed"]


def test_a_hole_becomes_a_row_of_no_readings(tmp_path: Path) -> None:
    """Ten ordinals missing before a document: n = 0, gap = 10, its times in order even where a clock went back."""
    path = tmp_path / "a.json"
    path.write_bytes(encode(chunk(first=10)))
    batch = pa.RecordBatch.from_pylist(
        [decoded(path)[0] | {"fate": "used", "lost": 0, "hole": 10, "hole_from": 900, "hole_to": 100}]
    )
    hole = next(iter(unpack([batch]))).to_pylist()[0]
    assert (hole["n"], hole["gap"], hole["first"], hole["t_first"], hole["t_last"]) == (0, 10, 0, 100, 900)
    assert hole["low"] is None
    assert hole["device"] == "board"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty.json", b"", "JSON"),
        ("binary.json", bytes(range(256)), ""),
        ("list.json", b"[1, 2]", ""),
        ("foreign.json", b'{"type": "something else"}', ""),
        ("deep.json", b"[" * 100_000, ""),
        ("notes.txt", b"hello", "does not end in .json"),
    ],
)
def test_what_is_no_chunk_gets_a_reason(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    """Foreign, empty and binary files are rows with a reason, never an exception."""
    path = tmp_path / name
    path.write_bytes(content)
    row = decoded(path)[0]
    assert row["reason"]
    assert said in row["reason"]
    assert row["packed"] is None


def test_a_damaged_document_gets_a_reason(tmp_path: Path) -> None:
    """One flipped character in the data is found by the checksum or the decoder."""
    data = bytearray(encode(chunk()))
    data[data.index(b'"data":"') + 40] ^= 1
    path = tmp_path / "damaged.json"
    path.write_bytes(bytes(data))
    assert decoded(path)[0]["reason"]


def test_a_file_that_is_not_there_any_more_gets_a_reason(tmp_path: Path) -> None:
    """Deleted between listing and reading: reported like the others."""
    assert decoded(tmp_path / "gone.json")[0]["reason"] == "No such file or directory"


def test_a_session_may_have_texts_of_64_bit_lengths(tmp_path: Path) -> None:
    """Spark takes batches of one schema: holes and buckets have the same, with `useLargeVarTypes` too."""
    path = tmp_path / "a.json"
    path.write_bytes(encode(chunk(first=10)))
    row = decoded(path)[0] | {"fate": "used", "lost": 0, "hole": 10, "hole_from": 0, "hole_to": 10_000_000}
    batch = pa.RecordBatch.from_pylist([row])
    large = [field.with_type(pa.large_string()) if field.type == pa.string() else field for field in batch.schema]
    for schema in (batch.schema, pa.schema(large)):
        found = [*unpack([pa.RecordBatch.from_pylist([row], schema)])]
        assert len(found) == 2
        assert found[0].schema == found[1].schema


def test_a_folder_is_searched_where_links_lead(tmp_path: Path) -> None:
    """A board's folder may lie on another disk; each is searched once, whatever circles the links make."""
    root, other = tmp_path / "chunks", tmp_path / "other"
    for folder in (root / "here", other / "deep"):
        folder.mkdir(parents=True)
        (folder / "a.json").write_bytes(b"")
    for link, to in ((root / "there", other), (root / "again", other / "deep"), (root / "newest", root / "here"),
                     (other / "back", root), (other / "deep/up", other), (root / "above", tmp_path)):  # fmt: skip
        link.symlink_to(to)
    found = list_sources(str(root)).files
    assert {Path(path).resolve() for path in found} == {root / "here/a.json", other / "deep/a.json"}
    assert len(found) <= 3
