"""What `plan` says of the link agrees with documents that are really sent, and with the budget."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from durable_agent import configured

from sluicegate_agent.budget.forecast import forecast, lines


@pytest.mark.parametrize("readings", [1, 4, 16, 1000])
def test_more_readings_a_bucket_cost_fewer_bytes_each(readings: int, tmp_path: Path) -> None:
    """Single readings at most about three bytes each, buckets far less as they grow."""
    found = forecast(configured(tmp_path, bucket={"readings": readings}, outbox={"chunk_buckets": 256}))
    assert found.readings == 256 * readings
    assert 0 < found.each < (8 if readings == 1 else 4 if readings <= 16 else 0.5)


def test_a_budget_in_readings(tmp_path: Path) -> None:
    """A month's share of a day, or what the rate carries where that is less; nothing is said without a target."""
    month = configured(tmp_path, sync={"budget": {"bytes": "30MB", "per": "month"}})
    assert forecast(month).allowed == 1_000_000
    slow = configured(tmp_path, sync={"budget": {"bytes": "30MB", "rate": "16B"}})
    assert forecast(slow).allowed == 16 * 86_400
    told = list(lines(month))
    assert len(told) == 2
    assert "a stream at 1/s" in told[0]
    assert f"{1_000_000 / forecast(month).each:,.0f} readings" in told[1]
    assert len(list(lines(configured(tmp_path)))) == 1
