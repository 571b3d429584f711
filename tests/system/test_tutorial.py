"""The commands of the tutorial, of the README and of a how-to, as they are written."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sluicegate_demo.ports import free_port

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/tutorial/index.md"


def blocks(language: str, page: Path = PAGE) -> list[str]:
    """The page's blocks of a language, without their titles."""
    return re.findall(rf"^```{language}\b.*?\n(.*?)^```$", page.read_text("utf-8"), re.S | re.M)


def typed(commands: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """What a shell in `folder` says to them."""
    return subprocess.run(
        ["bash", "-euc", commands], cwd=folder, capture_output=True, text=True, timeout=120,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}:/usr/sbin"},
    )  # fmt: skip


def test_a_newcomer_gets_buckets_and_an_alert(tmp_path: Path) -> None:
    """Every command up to the merge; that one is run by the demo's tests, since Spark takes half a minute."""
    if shutil.which("mosquitto", path=f"{os.environ['PATH']}:/usr/sbin") is None:
        pytest.skip("mosquitto is not on this machine")
    port = str(free_port())
    (tmp_path / "readings.py").write_text(next(text for text in blocks("python") if "freezer.csv" in text))
    (tmp_path / "agent.toml").write_text(blocks("toml")[0].replace("18830", port))
    steps = [text.replace("18830", port) for text in blocks("sh") if "cloud merge" not in text]
    assert len(steps) == 3
    ran = typed("\n".join(steps), tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert re.search(r"accepted +2040", ran.stdout), ran.stdout
    told, planned = (
        re.search(r"in all +([\d.]+) MiB +([\d.]+) MiB", text) for text in (PAGE.read_text("utf-8"), ran.stdout)
    )
    assert [*map(float, told.groups())] == pytest.approx([*map(float, planned.groups())], rel=0.05)  # type: ignore[union-attr]
    assert len(list((tmp_path / "buckets").rglob("*.json"))) == 2
    alert = json.loads((tmp_path / "alert.json").read_text())
    assert {name: alert[name] for name in ("alert", "stream", "state", "certainty", "limit")} == {
        "alert": "too_warm", "stream": "temp", "state": "raised", "certainty": "certain", "limit": -18.0
    }  # fmt: skip


def test_the_readme_makes_a_configuration_that_is_right_and_fits(tmp_path: Path) -> None:
    """Its commands for a board, but for the installation and the agent itself."""
    (board,) = [text for text in blocks("sh", ROOT / "README.md") if "check --sample" in text]
    steps = [line for line in board.splitlines() if not line.startswith(("pip", "sluicegate run"))]
    ran = typed("\n".join(steps), tmp_path)
    assert len(steps) == 3
    assert ran.returncode == 0, ran.stderr
    assert "in all" in ran.stdout


def test_the_agent_for_plcs_is_configured_as_the_page_says(tmp_path: Path) -> None:
    """The poller's file, the agent's around it, and a source for each device."""
    page = ROOT / "docs/how-to/ask-plcs.md"
    (tmp_path / "poll.toml").write_text(blocks("toml", page)[0])
    (steps,) = [text for text in blocks("sh", page) if "--sources" in text]
    ran = typed(steps, tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "agent.toml: fine. Device plant-1: 5 streams, 1 window, no broker." in ran.stdout
