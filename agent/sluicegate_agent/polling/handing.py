"""What was read on its way to the agent: held in bounded memory until the agent says that it is durable.

Each message has the number of its device's and of this process's start (`boot`, `seq`): the agent knows one that is
sent again by it, and that some are missing. With `agent.keep` they outlive the process.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import logging
import random
import ssl
from collections import deque
from dataclasses import dataclass
from urllib.parse import quote

from sluicegate_agent.logs.secrets import hide
from sluicegate_agent.passwords import first_line
from sluicegate_agent.polling.config import AgentConfig
from sluicegate_agent.polling.kept import Kept

log = logging.getLogger("sluicegate.poll")
#: Messages and bytes of one request, at most; below the default of `http.body`.
_MESSAGES, _BYTES = 500, 128 << 10
_ANSWER = 64 << 10
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 10.0
_DONE = (200, 422)


@dataclass
class Counters:
    """Of one device: messages `read`, `sent`, `refused` by the agent and `dropped` for want of room; polls `failed`."""

    read: int = 0
    sent: int = 0
    refused: int = 0
    dropped: int = 0
    failed: int = 0


class Agent:
    """The listener that takes readings."""

    def __init__(self, config: AgentConfig) -> None:
        """Raises EnvironmentRefused where the token cannot be read."""
        self._config = config
        self._headers = {"Content-Type": "application/x-ndjson"}
        if config.token_file:
            self._headers["Authorization"] = f"Bearer {hide(first_line('agent.token_file', config.token_file))}"

    def post(self, topic: str, body: bytes) -> tuple[int, bytes]:
        """Status and answer of one request. Raises OSError or HTTPException where there is none."""
        parts, seconds = self._config.parts, self._config.timeout.seconds
        connection = (
            http.client.HTTPSConnection(
                parts.hostname or "", parts.port, timeout=seconds, context=ssl.create_default_context()
            )
            if parts.scheme == "https"
            else http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=seconds)
        )
        try:
            connection.request("POST", f"{parts.path.rstrip('/')}/in/{quote(topic)}", body, self._headers)
            answer = connection.getresponse()
            return answer.status, answer.read(_ANSWER)
        finally:
            connection.close()


class Handing:
    """One device's messages, the oldest first: `put` adds one, `run` sends them until it is cancelled."""

    def __init__(self, agent: Agent, topic: str, most: int, boot: str, kept: Kept | None = None) -> None:
        """At most `most` messages are held; beyond that the oldest go, are counted, and show as missing.

        The first of a start stays: without it the agent would take the numbers to begin later, and miss nothing.
        `kept`: where they are held as well; what an earlier process left there is handed on first.
        """
        self._agent, self._topic, self._most, self._boot = agent, topic, most, boot
        self._kept, self._next = kept, 0
        left = kept.read(most) if kept else []
        #: By number; those of an earlier process by 0 and below.
        self._held = deque(enumerate(left, 1 - len(left)))
        self._is_full = self._is_lost = False
        self._some, self._leaving = asyncio.Event(), asyncio.Event()
        if left:
            log.info("%s: %d messages that an earlier process held wait", topic, len(left))
            self._some.set()
        self._messages = _MESSAGES
        self.counters = Counters()

    @property
    def is_empty(self) -> bool:
        """Whether the agent has all."""
        return not self._held

    def put(self, time_ms: int, values: dict[str, float | None]) -> None:
        """A message of these values, read at `time_ms` since 1970."""
        self._next += 1
        message = {"time": time_ms, "boot": self._boot, "seq": self._next, "values": values}
        whole = json.dumps(message, allow_nan=False, separators=(",", ":")).encode()
        self._held.append((self._next, whole))
        if self._kept:
            self._kept.add(whole)
        self.counters.read += 1
        if len(self._held) > self._most:
            del self._held[1 if self._held[0][0] == 1 else 0]
            self.counters.dropped += 1
            if not self._is_full:
                log.warning("%s: more than agent.waiting = %d messages wait: the oldest go", self._topic, self._most)
            self._is_full = True
            self._keep()
        self._some.set()

    def _keep(self) -> None:
        """Some wait no more: the agent has them, or they made room."""
        if self._kept:
            self._kept.done(len(self._held), (message for _, message in self._held))

    def leave(self) -> None:
        """Try again soon, whatever the last answer was: the process is about to end."""
        self._leaving.set()

    async def run(self) -> None:
        """Send what there is, again and again until it is taken."""
        wait = _FIRST_WAIT
        while True:
            await self._some.wait()
            if await self._send():
                wait = _FIRST_WAIT
                if not self._held:
                    self._some.clear()
                continue
            seconds = wait * random.uniform(0.5, 1.0)  # noqa: S311 - so that devices do not ask all at once
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._leaving.wait(), seconds)
                await asyncio.sleep(_FIRST_WAIT)
            wait = min(wait * 2, _LONGEST_WAIT)

    async def _send(self) -> bool:
        batch = self._batch()
        if not batch:
            return True
        body = b"\n".join(message for _, message in batch)
        try:
            status, answer = await asyncio.to_thread(self._agent.post, self._topic, body)
        except (OSError, http.client.HTTPException) as error:
            return self._not_taken(f"{type(error).__name__}: {error}")
        if status in _DONE:
            self._taken(batch, status, answer)
            return True
        if status == 413 and len(batch) > 1:
            self._messages = max(len(batch) // 2, 1)
            return True
        if status == 413:
            log.error("%s: the agent takes no message of %d bytes: left out; raise http.body", self._topic, len(body))
            self.counters.refused += 1
            self._forget(batch)
            return True
        return self._not_taken(f"{status} {answer[:200].decode(errors='replace')}")

    def _batch(self) -> list[tuple[int, bytes]]:
        batch: list[tuple[int, bytes]] = []
        size = 0
        for number, message in self._held:
            size += len(message) + 1
            if batch and (len(batch) >= self._messages or size > _BYTES):
                break
            batch.append((number, message))
        return batch

    def _taken(self, batch: list[tuple[int, bytes]], status: int, answer: bytes) -> None:
        try:
            refused = min(int(json.loads(answer)["refused"]), len(batch))
        except (ValueError, KeyError, TypeError):
            refused = len(batch) if status == 422 else 0
        if refused:
            log.warning(
                "%s: the agent refused %d messages: %s", self._topic, refused, answer[:200].decode("utf-8", "replace")
            )
        if self._is_lost:
            log.info("%s: the agent takes readings again; %d messages waited", self._topic, len(self._held))
        self._is_lost = self._is_full = False
        self.counters.refused += refused
        self.counters.sent += len(batch) - refused
        self._forget(batch)

    def _forget(self, batch: list[tuple[int, bytes]]) -> None:
        """Those of them that are still held: the oldest may have gone for want of room meanwhile."""
        while self._held and self._held[0][0] <= batch[-1][0]:
            self._held.popleft()
        self._keep()

    def _not_taken(self, why: str) -> bool:
        if not self._is_lost:
            log.warning("%s: the agent does not take readings, they wait: %s", self._topic, why)
        self._is_lost = True
        return False
