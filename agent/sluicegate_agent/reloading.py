"""Another configuration for a running agent: judged whole first, taken at a commit, refused with the old one going on.

What was asked and what came of it stand in two small files beside the state: `reload.ask` says that losses are
accepted, and the agent's `agent.json` has the outcome, which `sluicegate reload` waits for.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import time
from pathlib import Path
from typing import Any

from sluicegate_agent import health, private
from sluicegate_agent.changes import refuse_losses
from sluicegate_agent.config import Config, ConfigError, load
from sluicegate_agent.errors import EnvironmentRefused, InputRefused
from sluicegate_agent.lock import holder
from sluicegate_agent.plan import refuse_over_budget

log = logging.getLogger("sluicegate.reload")
ASK = "reload.ask"
_ACCEPT = b"accept"


class Reloading:
    """The file of a running agent, and what came of reading it again; `count` numbers the attempts."""

    def __init__(self, file: Path | None) -> None:
        self.file = file
        self.count = 0
        self.result = ""
        self.planned = 0

    def outcome(self) -> dict[str, Any]:
        """For `agent.json`: the attempts of this process, and what came of the last: empty where it was taken."""
        return {"pid": os.getpid(), "count": self.count, "refused": self.result}

    def read(self, now: Config) -> Config | None:
        """The configuration to go on with, or None: it is refused, with the reason in the log, and `now` stays."""
        self.count += 1
        accept = _asked(now.state.path)
        try:
            config = load(self.file or Path())
            if (config.state.path, config.state.store) != (now.state.path, now.state.store):
                raise InputRefused("state.path and state.store stay as they are while the agent runs: start it anew")
            self.planned = refuse_over_budget(config).memory
            refuse_losses(config, accept=accept)
        except (ConfigError, InputRefused, EnvironmentRefused) as error:
            self.refuse(str(error))
            return None
        self.result = ""
        return config

    def refuse(self, why: str) -> None:
        """It is not taken."""
        self.result = why
        log.error("%s is not taken, the configuration before goes on: %s", self.file, why)

    def taken(self) -> None:
        """The agent runs with it."""
        log.info("%s is taken", self.file)


def _asked(folder: Path) -> bool:
    """Whether losses are accepted, this once."""
    try:
        said = (folder / ASK).read_bytes()[:64]
        (folder / ASK).unlink()
    except OSError:
        return False
    return said == _ACCEPT


def ask(config: Config, *, accept: bool, seconds: float) -> None:
    """Have the agent of a configuration's state read it again, and wait for what comes of it.

    Raises InputRefused where it refuses, EnvironmentRefused where none runs or it does not answer in time.
    """
    folder = config.state.path
    running = holder(folder) if folder.exists() else None
    if running is None:
        raise EnvironmentRefused(f"no agent runs on {folder}: start it with `sluicegate run`")
    before = _told(folder, running)
    if before is None:
        raise EnvironmentRefused(f"the agent {running} was not started by `sluicegate run`: it reads no file again")
    with contextlib.suppress(FileNotFoundError):
        (folder / ASK).unlink()
    if accept:
        private.write(folder / ASK, _ACCEPT)
    try:
        os.kill(running, signal.SIGHUP)
    except PermissionError:
        raise EnvironmentRefused(f"the agent {running} is another user's: reload it as that user") from None
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        now = _told(folder, running)
        if now is not None and now["count"] > before["count"]:
            if now["refused"]:
                raise InputRefused(f"the agent goes on with the configuration before: {now['refused']}")
            return
        time.sleep(0.05)
    raise EnvironmentRefused(f"the agent {running} did not answer in {seconds:.0f} s; see its log")


def _told(folder: Path, pid: int) -> dict[str, Any] | None:
    found = (health.read(folder) or {}).get("reload")
    return found if isinstance(found, dict) and found.get("pid") == pid else None
