"""The report promises one bounded page that loads nothing, hides no band and cannot be broken by a name. No Spark."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from sluicegate_cloud.errors import SinkError
from sluicegate_cloud.names import AGGREGATES, ALL
from sluicegate_cloud.report import series as series_of
from sluicegate_cloud.report import write_report
from sluicegate_cloud.report.series import BUDGET, LEAST_POINTS, MAX_SERIES, all_series

HOUR = 3_600_000_000


def window_table(
    device: str | None, rows: int, stream: str = "temp", aggregates: Sequence[str] = AGGREGATES
) -> pa.Table:
    """Windows of one series with one wide band in their middle and an empty window at the end."""
    start = np.arange(rows, dtype=np.int64) * HOUR
    value = 20 + np.sin(np.arange(rows) / 50)
    columns: dict[str, Any] = {"stream": [stream] * rows, "device": pa.array([device] * rows, pa.string())}
    columns |= {"window_start": start, "window_end": start + 24 * HOUR}
    for name in aggregates:
        low, high = value - 0.5, value + 0.5
        low[rows // 2], high[rows // 2] = -7.0, 99.0
        for array in (low, high):
            array[-1] = np.nan
        columns |= {name: np.where(np.isnan(low), np.nan, value), f"{name}_low": low, f"{name}_high": high}
        columns[f"{name}_exact"] = np.arange(rows) % 4 == 0
    columns["count_high"] = np.r_[np.full(rows - 1, 24), 0]
    columns |= {"completeness": np.full(rows, 0.75), "resolution_us": np.full(rows, 6e8), "buckets": np.full(rows, 9)}
    columns["windows"] = np.ones(rows, np.int64)
    return pa.table({name: pa.array(of, from_pandas=True) for name, of in columns.items()})


def merged_folder(
    folder: Path, tables: list[pa.Table], device: str = "board", aggregates: Sequence[str] = AGGREGATES
) -> Path:
    """A folder as `cloud merge` leaves it."""
    for number, table in enumerate(tables):
        place = folder / "windows" / f"stream={table['stream'][0]}"
        place.mkdir(parents=True, exist_ok=True)
        pq.write_table(table.drop(["stream"]), place / f"{number}.parquet")
    counts = dict.fromkeys(("files", "bytes", "used", "used_bytes", "copy", "refused", "conflict", "overlap"), 1)
    stream = {"device": device, "readings": 10, "missing": 5, "completeness": 2 / 3}
    summary = {"window_us": 24 * HOUR, "slide_us": HOUR, "documents": counts, "devices": [stream], "streams": [stream]}
    summary |= {"windows": {"rows": 10, "with_readings": 9, "in_spans": 0, "exact": dict.fromkeys(aggregates, 0.5)}}
    summary["problems"] = [{"fate": "refused", "path": "/a/<i>.json", "id": None, "reason": "</script><b>"}]
    summary |= {"alarms": [], "alarms_in_all": 0}
    (folder / "summary.json").write_text(json.dumps(summary))
    return folder


def test_a_thinned_series_loses_no_band() -> None:
    """Of 9,000 windows one has a wide band: it is still the widest of the few hundred points."""
    series, in_all = all_series(window_table("board", 9_000))
    assert in_all == 1
    mean = series[0]["mean"]
    assert len(mean["low"]) <= 400
    assert min(x for x in mean["low"] if x is not None) == -7
    assert max(x for x in mean["high"] if x is not None) == 99
    assert series[0]["thinned"]


def test_a_series_is_drawn_a_batch_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """In whatever order its windows lie in a table's files, and though a clock was years off for one of them."""
    monkeypatch.setattr(series_of, "HELD", 512)
    table = window_table("board", 30_000)
    far = pa.array(np.r_[table["window_start"].to_numpy()[:-1], 1 << 60])
    table = table.set_column(table.column_names.index("window_start"), "window_start", far)
    rows = table.take(pa.array(np.random.default_rng(1).permutation(30_000))).to_batches(997)
    drawn, ordered = (all_series(ds.dataset(some))[0][0] for some in (rows, table.to_batches()))
    for one in (drawn, ordered):
        assert 200 <= len(one["t"]) <= 400
        assert (min(one["mean"]["low"][:-1]), max(one["mean"]["high"][:-1])) == (-7, 99)
        assert one["facts"]["windows"] == 29_999
        assert one["facts"]["half_width"]["mean"] == pytest.approx(0.5)
    assert drawn["facts"]["exact"] == ordered["facts"]["exact"]


