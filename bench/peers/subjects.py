"""The tools that are compared: how each is set up to answer windows over one topic, started, and read afterwards.

A tool that is not installed says so: `missing()` is a text then. TELEGRAF and KUIPERD in the environment name the
programs where they are not on PATH. Each reads `{"n": number, "t": ms since 1970, "v": value}` at QoS 1, in a session
that the broker keeps, and writes what it answers into its folder.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any, Protocol

from sluicegate.format import chunk
from sluicegate_demo.ports import free_port

TOPIC = "bench/readings"
PATIENCE = 60.0


class Counted(Protocol):
    """What a tool's answers hold: readings in all, and how often each number is in them where they tell."""

    total: int
    numbers: Counter[int] | None


class Told:
    """See Counted; `unsure`: how many of the total the tool itself says may be repeats."""

    def __init__(self, total: int, numbers: Counter[int] | None = None, unsure: int = 0) -> None:
        self.total, self.numbers, self.unsure = total, numbers, unsure


class Subject:
    """One tool in one setting. `by_time`: windows go by the readings' own times, `grace` seconds late at most."""

    name = ""

    def __init__(self, by_time: bool = False, grace: float = 0) -> None:
        self.by_time, self.grace = by_time, grace

    def missing(self) -> str:
        """Why it cannot be run here; empty where it can."""
        return ""

    def start(self, folder: Path, port: int) -> subprocess.Popen[bytes]:
        """Its process, subscribed to the broker at this port. Raises RuntimeError where it does not start."""
        raise NotImplementedError

    def told(self, folder: Path) -> Told:
        """What has been answered so far; after an orderly end, all of it."""
        raise NotImplementedError

    def _spawned(self, command: list[str], folder: Path, **options: Any) -> subprocess.Popen[bytes]:
        with (folder / "log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, **options)


AGENT = """
[device]
id = "bench"
[state]
path = "state"
[mqtt]
host = "127.0.0.1"
port = {port}
[[source]]
topic = "{topic}"
time = "t"
time_format = "ms"
sequence = "n"
streams = {{ {streams} }}
[[window]]
name = "hour"
policy = {{ time = "1h" }}
streams = ["v"]
aggregate = ["mean", "max", "count"]
buckets = 64
[results]
topic = "bench/answers"
[sync]
target = "directory"
path = "out"
every = "1s"
[outbox]
chunk_age = "{age}"
"""


class Agent(Subject):
    """Ours: an hour's mean, maximum and count in 64 buckets, slid by each reading; documents into a folder."""

    name = "Sluicegate"

    def __init__(self, plain: bool = False) -> None:
        """`plain`: the value alone, handed on as by default; else the numbers too, handed on each second."""
        super().__init__()
        self.plain = plain

    def start(self, folder: Path, port: int) -> subprocess.Popen[bytes]:
        """See Subject."""
        (folder / "out").mkdir(exist_ok=True)
        streams, age = ('v = "v"', "1h") if self.plain else ('n = "n", v = "v"', "1s")
        (folder / "agent.toml").write_text(AGENT.format(port=port, topic=TOPIC, streams=streams, age=age))
        command = [sys.executable, "-m", "sluicegate", "run", str(folder / "agent.toml"), "--drain", "--log", "error"]
        return self._spawned(command, folder)

    def told(self, folder: Path) -> Told:
        """From the documents: those of the stream `n` hold the numbers as single readings."""
        total, numbers, unsure = 0, Counter[int](), 0
        for path in sorted((folder / "out").rglob("*.json")):
            found = chunk.decode(path.read_bytes())
            if found.stream != ("v" if self.plain else "n"):
                continue
            for bucket, readings in zip(found.buckets, found.readings, strict=True):
                total += bucket.n
                unsure += bucket.doubt
                if readings is not None and not self.plain:
                    numbers.update(int(value) for value in readings[1])
        return Told(total, numbers if numbers.total() == total else None, unsure)


TELEGRAF = """
[agent]
  interval = "1s"
  flush_interval = "1s"
  omit_hostname = true
  metric_buffer_limit = 100000
[[inputs.mqtt_consumer]]
  servers = ["tcp://127.0.0.1:{port}"]
  topics = ["{topic}"]
  qos = 1
  persistent_session = true
  client_id = "telegraf"
  name_override = "bench"
  data_format = "json"
{times}
[[outputs.file]]
  files = ["{folder}/answers.jsonl"]
  data_format = "json"
"""
TIMES = '  json_time_key = "t"\n  json_time_format = "unix_ms"\n'
BASIC = """
[[aggregators.basicstats]]
  period = "1s"
  grace = "{grace}s"
  drop_original = true
  stats = ["count", "mean", "max"]
"""


class Telegraf(Subject):
    """It forwards each reading to a file."""

    name = "Telegraf, forwarding"
    aggregates = False

    def missing(self) -> str:
        """See Subject."""
        return "" if _program("TELEGRAF", "telegraf") else "telegraf is not on PATH, nor named by TELEGRAF"

    def start(self, folder: Path, port: int) -> subprocess.Popen[bytes]:
        """See Subject."""
        text = TELEGRAF.format(port=port, topic=TOPIC, folder=folder, times=TIMES if self.by_time else "")
        text += BASIC.format(grace=self.grace) if self.aggregates else ""
        (folder / "telegraf.conf").write_text(text)
        return self._spawned([_program("TELEGRAF", "telegraf"), "--config", str(folder / "telegraf.conf")], folder)

    def told(self, folder: Path) -> Told:
        """A line a reading, or a line a window with its count."""
        fields = [line["fields"] for line in _lines(folder / "answers.jsonl")]
        if self.aggregates:
            return Told(sum(int(each["v_count"]) for each in fields))
        numbers = Counter(int(each["n"]) for each in fields)
        return Told(numbers.total(), numbers)


class TelegrafWindows(Telegraf):
    """Count, mean and maximum of each second, by the aggregator basicstats."""

    name = "Telegraf, windows"
    aggregates = True


class EKuiper(Subject):
    """Count, mean, maximum and numbers of each second, by a rule at `qos` 1 with a checkpoint a second."""

    name = "eKuiper"

    def missing(self) -> str:
        """See Subject."""
        return "" if _program("KUIPERD", "kuiperd") else "kuiperd is not on PATH, nor named by KUIPERD (core build)"

    def start(self, folder: Path, port: int) -> subprocess.Popen[bytes]:
        """See Subject. Its etc folder, as it came, stands beside the program or beside that one's folder."""
        program, again = Path(_program("KUIPERD", "kuiperd")), (folder / "etc").exists()
        if (folder / "answers.jsonl").exists():  # its sink begins the file anew
            (folder / "answers.jsonl").rename(folder / f"answers-{time.time_ns()}.jsonl")
        if not again:
            shutil.copytree(
                next(each / "etc" for each in program.resolve().parents if (each / "etc").is_dir()), folder / "etc"
            )
            for name in ("data", "log", "plugins"):
                (folder / name).mkdir(exist_ok=True)
            session = f'  server: "tcp://127.0.0.1:{port}"\n  clientid: bench\n  enableClientSession: true\n  qos: 1\n'
            (folder / "etc/mqtt_source.yaml").write_text(f'default:\n{session}  protocolVersion: "3.1.1"\n')
            self.rest = free_port()
        set_to = {
            "RESTPORT": self.rest,
            "PORT": free_port(),
            "RESTIP": "127.0.0.1",
            "IP": "127.0.0.1",
            "PPROF": "false",
        }
        environment = os.environ | {f"KUIPER__BASIC__{name}": str(value) for name, value in set_to.items()}
        environment |= {"KuiperBaseKey": str(folder), "KUIPER__SOURCE__HTTPSERVERPORT": str(free_port())}
        process = self._spawned([str(program)], folder / "data", cwd=folder, env=environment)
        self._ask("GET", "/", None, process)
        if not again:
            timed = ', TIMESTAMP="t"' if self.by_time else ""
            stream = f'CREATE STREAM bench () WITH (DATASOURCE="{TOPIC}", TYPE="mqtt", FORMAT="json"{timed})'
            self._ask("POST", "/streams", {"sql": stream}, process)
            options = {"qos": 1, "checkpointInterval": "1s", "bufferLength": 100_000}
            options |= {"isEventTime": True, "lateTolerance": f"{int(self.grace * 1000)}ms"} if self.by_time else {}
            what = "count(*) AS total, avg(v) AS mean, max(v) AS peak, collect(n) AS numbers"
            sink = {
                "file": {"path": str(folder / "answers.jsonl"), "fileType": "lines", "format": "json", "interval": 100}
            }
            sql = f"SELECT {what} FROM bench GROUP BY TUMBLINGWINDOW(ss, 1)"  # noqa: S608  its own text
            rule = {"id": "bench", "sql": sql, "actions": [sink]}
            self._ask("POST", "/rules", rule | {"options": options}, process)
        return process

    def _ask(self, method: str, path: str, body: Any, process: subprocess.Popen[bytes]) -> None:
        end = time.monotonic() + PATIENCE
        data = None if body is None else json.dumps(body).encode()
        head = {"Content-Type": "application/json"}
        while True:
            url = f"http://127.0.0.1:{self.rest}{path}"
            request = urllib.request.Request(url, data, head, method=method)
            try:
                urllib.request.urlopen(request, timeout=5).close()  # noqa: S310  http, on loopback
                return
            except urllib.error.HTTPError as error:
                raise RuntimeError(f"{path}: {error.read().decode(errors='replace')[:300]}") from error
            except OSError as error:
                if time.monotonic() > end or process.poll() is not None:
                    raise RuntimeError(f"kuiperd does not answer: {error}") from error
                time.sleep(0.1)

    def told(self, folder: Path) -> Told:
        """A line a window."""
        lines = [line for path in sorted(folder.glob("answers*.jsonl")) for line in _lines(path)]
        rows = [row for line in lines for row in (line if isinstance(line, list) else [line]) if row]
        numbers = Counter(int(number) for row in rows for number in row.get("numbers") or () if number is not None)
        total = sum(int(row.get("total") or 0) for row in rows)
        return Told(total, numbers if numbers.total() == total else None)


class Hazelcast(Subject):
    """Count, mean, maximum and numbers of each second, by a job of one member; HAZELCAST is a folder of its jars."""

    name = "Hazelcast"

    def missing(self) -> str:
        """See Subject."""
        needed = {"javac on PATH": shutil.which("javac"), "HAZELCAST, a folder of jars": os.environ.get("HAZELCAST")}
        return ", ".join(f"no {what}" for what, found in needed.items() if not found)

    def start(self, folder: Path, port: int) -> subprocess.Popen[bytes]:
        """See Subject."""
        path = f"{os.environ['HAZELCAST']}/*:{folder}"
        if not (folder / "Windows.class").exists():
            source = Path(__file__).with_name("Windows.java")
            subprocess.run(["javac", "-cp", path, "-d", str(folder), str(source)], check=True)
        grace = str(int(self.grace * 1000)) if self.by_time else "-1"
        self.lives = getattr(self, "lives", 0) + 1  # its sink begins a file anew
        out = folder / f"answers-{self.lives}"
        command = ["java", "-Xmx256m", "-cp", path, "Windows", str(port), TOPIC, str(out), grace]
        process, end = self._spawned(command, folder), time.monotonic() + PATIENCE
        while (folder / "log").read_bytes().count(b"subscribed\n") < self.lives:
            if time.monotonic() > end or process.poll() is not None:
                process.kill()
                raise RuntimeError("it does not subscribe: " + (folder / "log").read_text(errors="replace")[-300:])
            time.sleep(0.1)
        return process

    def told(self, folder: Path) -> Told:
        """A line a window."""
        rows = [row for path in folder.glob("answers-*/*") for row in _lines(path)]
        return Told(sum(row["total"] for row in rows), Counter(number for row in rows for number in row["numbers"]))


def _program(variable: str, name: str) -> str:
    return os.environ.get(variable) or shutil.which(name) or ""


def _lines(path: Path) -> list[Any]:
    """The whole lines of a file of JSON; a last one that was cut short by a kill is none."""
    if not path.exists():
        return []
    found = []
    for line in path.read_bytes().splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found
