"""A Mosquitto of this machine, a free port and a patient wait, for the tests that need a real broker."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest


def until(true: Callable[[], Any], seconds: float = 120.0, told: Callable[[], Any] | None = None) -> None:
    """Wait for something to become true, or fail with what `told` says; only a failure takes so many seconds."""
    end = time.monotonic() + seconds
    while True:
        with contextlib.suppress(OSError):
            if true():
                return
        assert time.monotonic() < end, f"it never came true: {told() if told else true}"
        time.sleep(0.01)


@contextlib.contextmanager
def mosquitto(folder: Path, port: int, *lines: str) -> Iterator[int]:
    """A Mosquitto on a port of this machine, with more lines in its configuration."""
    if shutil.which("mosquitto") is None:
        pytest.skip("Mosquitto is not on PATH")
    file = folder / f"mosquitto-{port}.conf"
    file.write_text("\n".join([f"listener {port} 127.0.0.1", "allow_anonymous true", "max_queued_messages 0", *lines]))
    with Server(["mosquitto", "-c", str(file)], port).running():
        yield port


class Server:
    """A broker's process that can be killed and started again."""

    def __init__(self, command: list[str], port: int, environment: dict[str, str] | None = None) -> None:
        self.command, self.port, self.environment = command, port, environment

    def start(self) -> None:
        """Start it, and wait until somebody listens."""
        options: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(
            self.command, env=os.environ | (self.environment or {}), start_new_session=True, **options
        )
        until(lambda: socket.create_connection(("127.0.0.1", self.port), 1).close() is None)

    def kill(self) -> None:
        """SIGKILL to it and all that it started."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(60)

    @contextlib.contextmanager
    def running(self) -> Iterator[Server]:
        """Started, and ended afterwards."""
        self.start()
        try:
            yield self
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGTERM)
            self.process.wait(60)
            if names := (self.environment or {}).get("ERL_EPMD_PORT"):
                # Erlang's name server is a daemon of its own: nothing else ends it.
                subprocess.run(["epmd", "-port", names, "-kill"], check=False, capture_output=True)


def persistent_mosquitto(folder: Path, port: int) -> Server:
    """A Mosquitto that saves its sessions when it gets SIGUSR1."""
    if shutil.which("mosquitto") is None:
        pytest.skip("Mosquitto is not on PATH")
    file = folder / f"mosquitto-{port}.conf"
    lines = (f"listener {port} 127.0.0.1", "allow_anonymous true", "max_queued_messages 0", "persistence true")
    file.write_text("\n".join([*lines, f"persistence_location {folder}/", "autosave_interval 0", "user root"]))
    return Server(["mosquitto", "-c", str(file)], port)


def rabbitmq(folder: Path, ports: tuple[int, int, int, int], prefetch: int = 500) -> Server:
    """A RabbitMQ node of its own with its MQTT plugin on the first of these ports."""
    program = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
    if not program.exists():
        pytest.skip("RabbitMQ is not installed")
    mqtt, amqp, nodes, names = ports
    (folder / "plugins").write_text("[rabbitmq_mqtt].")
    lines = (f"mqtt.listeners.tcp.1 = 127.0.0.1:{mqtt}", f"listeners.tcp.1 = 127.0.0.1:{amqp}")
    lines = (*lines, f"mqtt.prefetch = {prefetch}")
    (folder / "rabbitmq.conf").write_text("\n".join(lines))
    local = "-kernel inet_dist_use_interface {127,0,0,1} +S 1:1"
    return Server(
        [str(program)],
        mqtt,
        {
            "HOME": str(folder),
            "RABBITMQ_NODENAME": f"sluicegate{mqtt}@localhost",
            "RABBITMQ_DIST_PORT": str(nodes),
            "ERL_EPMD_PORT": str(names),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": local,
        },
    )
