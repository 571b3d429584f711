"""The agents of the demo: one process each under the limit its plan states, killed and started again when told to."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from sluicegate_demo.readings import Feed

HOUR = 3_600_000_000
WINDOWS = {"mean_24h": 24 * HOUR, "max_7d": 168 * HOUR}
_STOP_SECONDS = 60.0


class AgentError(Exception):
    """Raised when an agent ends on its own or cannot be started; the message shows the end of its log."""

    exit_code = 1


def configuration(feed: Feed, port: int, folder: Path, sync: Path | str, memory: str = "52MiB") -> str:
    """The TOML of one agent: one topic, a stream a metric, two windows under a constrained footprint, a small outbox.

    The mean's buckets end by their error, the maximum's where a new one may begin; what cannot be the maximum any more
    leaves, so it answers as the whole window. The outbox holds less than an outage of a third of the run brings, so
    that its buckets merge, and the windows keep fewer while the target is away.
    """
    streams = ", ".join(f'"{metric}" = "{metric}"' for metric in feed.metrics)
    rows = min(OUTBOX_ROWS * len(feed.metrics), MOST_ROWS)
    if isinstance(sync, Path):
        sync = f'target = "directory"\npath = {_quoted(sync)}\n'
    return f"""[device]
id = "{feed.device}"

[state]
path = {_quoted(folder / "state")}
memory = "{memory}"
disk = "80MiB"

[mqtt]
host = "127.0.0.1"
port = {port}
receive_maximum = 400

[commit]
every = "250ms"

[[source]]
topic = "{topic(feed)}"
time = "time"
sequence = "seq"
streams = {{ {streams} }}

[[window]]
name = "mean_24h"
policy = {{ time = "24h" }}
aggregate = "mean"
buckets = 16
sum_like = {{ error = "0.5%", floor = 0.1 }}

[[window]]
name = "max_7d"
policy = {{ time = "7d", up_to = "max" }}
aggregate = "max"
buckets = 16
max_like = {{ block = 24 }}

[bucket]
readings = {BUCKET_READINGS}

[limits]
payload = "12KiB"

[dead_letters]
rows = 200

[held]
rows = 1000
bytes = "64KiB"

