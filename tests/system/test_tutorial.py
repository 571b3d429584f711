"""The tutorial's steps 3 to 5, as they are written: readings, buckets and an alert come out."""

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

PAGE = Path(__file__).parents[2] / "docs/tutorial/index.md"


def blocks(language: str) -> list[str]:
    """The page's blocks of a language, without their titles."""
    return re.findall(rf"^```{language}\b.*?\n(.*?)^```$", PAGE.read_text("utf-8"), re.S | re.M)


def test_a_newcomer_gets_buckets_and_an_alert(tmp_path: Path) -> None:
    """Every command up to the merge; that one is run by the demo's tests, since Spark takes half a minute."""
    if shutil.which("mosquitto", path=f"{os.environ['PATH']}:/usr/sbin") is None:
        pytest.skip("mosquitto is not on this machine")
    port = str(free_port())
    (tmp_path / "readings.py").write_text(next(text for text in blocks("python") if "freezer.csv" in text))
    (tmp_path / "agent.toml").write_text(blocks("toml")[0].replace("18830", port))
    steps = [text.replace("18830", port) for text in blocks("sh") if "cloud merge" not in text]
    assert len(steps) == 3
    ran = subprocess.run(
        ["bash", "-euc", "\n".join(steps)],
        cwd=tmp_path, capture_output=True, text=True, timeout=120,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}:/usr/sbin"},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert re.search(r"accepted +2040", ran.stdout), ran.stdout
    assert "in all" in ran.stdout
    assert len(list((tmp_path / "buckets").rglob("*.json"))) == 2
    alert = json.loads((tmp_path / "alert.json").read_text())
    assert {name: alert[name] for name in ("alert", "stream", "state", "certainty", "limit")} == {
        "alert": "too_warm", "stream": "temp", "state": "raised", "certainty": "certain", "limit": -18.0
    }  # fmt: skip
