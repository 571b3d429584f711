"""Spark's own master and workers on the loopback, drivers of their own, and processes to kill by who started them."""

from __future__ import annotations

import json
import os
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pyspark
from small_spark import JAVA

from sluicegate_cloud.java import java_home

DRIVER = Path(__file__).with_name("driver.py")
SPARK = Path(pyspark.__file__).parent
#: Seconds until a start or an answer is taken for hung.
PATIENCE = 240
#: What Spark's launcher opens of Java's own modules, as far as a server needs it.
OPENED = [
    f"--add-opens=java.base/{name}=ALL-UNNAMED"
    for name in (
        "java.lang",
        "java.lang.invoke",
        "java.io",
        "java.net",
        "java.nio",
        "java.util",
        "sun.nio.ch",
        "sun.util.calendar",
    )
]
_LOG4J = """rootLogger.level = info
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %m%n
"""


def environment(**more: str) -> dict[str, str]:
    """Of every process: nothing listens but on the loopback."""
    told = {"JAVA_HOME": str(java_home()), "SPARK_HOME": str(SPARK), "SPARK_LOCAL_IP": "127.0.0.1"}
    return {**os.environ, **told, "SPARK_LOCAL_HOSTNAME": "127.0.0.1", **more}


@contextmanager
def started(arguments: list[str], folder: Path, log: Path, **more: Any) -> Iterator[subprocess.Popen[str]]:
    """A process in a group of its own, which is ended with all of its group."""
    told = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL} | more
    with log.open("a") as errors:
        process = subprocess.Popen(
            arguments,
            cwd=folder,
            stderr=errors,
            text=True,
            start_new_session=True,
            **told,
        )
    try:
        yield process
    finally:
        below = descendants(process.pid)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        for pid in below:  # Spark's Python workers make groups of their own
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait(PATIENCE)


class Driver:
    """A driver and what it answers."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self._lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stdout or ():
            self._lines.put(line)
        self._lines.put(None)

    def ask(self, do: str, **told: Any) -> None:
        """Give it a job."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"do": do, **told}, default=str) + "\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        """What came of the job. Raises EOFError where the driver ended without a word."""
        line = self._lines.get(timeout=PATIENCE)
        if line is None:
            raise EOFError("the driver has ended")
        return json.loads(line)

    def done(self, do: str, **told: Any) -> Any:
        """Both."""
        self.ask(do, **told)
        return self.answer()

    @property
    def busy(self) -> bool:
        """Whether the job is still under way."""
        return self._lines.empty() and self.process.poll() is None


@contextmanager
def driver(master: str, folder: Path, *more: str) -> Iterator[Driver]:
    """A driver on `master` that runs in `folder`; `more`: its further arguments."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "env": environment()}
    log = folder / "driver.log"
    with started([sys.executable, str(DRIVER), master, *more], folder, log, **pipes) as process:
        found = Driver(process)
        try:
            found.answer()
        except EOFError:
            raise AssertionError(f"the driver did not start: {log.read_text()}") from None
        yield found


@contextmanager
def standalone(folder: Path, workers: int = 2) -> Iterator[tuple[str, list[int]]]:
    """The URL of a master with workers, each with room for two drivers, and the workers' process ids."""
    with ExitStack() as services:
        master = services.enter_context(_service("master.Master", [], folder / "master"))
        url = _said(master, folder / "master" / "log", r"Starting Spark master at (spark://\S+)")
        arguments = ["-c", "2", "-m", "2g", url]
        names = [f"worker-{at}" for at in range(workers)]
        found = [services.enter_context(_service("worker.Worker", arguments, folder / name)) for name in names]
        yield url, [process.pid for process in found]


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """The URL of a Spark Connect server of two cores, whose Python is this one."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    chosen: dict[str, Any] = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": port,
    }
    chosen |= {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": 2, "spark.driver.host": "127.0.0.1"}
    settings = [word for name, value in chosen.items() for word in ("--conf", f"{name}={value}")]
    java = [str(java_home() / "bin" / "java"), "-Xmx768m", *JAVA.split(), *OPENED, "-cp", f"{SPARK}/jars/*"]
    server = ["org.apache.spark.deploy.SparkSubmit", "--master", "local[2]", *settings, "--class"]
    server += ["org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    with started(
        [*java, *server], folder, log := folder / "connect.log", env=environment(PYSPARK_PYTHON=sys.executable)
    ) as at:
        end = time.monotonic() + PATIENCE
        while not _answers(port):
            assert at.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.2)
        yield f"sc://127.0.0.1:{port}"


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


@contextmanager
def _service(name: str, arguments: list[str], folder: Path) -> Iterator[subprocess.Popen[str]]:
    """One of Spark's services, from pyspark's own jars."""
    folder.mkdir()
    properties = folder / "log4j2.properties"
    properties.write_text(_LOG4J)
    java = [str(java_home() / "bin" / "java"), "-Xmx256m", *JAVA.split()]
    java += [f"-Dlog4j2.configurationFile={properties.as_uri()}", "-cp", f"{SPARK}/jars/*"]
    java += [f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    # a worker starts executors as Spark's scripts would, which say the version of Scala
    told = environment(SPARK_WORKER_DIR=str(folder / "work"), SPARK_SCALA_VERSION="2.13")
    with started([*java, *arguments], folder, folder / "log", env=told) as process:
        yield process


def _said(process: subprocess.Popen[str], log: Path, sign: str) -> str:
    end = time.monotonic() + PATIENCE
    while not (said := re.search(sign, log.read_text())):
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < end, log.read_text()
        time.sleep(0.05)
    return said[1]


def descendants(root: int) -> list[int]:
    """All processes that come of a process, by /proc."""
    of: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parent = int(path.read_text().rpartition(")")[2].split()[1])
            of.setdefault(parent, []).append(int(path.parent.name))
    out = [root]
    for pid in out:
        out += of.get(pid, [])
    return out[1:]


def executors(roots: list[int]) -> list[int]:
    """Executors below these processes."""
    return _of(roots, "CoarseGrainedExecutorBackend")


def python_workers(roots: list[int]) -> list[int]:
    """Python workers of executors below these: what a daemon forked."""
    daemons = _of(roots, "pyspark.daemon")
    return [pid for pid in daemons if _parent(pid) in daemons]


def _of(roots: list[int], sign: str) -> list[int]:
    return [pid for root in roots for pid in descendants(root) if sign in _command(pid)]


def _command(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""


def _parent(pid: int) -> int:
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0