[outbox]
rows = {rows}
bytes = "{min(max(OUTBOX_KIB * len(feed.metrics), 320), 2048)}KiB"
chunk_buckets = {min(CHUNK_BUCKETS, rows // 2)}
chunk_age = "5min"

[sync]
{sync}every = "50ms"

[availability]
away = "500ms"
back = "500ms"
every = "200ms"
floor = "50%"

[results]
every = "0s"
"""


#: A bucket closes when time goes back, as a tenth of the messages makes it do: about nine readings each.
BUCKET_READINGS, CHUNK_BUCKETS = 16, 144
#: A stream. Documents are sealed ahead of a full outbox, so a small one makes small documents: of the payload's bytes
#: 96 rows brought 10.1 to 11.1 %, 160 rows 8.9 to 9.0 %. At most, so that files of many columns fit the budget too.
OUTBOX_ROWS, OUTBOX_KIB, MOST_ROWS = 160, 256, 1920


def _quoted(path: Path) -> str:
    """A path as a TOML string, whatever characters its folders have."""
    return json.dumps(str(path), ensure_ascii=False)


def topic(feed: Feed) -> str:
    """Where a device publishes."""
    return f"weather/{feed.device}"


class AgentProcess:
    """One agent: `start`, `kill` (SIGKILL) and start again, `stop` (SIGTERM); peak memory over all its lives."""

    def __init__(self, feed: Feed, port: int, folder: Path, sync: Path | str, memory: str = "52MiB") -> None:
        self.feed, self.folder = feed, folder
        self.kills = 0
        self.peak_bytes = 0
        folder.mkdir(parents=True)
        self.config_file = folder / "agent.toml"
        self.config_file.write_text(configuration(feed, port, folder, sync, memory))
        self._log = folder / "agent.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self.limit_bytes = planned_data_bytes(self.config_file)

    @property
    def device(self) -> str:
        """The device's id."""
        return self.feed.device

    def start(self) -> None:
        """Start the process, limited to the plan."""
        command = [sys.executable, "-m", "sluicegate_demo.limited", str(self.limit_bytes), "run"]
        command += ["--drain", str(self.config_file)]
        with self._log.open("ab") as log, self._lock:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def kill(self) -> None:
        """SIGKILL, as a power cut would; the next `start` continues from what was committed."""
        self.observe()
        with self._lock:
            process = self._running()
            process.send_signal(signal.SIGKILL)
            process.wait()
            self.kills += 1

    def stop(self) -> None:
        """SIGTERM, and wait until the agent has handed everything on. Raises AgentError when it fails or hangs."""
        self._wait_until_up()
        with self._lock:
            process = self._running()
            process.terminate()
            self._wait(process)

    def _wait_until_up(self) -> None:
        """An agent that was only just started does not yet know what SIGTERM asks for; one that has its lock does."""
        end = time.monotonic() + _STOP_SECONDS
        self.observe()
        while not self.status().get("running") and time.monotonic() < end:
            time.sleep(0.02)
            self.observe()

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        end = time.monotonic() + _STOP_SECONDS
        while process.poll() is None:
            self.peak_bytes = max(self.peak_bytes, peak_resident(process.pid))
            if time.monotonic() > end:
                process.kill()
                raise AgentError(
                    f"agent {self.device} did not end {_STOP_SECONDS:.0f} s after being told\n{self.log_end()}"
                )
            time.sleep(0.02)
        if process.returncode:
            raise AgentError(f"agent {self.device} ended with exit code {process.returncode}\n{self.log_end()}")

    def abandon(self) -> None:
        """End the process whatever its state: for a demo that is giving up."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def observe(self) -> None:
        """Note the peak memory so far. Raises AgentError where the process has ended by itself."""
        with self._lock:
            self.peak_bytes = max(self.peak_bytes, peak_resident(self._running().pid))

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise AgentError(f"agent {self.device} was never started")
        if self._process.poll() is not None:
            raise AgentError(
                f"agent {self.device} ended by itself with exit code {self._process.returncode}\n{self.log_end()}"
            )
        return self._process

    def log_end(self, lines: int = 8) -> str:
        """The last lines of the agent's log, and where the rest is."""
        with contextlib.suppress(OSError):
            text = self._log.read_text(errors="replace").splitlines()[-lines:]
            return "\n".join(f"  | {line}" for line in text) + f"\n  (the whole log: {self._log})"
        return ""

    def status(self) -> dict[str, Any]:
        """What `sluicegate status --json` says; empty before the agent's first commit."""
        from sluicegate_agent.config import load
        from sluicegate_agent.errors import EnvironmentRefused
        from sluicegate_agent.status import gather

        try:
            return gather(load(self.config_file))
        except EnvironmentRefused:
            return {}

    def accepted(self) -> int:
        """Readings committed so far."""
        return sum(stream["accepted"] for stream in self.status().get("streams", {}).values())


def planned_data_bytes(config_file: Path) -> int:
    """The data segment, in bytes, that `sluicegate plan` promises for a configuration."""
    from sluicegate_agent.config import load
    from sluicegate_agent.plan import plan

    return int(plan(load(config_file)).data_bytes)


def peak_resident(process_id: int) -> int:
    """Bytes resident at most in a process's life since exec (VmHWM); 0 where the system does not say.

    Not `ru_maxrss`: that starts from the size of the process that forked it.
    """
    try:
        with open(f"/proc/{process_id}/status", "rb") as file:  # noqa: PTH123  read while the process may vanish
            for line in file:
                if line.startswith(b"VmHWM:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0
