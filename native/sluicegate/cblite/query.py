"""A query: SQL++ compiled once, run again and again with parameters; rows as dictionaries or tuples, copied."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sluicegate.cblite import fleece
from sluicegate.cblite.errors import fail
from sluicegate.cblite.handle import Handle

if TYPE_CHECKING:
    from sluicegate.cblite.database import Database

SQLPP = 1


class Query(Handle):
    """Made by `Database.query`. A parameter is written `$name` in the text."""

    def __init__(self, database: Database, text: str) -> None:
        ffi, lib = database._library[:2]
        error, at = ffi.new("CBLError *"), ffi.new("int *")
        written = text.encode()
        made = lib.CBLDatabase_CreateQuery(database._pointer, SQLPP, fleece.sliced(ffi, written), at, error)
        if made == ffi.NULL:
            raise fail(ffi, lib, error, f"query {text!r} at byte {at[0]}")
        super().__init__(made, database)
        self.text = text
        count = lib.CBLQuery_ColumnCount(made)
        self.columns = [fleece.text_of(ffi, lib.CBLQuery_ColumnName(made, i)) for i in range(count)]

    def rows(self, **parameters: Any) -> Iterator[tuple[Any, ...]]:
        """The rows, read as they are asked for, each a tuple of the columns. Raises InvalidArgument, Damaged."""
        lib, given = self._library.lib, fleece.mutable(self._library, parameters)
        try:
            lib.CBLQuery_SetParameters(self._pointer, given)
        finally:
            fleece.released(self._library, given)
        results = self._call(f"query {self.text!r}", lib.CBLQuery_Execute)
        columns = range(len(self.columns))
        held = Handle(results, self)
        held._warns = False
        try:
            while lib.CBLResultSet_Next(held._pointer):
                yield tuple(fleece.read(self._library, lib.CBLResultSet_ValueAtIndex(results, i)) for i in columns)
        finally:
            held.close()

    def run(self, **parameters: Any) -> list[dict[str, Any]]:
        """All rows, each a dictionary by column."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows(**parameters)]
