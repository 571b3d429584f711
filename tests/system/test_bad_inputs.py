"""What a new user gets wrong: each a clear line, the right exit code, and no traceback."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest


def refused(done: Any, code: int, *said: str) -> None:
    """One clear message with this exit code and these words."""
    output = done.stdout + done.stderr
    assert done.returncode == code, output
    for words in said:
        assert words in output, output
    assert "Traceback" not in output
    assert "This is a bug" not in output


CSV = {
    "empty": (b"", 2, "is empty; expected a header line"),
    "binary": (b"\x7fELF\x02\x01\x01\x00" + bytes(100), 2, "is not a text file (byte 0 at offset 7)"),
    "latin-1": ("t,v\n1,1°\n".encode("latin-1"), 2, "line 2: is not UTF-8 text; save the file as UTF-8"),
    "other columns": (b"when,what\n1,2\n", 2, "there is no column 't'; the columns are 'when', 'what'"),
    "no rows": (b"t,v\n", 2, "there is no row below the header"),
    "not times": (b"t,v\nmonday,2\n", 2, "line 2: 'monday' is not a time (ISO 8601"),
    "not numbers": (b"t,v\n2020-01-01,high\n", 2, "line 2, v: 'high' is not a finite number"),
}


@pytest.mark.parametrize(("content", "code", "said"), CSV.values(), ids=CSV.keys())
def test_a_csv_that_does_not_fit(sluicegate: Any, tmp_path: Path, content: bytes, code: int, said: str) -> None:
    """The message names the file and what to do, and nothing is started or written."""
    path = tmp_path / "mine.csv"
    path.write_bytes(content)
    out = tmp_path / "out"
    done = sluicegate("demo", "--csv", path, "--time", "t", "--value", "v", "--out", out)
    refused(done, code, str(path), said)
    assert not out.exists()


def test_a_csv_that_is_not_there(sluicegate: Any, tmp_path: Path) -> None:
    """A wrong path is named."""
    done = sluicegate("demo", "--csv", tmp_path / "no.csv", "--time", "t", "--value", "v", "--out", tmp_path / "out")
    refused(done, 2, "no.csv: there is no such file")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--csv", "x.csv"], "--csv FILE needs --time COLUMN and --value COLUMN"),
        (["--time", "t"], "give --csv FILE too"),
        (["--csv", "x.csv", "--time", "t", "--value", "t"], "name different columns"),
        (["--edge-only", "--cloud-only"], "exclude each other"),
        (["--broker", "hivemq"], "'hivemq' is not one of"),
        (["--rows", "0"], "0 is not in the range"),
    ],
)
def test_options_that_do_not_go_together(sluicegate: Any, arguments: list[str], said: str) -> None:
    """Exit code 2 and what to give instead."""
    refused(sluicegate("demo", *arguments), 2, said)


def test_a_folder_that_is_not_the_demos_own_is_never_emptied(sluicegate: Any, tmp_path: Path) -> None:
    """`--out` on somebody's folder is refused, and everything in it stays."""
    (tmp_path / "thesis.txt").write_text("years of work")
    refused(
        sluicegate("demo", "--edge-only", "--rows", 5, "--out", tmp_path), 2, "is not empty and no earlier demo made it"
    )
    assert (tmp_path / "thesis.txt").read_text() == "years of work"
    refused(sluicegate("demo", "--edge-only", "--rows", 5, "--out", tmp_path / "thesis.txt"), 2, "is a file")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_write_permission(sluicegate: Any, tmp_path: Path) -> None:
    """The environment refused: exit code 4."""
    tmp_path.chmod(0o500)
    refused(sluicegate("demo", "--edge-only", "--rows", 5, "--out", tmp_path / "demo"), 4, "Permission denied")


def test_a_folder_that_cannot_be_made(sluicegate: Any) -> None:
    """A place where nobody may write, root included."""
    refused(sluicegate("demo", "--edge-only", "--rows", 5, "--out", "/proc/demo"), 4, "/proc/demo", "--out")


def test_cloud_half_without_an_edge_half(sluicegate: Any, tmp_path: Path) -> None:
    """Says which command comes first."""
    refused(sluicegate("demo", "--cloud-only", "--out", tmp_path), 2, "run `sluicegate demo --edge-only` first")


def test_mosquitto_asked_for_and_not_there(sluicegate: Any, tmp_path: Path) -> None:
    """Naming a broker that is not installed says how to go on without it."""
    done = sluicegate(
        "demo", "--edge-only", "--rows", 5, "--broker", "mosquitto", "--out", tmp_path / "demo", PATH="/nonexistent"
    )
    refused(done, 4, "mosquitto is not on PATH", "built-in")
