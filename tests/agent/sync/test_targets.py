"""Every sync target keeps the one contract; the directory target keeps it through crashes too."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from target_suite import TargetSuite
from target_suite.memory import MemoryTarget
from target_suite.suite import FIRST, SECOND, Subject

from sluicegate_agent.sync import DirectoryTarget, Document
from sluicegate_agent.sync.directory import relative_path
from sluicegate_agent.sync.files import MARKER


class InMemory(Subject):
    """The tests' own target."""

    def __init__(self) -> None:
        self.target = self.memory = MemoryTarget()

    def held(self) -> dict[str, bytes]:
        """The dictionary."""
        return self.memory.documents

    def go_away(self) -> None:
        """Refuse."""
        self.memory.away = True

    def come_back(self) -> None:
        """Take again."""
        self.memory.away = False


class InDirectory(Subject):
    """A folder that is renamed to be away, as an unmounted medium is."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        self.target = DirectoryTarget(path)

    def held(self) -> dict[str, bytes]:
        """The files but the marker, by the id their path stands for; anything else that lies there shows up, too."""
        found = {}
        for file in (path for path in self.path.rglob("*") if path.is_file() and path.name != MARKER):
            device, stream = (unquote(part) for part in file.relative_to(self.path).parts[:2])
            found["::".join((device, stream, *file.stem.split("-")))] = file.read_bytes()
        return found

    def go_away(self) -> None:
        """Rename."""
        self.path.rename(self.path.with_suffix(".away"))

    def come_back(self) -> None:
        """Rename back."""
        self.path.with_suffix(".away").rename(self.path)


class TestMemoryTarget(TargetSuite):
    """The double that other tests trust keeps the contract itself."""

    @pytest.fixture
    def subject(self, tmp_path: Path) -> InMemory:
        """In memory."""
        return InMemory()


class TestDirectoryTarget(TargetSuite):
    """A directory keeps the contract."""

    @pytest.fixture
    def subject(self, tmp_path: Path) -> InDirectory:
        """Below the test's folder."""
        return InDirectory(tmp_path / "chunks")


def test_names_are_deterministic_and_safe() -> None:
    """The path follows from the id alone, percent-encoded, inside the folder."""
    assert relative_path(FIRST.id) == Path("board-1/level/00060a24181e4000-0000000000000000.json")
    assert relative_path("a/b::..::i::0") == Path("a%2Fb/%2E%2E/i-0.json")


def test_an_interrupted_write_is_not_a_document(tmp_path: Path) -> None:
    """What a crash left under the temporary name is no document, and does not stand in the way of one."""
    (tmp_path / "board-1/level").mkdir(parents=True)
    partial = tmp_path / (str(relative_path(FIRST.id)) + ".partial")
    partial.write_bytes(b"{half")
    target = DirectoryTarget(tmp_path)
    assert target.put([FIRST]).accepted == (FIRST.id,)
    assert not partial.exists()
    assert (tmp_path / relative_path(FIRST.id)).read_bytes() == FIRST.data


def test_file_systems_without_links_are_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On FAT a document is renamed into place, and still never replaces another one."""

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    target = DirectoryTarget(tmp_path)
    assert target.put([FIRST]).accepted == (FIRST.id,)
    assert FIRST.id in target.put([Document(FIRST.id, b"other")]).rejected
    assert (tmp_path / relative_path(FIRST.id)).read_bytes() == FIRST.data


def test_a_medium_that_fills_up_takes_what_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first document is accepted, the second waits with the reason, and leaves no partial file behind."""
    target = DirectoryTarget(tmp_path)
    fsync, calls = os.fsync, []

    def full(file: int) -> None:
        calls.append(file)
        if len(calls) > 6:
            raise OSError(28, "No space left on device")
        fsync(file)

    monkeypatch.setattr(os, "fsync", full)
    outcome = target.put([FIRST, SECOND])
    assert outcome.accepted == (FIRST.id,)
    assert outcome.retry_after is not None
    assert "No space left" in outcome.error
    assert not list(tmp_path.rglob("*.partial"))


def test_an_unmounted_folder_is_not_made(tmp_path: Path) -> None:
    """Writing below a mount point that is not mounted would fill the board's own disk: it says what to do instead."""
    outcome = DirectoryTarget(tmp_path / "media" / "stick").put([FIRST])
    assert "there is no such folder; mount or make it" in outcome.error
    assert not (tmp_path / "media").exists()
