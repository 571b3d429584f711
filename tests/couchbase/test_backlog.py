"""A backlog over a network that is cut and a gateway that is killed: nothing lost, nothing twice, nothing changed.

SLUICEGATE_BACKLOG=1000,100 (cut connections, kills of the gateway) runs it at full length: about ten minutes.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from chunked import target
from durable_agent import NOON, configured, timed
from gateway.launcher import SyncGateway
from gateway.proxy import Proxy
from gateway.stand_in import StandIn

from gateway import Gateway, databases
from sluicegate.format import chunk as chunks
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.state import State
from sluicegate_agent.sync import Document, Outcome, Sync

CUTS, KILLS = (int(part) for part in os.environ.get("SLUICEGATE_BACKLOG", "30,1").split(","))


class Witness:
    """A target that remembers what was put under each id, and what was accepted."""

    def __init__(self, url: str) -> None:
        self.inner = target(url, databases.TELEMETRY, timeout=2.0)
        self.given: dict[str, bytes] = {}
        self.accepted: list[str] = []
        self.failures = 0

    def put(self, documents: Sequence[Document]) -> Outcome:
        """As the target."""
        for each in documents:
            assert self.given.setdefault(each.id, each.data) == each.data, "a sealed document never changes"
        outcome = self.inner.put(documents)
        self.accepted += outcome.accepted
        self.failures += outcome.retry_after is not None
        return outcome

    def close(self) -> None:
        """Let it go."""
        self.inner.close()


class Device:
    """An agent's pipeline and sync, fed with readings 0, 1, 2 …"""

    def __init__(self, folder: Path, url: str) -> None:
        self.config = configured(folder, window=[])
        self.state = State(self.config)
        self.pipeline = Pipeline(self.config, self.state, clock=lambda: NOON)
        self.witness = Witness(url)
        self.sync = Sync(self.config, self.state, self.witness)
        self.readings, self.clock = 0, 0.0

    def feed(self, readings: int) -> None:
        """So many readings more, committed."""
        for _ in range(readings):
            self.readings += 1
            self.pipeline.accept(timed(self.readings, self.readings % 65535 + 1, value=self.readings / 8))
            if self.pipeline.pending >= 20:
                self.pipeline.commit()
        self.pipeline.commit()

    def step(self, *, flush: bool = False) -> None:
        """A step, long after the last one."""
        self.clock += 1000.0
        self.sync.step(self.clock, flush=flush)

    def drain(self) -> None:
        """Hand everything on."""
        self.pipeline.flush()
        self.pipeline.commit()
        end = time.monotonic() + 300
        while not self.sync.is_done() and time.monotonic() < end:
            self.step(flush=True)
        assert self.sync.is_done(), self.sync.link.error


@pytest.fixture(params=["stand-in", "real"])
def lasting(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Gateway]:
    """A gateway of this test alone, whose documents survive its death."""
    if request.param == "real" and databases.program() is None:
        pytest.skip(databases.MISSING)
    kind = SyncGateway if request.param == "real" else StandIn
    with kind(tmp_path / "gateway", disk=True) as gateway:
        yield gateway


@pytest.mark.slow
@pytest.mark.faults
@pytest.mark.timeout(1800)
def test_a_bad_network_and_a_dying_gateway_lose_nothing(lasting: Gateway, tmp_path: Path) -> None:
    """Cut at random bytes, killed at random instants, while readings come: each is at the gateway exactly once."""
    source = random.Random(7)
    with Proxy(lasting.public_url) as proxy:
        device = Device(tmp_path, proxy.url)
        kills = 0
        while proxy.cuts < CUTS or kills < KILLS:
            device.feed(source.randrange(8, 64))
            device.witness.close()
            proxy.budget = lambda: source.choice((source.randrange(1, 400), source.randrange(1, 6000)))
            if kills < KILLS and proxy.cuts >= kills * CUTS // KILLS:
                _killed(lasting, device, source.random() / 20)
                kills += 1
            else:
                device.step()
        proxy.restore()
        device.drain()
        rejected = device.state.counters["sync.rejected"]
        device.state.close()
    sent = f"{device.readings} readings in {len(device.witness.given)} documents, {device.witness.failures} failed puts"
    print(f"{proxy.cuts} cuts, {kills} kills: {sent}")
    assert rejected == 0
    assert device.witness.failures > CUTS // 4, "most cuts were felt"
    _check(lasting, device)


def _killed(gateway: Gateway, device: Device, after: float) -> None:
    """The gateway dies while a step is under way, and is started again."""
    timer = threading.Timer(after, gateway.kill)
    timer.start()
    end = time.monotonic() + after + 0.01
    while time.monotonic() < end:
        device.feed(8)
        device.step()
    timer.join()
    gateway.start()


def _check(gateway: Gateway, device: Device) -> None:
    """Every reading once and in its place; every document as it was first put, in its first revision."""
    held = gateway.documents_of(databases.TELEMETRY)
    assert held == {name: json.loads(data) for name, data in device.witness.given.items()}
    assert sorted(held) == sorted(set(device.witness.accepted))
    following, total = 0, 0.0
    for name in sorted(held):
        chunk = chunks.decode(json.dumps(held[name]).encode())
        for bucket in chunk.buckets:
            assert bucket.first == following
            following += bucket.n
            total += bucket.total + bucket.n * chunk.center
    assert following == device.readings
    assert total == sum(range(1, device.readings + 1)) / 8
    assert {revision.partition("-")[0] for revision in gateway.revisions_of(databases.TELEMETRY).values()} == {"1"}


def test_the_check_sees_what_is_missing(tmp_path: Path) -> None:
    """A document taken away at the gateway, or changed there, does not pass."""
    with StandIn() as gateway:
        device = Device(tmp_path, gateway.public_url)
        device.feed(100)
        device.drain()
        device.state.close()
        _check(gateway, device)
        documents: dict[str, Any] = gateway.databases[databases.TELEMETRY].documents
        name = min(documents)
        body = documents[name]
        documents[name] = body | {"gap": 1}
        with pytest.raises(AssertionError):
            _check(gateway, device)
        del documents[name]
        with pytest.raises(AssertionError):
            _check(gateway, device)
