"""[sync] to a gateway or server: what cannot work is refused before anything runs, with key, value and remedy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from chunked import document
from durable_agent import configured
from gateway.stand_in import StandIn

from gateway import databases
from sluicegate_agent.config import ConfigError
from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.sync.aside import Aside
from sluicegate_agent.sync.sync import target_of

URL = "https://gateway.example:4984/telemetry"


def sync(**keys: Any) -> dict[str, Any]:
    """A [sync] without the folder that the tests' configuration has."""
    return {"path": None, "target": "sync-gateway", **keys}


def problems(folder: Path, **keys: Any) -> str:
    """What is said of a configuration that cannot be."""
    with pytest.raises(ConfigError) as caught:
        load(folder, **keys)
    return str(caught.value)


def load(folder: Path, **keys: Any) -> Any:
    """The configuration; keys of None are left out."""
    table = {key: value for key, value in sync(**keys).items() if value is not None}
    raw = configured(folder)  # checks that the rest is right
    assert raw.sync.target == "directory"
    from sluicegate_agent.config import build

    base = {"device": {"id": "board-1"}, "state": {"path": "state"}, "source": [{"topic": "t", "streams": {"x": "x"}}]}
    return build({**base, "sync": table}, folder / "agent.toml")


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({}, "sync.url: is required"),
        ({"url": "gateway.example"}, "expected https://"),
        ({"url": "couchbase://h/d"}, "expected https://"),
        ({"url": "https://gateway.example:4984"}, "lacks the name of the database"),
        ({"url": "http://gateway.example:4984/d"}, "is not encrypted"),
        ({"url": "https://gateway.example:99999/d"}, "expected https://"),
        ({"url": URL, "timeout": "1ms"}, "1s to 10min"),
        ({"url": URL, "password_file": "nothing"}, "sync.password_file"),
        ({"url": URL, "auth": "magic"}, '"session" or "basic"'),
        ({"url": URL, "path": "chunks"}, 'is not used with target = "sync-gateway"'),
        ({"url": "http://127.0.0.1.evil.example:4984/d"}, "is not encrypted: write https://"),
        ({"url": "http://localhost:4984/d", "tls": {"enabled": True}}, "is not encrypted: write https://"),
        ({"url": URL, "tls": {"ca_file": "none.pem"}}, "sync.tls.ca_file"),
        ({"target": "couchbase", "url": URL}, "expected couchbases://"),
        ({"target": "none", "url": URL}, "is not used"),
        ({"credentials_file": "none.json"}, "sync.credentials_file"),
    ],
)
def test_what_cannot_work_is_refused(tmp_path: Path, keys: dict[str, Any], said: str) -> None:
    """Each finding names the key and what to do."""
    assert said in problems(tmp_path, **keys)


def test_a_secret_in_the_url_is_refused_and_not_shown(tmp_path: Path) -> None:
    """It would end up in logs and tables."""
    said = problems(tmp_path, url="https://board:hunter2@gateway.example/d")
    assert "password_file" in said
    assert "hunter2" not in said


@pytest.mark.parametrize(
    "keys", [{"url": URL}, {"url": "http://localhost:4984/d"}, {"url": "http://g/d", "tls": {"enabled": False}}]
)
def test_what_can_work_is_taken(tmp_path: Path, keys: dict[str, Any]) -> None:
    """Encrypted, or this machine, or meant."""
    assert load(tmp_path, **keys).sync.url == keys["url"]


def test_a_missing_secret_ends_the_start(tmp_path: Path) -> None:
    """The environment lacks what the configuration names: said at once, not at the first document."""
    with pytest.raises(EnvironmentRefused, match="SYNC_PASSWORD"):
        target_of(load(tmp_path, url=URL, password_env="SYNC_PASSWORD"))  # noqa: S106  a variable's name


def test_the_credentials_file_is_all_it_takes(tmp_path: Path) -> None:
    """What `cloud provision` wrote: URL, user and password of this device."""
    with StandIn() as gateway:
        url = f"{gateway.public_url}/{databases.TELEMETRY}"
        told = {"url": url, "user": "board-1", "password": databases.PASSWORD}
        (tmp_path / "board-1.json").write_text(json.dumps(told))
        target = target_of(load(tmp_path, credentials_file="board-1.json"))
        assert isinstance(target, Aside)
        sent = document(3)
        while (outcome := target.put([sent])).pending:
            pass
        assert outcome.accepted == (sent.id,)
        target.close()
    assert "leave it out" in problems(tmp_path, credentials_file="board-1.json", username="x")
    (tmp_path / "board-1.json").write_text("{}")
    assert "expected url, user and password" in problems(tmp_path, credentials_file="board-1.json")


def test_a_credentials_file_of_another_target_is_named(tmp_path: Path) -> None:
    """https:// for a replicator: the finding names the file, what stands there, and the scheme that is expected."""
    told = {"url": "https://gateway.example:4984/telemetry", "user": "board-1", "password": "letmein"}
    (tmp_path / "board-1.json").write_text(json.dumps(told))
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, target="couchbase-lite", credentials_file="board-1.json")
    assert "sync.credentials_file" in str(caught.value)
    assert "expected wss://" in str(caught.value)
    assert "letmein" not in str(caught.value)
