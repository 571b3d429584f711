"""The plan is an upper bound: what windows hold and what the store writes never exceeds its lines."""

from __future__ import annotations

import json
import random
import re
import tomllib
from array import array
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
import sluicegate as sg
from sluicegate_agent.commands.check import sample_text
from sluicegate_agent.config import Config, build
from sluicegate_agent.config.questions import build_arguments
from sluicegate_agent.costs.windows import PROBED, WAITING_LEAF, WINDOW_OBJECTS, window_cost
from sluicegate_agent.messages import Message
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.plan import BASE_DATA, BASE_RESIDENT, SCHEMA, plan
from sluicegate_agent.state import State


def config(folder: Path, streams: int = 1, **tables: Any) -> Config:
    """A configuration with sequence numbers and times of its own."""
    raw = {
        "device": {"id": "d"},
        "state": {"path": "state"},
        "mqtt": {"receive_maximum": 200},
        "source": [
            {
                "topic": "w",
                "time": "t",
                "time_format": "s",
                "sequence": "n",
                "streams": {f"s{i}": f"s{i}" for i in range(streams)},
            }
        ],
    }
    return build(raw | tables, folder / "agent.toml")


@pytest.mark.parametrize("disorder", [0, 50, 100_000], ids=["in order", "a little late", "no order"])
@pytest.mark.parametrize(
    "asked",
    [
        {"policy": {"time": "1min"}, "buckets": 4},
        {"policy": {"time": "1h"}, "buckets": 64, "aggregate": ["mean", "min", "argmax", "first"]},
        {"policy": {"count": 700}, "buckets": 0, "aggregate": ["sum", "max"]},
        {"policy": {"count": 3000}, "buckets": 33, "aggregate": ["sum", "count"]},
        {"policy": {"time": "10min"}, "buckets": 40, "sum_like": {"error": "0.0001%", "floor": 1e-9}},
        {"policy": {"time": "10min", "up_to": "max"}, "aggregate": "max", "buckets": 40, "max_like": {"block": 9}},
        {"policy": {"time": "10min", "hop": "1min"}, "buckets": 40, "hop": {"hint": 60, "deviation": 2}},
        {"policy": {"count": 500, "hop": 90}, "buckets": 0, "hop": {}, "sum_like": {"error": 1e-9, "of": "mean"}},
        {"policy": {"count": 500, "hop": 90}, "buckets": 0, "hop": {}},
        {"policy": {"count": 600}, "buckets": 0, "aggregate": ["max", "min"], "max_like": {}},
        {"policy": {"time": "10min"}, "buckets": 40, "merge": "pairs", "aggregate": ["mean", "max", "variance"]},
        {"policy": {"count": 3000}, "buckets": 33, "merge": "pairs"},
        {
            "policy": {"time": "10min"},
            "aggregate": ["max", "min"],
            "buckets": 40,
            "merge": "pairs",
            "max_like": {"staircase": True, "staging": 200},
        },
        {"policy": {"count": 900}, "aggregate": "min", "buckets": 0, "max_like": {"staircase": True}},
        {"policy": {"count": 900}, "aggregate": "max", "buckets": 16, "merge": "pairs", "max_like": {"staging": 5000}},
    ],
)
def test_a_window_holds_no_more_than_planned(asked: dict[str, Any], disorder: int, tmp_path: Path) -> None:
    """Whatever the order of times, at every moment: bytes of partials in memory, of leaves and state in the store."""
    window = config(tmp_path, window=[{"name": "w"} | asked]).windows[0]
    line = window_cost(window)
    subject, source = sg.Window(**build_arguments(window)), random.Random(5)
    rows: dict[int, int] = {}
    for i in range(4000):
        subject.insert(source.gauss(0, 1), time=1_000_000 * (i + (source.randrange(disorder) if disorder else 0)))
        if i % 40 == 0:
            changes = subject.changes()
            rows.update({index: len(leaf) for index, leaf in changes.closed})
            leaf = max(rows.values(), default=0)
            assert subject.footprint.bytes <= line.memory - WINDOW_OBJECTS
            assert (len(subject) - 1) * leaf + len(subject.state()) <= line.disk


