"""A collection: documents in and out as plain dictionaries, JSON or bytes; expiry, purging."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sluicegate.cblite import fleece
from sluicegate.cblite.errors import CBL, fail
from sluicegate.cblite.handle import Handle

if TYPE_CHECKING:
    from sluicegate.cblite.database import Database

LAST_WRITE_WINS, FAIL_ON_CONFLICT = 0, 1
_NOT_FOUND = 7


class Collection(Handle):
    """Documents by id; made by `Database.collection`."""

    _warns = False

    def __init__(self, database: Database, pointer: Any, name: str, scope: str) -> None:
        super().__init__(pointer, database)
        self.database, self.name, self.scope = database, name, scope

    def __len__(self) -> int:
        """Documents that are not deleted."""
        return int(self._library.lib.CBLCollection_Count(self._pointer))

    # plain values

    def save(self, id: str, values: Mapping[str, Any], *, insert: bool = False) -> None:
        """Write a document whole; the last writer wins, or with `insert` an id that is taken raises Conflict.

        Values are None, bool, int, float, str, bytes, list and dict. Raises InvalidArgument, Refused, Damaged.
        """
        json = fleece.json_of(values)
        if json is not None:
            self.save_json(id, json, insert=insert)
            return
        lib, made = self._library.lib, self._new(id)
        try:
            fleece.fill(self._library, lib.CBLDocument_MutableProperties(made), values)
            self._save(made, id, insert)
        finally:
            lib.CBL_Release(made)

    def save_json(self, id: str, json: bytes | str, *, insert: bool = False) -> None:
        """Write a document from a JSON object."""
        ffi, lib = self._library[:2]
        made = self._new(id)
        try:
            error = ffi.new("CBLError *")
            data = json.encode() if isinstance(json, str) else json
            if not lib.CBLDocument_SetJSON(made, fleece.sliced(ffi, data), error):
                raise fail(ffi, lib, error, f"{self.name}/{id}: its JSON")
            self._save(made, id, insert)
        finally:
            lib.CBL_Release(made)

    def save_bytes(self, id: str, key: str, data: bytes) -> None:
        """Write a document of one property that is bytes: the quickest way for a value that is opaque."""
        ffi, lib = self._library[:2]
        made, name = self._new(id), key.encode()
        try:
            slot = lib.FLMutableDict_Set(lib.CBLDocument_MutableProperties(made), fleece.sliced(ffi, name))
            lib.FLSlot_SetData(slot, fleece.sliced(ffi, data))
            self._save(made, id, False)
        finally:
            lib.CBL_Release(made)

    def get(self, id: str) -> dict[str, Any] | None:
        """A document's values, copied; None where there is none."""
        with self._read(id) as found:
            properties = self._library.lib.CBLDocument_Properties
            return None if found is None else fleece.read_dict(self._library, properties(found))

    def get_bytes(self, id: str, key: str) -> bytes | None:
        """A property that is bytes, copied; None where there is no such document. Empty where it is no bytes."""
        (ffi, lib), name = self._library[:2], key.encode()
        with self._read(id) as found:
            if found is None:
                return None
            value = lib.FLDict_Get(lib.CBLDocument_Properties(found), fleece.sliced(ffi, name))
            return fleece.bytes_of(ffi, lib.FLValue_AsData(value))

    def __contains__(self, id: object) -> bool:
        if not isinstance(id, str):
            return False
        with self._read(id) as found:
            return found is not None

    def delete(self, id: str) -> bool:
        """Delete, which replicates; whether there was such a document."""
        with self._read(id) as found:
            if found is not None:
                delete = self._library.lib.CBLCollection_DeleteDocumentWithConcurrencyControl
                self._call(f"{self.name}/{id}: delete", delete, found, LAST_WRITE_WINS)
            return found is not None

    def purge(self, id: str) -> bool:
        """Forget a document here, which does not replicate and leaves nothing; whether there was one."""
        ffi, lib = self._library[:2]
        error, name = ffi.new("CBLError *"), id.encode()
        if lib.CBLCollection_PurgeDocumentByID(self._pointer, fleece.sliced(ffi, name), error):
            return True
        if (error.domain, error.code) == (CBL, _NOT_FOUND):
            return False
        raise fail(ffi, lib, error, f"{self.name}/{id}: purge")

    # expiry

    def expire(self, id: str, at_ms: int) -> None:
        """Have the library purge a document at `at_ms`, milliseconds since 1970 UTC; 0 for never."""
        ffi, lib = self._library[:2]
        named = fleece.sliced(ffi, id.encode())
        self._call(f"{self.name}/{id}: expiry", lib.CBLCollection_SetDocumentExpiration, named, at_ms)

    def expires(self, id: str) -> int:
        """When a document is purged, milliseconds since 1970 UTC; 0 for never."""
        ffi, lib = self._library[:2]
        error = ffi.new("CBLError *")
        at = int(lib.CBLCollection_GetDocumentExpiration(self._pointer, fleece.sliced(ffi, id.encode()), error))
        if at < 0:
            raise fail(ffi, lib, error, f"{self.name}/{id}: expiry")
        return at

    # inside

    def _new(self, id: str) -> Any:
        ffi, name = self._library.ffi, id.encode()
        self._pointer  # noqa: B018  a closed collection makes no documents
        return self._library.lib.CBLDocument_CreateWithID(fleece.sliced(ffi, name))

    @contextlib.contextmanager
    def _read(self, id: str) -> Iterator[Any | None]:
        """The document, let go afterwards; None where there is none: the library reports neither that nor an error."""
        ffi, lib = self._library[:2]
        error, name = ffi.new("CBLError *"), id.encode()
        found = lib.CBLCollection_GetDocument(self._pointer, fleece.sliced(ffi, name), error)
        if found == ffi.NULL and error.code and (error.domain, error.code) != (CBL, _NOT_FOUND):
            raise fail(ffi, lib, error, f"{self.name}/{id}: read")
        try:
            yield None if found == ffi.NULL else found
        finally:
            if found != ffi.NULL:
                lib.CBL_Release(found)

    def _save(self, made: Any, id: str, check: bool) -> None:
        save = self._library.lib.CBLCollection_SaveDocumentWithConcurrencyControl
        self._call(f"{self.name}/{id}: save", save, made, FAIL_ON_CONFLICT if check else LAST_WRITE_WINS)
