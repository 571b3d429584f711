"""A TCP proxy between agent and broker that knows what passes: it cuts, stalls, goes dead, and loses PUBACKs.

What the agent has acknowledged is what it sent a PUBACK for, whether or not the broker ever got it: that is where the
agent's promise begins, so it is written down here, before a fault may swallow it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
import time
from collections import Counter
from typing import Any

from campaign import wire

PIECE = 65536


class Pipe:
    """One connection: two sockets, what is in flight, and how the two directions are treated now."""

    def __init__(self, proxy: Proxy, near: asyncio.StreamWriter, far: asyncio.StreamWriter) -> None:
        self.proxy, self.near, self.far = proxy, near, far
        self.in_flight: dict[int, bytes] = {}
        self.ready = False
        self.dead = False
        self.lose = 0
        self.half = False
        self.over = False
        self.version = 5

    def from_broker(self, packet: bytes) -> bytes:
        """What goes on to the agent."""
        if self.over:
            return b""
        kind = packet[0] >> 4
        if kind == wire.PUBLISH:
            message = wire.published(packet, self.version)
            if message.qos:
                self.in_flight[message.packet] = message.payload
            flags = " dup" * (packet[0] >> 3 & 1) + " retained" * (packet[0] & 1)
            self.proxy.note(f"> {message.packet}{flags} {message.payload.decode(errors='replace')}")
            self.proxy.delivered += 1
            if self.half:
                self._reset_soon()
                return packet[: len(packet) // 2]
        elif kind == wire.CONNACK:
            self.proxy.note(f"CONNACK, session present {packet[wire.body_of(packet)] & 1}")
            if not self.proxy.subscribes:
                self._serve()
        elif kind == wire.SUBACK:
            self._serve()
        return packet

    def _serve(self) -> None:
        self.ready = True
        self.proxy.served += 1

    def from_agent(self, packet: bytes) -> bytes:
        """What goes on to the broker."""
        kind = packet[0] >> 4
        if kind == wire.PUBACK:
            payload = self.in_flight.pop(wire.packet_id(packet), None)
            if payload is not None:
                self.proxy.promised[payload] += 1
            self.proxy.note(f"< PUBACK {wire.packet_id(packet)}{' lost' if self.lose or self.over else ''}")
            if self.lose == 1:
                self._reset_soon()
            self.lose -= self.lose > 1
        elif kind == wire.PUBLISH:
            self.proxy.answered(wire.published(packet, self.version).payload)
        elif kind == wire.CONNECT:
            self.version = packet[wire.body_of(packet) + 6]
            self.proxy.attempts += 1
        return b"" if self.lose or self.over else packet

    def _reset_soon(self) -> None:
        """Nothing passes after what was lost, as TCP has it."""
        self.over = True
        asyncio.get_running_loop().call_soon(self.reset)

    def reset(self) -> None:
        """RST to both sides."""
        for writer in (self.near, self.far):
            sock = writer.get_extra_info("socket")
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()

    def finish(self) -> None:
        """FIN to both sides."""
        for writer in (self.near, self.far):
            with contextlib.suppress(OSError, RuntimeError):
                writer.close()


class Proxy:
    """Listens on a port of this machine; `promised` counts PUBACKs by payload, `answers` are the results that went by.

    `served` counts subscriptions that the broker has confirmed, or connections of an agent that subscribes to nothing
    (`subscribes`); `delivered` messages to the agent, `cuts` what it cut.
    """

    def __init__(self, target: int) -> None:
        self.target = target
        self.port = 0
        self.promised: Counter[bytes] = Counter()
        self.answers: list[dict[str, Any]] = []
        self.served = self.delivered = self.attempts = self.cuts = 0
        self.refusing, self.subscribes = False, True
        self.notes: list[str] = []
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._pipes: set[Pipe] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Begin to listen."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=1 << 20)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """End every connection."""
        self._server.close()
        for pipe in [*self._pipes]:
            pipe.reset()
        for task in [*self._tasks]:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def note(self, what: str) -> None:
        """For a person: what passed, and when."""
        self.notes.append(f"{time.time():.6f} {what}")

    @property
    def ready(self) -> bool:
        """Whether the agent is connected now and subscribed."""
        return any(pipe.ready and not pipe.dead for pipe in self._pipes)

    @property
    def in_flight(self) -> int:
        """Messages delivered on the connections there are and not acknowledged."""
        return sum(len(pipe.in_flight) for pipe in self._pipes)

    def answered(self, payload: bytes) -> None:
        """Keep the answers of a message of results."""
        with contextlib.suppress(ValueError):
            self.answers.extend(json.loads(payload).get("results", []))

    def cut(self, how: str, count: int = 1) -> bool:
        """Cut what is connected: "rst", "fin", "half" a packet, "pubacks" (`count` lost first); whether any was."""
        pipes = [pipe for pipe in self._pipes if not pipe.dead]
        for pipe in pipes:
            if how == "rst":
                pipe.reset()
            elif how == "fin":
                pipe.finish()
            elif how == "half":
                pipe.half = True
            else:
                pipe.lose = count
        self.cuts += bool(pipes)
        return bool(pipes)

    def stall(self) -> None:
        """Pass nothing on, either way, until `flow`."""
        self._flowing.clear()

    def flow(self) -> None:
        """Pass everything on again."""
        self._flowing.set()

    def half_open(self) -> bool:
        """The broker's side ends, the agent's stays and says nothing more."""
        pipes = [pipe for pipe in self._pipes if not pipe.dead]
        for pipe in pipes:
            pipe.dead = True
            pipe.far.transport.abort()
        self.cuts += bool(pipes)
        return bool(pipes)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._carry(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if self.refusing:
                raise ConnectionRefusedError
            far_reader, far = await asyncio.open_connection("127.0.0.1", self.target, limit=1 << 20)
        except OSError:
            writer.transport.abort()
            return
        pipe = Pipe(self, writer, far)
        self._pipes.add(pipe)
        try:
            ways = (
                self._pass(reader, far, pipe.from_agent, pipe),
                self._pass(far_reader, writer, pipe.from_broker, pipe),
            )
            await asyncio.gather(*ways)
        finally:
            self._pipes.discard(pipe)
            pipe.finish()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, change: Any, pipe: Pipe) -> None:
        packets = wire.Packets()
        try:
            while data := await reader.read(PIECE):
                await self._flowing.wait()
                for packet in packets.feed(data):
                    changed = change(packet)
                    if changed and not pipe.dead:
                        writer.write(changed)
                await writer.drain()
        except (OSError, RuntimeError):
            pass
        if pipe.dead and writer is pipe.near:
            return  # half open: nothing is said until the agent gives up
        for side in (pipe.near, pipe.far):
            with contextlib.suppress(OSError, RuntimeError):
                side.close()
