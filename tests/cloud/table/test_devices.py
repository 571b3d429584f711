"""The table of devices promises what came last and what an agent said of itself; alerts name what to look into."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from cloud_streams import fold
from table_worlds import here, store_at, table_of, take_in

from sluicegate.format.bucket import Bucket
from sluicegate.format.chunk import Chunk, encode
from sluicegate_cloud.commands import cloud
from sluicegate_cloud.table import job, retention
from sluicegate_cloud.table.devices import alerts, alerts_table, devices, devices_table
from sluicegate_cloud.table.told import of_table

HOUR = 3_600_000_000
HEALTH = {"version": "0.1.0", "uptime_s": 77, "rss_bytes": 30 << 20, "counters": {"late": 3}, "outbox_rows": 2}


def document(device: str, first: int, value: float = 1.0, **more: Any) -> bytes:
    """Two buckets of ten readings, one a second."""
    rows = []
    for at in (first, first + 10):
        readings = [(1_000_000 * (at + i), value + 0.25 * ((at + i) % 7)) for i in range(10)]
        rows.append(Bucket(**fold(readings, 1.0, at)))
    return encode(Chunk(device, "temp", f"{1:016x}", 1.0, rows, [None, None], **more))


@pytest.fixture
def table(tmp_path: Path) -> Any:
    """A table of two boards: one tells its health, the other lost a document, and another board has its name."""
    definition = job.definition_of(HOUR, HOUR, ("mean",), shards=2)
    store, version = store_at(tmp_path / "table", definition)
    first = [
        document("press-1", 0, health=HEALTH | {"uptime_s": 5}, tags={"site": "north"}),
        document("press-2", 20, key="a" * 32),
        b"not a document",
    ]
    version = take_in(store, version, table_of(first))
    more = [document("press-1", 20, health=HEALTH, tags={"site": "north"}), document("press-2", 30, 9.0, key="b" * 32)]
    return store, take_in(store, version, table_of(more, since=10))


def test_a_devices_row_is_of_all_that_came(table: Any) -> None:
    """The newest health, whichever run brought it; readings known to be missing; how many boards."""
    one, two = sorted(devices(*table), key=lambda row: row["device"])
    assert (one["device"], one["readings"], one["missing"], one["documents"]) == ("press-1", 40, 0, 2)
    assert (one["uptime_s"], one["agent_version"], one["counters"]) == (77, "0.1.0", {"late": 3})
    assert (one["tags"], one["last_us"], one["completeness"]) == ({"site": "north"}, 39_000_000, 1.0)
    assert (two["boards"], two["missing"], two["uptime_s"], two["tags"]) == (2, 20, None, {})


def test_a_device_is_as_complete_as_its_streams_say(tmp_path: Path) -> None:
    """Also one of which every reading is in doubt."""
    readings = [(1_000_000 * at, 1.0) for at in range(4)]
    doubted = encode(
        Chunk("press-1", "temp", f"{1:016x}", 1.0, [Bucket(**fold(readings, 1.0, 0) | {"doubt": 4})], [None])
    )
    store, version = store_at(tmp_path / "table", job.definition_of(HOUR, HOUR, ("mean",), shards=1))
    version = take_in(store, version, table_of([doubted]))
    (stream,) = of_table(store, version).summary["streams"]
    (device,) = devices(store, version)
    assert (device["doubt"], device["completeness"]) == (stream["doubt"], stream["completeness"]) == (4, 1.0)


def test_they_are_tables_too(table: Any, tmp_path: Path) -> None:
    """With what a device tells in other types left out."""
    rows = {row["device"]: row for row in devices_table(*table).to_pylist()}
    assert (rows["press-1"]["uptime_s"], rows["press-1"]["counters"]) == (77, '{"late": 3}')
    assert (rows["press-1"]["tags"], rows["press-2"]["rss_bytes"]) == ([("site", "north")], None)
    assert alerts_table(*table).to_pylist() == [*alerts(*table, now_us=0)]
    odd = document("press-3", 0, health={"version": 7, "uptime_s": "x", "rss_bytes": 1e30, "counters": {}})
    store, version = store_at(tmp_path / "odd", job.definition_of(HOUR, HOUR, ("mean",), shards=1))
    (row,) = devices_table(store, take_in(store, version, table_of([odd]))).to_pylist()
    assert [row[name] for name in ("agent_version", "uptime_s", "rss_bytes", "counters")] == [None, None, None, "{}"]


def test_alerts_name_clones_rejected_documents_and_the_silent(table: Any) -> None:
    """Two keys in one incarnation, a file that is no document, and who has not sent for long; none else."""
    found = list(alerts(*table, now_us=49_500_000, silent_us=10_000_000))
    assert sorted((row["kind"], row["device"]) for row in found) == [
        ("rejected", None), ("silent", "press-1"), ("two_keys", "press-2"),
    ]  # fmt: skip
    assert not list(alerts(*table, now_us=49_500_000, silent_us=10_600_000))[2:]


def test_a_file_that_was_half_written_is_told_of_until_it_is_whole(tmp_path: Path) -> None:
    """Half of it says not whose it is, so that another shard has it than the one that has the whole file."""
    store, version = store_at(tmp_path / "table", job.definition_of(HOUR, HOUR, ("mean",)))
    whole = [document(f"press-{at}", 0) for at in range(8)]
    version = take_in(store, version, table_of([data[: at * 40] for at, data in enumerate(whole)]))
    assert [row["kind"] for row in alerts(store, version, 0)] == ["rejected"] * 8
    version = take_in(store, version, table_of([*whole[:7], whole[7][:90]]))
    (left,) = alerts(store, version, 0)
    assert left["text"].startswith("7.json")
    version = take_in(store, version, table_of(whole[7:], since=7))
    assert [*alerts(store, version, 0)] == []
    assert sum(row["readings"] for row in devices(store, version)) == 160


def test_a_board_whose_documents_all_come_too_late_is_known_by_its_health(tmp_path: Path) -> None:
    """Its clock is in 1970, say: nothing of it is used, and somebody must see what its agent tells."""
    store, version = store_at(tmp_path / "table", job.definition_of(HOUR, HOUR, ("mean",), shards=1))
    version = take_in(store, version, table_of([document("press-1", 20_000, health=HEALTH)]))
    version = retention.retain(here, store, version, 4 * HOUR, {}, now_us=0)
    late = [document("press-2", at, health=HEALTH | {"uptime_s": at}) for at in (20, 0)]
    version = take_in(store, version, table_of(late, since=1))
    version = take_in(store, version, table_of([document("press-1", 20_020)], since=3))
    one, two = devices(store, version)
    assert (one["device"], one["uptime_s"], one["readings"], one["last_us"]) == ("press-2", 20, 0, None)
    assert (two["device"], two["uptime_s"], two["readings"]) == ("press-1", 77, 40)
    assert [row["device"] for row in alerts(store, version, 0, 1)] == ["press-2"] * 3
    assert devices_table(store, version)["last_us"].to_pylist() == [None, 20_039_000_000]
    assert "press-2" in CliRunner().invoke(cloud, ["devices", str(store.root)]).output


def test_a_clock_that_is_years_ahead_hides_no_silence(table: Any) -> None:
    """Nobody can tell when such a device was last there: it is named."""
    found = alerts(*table, now_us=-100 * 24 * HOUR, silent_us=HOUR)
    press_1, press_2 = (row for row in found if row["kind"] not in ("rejected", "two_keys"))
    assert {press_1["kind"], press_2["kind"]} == {"ahead"}
    assert "100 days from now" in press_1["text"]


def test_the_commands_print_them(table: Any) -> None:
    """A line a device, JSON where asked; alerts end with exit code 1."""
    root = str(table[0].root)
    shown = CliRunner().invoke(cloud, ["devices", root])
    assert "site=north" in shown.output
    assert "0.1.0" in shown.output
    told = [json.loads(line) for line in CliRunner().invoke(cloud, ["devices", root, "--json"]).output.splitlines()]
    assert {row["device"] for row in told} == {"press-1", "press-2"}
    raised = CliRunner().invoke(cloud, ["alerts", root, "--silent", "1h"])
    assert raised.exit_code == 1
    assert len(raised.output.splitlines()) == 4


def test_health_with_a_number_that_json_has_not_is_not_kept(tmp_path: Path) -> None:
    """1e999 is JSON as it comes and Infinity when it is told; the document is used."""
    sent = document("press-1", 0, health=HEALTH).replace(b'"late":3', b'"late":1e999')
    store, version = store_at(tmp_path, job.definition_of(HOUR, HOUR, ("mean",), shards=1))
    take_in(store, version, table_of([sent]))
    (line,) = CliRunner().invoke(cloud, ["devices", str(store.root), "--json"]).output.splitlines()
    told = json.loads(line, parse_constant=pytest.fail)
    assert (told["readings"], told["counters"]) == (20, None)
