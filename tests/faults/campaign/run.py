"""One run: a broker, a proxy, a sensor, and an agent that is killed and cut as planned; then drained and judged."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import time
import traceback
from dataclasses import dataclass, field
from math import inf

from campaign import brokers, foreign, gateways, hangs, oracle, storage, ways
from campaign.events import Events
from campaign.life import GaveUpError, Tools
from campaign.plan import Plan
from campaign.ports import free_port
from campaign.proxy import Proxy
from campaign.sensor import MARKER, Message, Sensor, messages

DRAIN, LONGEST = 25.0, 90.0


@dataclass
class Outcome:
    """What came of a run."""

    plan: Plan
    verdict: oracle.Verdict
    kills: int = 0
    cuts: int = 0
    seconds: float = 0.0
    published: int = 0
    folder: str = ""
    notes: list[str] = field(default_factory=list)


class Run(Events):
    """One plan, carried out."""

    async def carry_out(self) -> Outcome:
        """Set up, do all that the plan says, drain, judge, clear away what was in order."""
        began = time.monotonic()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        try:
            # A RabbitMQ and a HiveMQ take ten seconds and more to start.
            starts_one = self.plan.kind == "hivemq" or "broker killed" in self.plan.families
            longest = LONGEST * (3 if self.plan.kind in ("hivemq", "rabbitmq") and starts_one else 1)
            verdict = await asyncio.wait_for(self._whole(), longest)
        except TimeoutError:
            verdict = oracle.Verdict(stuck=1, words=["not at its end in time"])
        except GaveUpError as reason:
            verdict = oracle.Verdict(stuck=1, words=[str(reason)])
        except Exception as error:
            where = traceback.format_exc().splitlines()[-5:]
            verdict = oracle.Verdict(stuck=1, words=[f"the driver failed: {error!r}", *where])
        finally:
            await self._clear()
        verdict.words += self.words
        outcome = Outcome(self.plan, verdict, self.kills, 0, time.monotonic() - began, folder=str(self.folder))
        if hasattr(self, "sensor"):
            outcome.cuts, outcome.published = self.proxy.cuts, len(self.sensor.published)
        if verdict.failed and hasattr(self, "proxy"):
            (self.folder / "wire").write_text("\n".join([*self.proxy.notes, ""]))
        if not verdict.failed:
            shutil.rmtree(self.folder, ignore_errors=True)
        return outcome

    async def _whole(self) -> oracle.Verdict:
        await self._set_up()
        await self._start()
        await self._ready(20)
        publishing = asyncio.get_running_loop().create_task(self._publish())
        try:
            for number, event in enumerate(self.plan.events):
                if not publishing.done() or number % 2:
                    self.allowed = self.plan.messages * (number + 1) // len(self.plan.events)
                await self._event(event)
            self.allowed = self.plan.messages
            await asyncio.wait_for(publishing, 30)
        finally:
            publishing.cancel()
        return await self._end()

    # set up and clear away

    async def _set_up(self) -> None:
        plan = self.plan
        self.disk = self._disk()
        await asyncio.to_thread(self.disk.open)
        self.medium = await asyncio.to_thread(self._medium)
        self.share = self.medium.path / "chunks"
        self.share.mkdir()
        self.broker = self._broker()
        await asyncio.to_thread(self.broker.start)
        self.excused += [(-inf, inf)] if plan.broker in foreign.LOSES else []
        self.proxy = Proxy(self.broker.port)
        await self.proxy.open()
        name = f"c{plan.seed}-{plan.index}-{time.monotonic_ns() % 10**9}"
        self.topic = f"campaign/{name}"
        self.sensor = self._sensor(name)
        if plan.settings["gateway"]:
            self.gateway = gateways.make()
            self.environment |= gateways.PASSWORD
        if "share hangs" in plan.families and self.medium is self.disk:
            self.environment[hangs.FOLDER] = str(self.share)
        self.launcher = self.tools.launcher
        if "clock" in plan.families and self.tools.faked is not None:
            self.launcher = self.tools.faked
            self.environment["FAKETIME_TIMESTAMP_FILE"] = str(self.folder / "clock")
            self._set_clock("+0")
        self.file, self.device = self.folder / "agent.toml", gateways.DEVICE if self.gateway else name
        self.file.write_text(self._configuration())

    def _sensor(self, name: str) -> Sensor | ways.Poster | ways.Writer:
        plan = self.plan
        self.proxy.subscribes = plan.way not in ("http", "tail")
        self.listen = free_port()
        if plan.way == "http":
            return ways.Poster(self.listen, self.topic, plan.random("impatience"))
        if plan.way == "tail":
            return ways.Writer(self.grows, plan.random("pieces"))
        return Sensor(self.broker.port, plan.identity, f"sensor-{name}", self.topic)

    def _disk(self) -> storage.Plain:
        families = self.plan.families
        if "power cut" in families and storage.can_cut_power():
            return storage.PowerDisk(self.folder)
        if {"disk full", "disk read-only"} & {*families} and self.plan.index % 2 and storage.can_mount():
            return storage.Small(self.folder)
        if "disk read-only" in families and storage.can_mount():
            return storage.Small(self.folder)
        return storage.Plain(self.folder)

    def _medium(self) -> storage.Plain:
        """What the target's folder is on: a file system of its own where it hangs, else the state's."""
        if "share hangs" not in self.plan.families or not storage.can_cut_power():
            return self.disk
        medium = storage.PowerDisk(self.folder, "medium")
        medium.open()
        return medium

    def _broker(self) -> brokers.Mosquitto | brokers.Demo | brokers.Rabbit | brokers.Shared | foreign.Foreign:
        if foreign.is_foreign(self.plan.kind):
            return foreign.Foreign(self.plan.kind, self.folder)
        if self.plan.kind == "rabbitmq" and "broker killed" in self.plan.families:
            return brokers.Rabbit(self.folder / "rabbitmq")
        if self.plan.kind == "rabbitmq":
            assert self.tools.rabbit is not None
            return brokers.Shared(self.tools.rabbit)
        if self.plan.kind == "builtin":
            return brokers.Demo()
        keeps = "broker killed" in self.plan.families
        return brokers.Mosquitto(self.folder, self.plan.settings["inflight"], keeps=keeps)

    async def _clear(self) -> None:
        if self.agent is not None and self.agent.alive:
            await self.agent.kill()
        for part in ("sensor", "proxy"):
            if hasattr(self, part):
                with contextlib.suppress(OSError):
                    await getattr(self, part).close()
        if getattr(self, "medium", None) is getattr(self, "disk", None):
            self.medium = None
        for part in ("broker", "medium", "disk"):
            if getattr(self, part, None) is not None:
                with contextlib.suppress(Exception):  # the rest has to be cleared away too
                    await asyncio.to_thread(getattr(self, part).close)
        if self.gateway is not None:
            self.gateway.kill()

    # the sensor

    async def _publish(self) -> None:
        """All but the marker, as many as the events have allowed so far, in bursts."""
        chance = self.plan.random("sensor")
        made = messages(self.plan.identity, self.plan.messages, self.plan.habits, chance, self.plan.form)
        pause = self.plan.random("pause")
        for sent, message in enumerate(made):
            if message.value == MARKER:
                self.marker = message
                return
            while sent >= self.allowed:
                await asyncio.sleep(0.003)
            await self.sensor.send(message)
            if pause.random() < 0.05:
                await asyncio.sleep(pause.uniform(0, 0.02))

    # the end

    async def _end(self) -> oracle.Verdict:
        """Everything heals; one more life takes all there is, hands it on, and what came is judged."""
        self.proxy.flow()
        await self.sensor.settle(20)
        await self._stop(15)
        self.launcher = self.tools.launcher  # the clock is right now
        await self._start(drain=True)
        stuck = []
        if not await self._ready(20):
            stuck.append("the last life did not subscribe within 20 s")
        await self._take_all(stuck)
        code = await self._stop(DRAIN + 10)
        if code != 0:
            stuck.append(f"the last life ended with {code}")
        found = oracle.read(self._documents())
        counters = await self._counters()
        odd = bool(self.plan.habits.wrap or (self.plan.identity == "sequence" and self.plan.habits.reboot))
        seen = oracle.Seen(self.proxy.promised, self.proxy.answers, self.excused, counters, odd)
        verdict = oracle.judge(self.plan.identity, self.sensor.published, found, seen)
        verdict.stuck = len(stuck) + self.crashes
        verdict.words += stuck
        return verdict

    async def _take_all(self, stuck: list[str]) -> None:
        """The marker, last of all; when the agent has acknowledged it, it has had everything before it."""
        before = self.proxy.promised[self.marker.payload]
        await self.sensor.send(self.marker)
        settled = await self.sensor.settle(10)
        if not isinstance(self.sensor, Sensor):
            stuck += [] if settled else ["the last message was not acknowledged within 10 s"]
            # The agent looks for the file after one that was rotated up to two seconds after its end.
            await asyncio.sleep(5.0 if isinstance(self.sensor, ways.Writer) else 0.5)
            await self._last_answer()
            return
        end = time.monotonic() + 20
        while time.monotonic() < end:
            if self.proxy.promised[self.marker.payload] > before and not self.proxy.in_flight:
                await asyncio.sleep(0.03)
                if not self.proxy.in_flight:
                    await self._last_answer()
                    return
            await asyncio.sleep(0.005)
        stuck.append("the last message was not acknowledged within 20 s")

    async def _last_answer(self) -> None:
        """Wait until no further answer comes: they are published every 100 ms, and at QoS 0."""
        end, known, quiet = time.monotonic() + 3, len(self.proxy.answers), inf
        while time.monotonic() < min(end, quiet):
            if len(self.proxy.answers) != known:
                known, quiet = len(self.proxy.answers), time.monotonic() + 0.3
            await asyncio.sleep(0.01)

    def _documents(self) -> list[bytes]:
        files = [path.read_bytes() for path in sorted(self.share.rglob("*.json")) if not path.name.startswith(".")]
        return files + (self.gateway.found() if self.gateway else [])

    async def _counters(self) -> dict[str, int]:
        out = self.folder / "status.json"
        arguments = ["status", "--json", str(self.file)]
        agent = await self.launcher.start(arguments, self.folder / "log", self.environment, out=out)
        await agent.ended
        try:
            found: dict[str, int] = json.loads(out.read_bytes())["counters"]
        except (OSError, ValueError, KeyError):
            return {}
        return found


__all__ = ["Message", "Outcome", "Run", "Tools"]
