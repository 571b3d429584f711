"""Whatever a device sends, the reader goes on: the document is set aside, with its id and a reason, and no other."""

from __future__ import annotations

import base64
import json
import os
import random
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scripted import Answer, Scripted, scripted
from test_feed_client import reader  # noqa: F401  (the environment's credentials)

from sluicegate.format import chunk as chunks
from sluicegate.format.bucket import Builder
from sluicegate.monoids import hll
from sluicegate_cloud import documents
from sluicegate_cloud.documents import ARROW, Found, decode_files, document_batches
from sluicegate_cloud.errors import GatewayError
from sluicegate_cloud.feed import changes, client, rows
from sluicegate_cloud.feed.client import Client
from sluicegate_cloud.feed.gateway import Gateway

Row = dict[str, Any]
#: Hostile documents of a run; `FUZZ_DOCUMENTS=100000` for a long one.
FUZZED = int(os.environ.get("FUZZ_DOCUMENTS", "20000"))
DIGITS, DEEP = b"9" * 5_000, b"[" * 990 + b"]" * 990


def chunk(first: int = 0, count: int = 6, device: str = "board-1", **more: Any) -> bytes:
    """A good document."""
    builder = Builder(20.0, first)
    buckets = []
    for at in range(first, first + count):
        builder.add(20.0 + at % 7, 1_000_000 * at, 0, at % 2)
        if at % 3 == 2:
            buckets.append(builder.close())
    whole = chunks.Chunk(device, "s", f"{1:016x}", 20.0, buckets, [None] * len(buckets), {"uptime_s": 1}, **more)
    return chunks.encode(whole)


