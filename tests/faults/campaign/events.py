"""The events of a run: how an agent, a broker, a disk, a clock, a share and a gateway come to harm."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import signal
import sqlite3
import time
from math import inf
from pathlib import Path
from typing import Any

from campaign import brokers, hangs, storage, wire
from campaign.life import Life
from campaign.sensor import Sensor

TAKES_ON = 5.0  # seconds: intake may stop for 2, and this machine may be busy


class Events(Life):
    """One method an event, called `_do_` and its name."""

    async def _event(self, event: dict[str, Any]) -> None:
        await self._ready()
        await asyncio.sleep(event["after"])
        self.proxy.note(f"EVENT {event}")
        await getattr(self, f"_do_{event['do']}")(event)

    async def _do_kill(self, event: dict[str, Any]) -> None:
        await self._kill()
        await self._start()

    async def _do_kill_at(self, event: dict[str, Any]) -> None:
        await self._kill()
        await self._start(at=event["at"])
        assert self.agent is not None
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self.agent.ended), 0.35)
        if self.agent.alive:
            await self._kill()
        else:
            self._note_end()
        await self._start()

    async def _do_restart(self, event: dict[str, Any]) -> None:
        await self._stop(5)
        await self._start()

    async def _do_reload(self, event: dict[str, Any]) -> None:
        """Another configuration for the running agent, or one that is wrong; it may be killed in the middle."""
        assert self.agent is not None
        if event["broken"]:
            self._write("nonsense = 1\n")
            self.agent.send(signal.SIGHUP)
            await asyncio.sleep(event["seconds"])
        self.edition += 1
        self._write("")
        self.agent.send(signal.SIGHUP)
        await asyncio.sleep(event["seconds"])
        if event["kill"]:
            await self._kill()
            await self._start()

    def _write(self, before: str) -> None:
        partial = self.folder / "agent.new"
        partial.write_text(before + self._configuration())
        partial.replace(self.file)

    async def _do_cut(self, event: dict[str, Any]) -> None:
        if not self.proxy.cut(event["how"], event["count"]):
            return
        if event["how"] in ("half", "pubacks"):
            before, end = self.proxy.served, time.monotonic() + 0.4
            while self.proxy.ready and self.proxy.served == before and time.monotonic() < end:
                await asyncio.sleep(0.003)
            if self.proxy.ready and self.proxy.served == before:
                self.proxy.cut("rst")
                self.proxy.cuts -= 1

    async def _do_stall(self, event: dict[str, Any]) -> None:
        self.proxy.stall()
        await asyncio.sleep(event["seconds"])
        if event["kill"]:
            await self._kill()
            self.proxy.cut("rst")
        self.proxy.flow()

    async def _do_half_open(self, event: dict[str, Any]) -> None:
        if not self.proxy.half_open():
            return
        if event["kill"]:
            await asyncio.sleep(event["seconds"])
            await self._kill()
        else:
            await self._ready(12.0)  # the keepalive of these runs is 5 s, the least there is

    async def _do_session_lost(self, event: dict[str, Any]) -> None:
        """Another client asks for a clean session under the agent's name: with ours goes what waited in it."""
        self.excused.append((-inf, inf))
        before = self.proxy.served
        await self._forget_session()
        await self._served_again(before)
        self.excused[-1] = (-inf, time.monotonic())

    async def _forget_session(self) -> None:
        with contextlib.suppress(OSError, EOFError, TimeoutError):
            reader, writer = await asyncio.open_connection("127.0.0.1", self.broker.port)
            writer.write(wire.connect(f"agent-{self.topic.rpartition('/')[2]}"))
            await asyncio.wait_for(reader.readexactly(4), 10)
            writer.write(bytes([wire.DISCONNECT << 4, 0]))
            await asyncio.wait_for(reader.read(), 2)
            writer.close()

    async def _do_standby(self, event: dict[str, Any]) -> None:
        """A second broker has the first one's name for a while; what it was given and could not hand on it loses."""
        if self.plan.way != "mqtt" or not isinstance(self.sensor, Sensor):
            return
        other = brokers.Demo()
        await asyncio.to_thread(other.start)
        began, before = time.monotonic(), self.proxy.served
        self.excused.append((began, inf))
        try:
            self._named(other.port)
            await self._served_again(before)
            await asyncio.sleep(event["seconds"])
            if event["kill"]:
                await self._kill()
                await self._start()
            before = self.proxy.served
            self._named(self.broker.port)
            await self._served_again(before)
        finally:
            await asyncio.to_thread(other.kill)
        self.excused[-1] = (began, time.monotonic())

    def _named(self, port: int) -> None:
        """The broker at this port has the name from now on."""
        assert isinstance(self.sensor, Sensor)
        self.proxy.target = self.sensor.port = port
        self.sensor.hang_up()
        self.proxy.cut("rst")

    async def _do_broker_killed_saved(self, event: dict[str, Any]) -> None:
        saving = time.monotonic()
        saved = await asyncio.to_thread(self.broker.save)
        await asyncio.sleep(event["after"])
        if isinstance(self.broker, brokers.Rabbit):
            saving = inf
        await self._broker_dies(saving if saved else -inf)

    async def _do_broker_killed_bare(self, event: dict[str, Any]) -> None:
        await self._broker_dies(-inf)

    async def _broker_dies(self, since: float) -> None:
        """What was published from `since` (inf: nothing) until the agent is subscribed again the broker may lose."""
        self.excused.append((since, inf))
        before = self.proxy.served
        await asyncio.to_thread(self.broker.kill)
        await asyncio.sleep(0.02)
        await asyncio.to_thread(self.broker.start)
        await self._served_again(before)
        self.excused[-1] = (since, time.monotonic())

    async def _served_again(self, before: int) -> None:
        """Wait until the agent has another connection, and its subscriptions."""
        end = time.monotonic() + 30
        while (self.proxy.served == before or not self.proxy.ready) and time.monotonic() < end:
            await self._ready(0.2)
            await asyncio.sleep(0.004)

    async def _do_disk_full(self, event: dict[str, Any]) -> None:
        assert self.agent is not None
        self.disk.fill(self.agent.pid)
        await asyncio.sleep(event["seconds"])
        if event["kill"]:
            await self._kill()
        self.disk.free(self.agent.pid)
        if not await self._ready(0.5):
            await self._stop(10)
            await self._start()

    async def _do_read_only(self, event: dict[str, Any]) -> None:
        await (self._kill() if event["kill"] else self._stop(5))
        if self.disk.read_only(on=True):
            await self._start()
            await asyncio.sleep(event["seconds"])
            assert self.agent is not None
            if self.agent.alive:
                await self._kill()
            self.disk.read_only(on=False)
        await self._start()

    async def _do_power_cut(self, event: dict[str, Any]) -> None:
        if not isinstance(self.disk, storage.PowerDisk):
            return
        await self._freeze()
        self.disk.cut_power()
        await self._kill()
        self.disk.restore_power()
        await self._start()

    async def _freeze(self) -> None:
        """Stop the agent between two of its system calls, as a power cut does.

        An fdatasync that is under way while ext4 is shut down may say that it succeeded although its transaction was
        dropped (seen on Linux 6.18): no medium loses what it has confirmed that way.
        """
        assert self.agent is not None
        self.agent.send(signal.SIGSTOP)
        end = time.monotonic() + 1.0
        while not self.agent.stopped and time.monotonic() < end:
            await asyncio.sleep(0.001)

    async def _do_clock(self, event: dict[str, Any]) -> None:
        if self.launcher is not self.tools.faked:
            return
        self._set_clock(event["offset"])
        await asyncio.sleep(event["seconds"])
        if event["after"] > 0.02:
            await self._kill()
            await self._start()
            await self._ready()
            await asyncio.sleep(event["seconds"])
        self._set_clock("+0")

    def _set_clock(self, offset: str) -> None:
        partial = self.folder / "clock.new"
        partial.write_text(f"{offset}\n")
        partial.replace(self.folder / "clock")

    async def _do_share_hangs(self, event: dict[str, Any]) -> None:
        flag = Path(f"{self.share}{hangs.FLAG}")
        medium = self.medium if isinstance(self.medium, storage.PowerDisk) and self.medium is not self.disk else None
        await asyncio.to_thread(medium.hang if medium else flag.touch)
        try:
            await (asyncio.sleep(event["seconds"]) if event["kill"] else self._takes_on())
            if event["kill"] and self.agent is not None:
                self.agent.send(signal.SIGKILL)  # it may not end before the share goes on
        finally:
            await asyncio.to_thread(medium.go_on if medium else flag.unlink)
        if event["kill"]:
            await self._kill()
        await self._ready()

    async def _takes_on(self) -> None:
        """While the share hangs readings are taken as ever: acknowledged before long, if there are any."""
        before = self._acknowledged(), len(self.sensor.published)
        self.allowed = min(self.plan.messages, self.allowed + 30)
        end = time.monotonic() + TAKES_ON
        while self._acknowledged() == before[0] and time.monotonic() < end:
            await asyncio.sleep(0.02)
        if self._acknowledged() == before[0] and len(self.sensor.published) > before[1] and self.proxy.ready:
            self.words.append(f"nothing was acknowledged for {TAKES_ON:.0f} s while the share hung")
            self.crashes += 1

    def _acknowledged(self) -> int:
        """What the agent, or the file, has acknowledged so far."""
        if self.plan.way in ("http", "tail"):
            return sum(message.acknowledged < inf for message in self.sensor.published)
        return self.proxy.promised.total()

    async def _do_share_away(self, event: dict[str, Any]) -> None:
        if not await self._is_known(2.0):
            return  # an agent that has never seen the share cannot know that another folder is in its place
        away = self.share.with_name("medium")
        self.share.rename(away)
        self.share.mkdir()
        await asyncio.sleep(event["seconds"])
        if event["kill"]:
            await self._kill()
        shutil.rmtree(self.share.with_name("bare"), ignore_errors=True)
        self.share.rename(self.share.with_name("bare"))
        away.rename(self.share)

    async def _is_known(self, seconds: float) -> bool:
        """Whether the agent has written down which folder is its share: one that was killed before that has not."""
        end = time.monotonic() + seconds
        while not (known := self._target_kept()) and time.monotonic() < end:
            await asyncio.sleep(0.02)
        return known

    def _target_kept(self) -> bool:
        try:
            store = f"file:{self.disk.path}/state/state.db?mode=ro"
            with contextlib.closing(sqlite3.connect(store, uri=True)) as state:
                return state.execute("SELECT count(*) FROM meta WHERE key = 'targets'").fetchone() == (1,)
        except sqlite3.Error:
            return False

    async def _do_gateway_slow(self, event: dict[str, Any]) -> None:
        assert self.gateway is not None
        self.gateway.pause = 0.3
        await asyncio.sleep(event["seconds"])
        if event["kill"]:
            await self._kill()
        self.gateway.pause = 0.0

    async def _do_gateway_lies(self, event: dict[str, Any]) -> None:
        assert self.gateway is not None
        self.gateway.lie = event["lie"]
        await asyncio.sleep(event["seconds"])
        if event["kill"]:
            await self._kill()
        self.gateway.lie = ""
