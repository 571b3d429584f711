"""The edge half of the demo: broker, agents, publishers, an outage, two kills, repeats; then all at rest."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from sluicegate_demo.agents import AgentError, AgentProcess, topic
from sluicegate_demo.broker import Broker
from sluicegate_demo.places import Folder, Place
from sluicegate_demo.ports import free_port
from sluicegate_demo.publish import Collector, Publisher, Step, schedule
from sluicegate_demo.readings import Feed

AGAIN = 0.1
SETTLE_SECONDS = 120.0
BROKERS = ("auto", "mosquitto", "builtin")
Say = Callable[[str], None]
Draw = Callable[[int, int], None]


class BrokerError(Exception):
    """Raised when the broker asked for is not there or does not start."""

    exit_code = 4


@dataclass
class EdgeRun:
    """What the edge half leaves: the kind of `target` that has the chunks, the agents' answers, and what it cost."""

    target: str
    results: list[dict[str, Any]] = field(default_factory=list)
    agents: list[dict[str, Any]] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)
    streams: dict[str, dict[str, Any]] = field(default_factory=dict)
    broker: str = ""
    payload_bytes: int = 0
    messages_sent: int = 0
    seconds: float = 0.0

    def save(self, folder: Path) -> None:
        """Leave it for the cloud half, which may be another process."""
        (folder / "results.jsonl").write_text("".join(json.dumps(result) + "\n" for result in self.results))
        rest = {key: value for key, value in vars(self).items() if key != "results"}
        (folder / "edge.json").write_text(json.dumps(rest, indent=2) + "\n")

    @classmethod
    def load(cls, folder: Path) -> EdgeRun:
        """What `save` left. Raises OSError where there is nothing."""
        run = cls(**json.loads((folder / "edge.json").read_text()))
        run.results = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
        return run


# brokers


@contextlib.contextmanager
def serve(kind: str, folder: Path) -> Iterator[tuple[str, int]]:
    """A broker on a free loopback port: Mosquitto where it is on PATH, else the demo's own; its name and port."""
    binary = shutil.which("mosquitto") if kind != "builtin" else None
    if kind == "mosquitto" and binary is None:
        raise BrokerError("mosquitto is not on PATH: install it, or leave out --broker to use the built-in one")
    if binary is None:
        with Broker(queue=2_000) as broker:
            yield "built-in broker", broker.port
    else:
        with _mosquitto(binary, folder) as port:
            yield "Mosquitto", port


@contextlib.contextmanager
def _mosquitto(binary: str, folder: Path) -> Iterator[int]:
    """No limit on what it queues: by default Mosquitto drops what an agent has not taken beyond 1,000 messages."""
    port = free_port()
    text = f"listener {port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\npersistence false\n"
    (folder / "mosquitto.conf").write_text(text)
    with (folder / "mosquitto.log").open("wb") as log:
        process = subprocess.Popen([binary, "-c", str(folder / "mosquitto.conf")], stdout=log, stderr=log)
    try:
        _wait_for_port(process, port, folder / "mosquitto.log")
        yield port
    finally:
        process.terminate()
        process.wait(60)


