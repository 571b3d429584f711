"""A directory target is known by its marker: nothing is written to, or acknowledged from, a folder that is not it."""

from __future__ import annotations

import string
from pathlib import Path
from urllib.parse import quote

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from click.testing import CliRunner
from durable_agent import NOON, configured, timed
from target_suite.suite import FIRST, SECOND

from sluicegate_agent.commands.check import check
from sluicegate_agent.commands.status import status
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.state import State
from sluicegate_agent.sync import DirectoryTarget, Sync, files
from sluicegate_agent.sync.files import MARKER, names_of

OTHER = "0123456789abcdef" * 2


def everything(folder: Path) -> set[str]:
    """The names of all files below a folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def share(tmp_path: Path) -> Path:
    """An empty share, mounted."""
    folder = tmp_path / "share"
    folder.mkdir()
    return folder


def swapped(share: Path, aside: str) -> Path:
    """The share is unmounted: under its name is the bare mount point."""
    away = share.with_name(aside)
    share.rename(away)
    share.mkdir()
    return away


def test_the_first_put_names_the_folder(share: Path) -> None:
    """Once: 32 hexadecimal digits of chance, which stay."""
    one = DirectoryTarget(share)
    mark = one.put([FIRST]).mark
    assert (share / MARKER).read_text() == mark + "\n"
    assert len(mark) == 32
    assert set(mark) <= set(string.hexdigits.lower())
    assert one.put([SECOND]).mark == mark
    assert DirectoryTarget(share).put([SECOND]).mark == mark, "another agent takes the name that is there"


def table(*lines: str, file: Path) -> str:
    """A table as /etc/fstab and /proc/self/mounts have it."""
    file.write_text("# comment\n\n" + "".join(f"{line}\n" for line in lines))
    return str(file)


@pytest.mark.parametrize("kind", ["in this process", "apart"])
def test_the_first_start_names_the_folder_before_any_document(kind: str, share: Path, tmp_path: Path) -> None:
    """So a share that is unmounted an hour later, when the first document is due, is known by then."""
    config = configured(tmp_path / "board", sync={"target": "directory", "path": str(share)})
    with State(config) as state:
        sync = Sync(config, state) if kind == "apart" else Sync(config, state, DirectoryTarget(share))
        for turn in range(2000):
            sync.step(float(turn))
            if state.known_target():
                break
            _wait_for(sync)
        sync.close()
        assert (share / MARKER).read_text().strip() == state.known_target()
    swapped(share, "away")
    assert _drained(config, 1, turns=20) > 0
    assert everything(share) == set()


def test_a_folder_that_was_named_and_got_nothing_gives_way(share: Path, tmp_path: Path) -> None:
    """An agent that was killed after it named its share found the bare folder next, and named that one too.

    Nothing was sent to it: the share that comes back is taken. Once something was sent, another marker is refused.
    """
    config = configured(tmp_path / "board", sync={"target": "directory", "path": str(share)})
    with State(config) as state:
        sync = Sync(config, state)
        for turn in range(2000):
            sync.step(float(turn))
            if state.known_target():
                break
            _wait_for(sync)
        sync.close()
    swapped(share, "bare")
    (share / MARKER).write_text(OTHER)
    assert _drained(config, 1) == 0
    assert len(everything(share)) > 1
    with State(config) as state:
        assert state.known_target() == OTHER
    swapped(share, "used")
    (share / MARKER).write_text(OTHER[::-1])
    assert _drained(config, 2, turns=20) > 0
    assert everything(share) == {MARKER}


def test_a_first_start_with_the_share_unmounted_takes_nothing(
    share: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the system's table mounts a medium there, or above; what is named further up, or is mounted, is none."""
    deep = share / "deep" / "er"
    deep.mkdir(parents=True)
    spaced = str(share).replace(" ", "\\040")
    monkeypatch.setattr(files, "FSTAB", table(f"//nas/x {spaced} cifs a 0 0", "/dev/a / ext4", file=tmp_path / "f"))
    monkeypatch.setattr(files, "MOUNTS", table("/dev/a / ext4 rw 0 0", file=tmp_path / "m"))
    for folder in (share, deep):
        outcome = DirectoryTarget(folder).put([FIRST])
        assert outcome.accepted == ()
        assert "none is mounted there now" in outcome.error
        assert everything(share) == set()
    table("/dev/a / ext4 rw 0 0", f"//nas/x {spaced} cifs rw 0 0", file=tmp_path / "m")
    assert DirectoryTarget(deep).put([FIRST]).accepted == (FIRST.id,)
    table("/dev/a / ext4 rw 0 0", file=tmp_path / "m")
    assert DirectoryTarget(deep).put([SECOND]).accepted == (SECOND.id,), "it has a marker"
    assert DirectoryTarget(tmp_path / "share").put([FIRST]).accepted == ()