HOSTILE: dict[str, tuple[bytes, str]] = {
    "an integer of 5,000 digits": (b'"health":{"a":' + DIGITS + b"}", ""),
    "990 deep": (b'"health":{"a":' + DEEP + b"}", ""),
    "100,000 deep": (b'"health":{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", ""),
    "half a surrogate": (b'"health":{"a":"\\ud800"}', ""),
    "a number beyond all": (b'"health":{"a":1e999}', ""),
    "a hundred thousand keys": (b'"health":{' + b",".join(b'"%d":1' % n for n in range(100_000)) + b"}", ""),
    "a key that is no key": (b'"' + b"x" * 100_000 + b'":1', "unknown"),
}


def hostile(first: int, injected: bytes, device: str = "board-1") -> bytes:
    """A good document's bytes with something put in."""
    return chunk(first, device=device)[:-1].replace(b',"health":{"uptime_s":1}', b"") + b"," + injected + b"}"


def told(folder: Path) -> list[Row]:
    """The rows of a folder's documents."""
    batch = pa.RecordBatch.from_pydict({"path": [str(path) for path in sorted(folder.iterdir())]})
    return [row for out in decode_files([batch]) for row in out.to_pylist()]


def test_hostile_files_are_set_aside_and_named(tmp_path: Path) -> None:
    """Each hostile one has a reason, its id and device, or is read as it is; the good ones are there."""
    for number, (injected, _) in enumerate(HOSTILE.values()):
        (tmp_path / f"{number}-bad.json").write_bytes(hostile(6 * number, injected))
        (tmp_path / f"{number}-good.json").write_bytes(chunk(6 * number))
    out = told(tmp_path)
    assert len(out) == 2 * len(HOSTILE)
    for row in out:
        if "good" in row["path"]:
            assert (row["reason"], row["readings"], row["doubt"]) == (None, 6, 3)
        if row["reason"] is not None:
            assert (row["device"], row["id"][:12]) == ("board-1", "board-1::s::")
            assert len(row["reason"]) <= 400
    assert sum(row["reason"] is not None for row in out) >= 4


GOOD = [chunk(first, count, key=key) for first in range(4) for count in (3, 6) for key in (None, "0" * 32)]


def mutated(rng: random.Random) -> bytes:
    """A document that is wrong in one way or several: in bytes, in fields, or in a payload whose checksum is right."""
    good = rng.choice(GOOD)
    kind = rng.randrange(4)
    if kind == 0:
        return _flipped(rng, good)
    if kind == 1:
        return b"".join(rng.choice([b"{", b"[", b'"', b":", b"1e9", b"null", b"\xff", b",", good]) for _ in range(6))
    header = json.loads(good)
    if kind == 2:
        for _ in range(rng.randrange(1, 4)):
            header[rng.choice([*header, "key", "x", "_rev", "\ud800"])] = odd(rng)
        return json.dumps(header).encode()
    payload = bytearray(zlib.decompress(base64.b64decode(header["data"]), -15))
    for _ in range(rng.randrange(1, 3)):
        payload[rng.randrange(len(payload))] = rng.randrange(256)
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    header["data"] = base64.b64encode(packer.compress(bytes(payload)) + packer.flush()).decode()
    header["crc32"] = chunks._crc32(header, bytes(payload))
    return json.dumps(header).encode()


def _flipped(rng: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out[: rng.choice([len(out), len(out), rng.randrange(len(out))])])


def odd(rng: random.Random) -> Any:
    """A value that a field should not have."""
    simple: list[Any] = [None, True, 0, -1, 2**61, 2**62, 2**63, 2**64, 10**300, 1.5, -0.0, 1e308, "", "x", "\ud800"]
    simple += ["a::b", "\x00", "columns-1", "columns-3", 3, 65_536, 65_537, "é" * 200, float("inf"), float("nan")]
    return rng.choice([*simple, [], {}, [rng.choice(simple)], {"a": rng.choice(simple)}])


def test_no_document_ends_the_reading() -> None:
    """Twenty thousand hostile ones, a good one after each hundred: each a row that Arrow takes, the good ones used."""
    rng, fine = random.Random(7), chunk(device="board-2")

    def documents() -> Iterator[Found]:
        for number in range(FUZZED):
            yield Found(f"{number}.json", lambda: mutated(rng))
            if number % 100 == 99:
                yield Found(f"good-{number}.json", lambda: fine)

    count = good = refused = 0
    for batch in document_batches(documents()):
        assert batch.schema == ARROW
        count += batch.num_rows
        for path, device, reason, packed in zip(
            *(batch[n] for n in ("path", "device", "reason", "packed")), strict=True
        ):
            good += path.as_py().startswith("good") and device.as_py() == "board-2" and reason.as_py() is None
            refused += reason.is_valid
            assert reason.is_valid != packed.is_valid
    assert count == FUZZED + FUZZED // 100
    assert good == FUZZED // 100
    assert refused > 0.9 * FUZZED


def test_what_is_read_as_buckets_says_what_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """By its reason, how many and which is the first."""
    for number, data in enumerate([chunk(), b"{", b"{"]):
        (tmp_path / f"{number}.json").write_bytes(data)
    paths = [str(path) for path in sorted(tmp_path.iterdir())]
    (batch,) = documents.of_files(paths, "buckets")
    assert sum(batch["n"].to_pylist()) == 6
    assert [f"2 documents left out, {paths[1]} the first: no JSON" in text for text in caplog.messages] == [True]


@pytest.mark.parametrize("made_up", [{"n": 1 << 61}, {"first": 1 << 61}, {"gap": 1 << 61}, {"gap": -(1 << 61)}])
def test_counts_beyond_reason_are_set_aside(made_up: dict[str, int]) -> None:
    """A few of them would make the counts of all devices overflow."""
    builder = Builder(20.0, 0)
    for at in range(2):
        builder.add(20.0, 1_000_000 * at)
    one = builder.close()._replace(**made_up)
    ends = {"o_first": one.first, "o_last": one.first + one.n - 1, "n": one.n}
    one = one._replace(**{f"{extreme}_{name}": at for extreme in ("low", "high") for name, at in ends.items()})
    data = chunks.encode(chunks.Chunk("board-1", "s", f"{1:016x}", 20.0, [one], [None]))
    (row,) = (row for batch in document_batches([Found("x.json", lambda: data)]) for row in batch.to_pylist())
    assert (row["device"], row["packed"]) == ("board-1", None)
    assert "more than 281474976710656 readings" in row["reason"]


def test_documents_that_inflate_are_held_one_at_a_time(tmp_path: Path) -> None:
    """Small ones that carry much more in sketches: a batch has no more than it may, and one more; when kept too."""
    part = struct.pack("<q", hll.REGISTERS) + b"\1" * 4096
    builder, buckets = Builder(20.0, 0), []
    for at in range(8192):
        builder.add(20.0, 1_000_000 * at)
        if at % 4096 == 4095:
            buckets.append(builder.close())
    carried = {"distinct_count(12)": [part] * 2}
    data = chunks.encode(chunks.Chunk("board-1", "s", f"{1:016x}", 20.0, buckets, [None] * 2, extras=carried))
    most = 20 * len(part)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(documents, "_BATCH_BYTES", most)
        some = [*document_batches(Found(f"{at}.json", lambda: data) for at in range(40))]
        with pq.ParquetWriter(tmp_path / "kept.parquet", ARROW) as writer:
            for batch in some:
                writer.write_batch(batch)
        again = [*documents.kept_batches(pq.ParquetFile(tmp_path / "kept.parquet"))]
    assert len(data) < len(part) / 2
    assert max(batch.nbytes for batch in [*some, *again]) < 2 * most
    assert pa.Table.from_batches(again) == pa.Table.from_batches(some)


# the feed


def feed(held: dict[str, bytes], asked: list[Scripted]) -> Callable[[dict[str, str]], Answer]:
    """A gateway of these documents, whose bodies it hands on as they were sent."""
    names = list(held)

    def answer(query: dict[str, str]) -> Answer:
        path = asked[0].asked[-1][0]
        if not path.endswith("_changes"):
            return Answer(held[path.rpartition("/")[2].replace("%3A", ":")])
        since, limit = int(query["since"]), int(query["limit"])
        shown = names[since : since + limit]
        with_bodies = "include_docs" in query
        lines = [
            b'{"seq":%d,"id":"%s"%s}' % (names.index(n) + 1, n.encode(), b',"doc":' + held[n] if with_bodies else b"")
            for n in shown
        ]
        return Answer(b'{"results":[' + b",".join(lines) + b'],"last_seq":"%d"}' % (since + len(shown)))

    return answer


def read(held: dict[str, bytes]) -> tuple[list[Row], int]:
    """What comes of the feed as rows of DOCUMENTS, and how many requests it took."""
    asked: list[Scripted] = []
    with scripted(feed(held, asked)) as server:
        asked.append(server)
        with Client(Gateway.at(server.url), 2) as one:
            pages = changes.pages(one, "shard-00")
            out = [row for batch in rows.batches(one, pages) for row in batch.to_pylist()]
        return out, len(server.asked)


def name_of(data: bytes) -> str:
    """Its id."""
    return str(json.loads(data)["id"])


@pytest.mark.parametrize("what", HOSTILE)
def test_one_document_does_not_stop_the_fleet(what: str) -> None:
    """Among three hundred good ones of two devices: those come, this one is named with its id, device and reason."""
    good = {name_of(data): data for data in (chunk(6 * n, device=f"board-{n % 2}") for n in range(300))}
    names = list(good)
    bad = "bad-board::s::0000000000000001::0000000000000000"
    held = dict.fromkeys([*names[:137], bad, *names[137:]], b"") | good
    held[bad] = hostile(0, HOSTILE[what][0], device="bad-board")
    out, requests = read(held)
    assert [row["id"] for row in out] == list(held)
    assert {row["id"] for row in out if row["reason"] is not None} <= {bad}
    assert {row["readings"] for row in out if row["id"] != bad} == {6}
    told = next(row for row in out if row["id"] == bad)
    if told["reason"] is not None:
        assert told["device"] == "bad-board"
    assert requests < 30


def test_a_page_of_nothing_else_is_read_to_its_end() -> None:
    """A hundred documents that cannot be read, one after the other: a hundred reasons, in a bounded time."""
    held = {f"bad::s::{1:016x}::{n:016d}": hostile(0, HOSTILE["990 deep"][0], device="bad") for n in range(100)}
    out, requests = read(held)
    assert [row["id"] for row in out] == list(held)
    assert all("nested too deeply" in row["reason"] for row in out)
    assert requests < 600


def test_a_document_too_large_for_any_answer_is_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gateway escapes what it hands on, so a stored document may become larger than any answer may be."""
    monkeypatch.setattr(changes, "MOST", 50_000)
    held = {name_of(data): data for data in (chunk(6 * n) for n in range(20))}
    bad = "bad::s::0000000000000001::0000000000000000"
    held[bad] = hostile(0, b'"health":{"a":"' + b"x" * 60_000 + b'"}', device="bad")
    out, _ = read(held)
    assert [row["id"] for row in out if row["reason"] is not None] == [bad]
    assert "at most 50000 are read" in next(row["reason"] for row in out if row["id"] == bad)


def test_a_feed_that_is_no_feed_still_ends_the_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where even the rows without their documents cannot be read it is the gateway, not a document."""
    monkeypatch.setattr(client, "FIRST_DELAY", 0.001)
    said = pytest.raises(GatewayError, match="a single row cannot be read")
    with scripted(Answer(b"<html>")) as server, Client(Gateway.at(server.url), 2) as one, said:
        list(changes.pages(one, "shard-00"))
