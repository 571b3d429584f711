"""Golden folders: a configuration and its readings give the expected answers, documents, counters and dead letters.

`SLUICEGATE_WRITE_CASES=1` writes what is found as the new expectation: read the difference before committing it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
import msgspec

from sluicegate.format import chunk as chunks
from sluicegate_agent.commands.replay import replay
from sluicegate_agent.commands.status import status
from sluicegate_agent.config import load
from sluicegate_agent.handover import hand_over
from sluicegate_agent.messages import Message
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.state import State
from sluicegate_agent.sync import Sync

CASES = Path(__file__).parents[1] / "cases" / "agent"
FOLDERS = sorted(folder.name for folder in CASES.iterdir())
COLUMNS = ("first", "n", "t_first", "t_last", "total", "low", "high", "gap", "flags")
HEADER = ("device", "center", "readings", "buckets")
_NUMBERS = re.compile(r"\[[-+.\deE,\s]*\]")


def played(folder: Path) -> dict[str, Any]:
    """Replay a case's readings to the end and gather everything that must not change."""
    timed = load(folder / "agent.toml").sources[0].time is not None
    readings = next(folder.glob("readings.*"))
    if readings.suffix == ".hex":
        found = fed(folder, readings)
        return gathered(folder, found, timed)
    argument = "--csv" if readings.suffix == ".csv" else "--jsonl"
    run = CliRunner().invoke(replay, [str(folder / "agent.toml"), argument, str(readings), "--drain", "--json"])
    assert run.exit_code == 0, run.output
    return gathered(folder, json.loads(run.stdout), timed)


def fed(folder: Path, readings: Path) -> dict[str, Any]:
    """Messages that are no text, a line each: the topic, and the payload's bytes in hexadecimal digits."""
    config = load(folder / "agent.toml")
    with State(config) as state:
        pipeline, sync = Pipeline(config, state), Sync(config, state)
        for line in readings.read_text().splitlines():
            topic, _, payload = line.partition(" ")
            pipeline.accept(Message(topic, bytes.fromhex(payload), 0, 0))
        pipeline.commit()
        results = json.loads(msgspec.json.encode(pipeline.results()))
        hand_over(pipeline, sync)
        sync.close()
        counted = {name: count for name, count in state.counters.as_dict().items() if count}
    return {"results": results, "counters": counted}


def gathered(folder: Path, found: dict[str, Any], timed: bool) -> dict[str, Any]:
    """What was found, with what is in the state and at the target now."""
    shown = json.loads(CliRunner().invoke(status, [str(folder / "agent.toml"), "--json"]).stdout)
    for result in found["results"] if not timed else ():
        del result["time_us"]
    return {
        "results": found["results"],
        "counters": {name: count for name, count in found["counters"].items() if not name.startswith("sync.bytes")},
        "documents": documents(folder / "chunks", timed),
        "outbox_rows": shown["outbox"]["rows"],
        "dead_letters": [{key: letter[key] for key in ("topic", "reason", "size")} for letter in shown["dead_letters"]],
    }


def documents(folder: Path, timed: bool) -> dict[str, list[dict[str, Any]]]:
    """What arrived at the target, by stream: the columns of each document, times only where they are fixed."""
    found: dict[str, list[dict[str, Any]]] = {}
    for file in sorted(folder.rglob("*.json")):
        columns = chunks.columns(file.read_bytes())
        kept = {name: columns[name] for name in HEADER}
        kept |= {name: list(columns[name]) for name in COLUMNS if timed or not name.startswith("t_")}
        found.setdefault(columns["stream"], []).append(kept)
    return found


def written(found: dict[str, Any]) -> str:
    """The expectation as text that a difference can be read in: a line a key, lists of numbers on one."""
    text = json.dumps(found, indent=1, sort_keys=True)
    return _NUMBERS.sub(lambda numbers: "[" + ", ".join(numbers[0][1:-1].replace(",", " ").split()) + "]", text) + "\n"


def close(found: Any, expected: Any, at: str = "") -> list[str]:
    """Where two structures differ; numbers may in the last digits of a sum taken in another order."""
    if isinstance(expected, dict) and isinstance(found, dict):
        keys = sorted(expected.keys() | found.keys())
        return [line for key in keys for line in close(found.get(key), expected.get(key), f"{at}.{key}")]
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        return [line for i, pair in enumerate(zip(found, expected, strict=True)) for line in close(*pair, f"{at}[{i}]")]
    if isinstance(expected, float) and isinstance(found, float | int):
        return (
            []
            if found == pytest.approx(expected, rel=1e-9, abs=1e-12, nan_ok=True)
            else [f"{at}: {found} != {expected}"]
        )
    return [] if found == expected else [f"{at}: {found} != {expected}"]


@pytest.fixture
def copied(tmp_path: Path) -> Callable[[str], Path]:
    """A case's folder where its state may be written, beside the folder that receives its documents."""

    def copy(name: str) -> Path:
        folder = Path(shutil.copytree(CASES / name, tmp_path / name))
        (folder / "chunks").mkdir()
        return folder

    return copy


@pytest.mark.parametrize("name", FOLDERS)
def test_a_case_gives_what_it_gave(name: str, copied: Callable[[str], Path]) -> None:
    """Answers with their bounds, documents, counters and reasons are those of the golden folder."""
    found = played(copied(name))
    if os.environ.get("SLUICEGATE_WRITE_CASES") == "1":
        (CASES / name / "expected.json").write_text(written(found))
    expected = json.loads((CASES / name / "expected.json").read_text())
    assert close(found, expected) == []


def test_the_cases_differ_from_each_other() -> None:
    """The comparison can fail: no case's expectation fits another."""
    expected = [json.loads((CASES / name / "expected.json").read_text()) for name in FOLDERS]
    for i, one in enumerate(expected):
        assert all(close(one, other) for other in expected[:i])
