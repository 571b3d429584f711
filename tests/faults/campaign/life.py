"""An agent's lives within a run: started, awaited, killed, told to stop; each end is noted."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from campaign import brokers, configuration, foreign, gateways, storage, ways
from campaign.agents import Agent, Launcher
from campaign.plan import Plan
from campaign.proxy import Proxy
from campaign.sensor import Sensor

READY = 6.0
#: Done; the environment refused; SIGKILL; SIGTERM while it was still starting.
_ENDINGS = (0, 4, -9, -15)


@dataclass
class Tools:
    """What the runs of one worker share."""

    launcher: Launcher
    faked: Launcher | None
    rabbit: int | None
    folder: Path


class GaveUpError(Exception):
    """Raised where a run cannot go on: the agent ends each time that it is started."""


class Life:
    """What a run has, and the agent in it."""

    disk: storage.Plain
    medium: storage.Plain | None
    share: Path
    broker: brokers.Mosquitto | brokers.Demo | brokers.Rabbit | brokers.Shared | foreign.Foreign
    topic: str
    proxy: Proxy
    sensor: Sensor | ways.Poster | ways.Writer
    file: Path
    launcher: Launcher

    def __init__(self, plan: Plan, tools: Tools) -> None:
        self.plan, self.tools = plan, tools
        self.folder = tools.folder / f"run-{plan.seed}-{plan.index}-{time.monotonic_ns()}"
        self.kills = self.crashes = 0
        self.excused: list[tuple[float, float]] = []
        self.words: list[str] = []
        self.agent: Agent | None = None
        self.allowed = 0
        self.gateway: gateways.Gateway | None = None
        self.environment: dict[str, str] = {}
        self.edition = self.listen = 0
        self.device = ""
        self.grows = self.folder / "meter.log"

    def _configuration(self) -> str:
        """The agent's file as it is now."""
        target: dict[str, Any] = {"target": "directory", "path": str(self.share)}
        sync = gateways.configuration(self.gateway) if self.gateway else target
        ports = {"listen": self.listen, "grows": self.grows, "edition": self.edition}
        return configuration.text(self.plan, self.device, self.topic, self.proxy.port, self.disk.path, sync, **ports)

    async def _start(self, *, at: str = "", drain: bool = False) -> None:
        if self.agent is not None and self.agent.alive:
            await self.agent.kill()
        fault = {"SLUICEGATE_FAULT_AT": at} if at else {}
        arguments = ["run", str(self.file), *(["--drain"] if drain else [])]
        self.agent = await self.launcher.start(
            arguments, self.folder / "log", self.environment | fault, plant=self.plan.plant
        )

    async def _ready(self, seconds: float = READY) -> bool:
        """Wait until the agent is subscribed; start it again where it has ended."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.proxy.ready:
                return True
            if self.agent is not None and not self.agent.alive:
                self._note_end()
                await self._start()
                await asyncio.sleep(0.03)
            await asyncio.sleep(0.004)
        return self.proxy.ready

    def _note_end(self) -> None:
        """An agent that ended untold is in the report; one that a fault step killed is a kill."""
        assert self.agent is not None
        code = self.agent.ended.result()
        if code == -9:
            self.kills += 1
        elif code not in _ENDINGS:
            self._note_crash(code)

    def _note_crash(self, code: int) -> None:
        self.words.append(f"an agent ended with {code}")
        self.crashes += 1
        if self.crashes > 3:
            raise GaveUpError(f"agents end again and again: {self._last_words()}")

    def _last_words(self) -> str:
        log = self.folder / "log"
        return log.read_text(errors="replace")[-300:] if log.exists() else ""

    async def _kill(self) -> None:
        if self.agent is not None and self.agent.alive:
            await self.agent.kill()
            self.kills += 1

    async def _stop(self, seconds: float) -> int | None:
        assert self.agent is not None
        if not self.agent.alive:
            return self.agent.ended.result()
        code = await self.agent.stop(seconds)
        if code is None:
            self.kills += 1
            self.words.append(f"SIGTERM was not heeded within {seconds:.0f} s")
        elif code not in _ENDINGS:
            self._note_crash(code)
        return code
