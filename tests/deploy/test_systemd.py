"""The unit is closed tightly, and its limits follow the configuration's memory."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SYSTEMD = Path(__file__).resolve().parents[2] / "deploy/systemd"
NEEDS_SYSTEMD = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")


@pytest.mark.parametrize(
    ("configuration", "memory"),
    [('[state]\nmemory = "48MiB"\n', 48 << 20), ("[state]\n", 60 << 20), ('[state]\nmemory = "1GiB"\n', 1 << 30)],
)
def test_limits_follow_the_configuration(configuration: str, memory: int, tmp_path: Path) -> None:
    """LimitDATA is `state.memory`, or its default; MemoryMax leaves room for the store's pages beside it."""
    written = generated(configuration, tmp_path)
    assert f"LimitDATA={memory}\n" in written
    assert int(re.search(r"MemoryMax=(\d+)", written)[1]) > memory  # type: ignore[index]


@pytest.mark.parametrize("configuration", ["[state]\nmemory = 'much'\n", "not toml [", '[state]\nmemory = "-1MiB"\n'])
def test_a_configuration_that_cannot_be_read_sets_no_limit(configuration: str, tmp_path: Path) -> None:
    """The boot goes on, and the agent itself says what is wrong."""
    assert generated(configuration, tmp_path) == ""


def generated(configuration: str, folder: Path) -> str:
    """What the generator writes for a configuration; an empty text for nothing."""
    (folder / "agent.toml").write_text(configuration)
    script = (
        (SYSTEMD / "sluicegate-limits").read_text().replace("/etc/sluicegate/agent.toml", str(folder / "agent.toml"))
    )
    ran = subprocess.run([sys.executable, "-", folder], input=script, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    written = folder / "sluicegate.service.d/50-limits.conf"
    return written.read_text() if written.exists() else ""


def unit(folder: Path) -> Path:
    """The unit with a program that is on this machine."""
    text = (SYSTEMD / "sluicegate.service").read_text()
    path = folder / "sluicegate.service"
    path.write_text(re.sub(r"^ExecStart=\S+", f"ExecStart={shutil.which('true')}", text, flags=re.MULTILINE))
    return path


@NEEDS_SYSTEMD
def test_the_sandbox_is_tight(tmp_path: Path) -> None:
    """systemd rates the exposure at 1.5 of 10 or less."""
    command = ["systemd-analyze", "security", "--offline=yes", "--no-pager", str(unit(tmp_path))]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    exposure = re.search(r"Overall exposure level for sluicegate.service: ([\d.]+)", said)
    assert exposure, said
    assert float(exposure[1]) <= 1.5


@NEEDS_SYSTEMD
def test_systemd_understands_every_line(tmp_path: Path) -> None:
    """`systemd-analyze verify` names nothing of the unit itself; what this machine's own units lack is not ours."""
    command = ["systemd-analyze", "verify", "--man=no", str(unit(tmp_path))]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    assert not [line for line in said.splitlines() if "sluicegate.service:" in line]