def test_a_span_counts_as_often_as_the_windows_it_stands_for() -> None:
    """One row for 100 windows of which nothing is certain: they count as 100 that are not exact."""
    table = window_table("board", 5)
    windows = pa.array([1, 100, 1, 1, 1])
    table = table.set_column(table.column_names.index("windows"), "windows", windows)
    facts = all_series(table)[0][0]["facts"]
    assert facts["windows"] == 103
    assert facts["exact"]["mean"] == pytest.approx(1 / 103)


def test_short_series_are_drawn_window_by_window() -> None:
    """Nothing is thinned that fits; an empty window is a gap, not a zero."""
    series = all_series(window_table(None, 30))[0][0]
    assert series["t"] == [hour * 3_600_000 for hour in range(30)]
    assert series["mean"]["from"][-1] is None
    assert series["facts"]["exact"]["mean"] == pytest.approx(8 / 29)
    assert series["facts"]["half_width"]["mean"] == pytest.approx(0.5)


def test_the_page_is_bounded_however_many_series_there_are() -> None:
    """The fleet comes first, then devices up to the limit; the number left out is told."""
    many = pa.concat_tables([window_table(None if i == 7 else f"board-{i:04d}", 90) for i in range(MAX_SERIES + 60)])
    series, in_all = all_series(many)
    assert (len(series), in_all) == (MAX_SERIES, MAX_SERIES + 60)
    assert series[0]["device"] is None
    assert sum(len(one["t"]) for one in series) <= max(BUDGET, MAX_SERIES * LEAST_POINTS)


def test_the_page_has_the_aggregates_that_were_asked_for() -> None:
    """Each has its band; more aggregates share the page's budget of points."""
    many = pa.concat_tables([window_table(f"board-{i}", 600, aggregates=ALL) for i in range(40)])
    series, _ = all_series(many)
    assert set(ALL) < set(series[0])
    assert len(series[0]["std"]["low"]) == BUDGET * 5 // 11 // 40
    few = all_series(window_table("board", 50, aggregates=("count", "std")))[0][0]
    assert "mean" not in few
    assert few["facts"]["half_width"]["std"] == pytest.approx(0.5)


