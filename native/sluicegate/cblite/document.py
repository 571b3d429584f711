"""A document as a handle: what it holds, which revision it is, its blobs; saved with a check by its collection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sluicegate.cblite import fleece
from sluicegate.cblite.errors import NotFound
from sluicegate.cblite.handle import Handle

if TYPE_CHECKING:
    from sluicegate.cblite.blob import Blob
    from sluicegate.cblite.collection import Collection


class Document(Handle):
    """A mutable copy of a document, or a new one; `Collection.store` saves it."""

    _warns = False

    def __init__(self, collection: Collection, pointer: Any) -> None:
        super().__init__(pointer, collection)
        self.collection = collection

    @property
    def id(self) -> str:
        """Its id."""
        return fleece.text_of(self._library.ffi, self._library.lib.CBLDocument_ID(self._pointer))

    @property
    def revision(self) -> str:
        """The revision that was read or saved; empty for a new document."""
        return fleece.text_of(self._library.ffi, self._library.lib.CBLDocument_RevisionID(self._pointer))

    @property
    def sequence(self) -> int:
        """Its place in the order of changes of its collection; 0 for a new document."""
        return int(self._library.lib.CBLDocument_Sequence(self._pointer))

    @property
    def values(self) -> dict[str, Any]:
        """All of it, copied."""
        return fleece.read_dict(self._library, self._library.lib.CBLDocument_Properties(self._pointer))

    def update(self, values: Mapping[str, Any]) -> None:
        """Set these keys and leave the others."""
        target = self._library.lib.CBLDocument_MutableProperties(self._pointer)
        fleece.fill(self._library, target, values)

    def blob(self, key: str) -> Blob:
        """The blob under a key. Raises NotFound where there is none."""
        from sluicegate.cblite.blob import Blob

        ffi, lib = self._library[:2]
        value = lib.FLDict_Get(lib.CBLDocument_Properties(self._pointer), fleece.sliced(ffi, key.encode()))
        held = lib.FLDict_GetBlob(lib.FLValue_AsDict(value))
        if held == ffi.NULL:
            raise NotFound(f"{self.id}: no blob under {key!r}; check the key")
        return Blob(self, lib.CBL_Retain(ffi.cast("void *", held)))
