"""A real agent without a broker: it takes from standard input, a file and POST, and leaves everything durable."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from sluicegate_agent.config import ConfigError, build
from sluicegate_agent.state import read_status
from sluicegate_demo.ports import free_port

HEAD = """
[device]
id = "d"
[state]
path = "state"
[[window]]
name = "all"
policy = { count = 100 }
aggregate = "sum"
"""
STDIN = '[[source]]\ntopic = "in"\ninput = "stdin"\nformat = "number"\nstreams = { x = "" }\n'


def status(folder: Path) -> dict[str, int]:
    """The counters, as of the last commit."""
    return dict(read_status(folder / "state")["counters"])


def test_standard_input_alone_ends_with_it(tmp_path: Path) -> None:
    """Each line counts, the last without an end too; at the end of the input the agent leaves."""
    (tmp_path / "agent.toml").write_text(HEAD + STDIN)
    command = [sys.executable, "-m", "sluicegate", "run", "agent.toml"]
    run = subprocess.run(command, cwd=tmp_path, input=b"1\n1\nno\n5", capture_output=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr.decode()
    assert status(tmp_path)["accepted"] == 3
    assert status(tmp_path)["refused.unreadable"] == 1


def test_a_file_and_post_without_a_broker(tmp_path: Path) -> None:
    """Both go on until the agent is told to stop; killed in between, each line counts once."""
    port, log = free_port(), tmp_path / "meter.jsonl"
    tail = f'[[source]]\ntopic = "meter"\ninput = "tail"\nfile = "{log}"\nstreams = {{ x = "x" }}\n'
    post = '[[source]]\ntopic = "posted"\ninput = "http"\nformat = "number"\nstreams = { y = "" }\n'
    http = f'[http]\nlisten = "127.0.0.1:{port}"\n'
    (tmp_path / "agent.toml").write_text(HEAD + tail + post + http)
    log.write_text('{"x": 1}\n{"x": 1}\n')
    for number in range(2):
        agent = subprocess.Popen([sys.executable, "-m", "sluicegate", "run", "agent.toml"], cwd=tmp_path)
        try:
            url = f"http://127.0.0.1:{port}/in/posted"
            told = curl(url, "7", "same")
            assert told == {"accepted": 1 - number, "duplicates": number, "refused": 0}
            deadline = time.monotonic() + 20
            while status(tmp_path)["accepted"] < 3 + number and time.monotonic() < deadline:
                time.sleep(0.1)
        finally:
            agent.kill() if not number else agent.terminate()
            agent.wait(20)
        with log.open("a") as handle:
            handle.write('{"x": 2}\n')
    assert status(tmp_path)["accepted"] == 4


def curl(url: str, body: str, key: str) -> dict[str, int]:
    """What the agent answers, once it listens."""
    import urllib.request

    deadline = time.monotonic() + 20
    while True:
        asked = urllib.request.Request(url, body.encode(), {"Idempotency-Key": key})  # noqa: S310  our own address
        try:
            with urllib.request.urlopen(asked, timeout=10) as found:  # noqa: S310  our own address
                told: dict[str, int] = json.load(found)
                return told
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


@pytest.mark.parametrize(
    ("more", "part"),
    [
        ({"source": [{"topic": "t", "input": "http", "streams": {"x": "x"}}]}, "needs a listener"),
        ({"source": [{"topic": "t", "input": "tail", "streams": {"x": "x"}}]}, "say which file"),
        ({"source": [{"topic": "t", "file": "f", "streams": {"x": "x"}}]}, 'needs input = "tail"'),
        ({"source": [{"topic": "t/+", "input": "stdin", "streams": {"x": "x"}}]}, "without wildcards"),
        (
            {"source": [{"topic": "t", "input": "stdin", "format": "msgpack", "streams": {"x": "x"}}]},
            "a line is no such",
        ),
        ({"http": {"listen": "127.0.0.1:9465"}}, "there is nothing to take"),
        ({"http": {"listen": "0.0.0.0:9465"}}, "others can reach this address"),
        ({"mqtt": {"enabled": False}}, "1 sources are subscribed to"),
    ],
)
def test_what_cannot_be_meant_is_refused(more: dict[str, object], part: str) -> None:
    """Each finding says what to do."""
    raw = {"device": {"id": "d"}, "state": {"path": "s"}, "source": [{"topic": "w", "streams": {"x": "x"}}]} | more
    with pytest.raises(ConfigError, match=part):
        build(raw, Path("agent.toml"))