def _wait_for_port(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    for _ in range(1200):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
            return
        if process.poll() is not None:
            break
        time.sleep(0.05)
    raise BrokerError(f"mosquitto did not start; see {log}, or use --broker builtin")


# the run


class Gate:
    """Where every publisher stops until it is opened; `reached` names those that are there."""

    def __init__(self) -> None:
        self.reached: set[str] = set()
        self._opened = threading.Event()

    def wait(self, device: str) -> None:
        """Stop here. Raises AgentError when nobody opens."""
        self.reached.add(device)
        if not self._opened.wait(2 * SETTLE_SECONDS):
            raise AgentError(f"the publisher of {device} waited {2 * SETTLE_SECONDS:.0f} s to go on")

    def open(self) -> None:
        """Let everyone on."""
        self._opened.set()


class Edge:
    """One edge run in the folder `out`, which must be empty of an earlier one."""

    def __init__(
        self,
        feeds: list[Feed],
        out: Path,
        place: Place | None = None,
        *,
        broker: str = "auto",
        say: Say = print,
        draw: Draw = lambda *_: None,
    ) -> None:
        self.feeds, self.out, self.say, self.draw = feeds, out, say, draw
        self._publishers: list[Publisher] = []
        self.place = place or Folder(out / "chunks")
        self._broker = broker
        self._faults = threading.Lock()
        self.agents: list[AgentProcess] = []

    def run(self) -> EdgeRun:
        """All of it, with the faults in the middle. Raises the errors of its parts; no process is left behind."""
        began = time.monotonic()
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.place)
            name, port = stack.enter_context(serve(self._broker, self.out))
            collector = stack.enter_context(Collector(port))
            stack.callback(self._abandon)
            self.agents = [self._agent(feed, port) for feed in self.feeds]
            self._start(name)
            publishers = self._publish(port)
            self._settle()
            for agent in self.agents:
                agent.stop()
            collector.catch_up()
            return self._found(name, publishers, list(collector.results()), began)

    def _agent(self, feed: Feed, port: int) -> AgentProcess:
        return AgentProcess(feed, port, self._home(feed), self.place.sync(feed.device), self.place.memory)

    def _home(self, feed: Feed) -> Path:
        return self.out / "agents" / feed.device

    def _start(self, broker: str) -> None:
        limits = ", ".join(f"{agent.device} {agent.limit_bytes / 2**20:.1f} MiB" for agent in self.agents)
        self.say(f"{broker} on loopback; one agent a station, RLIMIT_DATA as planned: {limits}")
        for agent in self.agents:
            agent.start()

    def _publish(self, port: int) -> list[Publisher]:
        """Publish in three parts; the target is away during the second, one agent is killed in the second and third."""
        orders = [self._order(index) for index in range(len(self.feeds))]
        gates = [Gate(), Gate()]
        steps = [self._steps(index, order, gates) for index, order in enumerate(orders)]
        publishers = [
            Publisher(port, feed.device, topic(feed), list(feed.payloads()), order, step)
            for feed, order, step in zip(self.feeds, orders, steps, strict=True)
        ]
        self._publishers = publishers
        for publisher in publishers:
            publisher.start()
        try:
            self._pass_gate(gates[0], publishers, self._take_target_away)
            self._pass_gate(gates[1], publishers, self._bring_target_back)
            for publisher in publishers:
                while publisher.is_alive():
                    self._observe()
                    publisher.join(0.05)
                self._check(publisher)
        finally:
            for gate in gates:
                gate.open()
        return publishers

    def _order(self, index: int) -> list[int]:
        """The last station's publisher sends a tenth of its messages again; a lone station's does too."""
        again = AGAIN if index == len(self.feeds) - 1 else 0.0
        return schedule(len(self.feeds[index].rows), again)

    def _steps(self, index: int, order: list[int], gates: list[Gate]) -> list[Step]:
        """What happens at which position: both gates for all, two kills for the agent in the middle of the list."""
        size, device = len(order), self.feeds[index].device
        steps: list[Step] = [(size * n // 3, partial(gate.wait, device)) for n, gate in enumerate(gates, 1)]
        if index == len(self.feeds) // 2:
            steps += [(size // 2, partial(self._kill, index)), (5 * size // 6, partial(self._kill, index))]
        return sorted(steps, key=lambda step: step[0])

    def _pass_gate(self, gate: Gate, publishers: list[Publisher], then: Callable[[], None]) -> None:
        """Let everyone publish up to the gate and the agents take it all; do `then`; open the gate."""
        while len(gate.reached) < len(publishers):
            for publisher in publishers:
                self._check(publisher)
            self._observe()
            time.sleep(0.02)
        self._wait_until(lambda: all(self._taken(p, a) for p, a in zip(publishers, self.agents, strict=True)), "take")
        then()
        gate.open()

    def _taken(self, publisher: Publisher, agent: AgentProcess) -> bool:
        """Whether an agent has committed every reading published so far."""
        numbers = set(publisher.order[: publisher.sent])
        rows = agent.feed.rows
        return agent.accepted() >= sum(value is not None for number in numbers for value in rows[number][1])

    def _check(self, publisher: Publisher) -> None:
        if publisher.error is not None:
            raise publisher.error

    def _observe(self) -> None:
        self.draw(sum(one.sent for one in self._publishers), sum(len(one.order) for one in self._publishers))
        with self._faults:
            for agent in self.agents:
                agent.observe()

    def _kill(self, index: int) -> None:
        with self._faults:
            self.agents[index].kill()
            self.agents[index].start()
        self.say(f"SIGKILL to the agent {self.agents[index].device}, and started again")

    def _take_target_away(self) -> None:
        self.place.take_away()
        self.say("a third is published: the sync target goes away")

    def _bring_target_back(self) -> None:
        rows = {agent.device: agent.status()["outbox"]["rows"] for agent in self.agents}
        waiting = ", ".join(f"{device} {number}" for device, number in rows.items())
        self.place.bring_back()
        self.say(f"two thirds are published: the sync target is back (buckets that waited: {waiting})")

    def _settle(self) -> None:
        """Wait until all is committed and what is full enough is synced; `stop` sends the rest."""
        totals = {agent.device: agent.feed.readings for agent in self.agents}
        self._wait_until(lambda: all(agent.accepted() >= totals[agent.device] for agent in self.agents), "commit")

    def _wait_until(self, true: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + SETTLE_SECONDS
        while not true():
            self._observe()
            if time.monotonic() > end:
                raise AgentError(f"the agents did not {what} all within {SETTLE_SECONDS:.0f} s: {self._progress()}")
            time.sleep(0.05)

    def _progress(self) -> str:
        parts = []
        for agent in self.agents:
            outbox = agent.status().get("outbox", {})
            parts.append(f"{agent.device} has {agent.accepted()} of {agent.feed.readings} readings, outbox {outbox}")
        return "; ".join(parts)

    def _abandon(self) -> None:
        for agent in self.agents:
            agent.abandon()

    def _found(self, broker: str, publishers: list[Publisher], results: list[dict[str, Any]], began: float) -> EdgeRun:
        run = EdgeRun(self.place.target, results, broker=broker, seconds=round(time.monotonic() - began, 2))
        for agent in self.agents:
            status = agent.status()
            peak = round(agent.peak_bytes / 2**20, 1)
            run.agents.append({"device": agent.device, "kills": agent.kills, "peak_rss_mib": peak})
            run.streams[agent.device] = {"streams": status["streams"], "outbox": status["outbox"]}
            for name, value in status["counters"].items():
                run.counters[name] = run.counters.get(name, 0) + value
        run.payload_bytes = sum(len(payload) for publisher in publishers for payload in publisher.payloads)
        run.messages_sent = sum(publisher.sent for publisher in publishers)
        return run
