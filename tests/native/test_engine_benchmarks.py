"""The engines' benchmarks run: every command gives whole rows, well-formed JSON, a picture, and a place on the page."""

from __future__ import annotations

import json
import math
import re
import sys
from array import array
from pathlib import Path
from typing import Any

import pytest

import sluicegate as sg

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))
from bench.engines import __main__ as command_line  # noqa: E402  (found by the line above)
from bench.engines import page  # noqa: E402
from bench.engines.compiled import probe  # noqa: E402
from bench.engines.tables import Column, Table  # noqa: E402

ENGINES = "recalc,amta"
PICTURES = {"latency", "throughput", "sizes", "bulk", "dimensions"}


def run(command: str, folder: Path) -> list[dict[str, Any]]:
    """What one command measures with the least effort, as its JSON says."""
    out = folder / "out.json"
    command_line.main([command, "--tiny", "--engines", ENGINES, "--json", str(out), "--pictures", str(folder)])
    measured: list[dict[str, Any]] = json.loads(out.read_text(encoding="utf-8"))
    return measured


@pytest.mark.parametrize("command", command_line.COMMANDS)
def test_a_command_gives_rows_with_figures_and_says_where_they_are_from(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each number finite and not negative; each table with its machine, date and command, and printed."""
    measured = run(command, tmp_path)
    printed = capsys.readouterr().out
    assert measured
    for table in measured:
        assert table["title"] in printed
        assert set(table["machine"]) == {"processor", "cores", "system", "python", "load"}
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", table["date"])
        assert table["command"] == f"python -m bench.engines {command} --tiny"
        figures = [cell for row in table["rows"] for cell in row.values() if isinstance(cell, int | float)]
        assert figures or table["name"] in ("daba-latency", "bulk-resident")
        assert all(math.isfinite(cell) for cell in figures)
    rows = [row for table in measured for row in table["rows"]]
    assert any("amta" in row or str(row.get("engine")).startswith("amta") for row in rows)
    drawn = {path.name for path in tmp_path.glob("*.svg")}
    assert bool(drawn) == (command in PICTURES)


def test_every_table_and_picture_has_its_place_on_the_page() -> None:
    """docs/benchmarks.md has a mark for each table that a command makes, and shows each picture."""
    text = (ROOT / "docs/benchmarks.md").read_text(encoding="utf-8")
    places = set(re.findall(r"<!-- (?!end)(\S+) -->", text))
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "bench/engines").glob("*.py"))
    named = set(re.findall(r'Table\("([a-z0-9-]+)"', sources))
    assert len(named) >= 10
    assert named <= places
    for picture in re.findall(r"\]\((pictures/\S+)\)", text):
        assert (ROOT / "docs" / picture).is_file(), picture


def test_the_page_takes_a_table_between_its_marks_and_nothing_else(tmp_path: Path) -> None:
    """Twice the same gives the same; a table without a place is named."""
    target = tmp_path / "page.md"
    target.write_text("before\n<!-- one -->\nold\n<!-- end -->\nafter\n", encoding="utf-8")
    table = Table("one", "One", [Column("a", "A"), Column("b", "B", ".1f")], [{"a": "x", "b": 1.25}, {"a": "y"}])
    for _ in range(2):
        assert page.update(target, [table, table._replace(name="two")], "make it") == ["two"]
        text = target.read_text(encoding="utf-8")
        assert text.startswith("before\n<!-- one -->\n| A | B |\n|---|---:|\n| x | 1.2 |\n| y | – |\n\n*`make it`, 20")
        assert text.endswith("\n<!-- end -->\nafter\n")


def test_an_unknown_command_or_engine_is_refused_with_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, the known names in the message."""
    for arguments, known in ((["latencies"], "break-even"), (["--engines", "amat"], "recalc")):
        with pytest.raises(SystemExit) as refused:
            command_line.main(arguments)
        assert refused.value.code == 2
        assert known in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["sum", "max", "std", "geometric_mean"])
def test_the_c_loop_and_the_probe_answer_as_the_window(kind: str) -> None:
    """Else their times would say nothing; in batches that do not fit the window's size."""
    values = array("d", [1.0 + (7 * i * i) % 101 for i in range(500)])
    for size in (1, 2, 7, 100):
        window = sg.Window(getattr(sg, kind)(), policy=sg.policies.count(size))
        loop, out = probe().CLoop(kind, size), array("d", bytes(8 * len(values)))
        results = array("d")
        for start in range(0, len(values), 133):
            part = values[start : start + 133]
            loop.feed(part, out)
            results.extend(out[: len(part)])
        assert list(results) == pytest.approx(list(window.insert_many(values)[kind]), rel=1e-6, abs=1e-6)
        probe().one_by_one(window._core, values, None)
        assert window.accepted == 2 * len(values)
        assert window.query()[kind] == pytest.approx(results[-1], rel=1e-6, abs=1e-6)
