"""How many bytes the link has carried in this day or month, and how many it may carry now.

Charged before anything is sent and kept with that, so a process that is killed has never sent more than its account
says. The budget is spread over its period: at any time so much may be spent as the period's elapsed share, and a
twenty-fourth of it ahead, so that a backlog in the morning does not leave the evening without.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable
from typing import Any

from sluicegate_agent.config.linking import BudgetConfig
from sluicegate_agent.identity.clock import CLOCK_NEVER_SET

KEY = "budget"
_AHEAD = 1 / 24
#: Seconds of a period, at most: an account that is further ahead of the clock is a wrong clock's.
_LENGTH = {"day": 86_400, "month": 31 * 86_400}
#: Seconds of the rate that may be spent at once.
_BURST = 10.0


class Account:
    """What was spent; `clock` gives seconds since 1970."""

    def __init__(self, config: BudgetConfig, row: str | None, clock: Callable[[], float] = time.time) -> None:
        """`row`: what `row` gave before; one that cannot be read is an empty account."""
        self.config, self._clock = config, clock
        self.period, self.used = "", 0
        self._before = ("", 0)
        self.short_since_us: int | None = None
        self.merged = 0
        self._restore(row)
        self._tokens, self._then = _BURST * config.rate, 0.0

    def _restore(self, row: str | None) -> None:
        try:
            kept = json.loads(row) if row else {}
            self.period, self.used = str(kept.get("period", "")), int(kept.get("used", 0))
            self._before = str(kept.get("before", "")), int(kept.get("used_before", 0))
            self.short_since_us, self.merged = kept.get("short_since_us"), int(kept.get("merged", 0))
        except (ValueError, AttributeError, TypeError):
            return

    def row(self) -> str:
        """What has to be kept."""
        before, used_before = self._before
        return json.dumps(
            {"period": self.period, "used": self.used, "before": before, "used_before": used_before,
             "short_since_us": self.short_since_us, "merged": self.merged}
        )  # fmt: skip

    @property
    def limit(self) -> int | None:
        """Bytes in a period; None without a limit."""
        return self.config.bytes or None

    def left(self, now: float) -> int:
        """Bytes that may be sent now, at monotonic second `now`; a huge number where nothing limits.

        The rate lets one document through that is larger than what it has saved, and is silent for so much longer.
        """
        if self.is_quiet() or (self.config.rate and self._saved(now) <= 0):
            return 0
        self._turn()
        if not self.config.bytes:
            return 1 << 62
        share = min(1.0, _elapsed(self.config.per, self._clock()) + _AHEAD)
        return max(0, int(self.config.bytes * share) - self.used)

    def at_once(self, now: float) -> int:
        """Bytes that a document should not exceed for the rate's sake."""
        return max(0, int(self._saved(now))) if self.config.rate else 1 << 62

    def _saved(self, now: float) -> float:
        """What the rate allows and was not used, at most that of _BURST seconds."""
        if self._then:
            earned = max(0.0, now - self._then) * self.config.rate
            self._tokens = min(_BURST * self.config.rate, self._tokens + earned)
        self._then = now
        return self._tokens

    def charge(self, size: int) -> None:
        """So many bytes are about to be sent."""
        self._turn()
        self.used += size
        self._tokens -= size

    def is_quiet(self) -> bool:
        """Whether nothing is sent now, by the board's local time."""
        now = time.localtime(self._clock())
        minute = 60 * now.tm_hour + now.tm_min
        return any(_within(minute, *hours) for hours in self.config.quiet_minutes)

    def _turn(self) -> None:
        """Another period begins with nothing spent; a clock that is set back does not give a spent period again.

        Set back by more than a period, the clock had been ahead: what was sent meanwhile was sent in its new period.
        """
        per, now = self.config.per, self._clock()
        if now * 1_000_000 < CLOCK_NEVER_SET:
            return
        period = _period(per, now)
        if period > self.period:
            self._before, self.period, self.used = (self.period, self.used), period, 0
        elif _period(per, now + _LENGTH[per]) < self.period:
            before, used_before = self._before
            self.used += used_before if before == period else 0
            self._before, self.period = ("", 0), period

    def as_dict(self) -> dict[str, Any]:
        """For `status`."""
        return {
            "per": self.config.per, "limit": int(self.config.bytes), "rate": int(self.config.rate),
            "period": self.period, "used": self.used, "quiet": self.is_quiet(),
            "short_since_us": self.short_since_us, "merged": self.merged,
        }  # fmt: skip


def kept(connection: sqlite3.Connection) -> str | None:
    """The row of the account in a store."""
    found = connection.execute("SELECT value FROM meta WHERE key = ?", (KEY,)).fetchone()
    return str(found[0]) if found else None


def keep(connection: sqlite3.Connection, account: Account) -> None:
    """Write it, inside the caller's transaction."""
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (KEY, account.row()))


def _period(per: str, now: float) -> str:
    """The day or month in UTC, later ones sorting later."""
    return time.strftime("%Y-%m-%d" if per == "day" else "%Y-%m", time.gmtime(now))


def _elapsed(per: str, now: float) -> float:
    """The share of the day or month that has passed."""
    of = time.gmtime(now)
    day = (of.tm_hour * 3600 + of.tm_min * 60 + of.tm_sec) / 86_400
    if per == "day":
        return day
    from calendar import monthrange  # with `locale`, 0.4 MiB that most agents have no use for

    return (of.tm_mday - 1 + day) / monthrange(of.tm_year, of.tm_mon)[1]


def _within(minute: int, start: int, end: int) -> bool:
    return start <= minute < end if start <= end else minute >= start or minute < end
