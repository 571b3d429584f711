"""What a store of a window's partials promises: rows by key, batched, with no transaction across calls assumed.

A row is a page of partials or one of the window's two manifests; its value is opaque to the store, at most 8 MiB. The
window orders its calls so that a store needs no more than this:

* `put` and `delete` may fail half-way: each row is then as before or as asked for, never a mixture of both.
* What was put can be read at once by `get`, in the same process. It survives the death of the process.
* It survives a power cut after `sync` has returned. Where `ordered` is true, what survives without is a prefix of the
  calls; where it is false, any part of them may survive.
* `put`, `delete` and `sync` are called by one thread at a time, `get` by others meanwhile.

Whatever goes wrong is raised as StoreError (an OSError or what the driver raises is wrapped). A call may be slow: the
window then is, too. Nothing is retried by a store itself; the window does that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from sluicegate.errors import ConfigurationError, StoreError

LARGEST_VALUE = 8 * 2**20
MANIFEST = -1  # the level of the two manifests, pages 0 and 1
MAX_LEVEL = 63
MAX_PAGE = 2**56 - 1


class Key(NamedTuple):
    """A row's name: a level of the tree (−1: a manifest) and the page's number in it."""

    level: int
    page: int

    @property
    def number(self) -> int:
        """The key as one integer from 0 to 2^63 − 1, in the order of level and page."""
        return (self.level + 1) << 56 | self.page

    @property
    def name(self) -> str:
        """The key as a document's id, for stores of documents; sorts as the key does."""
        return f"{self.level + 1:02d}:{self.page:017d}"


Row = tuple[Key, bytes]


class Plan(NamedTuple):
    """How windows use a store: a page holds 2^shift partials (1 to 12); an automatic manifest every so many pages."""

    shift: int = 9
    every: int = 256

    def checked(self) -> Plan:
        """The plan itself. Raises ConfigurationError for what cannot be."""
        if not 1 <= self.shift <= 12 or self.every < 1:
            raise ConfigurationError(
                f"store: {self}, expected a shift from 1 to 12 and a manifest every 1 page or more"
            )
        return self


DEFAULT = Plan()


class Store(Protocol):
    """Where a window keeps its pages; belongs to one open window at a time."""

    @property
    def plan(self) -> Plan:
        """Page size and manifests, for a window that begins here."""

    @property
    def ordered(self) -> bool:
        """Whether a power cut leaves a prefix of the calls."""

    def put(self, rows: Sequence[Row]) -> None:
        """Write or replace rows, some hundred at most."""

    def get(self, keys: Sequence[Key]) -> list[bytes | None]:
        """The values, in the order of the keys; None for a row that is not there."""

    def delete(self, keys: Sequence[Key]) -> None:
        """Remove rows; one that is not there is no error."""

    def sync(self) -> None:
        """Return when a power cut no longer undoes what was put and deleted before."""

    def close(self) -> None:
        """Give up what the store holds open; twice is once."""


def check_key(key: Key) -> Key:
    """The key itself. Raises ValueError for one that no window makes."""
    if not MANIFEST <= key.level <= MAX_LEVEL or not 0 <= key.page <= MAX_PAGE:
        raise ValueError(f"store: key {key}, expected a level from -1 to {MAX_LEVEL} and a page from 0 to 2^56 - 1")
    return key


def check_rows(place: object, rows: Sequence[Row]) -> None:
    """Raise StoreError that names the place for a value over 8 MiB, ValueError for a key that no window makes."""
    for key, value in rows:
        check_key(key)
        if len(value) > LARGEST_VALUE:
            raise StoreError(f"{place}: a value of {len(value)} bytes for {key}, expected up to 8 MiB")


def runs(keys: Sequence[Key]) -> list[tuple[int, int]]:
    """Keys as runs of consecutive numbers, first and last: a window deletes neighbours."""
    found: list[tuple[int, int]] = []
    for number in sorted({check_key(key).number for key in keys}):
        if found and found[-1][1] == number - 1:
            found[-1] = found[-1][0], number
        else:
            found.append((number, number))
    return found
