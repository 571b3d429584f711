"""What a network's target takes of the board's memory is no more than `sluicegate plan` says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from gateway.stand_in import StandIn
from test_gateway_config import load

from gateway import databases
from sluicegate_agent.backlog.rows import READING_COST, ROW_COST
from sluicegate_agent.plan import plan

#: Bytes of the largest document under the default configuration: 256 buckets of 16 readings.
LARGEST = 256 * (ROW_COST + 16 * READING_COST)
GROWTH = """
import json, os, sys
from pathlib import Path
def resident():
    lines = Path("/proc/self/status").read_text().splitlines()
    return {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines if line.startswith(("VmHWM", "VmData"))}
import sluicegate_agent.agent, sluicegate_agent.config
from sluicegate_agent.sync.contract import Document
made = [json.dumps({"x": os.urandom(int(sys.argv[2]) // 2 - 8).hex()}).encode() for _ in range(4)]
sent = [Document(f"a::b::00060a24181e4000::{i:016d}", data) for i, data in enumerate(made)]
before = resident()
from sluicegate_agent.config.load import load
from sluicegate_agent.sync.sync import target_of
target = target_of(load(sys.argv[1]))
for _ in range(3):
    while (outcome := target.put(sent)).pending:
        pass
    assert len(outcome.accepted) == 4, outcome
print(json.dumps({key: value - before[key] for key, value in resident().items()}))
"""


def test_certificates_are_planned_for_where_they_are_loaded(tmp_path: Path) -> None:
    """https costs the system's roots, whether the URL stands in the configuration or in the credentials file."""
    told = {"url": "https://gateway.example/telemetry", "user": "board-1", "password": "letmein"}
    (tmp_path / "board-1.json").write_text(json.dumps(told))
    found = [load(tmp_path, url="http://localhost/telemetry"), load(tmp_path, url=told["url"])]
    found.append(load(tmp_path, credentials_file="board-1.json"))
    plain, named, filed = (plan(config).memory for config in found)
    assert plain < named == filed


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
def test_the_gateway_target_stays_within_its_line(tmp_path: Path) -> None:
    """Largest documents, put three times (so compared twice): resident and data grow by less than planned."""
    with StandIn() as gateway:
        (tmp_path / "password").write_text(databases.PASSWORD)
        url = f"{gateway.public_url}/{databases.PLAIN}"
        told = f'url = "{url}"\npassword_file = "password"\nusername = "board-1"\n'
        head = '[device]\nid = "board-1"\n[state]\npath = "state"\n[[source]]\ntopic = "t"\nstreams = { x = "x" }\n'
        (tmp_path / "agent.toml").write_text(f'{head}[sync]\ntarget = "sync-gateway"\n{told}')
        command = [sys.executable, "-c", GROWTH, str(tmp_path / "agent.toml"), str(LARGEST)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stderr
        grown = json.loads(done.stdout)
        config = load(tmp_path, url=url)
    parts = [line.memory for line in plan(config).lines if line.part.startswith("sync target sync-gateway")]
    planned = sum(parts)
    assert max(grown.values()) <= planned, (grown, planned)
    assert planned < 8 << 20, "a board has 60 MiB for all"


def test_the_sdk_is_not_imported_unless_asked_for() -> None:
    """Neither it nor the REST target costs an agent anything that does not use them."""
    code = (
        "import sys, sluicegate, sluicegate.stores, sluicegate_agent.agent\n"
        "heavy = lambda name: name.partition('.')[0] == 'couchbase' or name.endswith('sync_gateway')\n"
        "print([name for name in sys.modules if heavy(name)])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.strip() == "[]"
