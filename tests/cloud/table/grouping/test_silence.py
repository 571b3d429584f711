"""Windows of all devices promise to say how many are silent in them, whatever came when, and in tables of before."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from random_worlds import MINUTE
from table_worlds import anew, differences, here, store_at, table_of, take_in, windows

from sluicegate.format.bucket import Builder
from sluicegate.format.chunk import Chunk, encode
from sluicegate_cloud.errors import SourceError
from sluicegate_cloud.names import SILENT
from sluicegate_cloud.table import run
from sluicegate_cloud.table.grouping import registry
from sluicegate_cloud.table.versions import DAY_US, Definition, Store, Version

ALWAYS, AWAY = range(0, 90, 3), (2, 5)
DEFINITION = Definition(MINUTE, MINUTE, 0, ("count", "min", "max"), 3, DAY_US, by=(("site",),), max_empty=5)


def documents(device: str, minutes: range | tuple[int, ...], stream: str = "s") -> Iterator[bytes]:
    """One of a reading a minute named."""
    builder = Builder(20.0)
    for at in minutes:
        builder.add(20.0, at * MINUTE)
        bucket = builder.close()
        yield encode(Chunk(device, stream, "0" * 16, 20.0, [bucket], [None], tags={"site": "north"}))


def said(store: Store, version: Version, rollup: str) -> dict[int, int | None]:
    """By minute, what the windows of stream s and this roll-up say."""
    rows = windows(store, version).items()
    return {key[-2] // MINUTE: row[SILENT] for key, row in rows if key[1] == "s" and key[2] == rollup}


def test_a_device_that_comes_back_was_not_silent(tmp_path: Path) -> None:
    """After 40 minutes that are in no window of its own, where nothing else of the others' windows changes."""
    store, version = store_at(tmp_path, DEFINITION)
    come = [*documents("away", (*AWAY, 45))]
    version = take_in(store, version, table_of([*documents("always", ALWAYS), *come[:2]]))
    for rollup in ("", "site"):
        told = said(store, version, rollup)
        assert all(silent == (minute > 5) for minute, silent in told.items())
    version = take_in(store, version, table_of(come[2:], since=100))
    for rollup in ("", "site"):
        told = said(store, version, rollup)
        assert all(silent == (minute > 45) for minute, silent in told.items())
        assert {*told} >= {*ALWAYS}
    assert differences(windows(store, version), windows(store, anew(store, version))) == []


def test_another_key_of_a_device_is_heard_of(tmp_path: Path) -> None:
    """Of one key its windows say that the device is silent, of all its keys they do not."""
    store, version = store_at(tmp_path, replace(DEFINITION, by=(("/",),)))
    sent = [*documents("d", AWAY, "t/a"), *documents("d", ALWAYS, "t/b"), *documents("e", ALWAYS, "t/a")]
    version = take_in(store, version, table_of(sent))
    rows = windows(store, version).items()
    of_key = {key[-2] // MINUTE: row[SILENT] for key, row in rows if key[:3] == (None, "t/a", "")}
    of_all = {key[-2] // MINUTE: row[SILENT] for key, row in rows if key[:3] == (None, "t", "/")}
    assert all(silent == (minute > 5) for minute, silent in of_key.items())
    assert of_all
    assert not any(of_all.values())


def test_a_device_that_is_retired_is_silent_no_more(tmp_path: Path) -> None:
    """From the time on that the registry says; before it, and where the registry no longer says so, it is."""
    store, version = store_at(tmp_path / "table", DEFINITION)
    version = take_in(store, version, table_of([*documents("always", ALWAYS), *documents("away", AWAY)]))
    for when, until in (("1970-01-01T00:20", 20), ("1970-01-01T01:00:30+00:30", 31), ("1970-01-01", 0), ("", 99)):
        (tmp_path / "devices.csv").write_text(f"device,retired\naway,{when}\n")
        version = run.registered(here, store, version, registry.read(tmp_path / "devices.csv"))
        for rollup in ("", "site"):
            told = said(store, version, rollup)
            assert all(silent == (5 < minute < until) for minute, silent in told.items()), when
        assert differences(windows(store, version), windows(store, anew(store, version))) == []
    (tmp_path / "devices.csv").write_text("device,retired\naway,yes\n")
    with pytest.raises(SourceError, match="line 2: retired is 'yes': expected a day or a time"):
        registry.read(tmp_path / "devices.csv")


def test_windows_of_an_older_table_say_it_from_the_next_run_on(tmp_path: Path) -> None:
    """Until then they say nothing; what a device's own windows say is as it was."""
    store, version = store_at(tmp_path, DEFINITION)
    version = take_in(store, version, table_of([*documents("always", ALWAYS), *documents("away", AWAY)]))
    wanted = said(store, version, "")
    older = replace(version, heard=None, number=2, fleet={cell: _less(store, of) for cell, of in version.fleet.items()})
    older = store.commit(replace(older, spans=older.spans and _less(store, older.spans)))
    assert json.loads((tmp_path / "versions" / "00000002.json").read_text())["format"] == 2
    older = store.load()
    assert older is not None
    assert {*said(store, older, "").values()} == {None}
    now = take_in(store, older, table_of([*documents("late", (1,))], since=100))
    assert said(store, now, "") == {
        minute: silent + (minute > 1) for minute, silent in wanted.items() if silent is not None
    }
    of_devices = [{key: row for key, row in windows(store, of).items() if key[0]} for of in (older, now)]
    assert of_devices[0].items() <= of_devices[1].items()


def _less(store: Store, name: str) -> str:
    """A file of windows without the column."""
    table: pa.Table = store.read(name)
    return store.write("fleet", table.drop_columns([SILENT]))
