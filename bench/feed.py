"""How fast buckets come from a real Sync Gateway's changes feed into Spark, and what a document of how many costs.

    SLUICEGATE_SYNC_GATEWAY=… python bench/feed.py [--buckets 200000] [--out bench/results/feed.json]

A gateway is started on loopback (over rosmar, in a temporary folder) and filled by the agent's own target with chunks
of 64 readings a bucket. For each size of document: the pages alone by `include_docs` and by `_bulk_get`, the pages as
Arrow rows, and `spark.read.format("sluicegate")` on one core. Rates are per second of CPU time, since a gateway, a
Java and a Python share the machine: the reader's alone, and that of Spark's whole process tree, whose fixed cost a read
(planning, starting Python) is told apart.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sluicegate.format import chunk as chunks
from sluicegate.format.bucket import Builder
from sluicegate_agent.sync.connection import Connection
from sluicegate_agent.sync.contract import Document
from sluicegate_agent.sync.sync_gateway import Basic, SyncGatewayTarget
from sluicegate_cloud.feed import changes, rows
from sluicegate_cloud.feed.client import Client
from sluicegate_cloud.feed.gateway import CREDENTIALS, Gateway
from sluicegate_cloud.feed.provision import shards
from sluicegate_demo.places import Gateway as Place

SIZES = (16, 96, 512, 4_096)
READINGS = 64
DEVICE = "board"


def made(size: int) -> chunks.Chunk:
    """A chunk of `size` buckets: a slow walk in hundredths, a reading about every 10 s."""
    rng, builder, buckets = random.Random(size), Builder(20.0, 0), []
    now, level = 1_700_000_000_000_000, 20.0
    for _ in range(size):
        for _ in range(READINGS):
            now += 10_000_000 + rng.randrange(1_000)
            level += rng.gauss(0, 0.1)
            builder.add(round(level, 2), now)
        buckets.append(builder.close())
    return chunks.Chunk(DEVICE, "s", f"{size:016x}", 20.0, buckets, [None] * size)


def documents(size: int, buckets: int) -> Iterator[Document]:
    """Streams of one document each, `buckets` buckets in all; the same readings under different names."""
    chunk = made(size)
    for number in range(buckets // size):
        chunk.stream = f"s{number:06d}"
        yield Document(chunks.document_id(chunk), chunks.encode(chunk))


def push(place: Place, size: int, buckets: int) -> tuple[int, int]:
    """How many documents the gateway took, and their bytes."""
    file = place.folder / f"{DEVICE}.json"
    if not file.exists():
        place.sync(DEVICE)
    login = Basic(DEVICE, json.loads(file.read_text())["password"])
    target = SyncGatewayTarget(Connection(place.source, None, None, 60.0), login)
    count = held = 0
    for document in documents(size, buckets):
        outcome = target.put([document])
        _require(bool(outcome.accepted), outcome)
        count, held = count + 1, held + len(document.data)
    return count, held


def _require(true: bool, said: object) -> None:
    if not true:
        raise RuntimeError(f"the measurement is worth nothing: {said}")


def cpu(process_id: int) -> float:
    """Seconds of CPU of a process and all that it started."""
    tick = os.sysconf("SC_CLK_TCK")
    parents: dict[int, list[int]] = {}
    used: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(fields[1]), []).append(int(entry.parent.name))
        used[int(entry.parent.name)] = sum(map(int, fields[11:15]))  # its own, and of children that have ended
    total, waiting = 0, [process_id]
    while waiting:
        one = waiting.pop()
        total += used.get(one, 0)
        waiting += parents.get(one, [])
    return total / tick


def least(work: Callable[[], Any], repeats: int = 3) -> float:
    """The least CPU time of this process over some repeats, in s."""
    best = float("inf")
    for _ in range(repeats):
        begun = time.process_time()
        work()
        best = min(best, time.process_time() - begun)
    return best


def by_feed(at: Gateway) -> int:
    """Read every page with its documents; how many."""
    with Client(at) as client:
        return sum(len(page.rows) for name in shards() for page in changes.pages(client, name))


def by_bulk_get(at: Gateway) -> int:
    """The same by a page without documents and one `_bulk_get` for it; how many."""
    found = 0
    with Client(at) as client:
        for name in shards():
            for page in changes.pages(client, name, documents=False):
                for begin in range(0, len(page.rows), 64):
                    found += len(_bulk(client, [row["id"] for row in page.rows[begin : begin + 64]]))
    return found


def _bulk(client: Client, names: list[str]) -> list[Any]:
    body = json.dumps({"docs": [{"id": name} for name in names]})
    connection = client._connection or client._connected()
    client._connection = connection
    path = f"{client.gateway.root}/_bulk_get"
    connection.request(
        "POST", path, body, client._headers | {"Content-Type": "application/json", "Accept": "multipart/mixed"}
    )
    response = connection.getresponse()
    data = response.read()
    boundary = response.headers["Content-Type"].partition('boundary="')[2].partition('"')[0].encode()
    parts = data.split(b"--" + boundary)[1:-1]
    return [json.loads(part.partition(b"\r\n\r\n")[2]) for part in parts]


def as_rows(at: Gateway) -> int:
    """Read every page into Arrow batches; the buckets in them."""
    found = 0
    for name in shards():
        with Client(at) as client:
            for batch in rows.batches(client, changes.pages(client, name)):
                _require(batch["reason"].null_count == batch.num_rows, batch["reason"])
                found += sum(batch["buckets"].to_pylist())
    return found


def by_spark(spark: Any, at: Gateway, names: list[str]) -> None:
    """Read the buckets of some channels into Spark, and throw them away there."""
    options = {"credentials": at.credentials, "channels": ",".join(names)}
    spark.read.format("sluicegate").options(**options).load(at.url).write.format("noop").mode("overwrite").save()


def tree(spark: Any, at: Gateway, names: list[str]) -> float:
    """The least CPU time of Spark's Java and its Python workers for a read, of eight, in s."""
    java = spark.sparkContext._gateway.proc.pid
    best = float("inf")
    for _ in range(8):
        begun = cpu(java)
        by_spark(spark, at, names)
        best = min(best, cpu(java) - begun)
    return best


