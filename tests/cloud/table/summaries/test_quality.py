"""Quality promises what a stream's windows and documents say, recomputed from their rows one by one."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from random_worlds import random_cut, random_fleet
from table_worlds import Rows, definition_of, documents_of, here, store_at, table_of, take_in, windows
from test_devices import HEALTH, document
from thorough import number

from sluicegate.format.bucket import Builder
from sluicegate.format.chunk import Chunk, encode
from sluicegate_cloud.commands import cloud
from sluicegate_cloud.names import ALL
from sluicegate_cloud.table import job, retention
from sluicegate_cloud.table.summaries import quality as known
from sluicegate_cloud.table.told import of_table

SECOND = 1_000_000


def relative(low: Any, high: Any) -> float:
    """The definition of a width."""
    greatest = max(abs(low), abs(high))
    if not greatest:
        return 0.0
    return 2.0 if math.isinf(greatest) else high / greatest - low / greatest


def shares(rows: Sequence[dict[str, Any]], aggregates: Sequence[str]) -> dict[str, Any]:
    """What the windows of a stream come to; a span counts as often as it has windows."""
    share, time = told(rows, "completeness"), told(rows, "resolution_us")
    held = [row for row in rows if row["count_high"] > 0]
    some = sum(row["windows"] for row in rows if row["count_high"] > 0 or row["completeness"] is not None)
    complete = sum(weight for weight, x in share if x == 1.0)
    out = {"windows": some, "complete": complete / some if some else None}
    out |= {"completeness_least": min((x for _, x in share), default=None), "completeness_mean": mean(share)}
    out |= {"resolution_us": mean(time), "resolution_most_us": max((x for _, x in time), default=None)}
    for name in aggregates:
        ends = [(row["windows"], row[f"{name}_low"], row[f"{name}_high"]) for row in held]
        widths = [(weight, relative(low, high)) for weight, low, high in ends if None not in (low, high)]
        out[f"{name}_exact"] = mean([(row["windows"], float(bool(row[f"{name}_exact"]))) for row in held])
        out |= {f"{name}_width": mean(widths), f"{name}_width_most": max((x for _, x in widths), default=None)}
    return out


def same(one: Any, other: Any) -> bool:
    """But for rounding."""
    return one is other is None or (None not in (one, other) and math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12))


def told(rows: Sequence[dict[str, Any]], name: str) -> list[tuple[int, float]]:
    """Of how many windows, and what a column says of each, where it does."""
    return [(row["windows"], row[name]) for row in rows if row[name] is not None]


def mean(values: Sequence[tuple[int, float]]) -> float | None:
    """By weight; None of nothing."""
    return math.fsum(weight * x for weight, x in values) / sum(weight for weight, _ in values) if values else None


def of_windows(rows: Rows, device: str | None) -> list[dict[str, Any]]:
    """Those of a device, or of all devices, without roll-ups by tags."""
    return [row for row in rows.values() if row["device"] == device and not row["rollup"]]


@pytest.mark.parametrize("seed", range(number(60, 2)))
def test_a_row_says_what_the_windows_and_documents_say(seed: int, tmp_path: Path) -> None:
    """Silences of months, spans, lost and repeated documents, odd slides, all aggregates, two runs."""
    rng = random.Random(seed)
    cut = random_cut(rng)
    sent = documents_of(random_fleet(rng, cut, 3, 40, ordinary=True), "s", rng, lost=0.2)
    store, version = store_at(tmp_path / "table", definition_of(cut, ALL, by=(("site",),)))
    for part in (sent[::2], sent[1::2]):
        version = take_in(store, version, table_of(part, 1_000 * len(part))) if part else version
    rows = windows(store, version)
    found = {row["device"]: row for table in known.quality(store, version) for row in table.to_pylist()}
    summary = {one["device"]: one for one in of_table(store, version).summary["streams"]}
    assert {*found} == {*summary, None}
    for device, row in found.items():
        wanted = shares(of_windows(rows, device), ALL)
        assert [name for name, x in wanted.items() if not same(row[name], x)] == [], device
        if device is not None:
            assert {name: row[name] for name in ("readings", "missing", "doubt", "completeness")} == {
                name: summary[device][name] for name in ("readings", "missing", "doubt", "completeness")
            }
            assert row["lag_us"] == version.made_us - row["last_us"] == version.made_us - summary[device]["last_us"]
    for name, pick in (("readings", sum), ("missing", sum), ("last_us", max), ("first_us", min)):
        assert found[None][name] == pick(one[name] for one in summary.values())


@pytest.fixture
def table(tmp_path: Path) -> Any:
    """Twenty readings a document, one a second: the second document of press-2 is lost."""
    counters = {"counters": {"maybe_missing": 4}}
    sent = [document("press-1", at, tags={"site": "north"}, health=HEALTH | counters) for at in (0, 20)]
    sent += [document("press-2", at) for at in (0, 40)]
    store, version = store_at(tmp_path / "table", job.definition_of(20 * SECOND, 20 * SECOND, ("mean",), shards=2))
    return store, take_in(store, version, table_of(sent))


def test_what_is_missing_lies_between_the_readings_beside_it(table: Any) -> None:
    """It may belong to the last second before and the first after it: three windows, none complete, one empty."""
    of = {row["device"]: row for rows in known.quality(*table) for row in rows.to_pylist()}
    one, two = of["press-1"], of["press-2"]
    assert (one["windows"], one["complete"], one["missing"], one["maybe_missing"]) == (2, 1.0, 0, 4)
    assert (one["mean_exact"], one["mean_width_most"] < 1e-12, dict(one["tags"])) == (1.0, True, {"site": "north"})
    assert (two["windows"], two["completeness_least"], two["missing"], two["maybe_missing"]) == (3, 0.0, 20, None)
    assert two["completeness"] == pytest.approx(40 / 60)
    assert of[None]["readings"] == 80


def test_the_command_shows_the_least_complete_first(table: Any) -> None:
    """All devices, then press-2; JSON has the columns of the table."""
    root = str(table[0].root)
    shown = CliRunner().invoke(cloud, ["quality", root]).output.splitlines()
    assert [line[20:40].strip() for line in shown] == ["device", "all", "press-2", "press-1"]
    told = [json.loads(line) for line in CliRunner().invoke(cloud, ["quality", root, "--json"]).output.splitlines()]
    assert told[0]["device"] is None
    assert {"complete", "mean_width_most", "lag_us"} <= {*told[0]}
    assert told[1]["tags"] in ({}, {"site": "north"})


def test_an_aggregate_without_an_interval_and_odd_counters_are_shown(tmp_path: Path) -> None:
    """A geometric mean of what is not positive has none; a device may say `true` where a number is expected."""
    buckets, builder = [], Builder(-1.0)
    for at in range(4):
        builder.add(-1.0, at * SECOND)
        buckets.append(builder.close())
    health = HEALTH | {"counters": {"maybe_missing": True}}
    sent = [encode(Chunk("d", "s", "0" * 16, -1.0, buckets, [None] * 4, health=health))]
    definition = job.definition_of(2 * SECOND, 2 * SECOND, ("geometric_mean",), shards=1)
    store, version = store_at(tmp_path / "table", definition)
    take_in(store, version, table_of(sent))
    ran = CliRunner().invoke(cloud, ["quality", str(store.root)])
    assert ran.exception is None
    assert "geometric_mean –" in ran.output
    told = CliRunner().invoke(cloud, ["quality", str(store.root), "--json"]).output.splitlines()
    assert [json.loads(line)["maybe_missing"] for line in told] == [None, None]


def test_a_stream_without_a_window_is_not_said_to_be_exact(table: Any) -> None:
    """All that it had is older than what the table keeps."""
    store, version = table
    retention.retain(here, store, version, retention.horizon_of(version, 1_000 * SECOND, {}), {}, 0)
    shown = CliRunner().invoke(cloud, ["quality", str(store.root)]).output.splitlines()
    assert len(shown) > 1
    assert [line for line in shown[1:] if not line.endswith("  –")] == []


def test_of_many_streams_the_least_complete_are_shown(tmp_path: Path) -> None:
    """Of all devices, too: a message's key makes as many streams as there are keys."""
    builder = Builder(1.0)
    builder.add(1.0, SECOND)
    bucket = builder.close()
    sent = [encode(Chunk("d", f"s[{at}]", "0" * 16, 1.0, [bucket], [None])) for at in range(50)]
    store, version = store_at(tmp_path / "table", job.definition_of(20 * SECOND, 20 * SECOND, ("mean",), shards=2))
    take_in(store, version, table_of(sent))
    shown = CliRunner().invoke(cloud, ["quality", str(store.root)]).output.splitlines()
    assert len(shown) == 1 + 2 * (40 + 1)
    assert shown[41].startswith("… and 10 more streams of all devices")
    assert shown[-1].startswith("… and 10 more streams of devices")
