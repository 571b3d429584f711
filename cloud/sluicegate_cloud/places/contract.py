"""What a table asks of the place where its files lie; names are relative, with slashes."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol


class Place(Protocol):
    """Files never change. Everything raises SinkError or PlaceError where the place refuses."""

    @property
    def root(self) -> Path | str:
        """The folder, or the URL; `str` of it names the place in messages and notes."""

    def uri(self, name: str) -> str:
        """The file, as Spark's own readers and writers are told."""

    def written(self, name: str) -> AbstractContextManager[Any]:
        """What a new file is written into; it is whole once the block has ended without an error."""

    def create(self, name: str, data: bytes) -> None:
        """A new file that is there for good. Raises FileExistsError where one is: of two at once one fails."""

    def read(self, name: str) -> bytes:
        """All of a file. Raises FileNotFoundError."""

    def opened(self, name: str, *, some: bool) -> Any:
        """What pyarrow reads a file from; `some`: parts of it alone are wanted. May raise FileNotFoundError."""

    def names(self, folder: str) -> dict[str, float]:
        """The files right in a folder, and when each was written, in seconds since 1970."""

    def remove(self, name: str) -> None:
        """Nothing happens where it is not there."""

    def settle(self, names: Iterable[str]) -> None:
        """These files survive a power cut from here on."""

    def alone(self) -> AbstractContextManager[None]:
        """For one run of this machine at a time, as far as the place can tell. Raises BusyError, SinkError."""
