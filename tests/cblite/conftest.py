"""The binding's suite runs on the real library; after each test none of its objects may be alive."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sluicegate import cblite
from sluicegate.cblite import Collection, Database

MISSING = "missing: libcblite (install it, or set SLUICEGATE_LIBCBLITE)"


@pytest.fixture
def real() -> Iterator[cblite.Library]:
    """The library of this machine; afterwards its instance count is what it was before."""
    try:
        library = cblite.library()
    except cblite.LibraryMissing:
        pytest.skip(MISSING)
    before = cblite.instances()
    yield library
    gc.collect()
    end = time.monotonic() + 60
    while cblite.instances() and time.monotonic() < end:  # its own threads let go a moment later
        time.sleep(0.05)
    assert cblite.instances() == before == 0, "an object of the library is still alive"


@pytest.fixture
def database(real: cblite.Library, tmp_path: Path) -> Iterator[Database]:
    """An empty database."""
    with Database("things", tmp_path) as database:
        yield database


@pytest.fixture
def things(database: Database) -> Collection:
    """An empty collection."""
    return database.collection("things")
