"""Stores that go wrong on purpose: what is under test is the window above them."""

from __future__ import annotations

import random
import zlib
from collections.abc import Sequence

from sluicegate.errors import StoreError
from sluicegate.stores import Key, Memory, Plan
from sluicegate.stores.contract import Row
from sluicegate.stores.page import OVERHEAD


class Failing(Memory):
    """Fails while `fails` says so, by the call's name; a failing put has written some of its rows."""

    def __init__(self, plan: Plan = Plan(), seed: int = 0) -> None:  # noqa: B008  a Plan is immutable
        super().__init__(plan)
        self.fails: set[str] = set()
        self.calls: list[str] = []
        self._random = random.Random(seed)

    def _count(self, call: str) -> None:
        self.calls.append(call)
        if call in self.fails:
            raise StoreError(f"{call} fails on purpose")

    def put(self, rows: Sequence[Row]) -> None:
        """Half-way: any of the rows may be there."""
        if "put" in self.fails:
            super().put([row for row in rows if self._random.random() < 0.5])
        self._count("put")
        super().put(rows)

    def get(self, keys: Sequence[Key]) -> list[bytes | None]:
        """Raises while it fails."""
        self._count("get")
        return super().get(keys)

    def delete(self, keys: Sequence[Key]) -> None:
        """Half-way, too."""
        if "delete" in self.fails:
            super().delete([key for key in keys if self._random.random() < 0.5])
        self._count("delete")
        super().delete(keys)

    def sync(self) -> None:
        """Raises while it fails."""
        self._count("sync")


class DiedError(Exception):
    """The process ends here."""


class Losing(Memory):
    """Not ordered: of what was not synced a crash keeps any rows, old or new. Dies at call number `die_at`."""

    ordered = False

    def __init__(self, plan: Plan, seed: int, die_at: int) -> None:
        super().__init__(plan)
        self._random, self._die_at, self.calls = random.Random(seed), die_at, 0
        self._past: dict[Key, list[bytes | None]] = {}  # what a crash may leave of a row, before the value it has now

    def _call(self) -> None:
        self.calls += 1
        if self.calls > self._die_at:
            raise DiedError

    def put(self, rows: Sequence[Row]) -> None:
        """Dies before, or half-way, even within a row: worse than the contract allows."""
        dies = self.calls >= self._die_at
        for key, value in rows:
            if not dies or self._random.random() < 0.5:
                self._past.setdefault(key, []).append(self.rows.get(key))
                torn = dies and self._random.random() < 0.5
                super().put([(key, value[: len(value) // 2] if torn else value)])
        self._call()

    def delete(self, keys: Sequence[Key]) -> None:
        """Dies before, or half-way."""
        dies = self.calls >= self._die_at
        for key in keys:
            if not dies or self._random.random() < 0.5:
                self._past.setdefault(key, []).append(self.rows.get(key))
                super().delete([key])
        self._call()

    def sync(self) -> None:
        """What was put before is safe from now on."""
        self._call()
        self._past.clear()

    def crash(self) -> Memory:
        """What is there after a power cut."""
        left = dict(self.rows)
        for key, values in self._past.items():
            value = self._random.choice([*values, self.rows.get(key)])
            left.pop(key, None)
            if value is not None:
                left[key] = value
        survivor = Memory(self.plan)
        survivor.rows = left
        return survivor


class Corrupting(Memory):
    """Wrong bytes for the rows in `spoilt`: a bit flipped, cut short, another row's, a later version's, or none."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.spoilt: dict[Key, str] = {}

    def get(self, keys: Sequence[Key]) -> list[bytes | None]:
        """As stored, but for the spoilt rows."""
        return [self._spoil(key, value) for key, value in zip(keys, super().get(keys), strict=True)]

    def _spoil(self, key: Key, value: bytes | None) -> bytes | None:
        how = self.spoilt.get(key)
        if how is None or value is None:
            return value
        if how == "bit":
            return value[:-3] + bytes([value[-3] ^ 4]) + value[-2:]
        if how == "another":
            return next(v for k, v in sorted(self.rows.items()) if k.level == key.level and k != key)
        if how == "version":
            head = value[:4] + (2).to_bytes(2, "little") + value[6 : OVERHEAD - 4]
            return head + zlib.crc32(value[OVERHEAD:], zlib.crc32(head)).to_bytes(4, "little") + value[OVERHEAD:]
        return {"short": value[:-8], "none": None, "empty": b""}[how]
