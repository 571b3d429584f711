"""Keeps sync within its account: how much may go now, and how coarse what waits has to be to fit in one period."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sluicegate_agent.budget.account import Account, keep, kept
from sluicegate_agent.outbox import least_bytes

if TYPE_CHECKING:
    from sluicegate_agent.config import Config
    from sluicegate_agent.state import State
    from sluicegate_agent.sync.contract import Document

log = logging.getLogger("sluicegate.sync")
#: Bytes of a request beside its documents: headers, TLS, its answer.
_REQUEST = 512
#: Bytes of a document, of those that the outbox counts its rows with: until documents say so.
_RATIO = 0.3
#: A document takes at most this share of a period's budget.
_LARGEST_SHARE = 16
_SMALLEST = 4096


class Keeping:
    """The account of one agent, and what follows from it for its outbox."""

    def __init__(self, config: Config, state: State) -> None:
        self._state = state
        self.account = Account(config.sync.budget, kept(state.store.connection))
        self._bytes_most = int(config.outbox.bytes)
        self._ratio = _RATIO
        self._merges = self._merged()

    def left(self, now: float) -> int:
        """Bytes of documents that may be sent now."""
        return max(0, self.account.left(now) - _REQUEST)

    def largest(self, now: float) -> int:
        """About the most bytes of rows in a document that is sealed now."""
        limit = self.account.limit
        share = max(_SMALLEST, limit // _LARGEST_SHARE) if limit else 1 << 62
        return max(_SMALLEST, min(share, self.left(now), self.account.at_once(now)))

    def charged(self, documents: Sequence[Document], now: float) -> list[Document]:
        """The first documents that fit in what is left. They are charged durably before any of them is sent.

        Raises sqlite3.Error where the store refuses: nothing is sent then.
        """
        left, saved = self.left(now), self.account.at_once(now)
        taken: list[Document] = []
        for document in documents:
            size = len(document.data)
            # A document of before the budget was lowered may be larger than all of it: then it goes first, alone.
            if (size > left and self.account.used) or (size > saved and taken) or left <= 0:
                break
            left, saved = left - size, saved - size
            taken.append(document)
        if taken:
            self.account.charge(sum(len(document.data) for document in taken) + _REQUEST)
            self._keep()
        return taken

    def sealed(self, size: int, cost: int) -> None:
        """Learns how much smaller rows get in a document: `cost` bytes of the outbox's rows became `size` bytes."""
        if cost > 0:
            self._ratio = min(1.0, max(0.01, 0.9 * self._ratio + 0.1 * size / cost))

    def limit_outbox(self) -> None:
        """What waits has to fit in one period's budget: else neighbouring buckets merge, as in a full outbox."""
        limit, outbox = self.account.limit, self._state.outbox
        if limit is None:
            return
        streams = len(self._state.streams) + len(self._state.retired)
        fits = max(int(limit / self._ratio), least_bytes(streams), _SMALLEST)
        outbox.bytes_most = min(self._bytes_most, fits)
        merges = self._merged()
        self._note(outbox.bytes_most < self._bytes_most and merges > self._merges, merges - self._merges)
        self._merges = merges

    def _merged(self) -> int:
        """Pairs merged and single readings given up, ever."""
        return self._state.counters["outbox.merges"] + self._state.counters["outbox.single_readings"]

    def _note(self, is_short: bool, merged: int) -> None:
        """Notes since when buckets are merged for want of budget; this ends when what waits is half of what fits."""
        account, outbox = self.account, self._state.outbox
        if is_short:
            if account.short_since_us is None:
                account.short_since_us, account.merged = time.time_ns() // 1000, 0
                log.warning("the link's budget runs short: what waits is kept in coarser buckets")
            account.merged += merged
        elif account.short_since_us is not None and outbox.bytes_held * 2 < outbox.bytes_most:
            account.short_since_us = None
            log.info("the link's budget suffices again")
        else:
            return
        self._keep()

    def _keep(self) -> None:
        with self._state.transaction() as connection:
            keep(connection, self.account)


def keeping_of(config: Config, state: State) -> Keeping | None:
    """The keeping of an agent whose configuration limits the link; else None."""
    return Keeping(config, state) if config.sync.budget.is_set and config.sync.target != "none" else None
