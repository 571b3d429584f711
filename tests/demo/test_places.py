"""The demo's places promise that what an agent synced is there after the outage, and say first what is missing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from sluicegate_demo import gateway
from sluicegate_demo.places import Folder, Gateway, MissingPartsError, place, require_parts

REAL = shutil.which(os.environ.get("SLUICEGATE_SYNC_GATEWAY") or "sync_gateway")


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine with neither part."""
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("SLUICEGATE_SYNC_GATEWAY", "SLUICEGATE_LIBCBLITE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("ctypes.util.find_library", lambda _: None)


@pytest.mark.parametrize(
    ("target", "parts"), [("sync-gateway", ["sync_gateway"]), ("couchbase-lite", ["libcblite", "sync_gateway"])]
)
def test_a_target_without_its_parts_is_refused_with_what_to_install(bare: None, target: str, parts: list[str]) -> None:
    """Each missing part is named with the doctor's remedy; the exit code is that of something to install."""
    with pytest.raises(MissingPartsError) as caught:
        require_parts(target)
    assert caught.value.exit_code == 3
    for part in parts:
        assert f"{part}: not " in str(caught.value)
    assert str(caught.value).count("→ ") == len(parts)


def test_the_demo_stops_before_it_touches_anything(tmp_path: Path) -> None:
    """A variable that names no gateway: exit code 3, no traceback, and the folder is not made."""
    command = [sys.executable, "-m", "sluicegate", "demo", "--target", "sync-gateway", "--out", str(tmp_path / "demo")]
    environment = os.environ | {"SLUICEGATE_SYNC_GATEWAY": str(tmp_path / "nothing")}
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
    assert ran.returncode == 3
    assert "SLUICEGATE_SYNC_GATEWAY" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert not (tmp_path / "demo").exists()


def test_a_folder_goes_and_comes_back(tmp_path: Path) -> None:
    """With what it held; also where a run gives up in between."""
    with Folder(tmp_path / "chunks") as folder:
        (folder.path / "a.json").write_bytes(b"{}")
        folder.take_away()
        assert folder.path.is_file()
        folder.bring_back()
        assert dict(folder.documents()) == {str(folder.path / "a.json"): b"{}"}
        folder.take_away()
    assert (folder.path / "a.json").exists()
    assert tomllib.loads(folder.sync("d"))["path"] == str(folder.path)


@pytest.mark.skipif(REAL is None, reason="missing: Sync Gateway (SLUICEGATE_SYNC_GATEWAY)")
def test_a_gateway_goes_and_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed and started again, and once more by the second half: users, credentials and documents are still there."""
    monkeypatch.setattr(gateway, "_PAGE", 3)
    with Gateway(tmp_path / "gateway", "sync-gateway") as first:
        credentials = Path(tomllib.loads(first.sync("board"))["credentials_file"])
        assert credentials.stat().st_mode & 0o077 == 0
        push(first, credentials, 7)
        first.take_away()
        first.bring_back()
        push(first, credentials, 1)
    with place("sync-gateway", tmp_path) as second:
        held = dict(second.documents())
        assert [json.loads(data)["first"] for _, data in sorted(held.items())] == [*range(7)]
        assert all(name.endswith(".json") for name in held)
        assert json.loads(Path(second.environment["SLUICEGATE_GATEWAY_CREDENTIALS"]).read_text())["user"] == "reader"


def push(where: Gateway, credentials: Path, count: int) -> None:
    """So many documents of one reading, as the device."""
    from sluicegate.format import chunk as chunks
    from sluicegate.format.bucket import Bucket
    from sluicegate_agent.sync.connection import Connection
    from sluicegate_agent.sync.contract import Document
    from sluicegate_agent.sync.sync_gateway import Basic, SyncGatewayTarget

    secret = json.loads(credentials.read_text())["password"]
    made = [chunks.Chunk("board", "s", "0" * 16, 1.0, [Bucket.single(1.0, 5, 1.0, at)], [None]) for at in range(count)]
    documents = [Document(chunks.document_id(one), chunks.encode(one)) for one in made]
    outcome = SyncGatewayTarget(Connection(where.source, None, None, 10.0), Basic("board", secret)).put(documents)
    assert len(outcome.accepted) == count, outcome
