"""Where the demo's agents sync to: a folder, or a real Sync Gateway on loopback; gone for a while, and back again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, Self

from sluicegate_demo.gateway import DATABASE, LocalGateway

TARGETS = ("directory", "sync-gateway", "couchbase-lite")
Named = tuple[str, bytes]


class MissingPartsError(Exception):
    """Raised where a target's real parts are not on this machine; the message says what to install."""

    exit_code = 3


class Place(Protocol):
    """A sync target of the demo; a context manager around either half of the run."""

    target: str
    memory: str

    @property
    def source(self) -> str:
        """What `sluicegate cloud merge` is given."""
        ...

    @property
    def environment(self) -> dict[str, str]:
        """What the merge's environment has to say."""
        ...

    def sync(self, device: str) -> str:
        """The lines of an agent's [sync]; makes the device known to the place."""
        ...

    def take_away(self) -> None:
        """From now on nobody reaches it."""
        ...

    def bring_back(self) -> None:
        """It is there again, with all that it took."""
        ...

    def documents(self) -> Iterator[Named]:
        """All that it holds: a name, and the bytes as sealed."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


def place(target: str, out: Path) -> Place:
    """The place of a target below the demo's folder. Raises MissingPartsError."""
    if target == "directory":
        return Folder(out / "chunks")
    require_parts(target)
    return Gateway(out / "gateway", target)


def require_parts(target: str) -> None:
    """Raises MissingPartsError, with what `sluicegate doctor` says of each part that a target needs and lacks."""
    from sluicegate.doctor import PARTS, needed

    if lacking := [row for row in needed(target) if row.status != "ok"]:
        lines = "\n".join(f"  {row.name}: {row.detail}\n    → {row.remedy}" for row in lacking)
        parts = " and ".join(PARTS[target])
        raise MissingPartsError(
            f"target {target} runs through the real {parts}, and this machine lacks:\n{lines}\n"
            "`sluicegate doctor` shows all parts; the target `directory` needs none of them"
        )


class Folder:
    """Documents as files; away: the folder is renamed, and a file is in its place."""

    target, memory = "directory", "52MiB"

    def __init__(self, path: Path) -> None:
        self.path, self.away = path, path.with_name(path.name + "-away")

    @property
    def source(self) -> str:
        """The folder."""
        return str(self.path)

    @property
    def environment(self) -> dict[str, str]:
        """Nothing is needed."""
        return {}

    def sync(self, device: str) -> str:
        """Every device writes below the same folder."""
        return f'target = "directory"\npath = {_quoted(self.path)}\n'

    def take_away(self) -> None:
        """As a medium that is pulled out."""
        self.path.rename(self.away)
        self.path.write_bytes(b"")

    def bring_back(self) -> None:
        """As it was."""
        self.path.unlink(missing_ok=True)
        self.away.rename(self.path)

    def documents(self) -> Iterator[Named]:
        """Every file, by its path."""
        return files(self.path)

    def __enter__(self) -> Self:
        self.path.mkdir(exist_ok=True)
        return self

    def __exit__(self, *_: object) -> None:
        if self.away.exists():
            self.bring_back()


class Gateway:
    """Documents in a Sync Gateway's database on disk; away: the gateway is killed with SIGKILL."""

    def __init__(self, folder: Path, target: str) -> None:
        self.folder, self.target = folder, target
        # A budget for the plan's worst case: the library's own copies of what it pushes are in it.
        self.memory = "64MiB" if target == "couchbase-lite" else "52MiB"
        self.server = LocalGateway(folder)

    @property
    def source(self) -> str:
        """The database's URL."""
        return f"http://127.0.0.1:{self.server.port}/{DATABASE}"

    @property
    def environment(self) -> dict[str, str]:
        """Where the reader's name and password are."""
        return {"SLUICEGATE_GATEWAY_CREDENTIALS": str(self.folder / "reader.json")}

    def sync(self, device: str) -> str:
        """A user for the device, that may write its own documents only."""
        scheme = "http" if self.target == "sync-gateway" else "ws"
        url = f"{scheme}://127.0.0.1:{self.server.port}/{DATABASE}"
        return f'target = "{self.target}"\ncredentials_file = {_quoted(self._provisioned(device, url))}\n'

    def take_away(self) -> None:
        """As a power cut in the data centre."""
        self.server.kill()

    def bring_back(self) -> None:
        """Started again over what is on its disk."""
        self.server.start()

    def documents(self) -> Iterator[Named]:
        """Every document, from the administrator's side: not by the feed that the merge reads."""
        for document in self.server.documents():
            body = {key: value for key, value in document.items() if not key.startswith("_")}
            yield str(document["_id"]) + ".json", json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()

    def __enter__(self) -> Self:
        self.folder.mkdir(exist_ok=True, mode=0o700)
        self.server.start()
        if not (self.folder / "reader.json").exists():
            self._provisioned("reader", self.source, reader=True)
        return self

    def __exit__(self, *_: object) -> None:
        self.server.stop()

    def _provisioned(self, name: str, url: str, *, reader: bool = False) -> Path:
        """A user of the database, by what `sluicegate cloud provision` does; its credentials file."""
        from sluicegate_cloud.feed.provision import provision, reserved

        path = self.folder / f"{name}.json"
        with reserved(path) as write:
            write(provision(self.server.admin_url, name, url, reader=reader))
        return path


def files(folder: Path) -> Iterator[Named]:
    """Every file below a folder, by its path, but the marker that names the folder as a target."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.name != ".sluicegate-target"):
        yield str(path), path.read_bytes()


def _quoted(path: Path) -> str:
    return json.dumps(str(path), ensure_ascii=False)
