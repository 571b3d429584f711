"""A table's own summary promises what `cloud merge --out` says over the same documents, and so does its report."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from random_worlds import MINUTE, Cut, random_fleet
from table_worlds import documents_of, store_at, table_of, take_in
from test_devices import document

from sluicegate_cloud import job as batch
from sluicegate_cloud.commands import cloud
from sluicegate_cloud.report.page import page_data
from sluicegate_cloud.report.told import of_folder
from sluicegate_cloud.table import job
from sluicegate_cloud.table.told import of_table

CUT = Cut(60 * MINUTE, 3, 0, 10_000)


def documents() -> list[bytes]:
    """Of four boards; two contents at one place, a second board under a name, and what is no document."""
    rng = random.Random(9)
    found = documents_of(random_fleet(rng, Cut(60 * MINUTE, 3, 0, 40), 4, 25, ordinary=True), "s", rng)
    other = [document("press", 0), document("press", 10, 5.0), document("two", 20, key="a" * 32)]
    return [*found, *other, document("two", 30, 9.0, key="b" * 32), b"not a document"]


@pytest.fixture
def table(tmp_path: Path) -> Any:
    """They lie in files, and came in two runs."""
    found = documents()
    (tmp_path / "chunks").mkdir()
    for number, data in enumerate(found):
        (tmp_path / "chunks" / f"{number}.json").write_bytes(data)
    definition = job.definition_of(3 * CUT.slide, CUT.slide, ("mean", "max"), shards=3, by=(("site",),))
    store, version = store_at(tmp_path / "table", definition)
    half = len(found) // 2
    version = take_in(store, version, table_of(found[:half]))
    return store, take_in(store, version, table_of(found[half:], half))


@pytest.mark.spark
def test_a_tables_summary_and_page_are_those_of_a_merge(spark: Any, table: Any, tmp_path: Path) -> None:
    """Documents, devices, streams, alarms, shares, and all that the page draws; names of files differ."""
    batch.merge([str(tmp_path / "chunks")], tmp_path / "out", 3 * CUT.slide, CUT.slide, ("mean", "max"))
    wanted, told = of_folder(tmp_path / "out").summary, of_table(*table).summary
    for name in ("window_us", "slide_us", "origin_us", "documents", "devices", "alarms", "alarms_in_all", "windows"):
        assert told[name] == wanted[name], name
    by_name = [sorted(of["streams"], key=lambda row: (row["device"], row["stream"])) for of in (told, wanted)]
    assert by_name[0] == by_name[1]
    assert [row["fate"] for row in told["problems"]] == [row["fate"] for row in wanted["problems"]]
    pages = [json.loads(json.dumps(page_data(of))) for of in (of_table(*table), tmp_path / "out")]
    assert pages[0]["fleet"] == pages[1]["fleet"]
    assert [(one["stream"], one["device"], one["t"], one["count"]) for one in pages[0]["series"]] == [
        (one["stream"], one["device"], one["t"], one["count"]) for one in pages[1]["series"]
    ]


def test_the_report_of_a_table_is_a_command(table: Any, tmp_path: Path) -> None:
    """It needs a table that is there, and one of the two."""
    page, root = tmp_path / "report.html", str(table[0].root)
    done = CliRunner().invoke(cloud, ["report", "--table", root, "--out", str(page), "--device", "press"])
    assert done.exit_code == 0, done.output
    assert "press" in page.read_text()
    assert CliRunner().invoke(cloud, ["report", root, "--table", root, "--out", str(page)]).exit_code == 2
    assert "holds no table" in str(CliRunner().invoke(cloud, ["report", "--table", str(tmp_path / "no")]).exception)


def test_shards_are_said_once(table: Any, tmp_path: Path) -> None:
    """Another number for a table that is there is refused before Spark starts."""
    asked = ["merge", str(tmp_path / "chunks"), "--table", str(table[0].root), "--window", "3h", "--shards", "5"]
    done = CliRunner().invoke(cloud, asked)
    assert done.exit_code == 2
    assert "has 3 shards, and 5 are asked" in done.output
