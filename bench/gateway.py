"""How fast sealed chunks go to a Sync Gateway: 1,000,000 readings, cut at 1 % error or in even buckets, by chunk size.

python -m bench.gateway URL --user board-1 --password-env VARIABLE [--replicator] [--json FILE]

URL is a database, such as http://127.0.0.1:4984/telemetry. Each row sends documents that the gateway has never seen,
over one connection, by the agent's own target; making them is timed apart. `--replicator`: by Couchbase Lite instead,
through the target `couchbase-lite` (four at a time, as the agent does) and all at once in one-shot replication.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import sluicegate as sg
from sluicegate import cblite
from sluicegate.format.bucket import Bucket, Builder
from sluicegate.format.chunk import Chunk, document_id, encode
from sluicegate_agent.sync.connection import Connection
from sluicegate_agent.sync.contract import Document, Target
from sluicegate_agent.sync.couchbase_lite import CouchbaseLiteTarget, replicator_url
from sluicegate_agent.sync.sealing import IN_FLIGHT
from sluicegate_agent.sync.sync_gateway import Session, SyncGatewayTarget

READINGS = 1_000_000
EVEN = 16  # the agent's default: readings a bucket
SIZES = (64, 256, 1024, 4096)
Pairs = tuple["array[int]", "array[float]"]


def readings(seed: int = 5) -> Pairs:
    """A reading a second of a temperature: a daily wave, slow drift, noise, to 0.1."""
    source = random.Random(seed)
    times, values, drift = array("q"), array("d"), 0.0
    for second in range(READINGS):
        drift += source.gauss(0, 0.002)
        day = second % 86_400 / 86_400
        times.append(1_750_000_000_000_000 + second * 1_000_000)
        values.append(round(20 + 5 * day * (1 - day) * 4 + drift + source.gauss(0, 0.3), 1))
    return times, values


def by_error(pairs: Pairs) -> list[int]:
    """How many readings each bucket takes where the sum of all of them may be off by 1 %."""
    rule = [sg.SumLike(error=0.01)]
    window = sg.Window({"sum": sg.sum()}, policy=sg.policies.count(READINGS), histograms=rule)
    window.insert_many(pairs[1], pairs[0], results=False)
    return [each.count for each in window.buckets()]


def folded(pairs: Pairs, counts: Sequence[int]) -> list[Bucket]:
    """The readings in buckets of so many each."""
    builder, buckets, at = Builder(pairs[1][0]), [], 0
    for count in counts:
        for index in range(at, at + count):
            builder.add(pairs[1][index], pairs[0][index])
        buckets.append(builder.close())
        at += count
    return buckets


def documents(buckets: list[Bucket], size: int, run: int, device: str, center: float) -> Iterator[Document]:
    """Chunks of `size` buckets, of an incarnation of their own for each run."""
    for at in range(0, len(buckets), size):
        part = buckets[at : at + size]
        chunk = Chunk(device, "temp", f"{run:016x}", center, part, [None] * len(part))
        yield Document(document_id(chunk), encode(chunk))


def replicated(url: str, settings: cblite.Settings, sent: Sequence[Document]) -> float:
    """Seconds to save all of them in one transaction and push them in one replication, until each is acknowledged."""
    with tempfile.TemporaryDirectory() as folder, cblite.Database("push", folder) as database:
        chunks = database.collection()
        replicator = cblite.Replicator(database, url, [chunks], settings, continuous=False)
        with replicator, replicator.documents() as documents:
            begun = time.perf_counter()
            with database.transaction():
                for each in sent:
                    chunks.save_json(each.id, each.data)
            replicator.start()
            known: set[str] = set()
            while len(known) < len(sent) and time.perf_counter() - begun < 120:
                known.update(each.id for each in documents.take(0.2) if each.error is None)
            took = time.perf_counter() - begun
    if len(known) < len(sent):
        raise SystemExit(f"{len(known)} of {len(sent)} were acknowledged in time")
    return took


def pushed(target: Target, sent: Sequence[Document], together: int) -> float:
    """Seconds until the gateway has all of them, `together` a put. Raises SystemExit where it does not take them."""
    begun = time.perf_counter()
    for at in range(0, len(sent), together):
        outcome = target.put(sent[at : at + together])
        if outcome.rejected or outcome.retry_after is not None:
            raise SystemExit(f"not taken: {outcome.error or outcome.rejected}")
    return time.perf_counter() - begun


def measured(
    target: Target, device: str, repeats: int, at_once: Callable[[Sequence[Document]], float] | None
) -> Iterator[dict[str, Any]]:
    """A row for each way to cut and each size of chunk: the least of so many pushes."""
    pairs = readings()
    run = time.time_ns() // 1000
    for name, counts in (("1 % error", by_error(pairs)), (f"{EVEN} readings", [EVEN] * (READINGS // EVEN))):
        buckets = folded(pairs, counts)
        for size in SIZES:
            times, whole = [], []
            for _ in range(repeats):
                run += 1
                begun = time.process_time()
                sent = list(documents(buckets, size, run, device, pairs[1][0]))
                encoding = time.process_time() - begun
                times.append(pushed(target, sent, IN_FLIGHT))
                if at_once is not None:
                    run += 1
                    whole.append(at_once(list(documents(buckets, size, run, device, pairs[1][0]))))
            weight = sum(len(each.data) for each in sent)
            yield {
                "buckets": name, "number": len(buckets), "a_chunk": size, "documents": len(sent), "bytes": weight,
                "encode_cpu_s": round(encoding, 3), "push_s": round(min(times), 3),
            } | ({"at_once_s": round(min(whole), 3)} if whole else {})  # fmt: skip


def made(
    url: str, user: str, secret: str, replicator: bool
) -> tuple[Target, Callable[[Sequence[Document]], float] | None]:
    """The target that is measured, and how all goes at once."""
    by_rest = SyncGatewayTarget(Connection(url, None, None, 30.0), Session(user, secret))
    if not replicator:
        return by_rest, None
    settings = cblite.Settings(user=user, password=secret)
    address = replicator_url(url)
    target = CouchbaseLiteTarget(Path(tempfile.mkdtemp()), address, settings, by_rest)
    return target, lambda sent: replicated(address, settings, sent)


def main() -> None:
    """Print a table, and write it as JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--user", default="board-1")
    parser.add_argument("--password-env", required=True)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--replicator", action="store_true")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    target, at_once = made(asked.url, asked.user, os.environ[asked.password_env], asked.replicator)
    rows = []
    for row in measured(target, asked.user, asked.repeats, at_once):
        rows.append(row)
        print("  ".join(f"{key} {value}" for key, value in row.items()), flush=True)
    target.close()
    if asked.json:
        asked.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
