"""A prefix of a bucket behind S3's interface, by obstore: needs no Java and no connector of Spark's.

Address, region and who may read are those of the environment of each process (AWS_ENDPOINT_URL, AWS_REGION,
AWS_ACCESS_KEY_ID and so on, or the machine's role): no secret travels with a task. Only https, unless AWS_ALLOW_HTTP
says otherwise.
"""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pyarrow as pa

from sluicegate_cloud.errors import PlaceError, SourceError

#: How a URL begins that is read without Spark's connector; with s3a: Spark lists and fetches.
OBJECTS = "s3://"
_SCHEMES = ("s3", "s3a")
#: Requests for small objects that one task has under way: each waits most of its time.
_AHEAD = 32


class Object(NamedTuple):
    """What a listing tells."""

    url: str
    size: int
    changed_ns: int


def is_object(named: str) -> bool:
    """Whether it is an s3: URL, as Spark spells it or as everybody else."""
    return urlsplit(named).scheme.lower() in _SCHEMES


@dataclass(frozen=True)
class Bucket:
    """See `contract.Place`. A new version counts by a PUT with `If-None-Match: *`, which fails where one is there."""

    root: str

    @classmethod
    def at(cls, named: str) -> Bucket:
        """The place that a URL names, spelled as s3:. Raises SourceError for what is none."""
        told = urlsplit(named)
        if not told.netloc:
            raise SourceError(f"{named!r} names no bucket: expected s3://BUCKET/PREFIX")
        return cls(f"s3://{told.netloc}{told.path.rstrip('/')}")

    @property
    def _store(self) -> Any:
        return _opened(self.root)

    def uri(self, name: str) -> str:
        """See `Place`: Spark's connector calls itself s3a."""
        return f"s3a{self.root.removeprefix('s3')}/{name}"

    @contextmanager
    def written(self, name: str) -> Iterator[io.BytesIO]:
        """See `Place`."""
        into = io.BytesIO()
        yield into
        with _told(self.root):
            _obstore().put(self._store, name, into.getvalue())

    def create(self, name: str, data: bytes) -> None:
        """See `Place`."""
        with _told(self.root):
            _obstore().put(self._store, name, data, mode="create")

    def read(self, name: str) -> bytes:
        """See `Place`."""
        with _told(self.root, sought=True):
            return bytes(_obstore().get(self._store, name).bytes())

    def opened(self, name: str, *, some: bool) -> Any:
        """See `Place`."""
        if not some:
            return pa.BufferReader(self.read(name))
        with _told(self.root, sought=True):
            return pa.PythonFile(_Seekable(_obstore().open_reader(self._store, name)), mode="r")

    def names(self, folder: str) -> dict[str, float]:
        """See `Place`."""
        with _told(self.root):
            found = _obstore().list_with_delimiter(self._store, prefix=folder)["objects"]
        return {one["path"]: one["last_modified"].timestamp() for one in found}

    def remove(self, name: str) -> None:
        """See `Place`."""
        with _told(self.root):
            _obstore().delete(self._store, name)

    def settle(self, names: Iterable[str]) -> None:
        """See `Place`: what was answered is there."""

    @contextmanager
    def alone(self) -> Iterator[None]:
        """See `Place`: a bucket cannot tell, so the version that is made first counts."""
        yield

    def objects(self) -> Iterator[Object]:
        """All objects at the URL or below it."""
        with _told(self.root):
            for some in _obstore().list(self._store, chunk_size=1000):
                for one in some:
                    url = f"{self.root}/{one['path']}" if one["path"] else self.root
                    yield Object(url, one["size"], int(one["last_modified"].timestamp() * 1e9))


class _Seekable(io.RawIOBase):
    """A reader of obstore's as Python's own files are: it has no `closed`."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def read(self, size: int | None = -1) -> bytes:
        """So many bytes, or all that are left."""
        return bytes(self._reader.read(None if size is None or size < 0 else size))

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Where the next read begins."""
        return int(self._reader.seek(offset, whence))

    def tell(self) -> int:
        """The same."""
        return int(self._reader.tell())


def ahead(urls: Iterable[str], load: Callable[[str], bytes]) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Of each URL what gives its bytes, as `load` does; those that come next are already under way."""
    with ThreadPoolExecutor(_AHEAD) as pool:
        rest = iter(urls)
        held: deque[tuple[str, Future[bytes]]] = deque()
        while True:
            held.extend((url, pool.submit(load, url)) for url in islice(rest, _AHEAD - len(held)))
            if not held:
                return
            url, answer = held.popleft()
            yield url, answer.result


def begin_of(url: str, most: int) -> bytes:
    """At most so many bytes of an object. Raises FileNotFoundError, PlaceError."""
    bucket, _, name = url.removeprefix(OBJECTS).partition("/")
    with _told(url, sought=True):
        return bytes(_obstore().get_range(_opened(OBJECTS + bucket), name, start=0, end=most))


@lru_cache(maxsize=64)
def _opened(root: str) -> Any:
    with _told(root):
        return _obstore().store.from_url(root)


def _obstore() -> Any:
    try:
        import obstore
        import obstore.store
    except ImportError as error:
        raise SourceError("s3: URLs need the extra `s3`: pip install 'sluicegate[s3]'") from error
    return obstore


@contextmanager
def _told(root: str, *, sought: bool = False) -> Iterator[None]:
    """What a server refuses, in one line; `sought`: an object that is not there is no fault of the server's."""
    try:
        yield
    except (OSError, _obstore().exceptions.BaseError) as error:
        if isinstance(error, FileNotFoundError) and sought:
            raise
        if isinstance(error, _obstore().exceptions.AlreadyExistsError):
            raise FileExistsError(root) from error
        raise PlaceError(f"{root} does not answer as asked: {str(error).strip().splitlines()[0][:300]}") from error
