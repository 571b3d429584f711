"""A blob: bytes beside a document, written and read whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sluicegate.cblite import fleece
from sluicegate.cblite.errors import fail
from sluicegate.cblite.handle import Handle

if TYPE_CHECKING:
    from sluicegate.cblite.database import Database


class Blob(Handle):
    """Bytes of a content type. A new one is stored when a document that holds it is saved."""

    _warns = False

    def __init__(self, parent: Handle, pointer: Any) -> None:
        super().__init__(parent._library.ffi.cast("CBLBlob *", pointer), parent)

    @classmethod
    def of(cls, database: Database, data: bytes, content_type: str) -> Blob:
        """A new blob of these bytes."""
        ffi, lib = database._library[:2]
        database._pointer  # noqa: B018  a closed database makes no blobs
        kind = content_type.encode()
        return cls(database, lib.CBLBlob_CreateWithData(fleece.sliced(ffi, kind), fleece.sliced(ffi, data)))

    def __len__(self) -> int:
        return int(self._library.lib.CBLBlob_Length(self._pointer))

    @property
    def content_type(self) -> str:
        """As given when it was made."""
        return fleece.text_of(self._library.ffi, self._library.lib.CBLBlob_ContentType(self._pointer))

    @property
    def digest(self) -> str:
        """`sha1-…`, which names its content."""
        return fleece.text_of(self._library.ffi, self._library.lib.CBLBlob_Digest(self._pointer))

    def read(self) -> bytes:
        """All of it. Raises NotFound where it is not on this machine."""
        ffi, lib = self._library[:2]
        error = ffi.new("CBLError *")
        content = fleece.taken(self._library, lib.CBLBlob_Content(self._pointer, error))
        if content is None:
            raise fail(ffi, lib, error, f"blob {self.digest}")
        return content

    def _into_slot(self, slot: Any) -> None:
        self._library.lib.FLSlot_SetBlob(slot, self._pointer)
