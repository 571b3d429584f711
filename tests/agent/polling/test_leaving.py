"""A poller that is told to end does so, whatever a device's library makes of that, and hands on what it has."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from sluicegate_agent.polling import config, handing, running
from sluicegate_agent.polling.reading import Readings


class Stubborn:
    """Takes the first end for its own, as pymodbus was seen to do, and never hangs up."""

    asked = 0

    async def read(self) -> Readings:
        """The first one answers at once, others wait."""
        Stubborn.asked += 1
        if Stubborn.asked > 1:
            os.kill(os.getpid(), signal.SIGTERM)
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(3600)
        return Readings({"x": float(Stubborn.asked)})

    async def close(self) -> None:
        """Never."""
        await asyncio.sleep(3600)


def test_a_library_that_swallows_the_end_does_not_keep_the_poller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the service is killed, and what waits is lost without a trace."""
    taken: list[bytes] = []

    def post(self: Any, topic: str, body: bytes) -> tuple[int, bytes]:
        taken.append(body)
        return 200, b'{"accepted": 1, "duplicates": 0, "refused": 0}'

    monkeypatch.setattr(running, "device_of", lambda config: Stubborn())
    monkeypatch.setattr(running, "_LEAVE_WITHIN", 0.2)
    monkeypatch.setattr(handing.Agent, "post", post)
    file = tmp_path / "poll.toml"
    file.write_text('[[modbus]]\ntopic = "press"\nhost = "a"\nevery = "10ms"\nvalues.x = { address = 1 }\n')
    found = asyncio.run(asyncio.wait_for(running.run(config.load(file)), 30))
    assert found["press"].read == found["press"].sent == 2
    assert b'"x":1.0' in b"".join(taken)
