"""The stores of a window that are a file: which can be had here."""

from __future__ import annotations

from typing import Any

import pytest

from sluicegate import stores


def couchbase_lite() -> type[Any]:
    """The store in Couchbase Lite; skips where its library is missing."""
    pytest.importorskip("cffi", reason="missing: cffi (pip install 'sluicegate[cblite]')")
    from sluicegate import cblite

    try:
        cblite.library()
    except cblite.LibraryMissing:
        pytest.skip("missing: libcblite (install it, or set SLUICEGATE_LIBCBLITE)")
    return stores.CouchbaseLite
