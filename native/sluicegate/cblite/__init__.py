"""Couchbase Lite for Python, over the vendor's C library: from databases and documents to replicators.

Nothing is compiled and nothing loaded until a database is opened; `library()` says which version that would be.
docs/reference/cblite.md is the guide.
"""

from __future__ import annotations

from sluicegate.cblite.collection import Collection
from sluicegate.cblite.database import Database, Maintenance, instances
from sluicegate.cblite.errors import (
    Busy,
    ClosedError,
    Conflict,
    CouchbaseLiteError,
    Damaged,
    InvalidArgument,
    NotFound,
    Refused,
    RefusedByServer,
    Unauthorized,
    Unreachable,
    Untrusted,
)
from sluicegate.cblite.listener import Listener
from sluicegate.cblite.loading import Library, LibraryMissing, LibraryUnsupported, library
from sluicegate.cblite.query import Query
from sluicegate.cblite.replicator import Activity, Direction, Documents, Replicated, Replicator, Settings, Status

__all__ = [
    "Activity", "Busy", "ClosedError", "Collection", "Conflict", "CouchbaseLiteError", "Damaged", "Database",
    "Direction", "Documents", "InvalidArgument", "Library", "LibraryMissing", "LibraryUnsupported", "Listener",
    "Maintenance", "NotFound", "Query", "Refused", "RefusedByServer", "Replicated", "Replicator", "Settings", "Status",
    "Unauthorized", "Unreachable", "Untrusted", "instances", "library",
]  # fmt: skip
