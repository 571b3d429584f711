"""What the agent logs in a process of its own: JSON for the journal, text for people, once a state."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("structlog", reason="the agent's tests need the extra `agent`")
from durable_agent import configured, sequenced

from sluicegate_agent.logs.notices import Notices
from sluicegate_agent.logs.repeats import EVERY, STATES, Repeats
from sluicegate_agent.messages import Message
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.state import State
from sluicegate_agent.sync import Sync
from sluicegate_demo.ports import free_port

CONFIGURATION = """
[device]
id = "d"
[state]
path = "state"
[mqtt]
host = "127.0.0.1"
port = {port}
[[source]]
topic = "w"
streams = {{ temp = "t" }}
"""


def logged(folder: Path, *options: str, journal: bool = False) -> list[str]:
    """The lines of a short run."""
    (folder / "agent.toml").write_text(CONFIGURATION.format(port=free_port()))
    command = [sys.executable, "-m", "sluicegate", "run", str(folder / "agent.toml"), "--idle", "0.1", *options]
    environment = dict(os.environ)
    with (folder / "log").open("wb") as log:
        if journal:
            found = os.fstat(log.fileno())
            environment["JOURNAL_STREAM"] = f"{found.st_dev}:{found.st_ino}"
        subprocess.run(command, stderr=log, env=environment, check=True, timeout=120)
    return (folder / "log").read_text().splitlines()


def test_the_journal_gets_json(tmp_path: Path) -> None:
    """Where stderr is the stream that systemd named; elsewhere text, and either on request."""
    for line in (*logged(tmp_path, journal=True), *logged(tmp_path, "--log-format", "json")):
        told = json.loads(line)
        assert told["logger"].startswith("sluicegate.")
        assert told["timestamp"][10] == "T"
        assert told["timestamp"].endswith("Z")
    for lines in (logged(tmp_path), logged(tmp_path, "--log-format", "text", journal=True)):
        assert " INFO sluicegate.agent: device d on " in lines[0]


def test_what_is_told_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    """At once, then with the minute's count, then silence; many different things are bounded."""
    now = 0.0
    repeats = Repeats(logging.getLogger("sluicegate.test"), clock=lambda: now)
    for _ in range(5):
        repeats.tell(logging.WARNING, "it fails", " (this time)")
    assert caplog.messages == ["it fails (this time)"]
    now = EVERY
    repeats.tick()
    assert caplog.messages[1:] == ["it fails (4 times more in the last 60 s)"]
    now = 3 * EVERY
    repeats.tick()
    repeats.tick()
    assert len(caplog.messages) == 2
    repeats.tell(logging.WARNING, "it fails")
    assert caplog.messages[2:] == ["it fails"]
    for i in range(1000):
        repeats.tell(logging.WARNING, f"another {i}")
    assert len(caplog.messages) <= 3 + STATES + 1
    now = 4 * EVERY
    repeats.tick()
    assert "further messages of this kind (" in caplog.messages[-1]


def test_refused_readings_and_a_failing_target_are_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Each kind once with its reason; a target that fails and comes back, once each."""
    caplog.set_level(logging.INFO)
    settings = configured(tmp_path, outbox={"chunk_age": "1us"})
    with State(settings) as state:
        pipeline, sync = Pipeline(settings, state), Sync(settings, state)
        notices = Notices(sync, pipeline)
        for _ in range(20):
            pipeline.accept(Message("plant/timed", b"junk", 0, 0))
            pipeline.accept(Message("nobody/knows", b"1", 0, 0))
        refused = [message for message in caplog.messages if message.startswith("refused")]
        assert len(refused) == 2
        assert "refused (unreadable) of plant/timed: " in refused[0]
        assert refused[1] == "refused (unknown_topic) of nobody/knows: no [[source]] has this topic"
        pipeline.commit()
        for n in range(30):
            pipeline.accept(sequenced(n, n + 1))
        pipeline.commit()
        now = 0.0
        while sync.link.failures < 3:
            now += 1000.0
            sync.step(now, flush=True)
            notices.look()
        failed = [message for message in caplog.messages if message.startswith("target")]
        assert len(failed) == 1
        assert "there is no such folder" in failed[0]
        (tmp_path / "chunks").mkdir()
        while sync.link.state != "up":
            now += 1000.0
            sync.step(now, flush=True)
            notices.look()
        assert [message for message in caplog.messages if "takes documents again" in message] == caplog.messages[-1:]
        sync.close()
