"""Brokers that repeat in ways of their own, built by the ordinary clients of Go, Node, Maven and Cargo where these are.

Their sources and versions are in `tests/faults/foreign`, what is built in `build/brokers`. They are drawn only where
they are asked for, so that a seed's other runs stay as they are.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
from pathlib import Path

from campaign.ports import free_port, wait_for

SOURCES = Path(__file__).parent.parent / "foreign"
BUILT = Path("build/brokers").resolve()
BROKERS = (
    *("mochi-5", "mochi-3.1.1", "aedes-3.1.1", "nats-3.1.1", "moquette-3.1.1"),
    *("hivemq-5", "hivemq-3.1.1", "rumqttd-3.1.1"),
)
_MAVEN = ["mvn", "-q", "-B", "package", "dependency:copy-dependencies"]
#: kind → what builds it, in a copy of its sources; how it is started, a port to follow.
_BUILD = {
    "mochi": ["go", "build", "-o", "broker", "."],
    "nats": ["go", "build", "-o", "broker", "."],
    "moquette": _MAVEN,
    "hivemq": _MAVEN,
    "rumqttd": ["cargo", "build", "-q", "--release"],
    "aedes": ["npm", "install", "--no-package-lock", "--no-audit", "--no-fund"],
}
#: Lose what they acknowledged, with paho as the subscriber, too: mochi with MQTT 5, where a session with Receive
#: Maximum used up is taken over (159 of 900 messages, 30 cuts, Receive Maximum 10); Moquette (5 of 599, 20 cuts; with
#: MQTT 5 it delivered none of 100). Only what the agent acknowledged has to be there.
LOSES = ("mochi-5", "moquette-3.1.1")
KINDS = tuple(_BUILD)
_CLASSES = "target/classes:target/dependency/*"
_JAVA = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", _CLASSES, "Broker"]
_START = {
    "mochi": ["./broker"],
    "nats": ["./broker"],
    "aedes": ["node", "main.mjs"],
    "moquette": _JAVA,
    "hivemq": _JAVA,
    "rumqttd": ["target/release/broker"],
}


def is_foreign(kind: str) -> bool:
    """Whether a broker (without its version) is one of these."""
    return kind in _BUILD


@functools.cache
def missing(kind: str) -> str:
    """Why a broker cannot be run here; empty where it is built."""
    if shutil.which(_BUILD[kind][0]) is None:
        return f"{kind} needs {_BUILD[kind][0]}, which is not on PATH"
    shutil.copytree(SOURCES / kind, BUILT / kind, dirs_exist_ok=True)
    done = subprocess.run(_BUILD[kind], cwd=BUILT / kind, capture_output=True, text=True, check=False)
    return f"{kind} cannot be built: {done.stderr.strip()[-300:]}" if done.returncode else ""


class Foreign:
    """One of them for one run; its memory ends with it."""

    keeps = False

    def __init__(self, kind: str, folder: Path) -> None:
        self._kind, self._log, self.port = kind, folder / "broker.log", free_port()

    def start(self) -> None:
        """Start, or start again on the same port."""
        with self._log.open("ab") as log:
            command = [*_START[self._kind], str(self.port)]
            self._process = subprocess.Popen(command, cwd=BUILT / self._kind, stdout=log, stderr=log)
        wait_for(self.port, 60)

    def save(self) -> bool:
        """It cannot."""
        return False

    def kill(self) -> None:
        """SIGKILL."""
        self._process.kill()
        self._process.wait()

    close = kill