@pytest.mark.parametrize("buckets", [64, 1024, 2 * PROBED])
def test_buckets_that_are_packed_hold_no_more_than_planned(buckets: int, tmp_path: Path) -> None:
    """Whose values, times and ordinals all differ: as many as the window ever has, without what waits for a fold."""
    asked = {"name": "w", "policy": {"count": 64 * buckets}, "buckets": buckets, "aggregate": ["mean", "max", "std"]}
    window = config(tmp_path, window=[asked], state={"path": "state"}).windows[0]
    subject, source = sg.Window(**build_arguments(window)), random.Random(5)
    values = array("d", (source.gauss(20, 1) for _ in range(128 * buckets)))
    times = array("q", accumulate((source.randrange(2_000_000) for _ in values), initial=1_790_000_000_000_000))
    most = 0
    for start in range(0, len(values), 8 * buckets):
        end = start + 8 * buckets
        subject.insert_many(values[start:end], times[start:end], results=False)
        most = max(most, subject.footprint.bytes)
    leaf = max(len(row) for _, row in subject.changes().closed)
    planned = window_cost(window).memory - WINDOW_OBJECTS - min(buckets, 4096) * (leaf + WAITING_LEAF)
    assert most <= planned <= 3 * most


@pytest.mark.parametrize(
    ("streams", "bucket", "outbox"),
    [
        (1, 16, {"rows": 200, "bytes": "96KiB", "chunk_buckets": 9}),
        (6, 16, {"rows": 1000, "bytes": "512KiB", "chunk_buckets": 9}),
        (6, 64, {"rows": 4000, "bytes": "256KiB", "chunk_buckets": 9}),
        (3, 1, {"rows": 4000, "bytes": "512KiB", "chunk_buckets": 9}),
    ],
)
def test_the_store_stays_below_its_plan(streams: int, bucket: int, outbox: dict[str, Any], tmp_path: Path) -> None:
    """A target that never comes, an outbox that overflows again and again: the files stay below the plan's bytes."""
    settled = config(tmp_path, streams, bucket={"readings": bucket}, outbox=outbox, dead_letters={"rows": 0})
    lines = {line.part: line.disk for line in plan(settled).lines if not line.part.startswith("damaged")}
    log = lines.pop("SQLite")
    most, most_logged, source = 0, 0, random.Random(2)
    with State(settled) as state:
        pipeline = Pipeline(settled, state)
        for i in range(8000 if bucket == 64 else 4000):
            values = {f"s{k}": source.random() for k in range(streams)}
            pipeline.accept(Message("w", json.dumps({"n": i, "t": 1_300_000_000 + i} | values).encode(), 0, 0))
            if pipeline.pending >= settled.commit_messages:
                pipeline.commit()
                most = max(most, (settled.state.path / "state.db").stat().st_size)
                most_logged = max(most_logged, (settled.state.path / "state.db-wal").stat().st_size)
    assert state.outbox.merges + state.outbox.singles_dropped > 0
    assert most <= sum(lines.values()) + SCHEMA
    assert most_logged <= log - SCHEMA


def test_more_asked_is_never_planned_as_less(tmp_path: Path) -> None:
    """Each knob that keeps more costs more."""

    def memory_and_disk(**tables: Any) -> tuple[int, int]:
        worst = plan(config(tmp_path, **tables))
        return worst.memory, worst.disk

    base = memory_and_disk()
    for more in (
        {"streams": 9},
        {"window": [{"name": "w", "policy": {"time": "1h"}}]},
        {"window": [{"name": "w", "policy": {"time": "1h"}}, {"name": "v", "policy": {"time": "9min"}, "shares": "w"}]},
        {"identity": {"horizon": 1 << 20}},
        {"mqtt": {"receive_maximum": 9000}},
        {"outbox": {"rows": 200_000, "bytes": "20MiB"}},
        {"limits": {"payload": "1MiB"}, "dead_letters": {"rows": 9000}},
    ):
        memory, disk = memory_and_disk(**more)
        assert memory > base[0], more
        assert disk >= base[1], more


