"""The directory's own process keeps the targets' contract; a file system that hangs holds it, and never the agent."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from durable_agent import NOON, configured, timed
from target_suite import TargetSuite
from target_suite.suite import FIRST, SECOND
from test_targets import InDirectory

from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.handover import hand_over
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.plan import WRITER
from sluicegate_agent.state import State
from sluicegate_agent.sync import Document, Outcome, Sync
from sluicegate_agent.sync.apart import Apart

LINUX = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")


class Awaited:
    """A target whose `put` is asked until it has its answer, as the agent's loop does turn by turn."""

    def __init__(self, target: Apart) -> None:
        self.target = target

    def put(self, documents: list[Document]) -> Outcome:
        """Wait for what is pending."""
        return awaited(self.target, documents)

    def close(self) -> None:
        """Close."""
        self.target.close()


class InDirectoryApart(InDirectory):
    """The same folder, written by a process of its own."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.apart = Apart(path, path.parent)
        self.target = Awaited(self.apart)  # type: ignore[assignment]


class TestApart(TargetSuite):
    """A directory keeps the contract through its process."""

    @pytest.fixture
    def subject(self, tmp_path: Path) -> Iterator[InDirectoryApart]:
        """Below the test's folder."""
        subject = InDirectoryApart(tmp_path / "chunks")
        yield subject
        subject.target.close()


@pytest.fixture
def apart(tmp_path: Path) -> Iterator[Callable[..., Apart]]:
    """Makes a target over `chunks` with its state in `state`; ends what it started."""
    made: list[Apart] = []
    for name in ("chunks", "state"):
        (tmp_path / name).mkdir()

    def make(timeout: float = 30.0) -> Apart:
        made.append(Apart(tmp_path / "chunks", tmp_path / "state", "", timeout))
        return made[-1]

    yield make
    for one in made:
        one.close()


def awaited(target: Apart, documents: list[Document], seconds: float = 60.0) -> Outcome:
    """The outcome of a put."""
    end = time.monotonic() + seconds
    while (outcome := target.put(documents)).pending and time.monotonic() < end:
        time.sleep(0.002)
    return outcome


def writer_of(target: Apart) -> int:
    """The id of its process."""
    assert target._writer is not None
    return target._writer._pid


def children() -> set[int]:
    """The processes that this one started and has not reaped."""
    found = set()
    for line in (path.read_text() for path in Path("/proc").glob("[0-9]*/stat") if _readable(path)):
        number, parent = int(line.split()[0]), int(line.rpartition(")")[2].split()[1])
        if parent == os.getpid():
            found.add(number)
    return found


def _readable(path: Path) -> bool:
    with contextlib.suppress(OSError):
        return bool(path.read_text())
    return False


def test_many_and_large_documents_arrive(apart: Callable[..., Apart], tmp_path: Path) -> None:
    """More than a channel's buffers hold, both ways."""
    sent = [Document(f"b::s::i::{number}", b'{"x":"%s"}' % (b"x" * 300_000)) for number in range(12)]
    sent += [Document(f"b::s::i::x::{number}" + "y" * 900, b"{}") for number in range(300)]
    outcome = awaited(apart(), sent)
    assert outcome.accepted == tuple(each.id for each in sent[:12])
    assert len(outcome.rejected) == 300
    assert {path.stat().st_size for path in tmp_path.rglob("*.json")} == {300_008}


@LINUX
def test_a_process_that_is_stopped_is_given_up(apart: Callable[..., Apart]) -> None:
    """`put` never waits; after the time-out it says since when nothing is answered; then another process goes on."""
    one = apart()
    assert awaited(one, [FIRST]).accepted
    one.timeout = 1.0
    stopped = writer_of(one)
    os.kill(stopped, signal.SIGSTOP)
    begun, turns, outcome = time.monotonic(), 0, Outcome(pending=True)
    while outcome.pending and time.monotonic() - begun < 60:
        outcome = one.put([SECOND])
        turns += 1
        time.sleep(0.01)
    assert turns > 5, "it waited"
    assert one.hangs
    assert (outcome.accepted, outcome.retry_after) == ((), 0.0)
    assert re.search(r"hangs since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", outcome.error)
    one.timeout = 30.0  # a new process may take its time to begin
    assert awaited(one, [SECOND]).accepted == (SECOND.id,)
    assert not one.hangs
    assert stopped not in children(), "it is reaped"