def test_check_warns_of_what_is_not_mounted(share: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While somebody looks."""
    file = tmp_path / "agent.toml"
    file.write_text(
        f'[device]\nid = "d"\n[state]\npath = "state"\n[[source]]\ntopic = "t"\nstreams = {{ x = "x" }}\n'
        f'[sync]\ntarget = "directory"\npath = "{share}"\n'
    )
    monkeypatch.setattr(files, "FSTAB", table(file=tmp_path / "f"))
    monkeypatch.setattr(files, "MOUNTS", table(file=tmp_path / "m"))
    assert "Warning" not in CliRunner().invoke(check, [str(file)]).output
    table(f"//nas/x {share} cifs a 0 0", file=tmp_path / "f")
    assert "none is mounted there now" in CliRunner().invoke(check, [str(file)]).output
    share.rmdir()
    assert "there is no such folder" in CliRunner().invoke(check, [str(file)]).output


def test_an_unmounted_share_takes_nothing(share: Path) -> None:
    """The bare mount point stays bare; nothing is accepted; the reason names the folder and the remedy."""
    one = DirectoryTarget(share)
    mark = one.put([FIRST]).mark
    away = swapped(share, "away")
    outcome = one.put([SECOND])
    assert (outcome.accepted, outcome.rejected, outcome.retry_after) == ((), {}, 0.0)
    assert f"has no {MARKER}" in outcome.error
    assert f"write {mark} into {share}/{MARKER}" in outcome.error
    assert everything(share) == set()
    share.rmdir()
    away.rename(share)
    assert one.put([SECOND]).accepted == (SECOND.id,)


def test_another_medium_takes_nothing(share: Path) -> None:
    """A stick of another board in the same slot."""
    one = DirectoryTarget(share)
    one.put([FIRST])
    swapped(share, "mine")
    (share / MARKER).write_text(OTHER)
    outcome = one.put([SECOND])
    assert outcome.accepted == ()
    assert f"is the target {OTHER}" in outcome.error
    assert everything(share) == {MARKER}


@pytest.mark.parametrize("content", [b"", b"\xff" * 32, b"g" * 32, b"0" * 9000])
def test_a_marker_that_says_nonsense_is_no_marker(share: Path, content: bytes) -> None:
    """Neither adopted nor replaced."""
    (share / MARKER).write_bytes(content)
    outcome = DirectoryTarget(share).put([FIRST])
    assert outcome.accepted == ()
    assert "expected 32 hexadecimal digits" in outcome.error
    assert (share / MARKER).read_bytes() == content


def test_a_share_that_goes_away_in_the_middle_is_the_one_that_is_written(
    share: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is found under the name after the marker was read plays no part: the open folder does."""
    one = DirectoryTarget(share)
    one.put([FIRST])
    identity = files.Folder.identity

    def unmounted_after(self: files.Folder, known: str) -> str:
        found = identity(self, known)
        swapped(share, "away")
        return found

    monkeypatch.setattr(files.Folder, "identity", unmounted_after)
    assert one.put([SECOND]).accepted == (SECOND.id,)
    assert everything(share) == set()
    assert len(everything(share.with_name("away"))) == 3


def test_nothing_leaves_the_outbox_for_an_unmounted_share(tmp_path: Path) -> None:
    """Through restarts, too: the id is in the state; and after `--accept-target` the folder that is there is taken."""
    config = configured(tmp_path)
    share = tmp_path / "chunks"
    share.mkdir()
    (tmp_path / "agent.toml").write_text(
        f'[device]\nid = "board-1"\n[state]\npath = "{config.state.path}"\n[[source]]\ntopic = "t"\n'
        f'streams = {{ x = "x" }}\n[sync]\ntarget = "directory"\npath = "{share}"\n'
    )
    _drained(config, 1)
    assert len(everything(share)) == 2
    swapped(share, "away")
    for minute in (2, 3):
        assert _drained(config, minute, turns=20) > 0, "what was not taken is kept"
        assert everything(share) == set()
    done = CliRunner().invoke(status, [str(tmp_path / "agent.toml"), "--accept-target"], catch_exceptions=False)
    assert "forgotten" in done.output
    assert _drained(config, 4) == 0
    assert MARKER in everything(share)


def _drained(config: object, minute: int, turns: int = 4000) -> int:
    """A life of an agent that takes a reading and sends; how many chunks are left."""
    with State(config) as state:  # type: ignore[arg-type]
        pipeline = Pipeline(config, state, clock=lambda: NOON)  # type: ignore[arg-type]
        sync = Sync(config, state)  # type: ignore[arg-type]
        pipeline.accept(timed(minute, minute))
        pipeline.flush()
        pipeline.commit()
        for turn in range(turns):
            if sync.is_done():
                break
            sync.step(1000.0 * turn, flush=True)
            _wait_for(sync)
        sync.close()
        return state.outbox.sealed


def _wait_for(sync: Sync) -> None:
    import time

    time.sleep(0.01 if sync.is_busy else 0)


@pytest.mark.parametrize("name", ["level", "flow.in", "a/b", "..", ".", "…", "a b%", "~x", "\0", "ünïcode"])
def test_names_are_those_of_percent_encoding(name: str) -> None:
    """As RFC 3986 has it (the standard library's own), but for names of dots alone."""
    encoded = names_of(f"{name}::s::i::0")[0]
    expected = quote(name, safe="")
    assert encoded == (expected.replace(".", "%2E") if set(name) == {"."} else expected)
