"""The engines' benchmarks run: every command gives whole rows, well-formed JSON and pictures; some tables a page."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
import threading
from array import array
from pathlib import Path
from typing import Any

import pytest
from thorough import some

import sluicegate as sg

pytest.importorskip("numpy", reason="the benchmarks make their readings with numpy, of the extra cloud")

ROOT = Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT))
from bench import measurements  # noqa: E402
from bench.engines import __main__ as command_line  # noqa: E402  (found by the line above)
from bench.engines import kvs, real  # noqa: E402
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


@pytest.mark.parametrize("command", some(list(command_line.COMMANDS), 5))
def test_a_command_gives_rows_with_figures_and_says_where_they_are_from(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each number finite and not negative; each table with its machine, date and command, and printed."""
    if command == "real" and not real.DATA.is_dir():
        pytest.skip("real readings are not beside this checkout")
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


def test_without_real_readings_their_command_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And makes no table, so that what the page has stays."""
    monkeypatch.setattr(real, "DATA", tmp_path / "shared" / "data")
    assert run("real", tmp_path) == []
    assert "no readings beside this checkout (shared/data)" in capsys.readouterr().err


def test_the_pages_say_what_the_results_say() -> None:
    """Every table of them, and each at its place: `python -m bench.measurements` after new results."""
    texts = [page.read_text(encoding="utf-8") for page in measurements.PAGES]
    marks = [name for text in texts for name in re.findall(r"<!-- (?!end)(\S+) -->", text)]
    assert sorted(marks) == sorted(measurements.SHOWN)
    assert [measurements.filled(text) for text in texts] == texts


def test_tools_are_put_together_by_name_and_what_is_not_known_is_a_dash() -> None:
    """A tool that was not run in one place, and one of which only totals were compared."""
    runs = {
        "cost": [{"what": "a", "us": 1.5}, {"what": "b", "us": 2.0}],
        "killed": [{"what": "a", "lost": "3", "twice": "0", "by": "total"}],
    }
    rows = [*measurements._rows(runs, ["cost", "killed"])]
    assert rows == [
        {"what": "a", "cost.us": 1.5, "killed.lost": "3", "cost.what": "a", "killed.what": "a", "killed.by": "total"},
        {"what": "b", "cost.us": 2.0, "cost.what": "b"},
    ]


def test_results_are_kept_by_the_names_of_their_tables(tmp_path: Path) -> None:
    """A table measured again takes the place of the one before; others stay."""
    file = tmp_path / "some.json"
    table = Table("one", "One", [Column("a", "A"), Column("b", "B", ".1f")], [{"a": "x", "b": 1.25}, {"a": "y"}])
    measurements.keep(file, [table._replace(name="two"), table], "before")
    measurements.keep(file, [table], "make it")
    two, one = json.loads(file.read_text(encoding="utf-8"))
    assert (two["name"], one["name"]) == ("two", "one")
    assert one["rows"] == [{"A": "x", "B": "1.2"}, {"A": "y", "B": "–"}]
    assert two["measured"].startswith("`before`, 20")
    assert one["measured"].startswith("`make it`, 20")


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


@pytest.mark.parametrize("engine", ["soe", "two_stacks_lite", "daba_lite", "amta"])
@pytest.mark.parametrize("kind", ["sum", "std", "geometric_mean"])
def test_an_engine_alone_is_fed_what_its_window_would_feed_it(engine: str, kind: str) -> None:
    """The same leaves come, and as many leave: the engine's total is that of a window that took the readings itself."""
    values = array("d", [1.0 + (7 * i * i) % 101 for i in range(500)])
    for size in (2, 7, 100):
        alone, taking = (sg.Window(getattr(sg, kind)(), policy=sg.policies.count(size), engine=engine) for _ in "ab")
        for window in (alone, taking):
            window.insert_many(values)
        for count in (3, 500, 64):
            assert probe().by_engine_alone(alone._core, values[:count]) >= 0.0
            probe().one_by_one(taking._core, values[:count], None)
            assert alone._core.total() == taking._core.total()
            assert (alone._core.head, alone._core.tail) == (taking._core.head, taking._core.tail)


def folders() -> set[Path]:
    """What the processes of `kvs` keep their windows in."""
    return {path for path in (ROOT / "build").glob("tmp*") if path.is_dir()}


def started(process: subprocess.Popen[str]) -> int:
    """The process that measures for it, once its window is there."""
    before, waiting = folders(), threading.Event()
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    for _ in range(2_000):
        found = [int(each) for each in children.read_text().split()]
        if found and any(any(folder.iterdir()) for folder in folders() - before):
            return found[0]
        waiting.wait(0.02)
    raise AssertionError("no process that measures has begun")


def has_ended(pid: int) -> bool:
    """Within a minute at most; a zombie that nobody waits for has ended too."""
    waiting = threading.Event()
    for _ in range(3_000):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        waiting.wait(0.02)
    return False


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="no /proc here")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_benchmark_that_is_stopped_leaves_no_process_and_no_file(number: signal.Signals) -> None:
    """However it is stopped: the process that measures for it ends too, and removes its window."""
    (ROOT / "build").mkdir(exist_ok=True)
    before = folders()
    measure = "from bench.engines import kvs; kvs.measured(kvs.Cell('updates', 'log_mta', 1 << 16, 1 << 25))"
    with subprocess.Popen([sys.executable, "-c", measure], cwd=ROOT, text=True, stderr=subprocess.DEVNULL) as process:
        child = started(process)
        process.send_signal(number)
        process.wait()
    assert has_ended(child)
    assert folders() <= before


def test_what_ends_a_process_ends_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its failure is told, and the signal's handler is the one of before."""
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(subprocess.CalledProcessError):
        kvs.measured(kvs.Cell("updates", "none", 16, 1 << 16))
    assert signal.getsignal(signal.SIGTERM) is before
    monkeypatch.setenv(kvs.STARTED_BY, str(os.getpid()))
    with pytest.raises(SystemExit):
        kvs.check_parent()
