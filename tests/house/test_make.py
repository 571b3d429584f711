"""`make test` runs every folder of tests, and fails whichever part of it fails; nothing is installed or tested here."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = sorted({path.parent.name for path in (ROOT / "tests").glob("*/test_*.py")})
#: Of a folder of many tests some folders run beside the rest of it: one run of the agent's and of the native ones, two
#: of the cloud's.
RUNS_BESIDE = 4
#: Stands in for Python, ruff and mypy: says what it was asked, and fails where that has the word in FAILS.
TOOL = '#!/bin/sh\necho "asked: ${0##*/} $*"\n[ -z "$FAILS" ] || case "$*" in *"$FAILS"*) exit 3 ;; esac\n'


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """An environment in which everything seems to be installed."""
    if shutil.which("make") is None:
        pytest.skip("make is not on PATH")
    (tmp_path / "bin").mkdir()
    for tool in ("python", "ruff", "mypy"):
        (tmp_path / "bin" / tool).write_text(TOOL)
        (tmp_path / "bin" / tool).chmod(0o755)
    for part in ("edge", "native", "cloud", "dev"):
        (tmp_path / f"{part}.stamp").touch()
    return tmp_path


def make_test(environment: Path, *arguments: str, fails: str = "") -> tuple[int, list[str]]:
    """Its exit code, and what the tools were asked."""
    env = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "PYTEST")}
    made = subprocess.run(
        ["make", "test", f"VENV={environment}", *arguments], cwd=ROOT, env={**env, "FAILS": fails},
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    return made.returncode, [line.removeprefix("asked: ") for line in made.stdout.splitlines() if "asked: " in line]


def test_every_folder_and_lint_run_and_all_passed_is_zero(environment: Path) -> None:
    """A folder that is new runs without being named anywhere; what one run leaves out is another one's."""
    code, asked = make_test(environment)
    assert code == 0
    words = [line.split()[3:] for line in asked if "pytest" in line]
    named = [word for run in words for word in run if not word.startswith("--")]
    left_out = {word.removeprefix("--ignore=") for run in words for word in run if word.startswith("--ignore=")}
    assert sorted(named) == sorted([*(f"tests/{folder}" for folder in FOLDERS), *left_out])
    assert all((ROOT / folder).is_dir() for folder in left_out)
    assert {"ruff check .", "ruff format --check .", "mypy "} <= set(asked)
    assert any("stubtest" in line for line in asked)


@pytest.mark.parametrize(
    "fails", ["tests/native", "tests/agent/state", "tests/cloud/table", f"tests/{FOLDERS[-1]}", "format", "stubtest"]
)
def test_one_failure_is_the_wholes_and_every_folder_runs_all_the_same(environment: Path, fails: str) -> None:
    """What failed is in the exit code wherever it was, first or last."""
    code, asked = make_test(environment, fails=fails)
    assert code != 0
    assert sum("pytest" in line for line in asked) == len(FOLDERS) + RUNS_BESIDE


def test_some_tests_are_one_run_after_lint(environment: Path) -> None:
    """PYTEST goes to pytest as it is; a failure of it or of lint is the whole's."""
    code, asked = make_test(environment, "PYTEST=-k name")
    assert code == 0
    assert asked[-1] == "python -m pytest -k name"
    assert sum("pytest" in line for line in asked) == 1
    assert [make_test(environment, "PYTEST=-k name", fails=word)[0] != 0 for word in ("name", "format")] == [True, True]


def test_what_does_less_in_make_test_does_all_in_make_whole(environment: Path) -> None:
    """Each test that asks whether the run is whole is named there, itself or its folder."""
    told = subprocess.run(
        ["make", "-n", "whole", f"VENV={environment}"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert "SLUICEGATE_TESTS=whole" in told
    asks = ("from thorough", "import thorough")
    tests = (ROOT / "tests").rglob("test_*.py")
    asking = [path for path in tests if any(line.startswith(asks) for line in path.read_text("utf-8").splitlines())]
    run = [ROOT / word for word in told.split() if word.startswith("tests/")]
    assert len(asking) > 20
    assert [path for path in asking if not any(path.is_relative_to(one) for one in run)] == []


def test_every_script_that_make_runs_may_be_run() -> None:
    """Those that the Makefile and the scripts call by their path; qemu's was not for some days, and nobody saw it."""
    texts = [(ROOT / "Makefile").read_text("utf-8"), *(path.read_text("utf-8") for path in ROOT.glob("deploy/*/*.sh"))]
    called = {name for text in texts for name in re.findall(r"(?<!sh )(?<![\w/])deploy/[\w/]+\.sh\b", text)}
    assert len(called) > 8
    assert sorted(name for name in called if not os.access(ROOT / name, os.X_OK)) == []
