"""The screen shows what the agent says, as text, and an agent that does not answer is told without ending it."""

from __future__ import annotations

import asyncio
from collections import deque
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("textual", reason="`sluicegate top` needs the extra `top`")
pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from textual.widgets import DataTable, Static

from sluicegate_agent.config import build
from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.live.source import source_of
from sluicegate_agent.live.top import Top, sparkline


def seen(value: float = 2.5, **more: Any) -> dict[str, Any]:
    """One look."""
    answer = {
        "stream": "[b]temp", "window": "w", "aggregate": "mean", "value": value, "low": 2.0, "high": 3.0,
        "exact": False, "count": 40, "buckets": 9,
    }  # fmt: skip
    stream = {"stream": "[b]temp", "readings": 1234, "late": 0, "missing": 2, "newest_us": None, "buckets_waiting": 3}
    found: dict[str, Any] = {
        "device": "d", "uptime_s": 90, "rss_bytes": 30 << 20, "planned_bytes": 40 << 20,
        "broker": {"broker": "h:1", "state": "connected"}, "target": {"target": "x", "state": "up", "error": ""},
        "store": {"refuses": ""}, "budget": None, "counters": {"accepted": 1234}, "answers": [answer],
        "outbox": {"buckets": 7, "bytes": 900, "bytes_most": 5 << 20}, "streams": [stream],
        "windows": [{"stream": "[b]temp", "window": "w", "buckets": 9}], "errors": [], "alerts": [],
    }  # fmt: skip
    return found | more


async def _settled(pilot: Any, true: Any) -> None:
    for _ in range(400):
        await pilot.pause(0.02)
        if true():
            return
    raise AssertionError("it never came true")


def cells(app: Top, table: str) -> list[list[str]]:
    """The texts of a table."""
    found = app.query_one(f"#{table}", DataTable)
    return [[str(cell) for cell in found.get_row_at(i)] for i in range(found.row_count)]


def test_the_screen_shows_a_look() -> None:
    """Values, interval, buckets and sparkline; what looks like markup is text; `q` ends it."""
    values = iter(range(1000))

    async def run() -> None:
        app = Top(lambda: seen(float(next(values))), every=0.05)
        async with app.run_test(size=(120, 40)) as pilot:
            await _settled(pilot, lambda: cells(app, "windows") and len(cells(app, "windows")[0][5]) > 4)
            (row,) = cells(app, "windows")
            assert row[:2] == ["[b]temp", "w mean"]
            assert row[3:5] == ["2", "3"]
            assert row[6:] == ["40", "9"]
            assert row[5][0] == "▁"
            assert row[5][-1] == "█"
            assert cells(app, "streams") == [["[b]temp", "1,234", "0", "2", "3"]]
            shown = str(app.query_one("#figures", Static).render())
            assert "30.0 MiB of 40.0 MiB planned" in shown
            assert "<svg" in app.export_screenshot()
            await pilot.press("q")

    asyncio.run(run())


def test_an_agent_that_does_not_answer_is_told() -> None:
    """And seen again when it is back; a raised alert is in the same place."""
    answers: list[Any] = [EnvironmentRefused("it does not answer"), seen(alerts=[])]
    raised = seen(alerts=[{"alert": "high", "stream": "s", "state": "raised"}])

    def look() -> dict[str, Any]:
        found = answers.pop(0) if answers else raised
        if isinstance(found, Exception):
            raise found
        return dict(found)

    async def run() -> None:
        app = Top(look, every=0.1)
        async with app.run_test() as pilot:
            trouble = app.query_one("#trouble", Static)
            said: set[str] = set()
            await _settled(pilot, lambda: said.add(str(trouble.render())) or "alert high of s" in said)
            assert cells(app, "windows")

    asyncio.run(run())


def test_a_sparkline_goes_from_least_to_greatest() -> None:
    """Nothing, one level, and a rise."""
    assert sparkline(deque()) == ""
    assert sparkline(deque([3.0, 3.0])) == "▁▁"
    assert sparkline(deque([0.0, 4.0, 8.0])) == "▁▅█"


def test_without_a_listener_there_is_nothing_to_look_at() -> None:
    """Told with what to write; one that does not answer is told with its address."""
    raw: dict[str, Any] = {
        "device": {"id": "d"}, "state": {"path": "s"}, "source": [{"topic": "t", "streams": {"x": "x"}}]
    }  # fmt: skip
    with pytest.raises(EnvironmentRefused, match=r"add \[metrics\] listen"):
        source_of(build(raw, Path("agent.toml")))
    look = source_of(build(raw | {"metrics": {"listen": "127.0.0.1:1"}}, Path("agent.toml")))
    with pytest.raises(EnvironmentRefused, match=r"127\.0\.0\.1:1 does not answer"):
        look()