def written_in_the_docs() -> list[Any]:
    """Every whole configuration that the README and the documents show."""
    root = Path(__file__).parents[2]
    pages = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    found = [(page.name, re.findall(r"^```toml.*?\n(.*?)^```$", page.read_text(), re.S | re.M)) for page in pages]
    blocks = [(name, text) for name, texts in found for text in texts]
    return [pytest.param(text, id=f"{name}-{i}") for i, (name, text) in enumerate(blocks) if "[device]" in text]


@pytest.mark.parametrize("text", written_in_the_docs())
def test_what_the_documents_show_can_be_run(text: str) -> None:
    """A newcomer who copies a configuration gets one that is right and within its budgets."""
    assert plan(build(tomllib.loads(text), Path("/etc/agent.toml"))).fits


def test_the_sample_fits_its_default_budgets() -> None:
    """So does the sample, whose budgets are the defaults."""
    assert plan(build(tomllib.loads(sample_text()), Path("/etc/agent.toml"))).fits


SOURCES: dict[str, dict[str, Any]] = {
    "bare": {},
    "time": {"time": "t"},
    "numbers": {"sequence": "n"},
    "epochs": {"sequence": "n", "epoch": "boot"},
}
TARGETS: dict[str, dict[str, Any]] = {
    "none": {},
    "directory": {"target": "directory", "path": "out"},
    "gateway here": {"target": "sync-gateway", "url": "http://127.0.0.1:4984/telemetry"},
    "gateway": {"target": "sync-gateway", "url": "https://gateway.example:4984/telemetry"},
}


@pytest.mark.parametrize("host", ["localhost", "broker.example"])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("source", SOURCES)
def test_the_defaults_fit_with_two_mebibytes_in_hand(source: str, target: str, host: str) -> None:
    """Whatever identifies a source, whatever the target, with and without TLS: nothing has to be tuned to start."""
    raw: dict[str, Any] = {"device": {"id": "d"}, "state": {"path": "state"}, "mqtt": {"host": host}}
    raw["source"] = [{"topic": "w", "streams": {"x": "v"}} | SOURCES[source]]
    raw["window"] = [{"name": "mean_24h", "policy": {"time": "24h"}}]
    access = {"username": "d", "password_env": "P"} if "gateway" in target else {}
    worst = plan(build(raw | {"sync": TARGETS[target] | access}, Path("/etc/agent.toml")))
    assert worst.memory + (2 << 20) <= worst.memory_budget
    assert worst.disk + (2 << 20) <= worst.disk_budget


def test_couchbase_lites_threads_have_room_below_the_planned_limit(tmp_path: Path) -> None:
    """RLIMIT_DATA counts their stacks, 8 MiB each: else a replicator never connects (65 MiB were seen)."""
    lite = {"target": "couchbase-lite", "url": "ws://127.0.0.1:4984/t", "username": "d", "password_env": "P"}
    with_it, without = plan(config(tmp_path, sync=lite)), plan(config(tmp_path))
    more = with_it.data_bytes - without.data_bytes - (with_it.memory - without.memory)
    assert more >= 8 * (8 << 20)


def test_the_page_says_the_base_that_is_planned() -> None:
    """The interpreter, modules and connection, and what of it RLIMIT_DATA counts."""
    page = (Path(__file__).parents[2] / "docs/reference/agent.md").read_text(encoding="utf-8")
    text = " ".join(page.split())
    assert f"(interpreter, modules, connection: {BASE_RESIDENT >> 20} MiB)" in text
    assert f"where {BASE_DATA >> 20} MiB are planned" in text
