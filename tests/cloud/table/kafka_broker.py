"""A real Kafka broker on the loopback, in KRaft mode, from the jars of `make dev`; it may be killed and begun again."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from clusters import started
from jars_of_make import listed_jars
from small_spark import JAVA

from sluicegate_demo.ports import free_port

PATIENCE = 180
_ID = "4L6g3nShT-eMCtK--X86sw"
_PROPERTIES = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT
listeners=PLAINTEXT://127.0.0.1:{port},SSL://127.0.0.1:{secured},CONTROLLER://127.0.0.1:{controller}
log.dirs={folder}/logs
num.partitions=2
log.cleanup.policy=compact
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
ssl.keystore.type=PEM
ssl.keystore.location={folder}/server.pem
"""


class Broker:
    """A broker that may be killed and started again; its files are in a folder."""

    def __init__(self, folder: Path, certificate: bytes) -> None:
        self.folder = folder
        self.port, self.secured, controller = free_port(), free_port(), free_port()
        folder.mkdir()
        (folder / "server.pem").write_bytes(certificate)
        ports = {"port": self.port, "secured": self.secured, "controller": controller}
        (folder / "s.properties").write_text(_PROPERTIES.format(folder=folder, **ports))
        told = ["kafka.tools.StorageTool", "format", "-t", _ID, "-c", str(folder / "s.properties")]
        subprocess.run(self._java(*told), check=True, capture_output=True, timeout=PATIENCE)

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[str]]:
        """Until the block ends."""
        log = self.folder / "log"
        with started(self._java("kafka.Kafka", str(self.folder / "s.properties")), self.folder, log) as process:
            end = time.monotonic() + PATIENCE
            while not self._answers():
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < end, log.read_text()
            yield process

    def size(self, topic: str) -> int:
        """Bytes of a topic's messages on the disk."""
        return sum(file.stat().st_size for file in (self.folder / "logs").glob(f"{topic}-[0-9]/*.log"))

    def _answers(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        time.sleep(0.1)
        return False

    def _java(self, *arguments: str) -> list[str]:
        return ["java", "-Xmx256m", *JAVA.split(), "-cp", f"{broker_jars()}/*", *arguments]


def broker_jars() -> Path:
    """The broker's jars. Skips where there are none, or no Java for them."""
    if not shutil.which("java"):
        pytest.skip("needs a Java for Kafka's broker: that of the wheel lacks a part of it")
    return listed_jars("kafka-broker")
