"""The driver's handle on the launcher: start an agent, kill it, tell it to stop, and know how it ended."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]


@dataclass
class Agent:
    """One process."""

    pid: int
    ended: asyncio.Future[int]
    killed: bool = False

    @property
    def alive(self) -> bool:
        """Whether it has not ended."""
        return not self.ended.done()

    @property
    def stopped(self) -> bool:
        """Whether no thread of it runs or is in a system call."""
        states = set()
        for path in Path(f"/proc/{self.pid}/task").glob("*/stat"):
            with contextlib.suppress(OSError):
                states.add(path.read_text().rpartition(")")[2].split()[0])
        return states <= {"T", "Z", "X"}

    async def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self.killed = True
        self.send(signal.SIGKILL)
        await asyncio.shield(self.ended)

    def send(self, number: int) -> None:
        """A signal."""
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    async def stop(self, seconds: float) -> int | None:
        """SIGTERM, and its exit code; None where it did not end in time and was killed."""
        self.send(signal.SIGTERM)
        try:
            return await asyncio.wait_for(asyncio.shield(self.ended), seconds)
        except TimeoutError:
            await self.kill()
            return None


@dataclass
class Launcher:
    """A launcher's process; `environment` is added to its own."""

    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._number = 0
        self._started: dict[int, asyncio.Future[int]] = {}
        self._ended: dict[int, asyncio.Future[int]] = {}

    async def open(self) -> Launcher:
        """Start it."""
        path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "campaign.launcher", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": path} | self.environment, start_new_session=True,
        )  # fmt: skip
        assert self._process.stdout is not None
        if not await self._process.stdout.readline():
            raise RuntimeError("the launcher did not start: see above")
        self._reading = asyncio.get_running_loop().create_task(self._read(self._process.stdout))
        return self

    async def start(
        self, arguments: list[str], log: Path, environment: dict[str, str], *, out: Path | None = None, plant: str = ""
    ) -> Agent:
        """An agent with these arguments, what it says in `log`; `plant` is a defect to put into it."""
        self._number += 1
        loop, number = asyncio.get_running_loop(), self._number
        started, ended = loop.create_future(), loop.create_future()
        self._started[number], self._ended[number] = started, ended
        order: dict[str, Any] = {"id": number, "args": arguments, "env": environment, "log": str(log), "plant": plant}
        order |= {"out": str(out)} if out else {}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        await self._process.stdin.drain()
        return Agent(await started, ended)

    async def close(self) -> None:
        """End it, and what it started."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()
        self._reading.cancel()

    async def _read(self, lines: asyncio.StreamReader) -> None:
        while line := await lines.readline():
            told = json.loads(line)
            if "pid" in told:
                self._started.pop(told["id"]).set_result(told["pid"])
            else:
                ended = self._ended.pop(told["id"])
                if not ended.done():
                    ended.set_result(told["status"])
