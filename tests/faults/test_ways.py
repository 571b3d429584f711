"""The ways in which a sensor of the campaign sends: each gives up when it is told to."""

from __future__ import annotations

import asyncio
import random

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from campaign.sensor import Message
from campaign.ways import Poster


def test_who_posts_in_vain_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the request has just failed: a run would wait for ever."""

    async def main() -> None:
        poster = Poster(1, "t", random.Random(1))
        failed = asyncio.Event()

        async def status(request: bytes) -> int:
            await failed.wait()
            raise ConnectionRefusedError

        monkeypatch.setattr(poster, "_status", status)
        await poster.send(Message(b"1", 1))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        failed.set()
        await asyncio.sleep(0)
        await asyncio.wait_for(poster.close(), 5)

    asyncio.run(main())
