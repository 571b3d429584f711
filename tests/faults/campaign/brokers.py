"""The brokers of a run: a Mosquitto of its own, the demo's in this process, or the campaign's one RabbitMQ."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from campaign import foreign
from campaign.ports import free_port, wait_for
from sluicegate_demo.broker import Broker as BuiltIn

MISSING = {
    "mosquitto": "Mosquitto is not on PATH (apt install mosquitto)",
    "rabbitmq": "RabbitMQ is not on PATH (apt install rabbitmq-server)",
    "builtin": "",
}
_PROGRAMS = {"mosquitto": "mosquitto", "rabbitmq": "rabbitmq-server"}
_SBIN = "/usr/sbin"


def program(kind: str) -> str | None:
    """Where a broker's program is. Debian's wrapper changes to a user of its own; what it wraps does not."""
    wrapped = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
    if kind == "rabbitmq" and wrapped.exists():
        return str(wrapped)
    return shutil.which(_PROGRAMS[kind], path=os.pathsep.join([os.environ.get("PATH", ""), _SBIN]))


def available(kind: str) -> bool:
    """Whether a broker can be run here."""
    if foreign.is_foreign(kind):
        return not foreign.missing(kind)
    return kind == "builtin" or program(kind) is not None


class Mosquitto:
    """A Mosquitto of one run; with `keeps` it has a persistence file, written when it is told to `save`."""

    def __init__(self, folder: Path, inflight: int, *, keeps: bool) -> None:
        self.folder, self.port, self.keeps = folder, free_port(), keeps
        lines = [
            f"listener {self.port} 127.0.0.1",
            "allow_anonymous true",
            "max_queued_messages 0",
            f"max_inflight_messages {inflight}",
            f"persistence {str(keeps).lower()}",
            f"persistence_location {folder}/",
            "autosave_interval 100000",
        ]
        (folder / "mosquitto.conf").write_text("\n".join([*lines, ""]))

    def start(self) -> None:
        """Start, or start again on the same port."""
        command = [str(program("mosquitto")), "-c", str(self.folder / "mosquitto.conf")]
        with (self.folder / "mosquitto.log").open("ab") as log:
            self._process = subprocess.Popen(command, stderr=log, stdout=log)
        wait_for(self.port)
        if self._process.poll() is not None:
            raise ConnectionError(f"Mosquitto did not start: {self.folder}/mosquitto.log")

    def save(self) -> bool:
        """Have it write its persistence; whether the file is new."""
        file = self.folder / "mosquitto.db"
        before = file.stat().st_mtime_ns if file.exists() else 0
        self._process.send_signal(signal.SIGUSR1)
        end = time.monotonic() + 2
        while time.monotonic() < end:
            if file.exists() and file.stat().st_mtime_ns != before:
                return True
            time.sleep(0.002)
        return False

    def kill(self) -> None:
        """SIGKILL."""
        self._process.kill()
        self._process.wait()

    close = kill


class Demo:
    """The demo's broker: its memory ends with it."""

    keeps = False

    def __init__(self) -> None:
        self.port = 0

    def start(self) -> None:
        """Start, or start again on the same port."""
        self._broker = BuiltIn(self.port, queue=100_000)
        self._broker.__enter__()
        self.port = self._broker.port

    def save(self) -> bool:
        """It cannot."""
        return False

    def kill(self) -> None:
        """End with everything."""
        self._broker.__exit__()

    close = kill


class Shared:
    """A broker that all runs share, on a port."""

    keeps = True

    def __init__(self, port: int) -> None:
        self.port = port

    def start(self) -> None:
        """It runs."""

    def save(self) -> bool:
        """It is never killed."""
        return False

    def kill(self) -> None:
        """It is never killed."""

    close = kill


_RABBIT = """
listeners.tcp = none
mqtt.listeners.tcp.1 = 127.0.0.1:{port}
mqtt.allow_anonymous = true
mqtt.prefetch = 50
loopback_users = none
log.console = false
"""


class Rabbit:
    """A RabbitMQ node of our own with its MQTT plugin. What it has acknowledged it keeps, also through SIGKILL."""

    keeps = True

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.port, self._epmd = folder, free_port(), free_port()
        self._environment = _rabbits(folder, self.port, free_port(), self._epmd)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start, or start again on the same ports with what is there."""
        with (self.folder / "out").open("ab") as log:
            command = [str(program("rabbitmq"))]
            self._process = subprocess.Popen(
                command, env=self._environment, stdout=log, stderr=log, start_new_session=True, cwd=self.folder
            )
        wait_for(self.port, 120)

    def save(self) -> bool:
        """It always does."""
        return True

    def kill(self) -> None:
        """SIGKILL to the node and all that it started."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def close(self) -> None:
        """End it with its name service."""
        self.kill()
        _stop_epmd(self._epmd)


@contextlib.contextmanager
def rabbitmq(folder: Path) -> Iterator[int]:
    """One node for the runs that do not kill it; the port it listens on."""
    node = Rabbit(folder)
    try:
        node.start()
        yield node.port
    finally:
        node.close()


def _rabbits(folder: Path, port: int, distribution: int, epmd: int) -> dict[str, str]:
    """The environment of a node, whose files are written."""
    (folder / "rabbitmq.conf").write_text(_RABBIT.format(port=port))
    (folder / "enabled_plugins").write_text("[rabbitmq_mqtt].\n")
    return os.environ | {
        "RABBITMQ_NODENAME": f"campaign{port}@localhost",
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
        "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_DIST_PORT": str(distribution),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1} +S 2:2 +sbwt none",
        "ERL_EPMD_PORT": str(epmd),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "ERL_EPMD_RELAXED_COMMAND_CHECK": "true",  # else it stays while it has not noticed that a killed node is gone
        "HOME": str(folder),
    }


def _stop_epmd(port: int) -> None:
    """The name service that the node started for itself."""
    epmd = shutil.which("epmd")
    if epmd:
        subprocess.run([epmd, "-port", str(port), "-kill"], capture_output=True, check=False)
