"""Sensors that go other ways than MQTT: by POST to the agent's listener, and as lines of a file that grows.

Like the sensor of MQTT they write down what they said and when it was acknowledged: with 200 by the agent, after its
commit; by the file at once, since it keeps what was appended.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass, field
from pathlib import Path

from campaign.sensor import Message

#: Of a POST: how often the sender hangs up before it has the answer, and sends again.
IMPATIENT = 0.05
#: Lines after which the file is renamed and another begun.
ROTATED = 120


@dataclass
class Poster:
    """Posts each message, again and again until it is answered with 200."""

    port: int
    topic: str
    impatience: object
    published: list[Message] = field(default_factory=list)
    reconnects: int = 0
    paused: bool = False

    def __post_init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    async def send(self, message: Message) -> None:
        """As soon as there is room: a few at once, as many as the agent has connections."""
        while len(self._tasks) >= 3:
            await asyncio.sleep(0.002)
        if not message.sends:
            self.published.append(message)
        message.repeat |= message.sends > 0
        message.sends += 1
        task = asyncio.get_running_loop().create_task(self._post(message))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def settle(self, seconds: float) -> bool:
        """Wait until all are answered; whether they were."""
        end = time.monotonic() + seconds
        while self._tasks and time.monotonic() < end:
            await asyncio.sleep(0.005)
        return not self._tasks

    async def close(self) -> None:
        """Give up."""
        for task in [*self._tasks]:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _post(self, message: Message) -> None:
        head = f"POST /in/{self.topic} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n"
        head += f"Content-Length: {len(message.payload)}\r\nConnection: close\r\n\r\n"
        message.sent = min(message.sent, time.monotonic())
        while True:
            with contextlib.suppress(OSError, EOFError, TimeoutError, ValueError, IndexError):
                async with asyncio.timeout(10):  # wait_for may lose the cancellation of who gives up
                    status = await self._status(head.encode() + message.payload)
                if status == 200:
                    message.acknowledged = time.monotonic()
                    return
            self.reconnects += 1
            await asyncio.sleep(0.01)
            message.sends += 1

    async def _status(self, request: bytes) -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(request)
            if self.impatience.random() < IMPATIENT:  # type: ignore[attr-defined]
                await writer.drain()
                return 0
            return int((await reader.readline()).split()[1])
        finally:
            writer.transport.abort()


@dataclass
class Writer:
    """Appends each message as a line, sometimes in two pieces; the file is rotated now and then."""

    file: Path
    chance: object
    published: list[Message] = field(default_factory=list)
    reconnects: int = 0
    paused: bool = False

    def __post_init__(self) -> None:
        self._lines = 0
        self.file.touch()

    async def send(self, message: Message) -> None:
        """Append it: each line is a message, so what the sensor says twice counts twice where nothing tells it."""
        if not message.sends:
            self.published.append(message)
        message.repeat |= message.sends > 0
        message.sends += 1
        message.sent = min(message.sent, time.monotonic())
        if self._lines >= ROTATED:
            self._lines = 0
            self.file.rename(self.file.with_name(f"{self.file.name}.{time.monotonic_ns()}"))
        cut = len(message.payload) // 2 if self.chance.random() < 0.1 else 0  # type: ignore[attr-defined]
        with self.file.open("ab", buffering=0) as file:
            if cut:
                file.write(message.payload[:cut])
                await asyncio.sleep(0.002)
            file.write(message.payload[cut:] + b"\n")
        self._lines += 1
        message.acknowledged = time.monotonic()
        await asyncio.sleep(0)

    async def settle(self, seconds: float) -> bool:
        """The file has it all."""
        return True

    async def close(self) -> None:
        """Nothing is held open."""