def per_core(spark: Any, at: Gateway, buckets: int) -> tuple[int, float]:
    """Buckets a second of CPU into Spark beyond what any read costs, and those s: by two reads of different size."""
    few = shards()[:2]
    with Client(at) as client:
        share = sum(len(page.rows) for name in few for page in changes.pages(client, name, documents=False))
        total = sum(len(page.rows) for name in shards() for page in changes.pages(client, name, documents=False))
    small, large = tree(spark, at, few), tree(spark, at, shards())
    rate = buckets * (1 - share / total) / (large - small)
    return round(rate), round(large - buckets / rate, 2)


def measure(spark: Any, size: int, buckets: int) -> dict[str, Any]:
    """One row of the table, over a gateway of its own."""
    with tempfile.TemporaryDirectory() as folder, Place(Path(folder) / "gateway", "sync-gateway") as place:
        os.environ |= place.environment
        at = Gateway.at(place.source)
        count, held = push(place, size, buckets)
        buckets = count * size
        _require(by_feed(at) == by_bulk_get(at) == count and as_rows(at) == buckets, "documents are missing")
        server = place.server.process_id
        pages, begun = {}, 0.0
        for name, work in (("include_docs", by_feed), ("bulk_get", by_bulk_get)):
            begun = cpu(server)
            own = least(lambda work=work: work(at))  # type: ignore[misc]
            pages[name] = {
                "reader_us": round(own / count * 1e6),
                "gateway_us": round((cpu(server) - begun) / 3 / count * 1e6),
            }
        arrow, (whole, fixed) = least(lambda: as_rows(at)), per_core(spark, at, buckets)
    row: dict[str, Any] = {"buckets_a_document": size, "documents": count, "bytes_a_document": held // count}
    row |= {"pages": pages, "arrow_per_core": round(buckets / arrow), "spark_per_core": whole, "spark_fixed_s": fixed}
    return row


def main() -> None:
    """Measure each size and print a table and JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--buckets", type=int, default=200_000)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    from sluicegate_cloud.session import spark_session

    os.environ.pop(CREDENTIALS, None)
    spark = spark_session("local[1]")
    found = []
    for size in options.sizes:
        found.append(measure(spark, size, options.buckets))
        row = found[-1]
        rates = f"{row['arrow_per_core']:>8,} buckets/s a core into Arrow, {row['spark_per_core']:>8,} into Spark"
        print(
            f"{size:>6} buckets, {row['bytes_a_document']:>7,} bytes a document: {rates}; {row['pages']}",
            file=sys.stderr,
        )
    spark.stop()
    text = json.dumps({"rows": found, "cores": os.cpu_count(), "load": os.getloadavg()[0]}, indent=2)
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