@LINUX
def test_a_writer_that_cannot_be_killed_stays_the_only_one(
    apart: Callable[..., Apart], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in an uninterruptible wait: tried again and again, also by another agent, no second process begins."""
    one = apart()
    assert awaited(one, [FIRST]).accepted
    one.timeout = 0.1
    hung = writer_of(one)
    os.kill(hung, signal.SIGSTOP)
    kill = os.kill
    monkeypatch.setattr(os, "kill", lambda *_: None)
    said = awaited(one, [SECOND]).error
    before = children()
    for _ in range(20):
        assert one.put([SECOND]).error == said, "the same words, so that the link's state is one"
    another = apart(timeout=0.1)
    assert "has not ended yet" in another.put([SECOND]).error
    time.sleep(0.15)
    assert "hangs since" in another.put([SECOND]).error
    assert children() == before
    begun = time.monotonic()
    one.close()
    another.close()
    assert time.monotonic() - begun < 20
    one.timeout = 30.0
    kill(hung, signal.SIGKILL)
    end = time.monotonic() + 60
    while not awaited(one, [SECOND]).accepted and time.monotonic() < end:
        time.sleep(0.01)
    assert not one.hangs


@LINUX
@pytest.mark.faults
def test_writers_that_are_killed_lose_nothing(apart: Callable[..., Apart], tmp_path: Path) -> None:
    """SIGKILL to the process at any moment: what was accepted is there whole, and the same put again ends well."""
    one, sent, accepted = apart(), [Document(f"b::s::i::{n}", b'{"n":%d}' % n) for n in range(400)], set()
    for round in range(40):
        batch = sent[round * 10 : round * 10 + 10]
        outcome = one.put(batch)
        if outcome.pending:
            time.sleep(round / 4000)
            with contextlib.suppress(ProcessLookupError):
                os.kill(writer_of(one), signal.SIGKILL)
            outcome = awaited(one, batch)
        accepted |= set(outcome.accepted)
        for name in outcome.accepted:
            device, stream, incarnation, number = name.split("::")
            path = tmp_path / "chunks" / device / stream / f"{incarnation}-{number}.json"
            assert path.read_bytes() == b'{"n":%d}' % int(number)
    outcome = awaited(one, sent)
    while outcome.retry_after is not None:
        outcome = awaited(one, sent)
    assert len(outcome.accepted) == 400
    assert not list(tmp_path.rglob("*.json.partial"))


@LINUX
def test_it_takes_what_is_planned_and_ends_by_itself(apart: Callable[..., Apart]) -> None:
    """Its own memory (the interpreter's file is shared) is within `plan`; with nothing to do it is let go."""
    one = apart()
    awaited(one, [Document("b::s::i::0", b'{"x":"%s"}' % (b"x" * (360 << 10)))])
    rollup = Path(f"/proc/{writer_of(one)}/smaps_rollup").read_text()
    anonymous = int(re.findall(r"Anonymous:\s+(\d+)", rollup)[0]) * 1024
    assert anonymous <= WRITER + (360 << 10) + (320 << 10)  # the allocator's arenas, which begin where the system likes
    pid = writer_of(one)
    assert one._writer is not None
    one._writer._moved -= 1000
    assert one.put([]) == Outcome()
    assert pid not in children()
    assert awaited(one, [SECOND]).accepted


@LINUX
def test_a_process_that_ended_meanwhile_is_started_again(apart: Callable[..., Apart]) -> None:
    """Nothing is shown for that."""
    one = apart()
    awaited(one, [FIRST])
    os.kill(writer_of(one), signal.SIGKILL)
    outcome = awaited(one, [SECOND])
    assert (outcome.accepted, outcome.error) == ((SECOND.id,), "")


def life(folder: Path, timeout: str = "1s") -> tuple[State, Pipeline, Sync]:
    """An agent's state, pipeline and sync over the folder `chunks`."""
    config = configured(folder, sync={"target": "directory", "path": "chunks", "every": "1ms", "timeout": timeout})
    state = State(config)
    return state, Pipeline(config, state, clock=lambda: NOON), Sync(config, state)


@LINUX
def test_readings_are_taken_while_it_hangs(tmp_path: Path) -> None:
    """Every step is short; the link says since when; draining ends at once with the reason; nothing is forgotten."""
    (tmp_path / "chunks").mkdir()
    state, pipeline, sync = life(tmp_path)
    with state:
        stopped, longest, begun, packets = False, 0.0, time.monotonic(), 0
        while not sync.is_hung and time.monotonic() - begun < 60:
            packets += 1
            pipeline.accept(timed(packets, packets % 65535 + 1))
            before = time.monotonic()
            pipeline.commit()
            sync.step(time.monotonic(), flush=True)
            longest = max(longest, time.monotonic() - before)
            target = sync.target
            if not stopped and isinstance(target, Apart) and target._writer and packets > 50:
                os.kill(writer_of(target), signal.SIGSTOP)
                stopped = True
            time.sleep(0.005)
        assert longest < 20
        assert (sync.link.state, sync.is_busy) == ("down", False)
        assert "hangs since" in sync.link.as_dict()["error"]
        begun = time.monotonic()
        with pytest.raises(EnvironmentRefused, match="hangs since"):
            hand_over(pipeline, sync)
        sync.close()
        assert time.monotonic() - begun < 5
        assert state.outbox.sealed > 0


def _frozen(folder: Path) -> Iterator[Path]:
    """A file system of its own in a file. Only where it is asked for: while it is frozen every `sync` here waits."""
    if not os.environ.get("SLUICEGATE_TEST_FREEZE"):
        pytest.skip("SLUICEGATE_TEST_FREEZE=1 freezes a file system in a loop device, as root")
    image, mounted = folder / "image", folder / "share"
    mounted.mkdir()
    image.write_bytes(b"\0" * (8 << 20))
    if os.geteuid() or not all(map(shutil.which, ("mkfs.ext4", "mount", "fsfreeze"))):
        pytest.skip("needs root, mkfs.ext4 and fsfreeze")
    made = subprocess.run(["mkfs.ext4", "-q", str(image)], capture_output=True, check=False)
    if made.returncode or subprocess.run(["mount", "-o", "loop", image, mounted], capture_output=True).returncode:
        pytest.skip("no loop device can be mounted here")
    try:
        yield mounted
    finally:
        subprocess.run(["fsfreeze", "-u", mounted], capture_output=True, check=False)
        for _ in range(100):
            if subprocess.run(["umount", mounted], capture_output=True, check=False).returncode == 0:
                break
            time.sleep(0.1)


@LINUX
@pytest.mark.faults
def test_a_real_file_system_that_hangs(tmp_path: Path) -> None:
    """Frozen, as a share whose server is gone: SIGKILL does not end its writer. The agent goes on, and recovers."""
    for mounted in _frozen(tmp_path):
        (tmp_path / "state").mkdir()
        one = Apart(mounted, tmp_path / "state", "", 0.3)
        assert awaited(one, [FIRST]).accepted
        subprocess.run(["fsfreeze", "-f", mounted], check=True)
        assert "hangs since" in awaited(one, [SECOND]).error
        hung = one._hung
        assert hung is not None
        assert not hung.is_gone, "it waits in the kernel, killed and not dead"
        begun = time.monotonic()
        assert "hangs since" in one.put([SECOND]).error
        assert time.monotonic() - begun < 1
        subprocess.run(["fsfreeze", "-u", mounted], check=True)
        end = time.monotonic() + 30
        while not (outcome := awaited(one, [SECOND])).accepted and time.monotonic() < end:
            time.sleep(0.01)
        assert outcome.accepted == (SECOND.id,)
        one.close()
