"""The bundle for who helps has what is needed and no secret, wherever one was planted."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from click.testing import CliRunner

from sluicegate_agent.commands.support import support
from sluicegate_agent.config import load
from sluicegate_agent.messages import Message
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.state import State

SECRETS = {
    "broker": "broker-pass-7391", "gateway": "gate-pass-8812", "hook": "hook-token-5523-abcdef",
    "listen": "listen-token-9931-abcdef", "variable": "from-the-environment-441", "payload": "patient-0815",
}  # fmt: skip
CONFIGURATION = """
# the old password was {broker}
[device]
id = "d"
[state]
path = "state"
[mqtt]
host = "127.0.0.1"
port = 1
username = "u"
password_file = "broker.secret"
[sync]
target = "sync-gateway"
url = "http://127.0.0.1:1/db"
username = "u"
password_env = "SUPPORT_TEST_PASSWORD"
[alerts]
webhook = "https://example.org/{hook}/x"
token_file = "hook.secret"
[metrics]
listen = "127.0.0.1:1"
token_file = "listen.secret"
[[source]]
topic = "t"
streams = {{ x = "x" }}
"""


def text_of(tar: tarfile.TarFile, entry: tarfile.TarInfo) -> str:
    """A file of an archive."""
    file = tar.extractfile(entry)
    assert file is not None
    return file.read().decode()


def test_no_planted_secret_is_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From files, the environment, a URL, a comment, a document's error, and payloads of messages."""
    monkeypatch.setenv("SUPPORT_TEST_PASSWORD", SECRETS["variable"])
    for name, key in (("broker", "broker"), ("hook", "hook"), ("listen", "listen")):
        (tmp_path / f"{name}.secret").write_text(SECRETS[key] + "\n")
    file = tmp_path / "agent.toml"
    file.write_text(CONFIGURATION.format(**SECRETS))
    config = load(file)
    with State(config) as state:
        pipeline = Pipeline(config, state)
        pipeline.accept(Message("t", f"no JSON {SECRETS['payload']}".encode(), 1, 1))
        pipeline.commit()
        with state.transaction() as connection:
            said = f"Authorization: Basic {SECRETS['gateway']}; http://u:{SECRETS['gateway']}@h/"
            state.write_link(connection, {"target": "x", "state": "down", "since_us": 0, "error": said})
    out = tmp_path / "bundle.tar.gz"
    ran = CliRunner().invoke(support, [str(file), "--out", str(out)])
    assert ran.exit_code == 0, ran.output
    assert out.stat().st_mode & 0o077 == 0
    with tarfile.open(out) as tar:
        found = {Path(each.name).name: text_of(tar, each) for each in tar}
    assert {"configuration.toml", "plan.json", "status.json", "doctor.json", "versions.json"} <= set(found)
    for name, text in found.items():
        for what, secret in SECRETS.items():
            assert secret not in text, (name, what)
    assert 'id = "d"' in found["configuration.toml"]
    assert json.loads(found["status.json"])["counters"]["refused.unreadable"] == 1
    assert any(look["name"] == "broker" and look["status"] == "broken" for look in json.loads(found["doctor.json"]))


def test_a_state_that_is_not_there_is_told_in_it(tmp_path: Path) -> None:
    """Whoever needs a bundle has something that is broken: the other parts are there nevertheless."""
    file = tmp_path / "agent.toml"
    file.write_text(
        '[device]\nid = "d"\n[state]\npath = "s"\n[mqtt]\nport = 1\n[[source]]\ntopic = "t"\nstreams = { x = "x" }\n'
    )
    out = tmp_path / "bundle.tar.gz"
    assert CliRunner().invoke(support, [str(file), "--out", str(out)]).exit_code == 0
    with tarfile.open(out) as tar:
        (status,) = [each for each in tar if each.name.endswith("status.json")]
        text = text_of(tar, status)
    assert "no agent has run here yet" in text
