"""Asks every device once a period until it is told to stop, then hands on what waits for a few seconds more."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import secrets
import signal
import time
from collections.abc import Sequence
from typing import Any

from sluicegate_agent.polling.config import ModbusConfig, OpcUaConfig, PollConfig
from sluicegate_agent.polling.handing import Agent, Counters, Handing
from sluicegate_agent.polling.kept import Kept
from sluicegate_agent.polling.modbus import Modbus
from sluicegate_agent.polling.opcua import OpcUa
from sluicegate_agent.polling.reading import Device, DeviceError, Readings

log = logging.getLogger("sluicegate.poll")
#: Seconds that what waits has to be handed on, and a device to hang up; between two tries to end a task.
_LEAVE_WITHIN, _TRY_EVERY = 5.0, 0.1


def device_of(config: ModbusConfig | OpcUaConfig) -> Device:
    """What asks the device. Raises EnvironmentRefused where its extra is not installed."""
    return Modbus(config) if isinstance(config, ModbusConfig) else OpcUa(config)


async def look(config: PollConfig) -> dict[str, Readings | str]:
    """Each device's values once, by topic; a text where it cannot be reached."""
    found: dict[str, Readings | str] = {}
    for each in config.devices:
        device = device_of(each)
        try:
            found[each.topic] = await device.read()
        except DeviceError as error:
            found[each.topic] = str(error)
        finally:
            await device.close()
    return found


async def run(config: PollConfig) -> dict[str, Counters]:
    """Until SIGTERM or SIGINT. Returns what became of each device's messages, by topic."""
    agent, boot = Agent(config.agent), secrets.token_hex(6)
    pollers = [Poller(each, _handing(config, agent, each.topic, boot)) for each in config.devices]
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    asking = [asyncio.create_task(poller.run()) for poller in pollers]
    sending = [asyncio.create_task(poller.handing.run()) for poller in pollers]
    ended = asyncio.create_task(stop.wait())
    done, _ = await asyncio.wait([*asking, *sending, ended], return_when=asyncio.FIRST_COMPLETED)
    for poller in pollers:
        poller.is_leaving = True
        poller.handing.leave()
    await _cancelled(asking)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LEAVE_WITHIN):
            while not all(poller.handing.is_empty for poller in pollers):
                await asyncio.sleep(0.05)
    await _cancelled([*sending, ended])
    closing = [asyncio.create_task(poller.device.close()) for poller in pollers]
    await asyncio.wait(closing, timeout=_LEAVE_WITHIN)
    await _cancelled(closing)
    for task in done - {ended}:
        task.result()  # what should never end has failed: say how
    return {poller.topic: poller.handing.counters for poller in pollers}


def _handing(config: PollConfig, agent: Agent, topic: str, boot: str) -> Handing:
    kept = Kept(config.agent.keep, topic) if config.agent.keep else None
    return Handing(agent, topic, config.agent.waiting, boot, kept)


async def _cancelled(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Cancel them until each has ended, for a while: a device's library may take the first one for its own."""
    tries, left = round(_LEAVE_WITHIN / _TRY_EVERY), set(tasks)
    while left and (tries := tries - 1):
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=_TRY_EVERY)


class Poller:
    """One device, asked at whole multiples of its period; a period that it was too slow for is passed over."""

    def __init__(self, config: ModbusConfig | OpcUaConfig, handing: Handing) -> None:
        self.topic, self.handing, self.device = config.topic, handing, device_of(config)
        self._seconds = config.every.seconds
        self._told: str | None = None
        self.is_leaving = False

    async def run(self) -> None:
        """Until it is cancelled, or leaves."""
        while not self.is_leaving:
            await asyncio.sleep(self._seconds - time.time() % self._seconds)
            await self.ask()

    async def ask(self) -> None:
        """Once. The time of a message is the middle of its question and its answer."""
        since = time.time()
        try:
            found = await self.device.read()
        except DeviceError as error:
            self.handing.counters.failed += 1
            self._say(f"cannot be reached: {error}")
            return
        values = {name: value if _is_finite(value) else None for name, value in found.values.items()}
        self._say("; ".join(found.problems[:5]))
        if any(value is not None for value in values.values()):
            self.handing.put(round((since + time.time()) * 500), values)
        else:
            self.handing.counters.failed += 1

    def _say(self, problem: str) -> None:
        """A line where it changes, not one a period."""
        if problem == self._told:
            return
        if problem:
            log.warning("%s: %s", self.topic, problem)
        elif self._told:
            log.info("%s: all values are there again", self.topic)
        self._told = problem


def _is_finite(value: float | None) -> bool:
    return value is not None and math.isfinite(value)
