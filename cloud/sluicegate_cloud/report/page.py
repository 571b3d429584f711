"""Put numbers, style and script into one HTML page, every name escaped, and write it by rename."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

from sluicegate_cloud.errors import SinkError, SourceError
from sluicegate_cloud.report.fleet import summarised
from sluicegate_cloud.report.series import all_series
from sluicegate_cloud.report.told import Told, of_folder, read_json


def write_report(merged: Path | Told, out: Path, demo_summary: Path | None = None, devices: Sequence[str] = ()) -> int:
    """Write the report on the folder `merged`, or on a table (`table.told.of_table`), to `out`; its size in bytes.

    `devices`: those to draw even where the page cannot draw all. `demo_summary`: a JSON file whose
    "bytes" say what MQTT carried and what was synced. Raises SourceError or SinkError when `merged` or the summary is
    not what it should be, SinkError when `out` cannot be written.
    """
    text = render(page_data(merged, demo_summary, devices)).encode()
    new = out.with_name(f".{out.name}-new")
    try:
        new.write_bytes(text)
        new.replace(out)
    except OSError as error:
        raise SinkError(f"cannot write {str(out)!r}: {error.strerror}; choose another place with --out") from error
    return len(text)


def page_data(merged: Path | Told, demo_summary: Path | None = None, devices: Sequence[str] = ()) -> dict[str, Any]:
    """All that the page shows, as JSON."""
    place, summary, windows = merged if isinstance(merged, Told) else of_folder(merged)
    unknown = {*devices} - {one["device"] for one in summary["devices"]}
    if unknown:
        raise SourceError(f"{place!r} has no device {', '.join(map(repr, sorted(unknown)))}")
    fleet = summarised(windows, summary, devices)
    drawn = fleet.pop("draw")
    chosen = None if drawn is None else ds.field("device").isin(drawn) | ds.field("device").is_null()
    series, _ = all_series(windows, chosen)
    sent = read_json(demo_summary, "give a demo's summary.json").get("bytes", {}) if demo_summary else {}
    told = {name: value for name, value in summary.items() if name not in ("devices", "streams")}
    return {"summary": told, "fleet": fleet, "series": series, "bytes": sent}


def render(data: dict[str, Any]) -> str:
    """The page of `data`."""
    here = files("sluicegate_cloud.report")
    page = (here / "page.html").read_text(encoding="utf-8")
    for mark, text in (("style", "style.css"), ("charts", "charts.js"), ("fleet", "fleet.js"), ("script", "page.js")):
        page = page.replace(f"/*{mark}*/", (here / text).read_text(encoding="utf-8"))
    # `<` never stands in the JSON, so no name of a device can end the script element
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return page.replace('"data"', text)
