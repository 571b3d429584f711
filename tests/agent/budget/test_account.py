"""A link carries no more than its budget allows, however often the agent is killed or the clock set back."""

from __future__ import annotations

import calendar
import random

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from sluicegate_agent.budget.account import Account
from sluicegate_agent.config.linking import BudgetConfig, budget_problems
from sluicegate_agent.config.units import Size

NOON = float(calendar.timegm((2026, 2, 10, 12, 0, 0)))
HOUR = 3600.0


class Clock:
    """A board's clock."""

    def __init__(self, now: float = NOON) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def account(clock: Clock, row: str | None = None, **keys: object) -> Account:
    """An account that goes by the clock."""
    return Account(BudgetConfig(**keys), row, clock)  # type: ignore[arg-type]


@pytest.mark.parametrize(("per", "share"), [("day", 0.5), ("month", 9.5 / 28)])
def test_the_budget_is_spread_over_its_period(per: str, share: float) -> None:
    """The elapsed share of day or month, and a twenty-fourth ahead."""
    one = account(Clock(), bytes=Size(24_000_000), per=per)
    assert one.left(0) == int(24_000_000 * (share + 1 / 24))
    one.charge(one.left(0))
    assert one.left(0) == 0


def test_a_kill_gives_nothing_back() -> None:
    """What was kept before is spent, in this period; the next one begins anew."""
    clock = Clock()
    one = account(clock, bytes=Size(1_000_000))
    one.charge(400_000)
    clock.now += 60
    again = account(clock, one.row(), bytes=Size(1_000_000))
    assert again.used == 400_000
    clock.now += 12 * HOUR
    assert again.left(0) == int(1_000_000 / 24 + 1_000_000 * 60 / 86400)


def test_a_clock_that_is_set_back_does_not_give_a_day_again() -> None:
    """Yesterday's budget is not spent twice: today's account goes on until the clock has passed it."""
    clock = Clock()
    one = account(clock, bytes=Size(1_000_000))
    one.charge(900_000)
    clock.now -= 24 * HOUR
    assert one.left(0) == 0


@pytest.mark.parametrize("per", ["day", "month"])
def test_a_clock_that_was_years_ahead_does_not_silence_the_link_for_years(per: str) -> None:
    """Set right, what the day had and what went meanwhile is spent; the next one begins anew. So it is over a kill."""
    clock = Clock()
    one = account(clock, bytes=Size(1_000_000), per=per)
    one.charge(200_000)
    clock.now += 73 * 365 * 24 * HOUR
    one.left(0)
    one.charge(100_000)
    clock.now = NOON
    one = account(clock, one.row(), bytes=Size(1_000_000), per=per)
    one.left(0)
    assert one.used == 300_000
    clock.now += (24 if per == "day" else 28 * 24) * HOUR
    assert one.left(0) > 0
    assert one.used == 0


def test_a_clock_that_was_never_set_begins_no_period() -> None:
    """A board that starts in 1970 at each boot, until its clock is set, spends a day's budget once."""
    clock = Clock()
    one = account(clock, bytes=Size(1_000_000))
    one.charge(500_000)
    for boot in range(3):
        clock.now = 60.0 * boot
        one.left(0)
        clock.now = NOON
        one.left(0)
    assert one.used == 500_000


def test_a_row_that_cannot_be_read_is_an_empty_account() -> None:
    """Whatever stands there."""
    for row in ("", "no JSON", "[]", '{"used": "x"}', "null"):
        assert account(Clock(), row, bytes=Size(1_000_000)).used == 0


def test_the_rate_holds_over_time() -> None:
    """Whatever is sent when: never more than the rate and ten seconds of it, and one document beyond."""
    rng = random.Random(7)
    one = account(Clock(), rate=Size(1000))
    now, begun, sent = 5.0, 5.0, 0
    one.left(now)
    for _ in range(2000):
        now += rng.random() * 3
        if one.left(now):
            size = rng.randrange(1, 20_000)
            one.charge(size)
            sent += size
            assert sent <= 1000 * (now - begun + 10) + 20_000
    assert sent > 0.9 * 1000 * (now - begun)


def test_quiet_hours_are_local_and_may_pass_midnight(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first minute on, up to the last."""
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    clock = Clock()
    one = account(clock, quiet=("22:00-06:00",))
    quiet = {}
    for hour in (12, 21.99, 22, 23.5, 24, 29.99, 30):
        clock.now = NOON + (hour - 12) * HOUR
        quiet[hour] = one.left(0) == 0
    assert quiet == {12: False, 21.99: False, 22: True, 23.5: True, 24: True, 29.99: True, 30: False}


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"bytes": Size(100)}, "64KiB or more"),
        ({"rate": Size(1)}, "16B or more"),
        ({"quiet": ("22-6",)}, 'such as "22:00-06:00"'),
        ({"quiet": ("06:00-06:00",)}, "no time at all"),
        ({"first": ("none",)}, "no source feeds it"),
    ],
)
def test_a_budget_that_cannot_work_is_found(keys: dict[str, object], said: str) -> None:
    """With what was expected; and one without a link."""
    budget = BudgetConfig(**keys)  # type: ignore[arg-type]
    assert any(said in str(problem) for problem in budget_problems(budget, ("x",), "directory"))
    assert any("no link" in str(problem) for problem in budget_problems(budget, ("x",), "none"))