def test_the_page_loads_nothing_and_no_name_breaks_it(tmp_path: Path) -> None:
    """No address anywhere; a device called like a script's end stays text."""
    hostile = "</script><script>alert(1)</script>"
    write_report(merged_folder(tmp_path / "m", [window_table(hostile, 50)], hostile), tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert re.findall(r"(?:src|href)=|@import|url\(", page) == []
    assert set(re.findall(r"https?://[^\"' )]+", page)) <= {"http://www.w3.org/2000/svg"}
    assert page.count("</script>") == 2
    assert hostile not in page


@pytest.mark.skipif(shutil.which("node") is None, reason="needs a JavaScript engine to run the page's script")
def test_an_alarm_is_the_first_thing_on_the_page(tmp_path: Path) -> None:
    """Device, stream, what, keys, how many readings and which documents, as text; without one the card stays hidden."""
    folder = merged_folder(tmp_path / "m", [window_table("a", 50)])
    write_report(folder, tmp_path / "quiet.html")
    alarm = {"kind": "two_keys", "device": "<b>a", "stream": "temp", "incarnations": ["0" * 16], "keys": ["a" * 32]}
    alarm |= {"ids": ["a::temp::0::0"], "readings": 1_536, "text": "2 boards speak as one device"}
    summary = json.loads((folder / "summary.json").read_text()) | {"alarms": [alarm], "alarms_in_all": 1}
    (folder / "summary.json").write_text(json.dumps(summary))
    write_report(folder, tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert page.index('id="alarms-card"') < page.index('id="tiles"')
    assert drawn(page)["alarms"][1:] == ["<b>a", "temp", alarm["text"], "a" * 32, "1,536", "a::temp::0::0"]
    assert drawn(page)["hidden"] is False
    assert drawn((tmp_path / "quiet.html").read_text()) == {"alarms": [], "hidden": True}


#: As much of a browser as `drawAlarms` needs: elements that keep their texts.
_BROWSER = """
const page = require("fs").readFileSync(0, "utf8");
const [, data] = page.match(/<script[^>]*type="application\\/json"[^>]*>([^]*?)<\\/script>/);
const [, script] = page.match(/(function drawAlarms[^]*?\\n})\\n/);
const made = {"alarms": [], "alarms-note": {}, "alarms-card": {hidden: true}};
const $ = (id) => id === "alarms" ? {replaceChildren: (...parts) => { made.alarms = parts.flat(9); }} : made[id];
const summary = JSON.parse(data).summary, whole = new Intl.NumberFormat("en");
const element = (tag, given, ...inside) => inside, row = (cells, tag) => tag === "th" ? ["head"] : cells;
eval(script + "; drawAlarms();");
console.log(JSON.stringify({alarms: made.alarms, hidden: made["alarms-card"].hidden}));
"""


def drawn(page: str) -> dict[str, Any]:
    """The texts of the alarms' table, and whether it is hidden."""
    ran = subprocess.run(["node", "-e", _BROWSER], input=page, capture_output=True, text=True, check=True, timeout=60)
    return dict(json.loads(ran.stdout))


def test_bytes_come_from_a_demos_summary(tmp_path: Path) -> None:
    """With --summary the page knows what MQTT carried; without it, it does not make a number up."""
    folder = merged_folder(tmp_path / "m", [window_table("a", 50)])
    (tmp_path / "s.json").write_text('{"bytes": {"mqtt_payload": 1000, "synced": 90}}')
    write_report(folder, tmp_path / "with.html", tmp_path / "s.json")
    write_report(folder, tmp_path / "without.html")
    assert '"mqtt_payload":1000' in (tmp_path / "with.html").read_text()
    assert '"mqtt_payload":' not in (tmp_path / "without.html").read_text()


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """The message names the file and the remedy."""
    folder = merged_folder(tmp_path / "m", [window_table("a", 50)])
    with pytest.raises(SinkError, match="choose another place"):
        write_report(folder, tmp_path / "no" / "r.html")


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs a browser to run the page's script")
def test_the_page_draws_its_charts_in_a_browser(tmp_path: Path) -> None:
    """A headless browser ends with three charts, a filled table and no error, at a phone's size as well."""
    hostile = "<b>&amp;</script>"
    write_report(
        merged_folder(tmp_path / "m", [window_table(hostile, 500), window_table(None, 500)]), tmp_path / "r.html"
    )
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    options += ["--disable-component-update", "--disable-sync", f"--user-data-dir={tmp_path / 'profile'}"]
    command = ["chromium", *options, "--dump-dom", (tmp_path / "r.html").as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True).stdout
    assert shown.count("<svg") == 4
    assert 'class="band"' in shown
    assert "1 device, 0 streams<" in shown
    assert shown.count('class="pick"') == 2 + 1 + 5, "two series, a device, its five widest intervals"
    assert "&lt;b&gt;&amp;amp;&lt;/script&gt;" in shown


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs a browser to run the page's script")
def test_the_page_draws_what_was_asked_for_instead_of_the_mean(tmp_path: Path) -> None:
    """A merge of counts and standard deviations has a page of these: nothing in the script needs a mean."""
    asked = ("count", "std")
    tables = [window_table("a", 60, aggregates=asked)]
    write_report(merged_folder(tmp_path / "m", tables, aggregates=asked), tmp_path / "r.html")
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    command = ["chromium", *options, "--dump-dom", (tmp_path / "r.html").as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True).stdout
    assert shown.count("<svg") == 4
    assert "std. deviation" in shown
    assert "Exact: count" in shown
