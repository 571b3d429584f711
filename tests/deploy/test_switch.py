"""A new version takes over whole, or the one before goes on with its state as it was."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import made_up
import pytest

SWITCH = Path(__file__).resolve().parents[2] / "deploy/debian/switch.py"
#: A stand-in for systemd: `start` succeeds where the version that `venv` points to is not called "bad", and writes
#: into the state as a starting agent would.
SYSTEMCTL = """#!/bin/sh
echo "$1" >> {root}/asked
if [ "$1" = start ]; then
    version=$({root}/opt/sluicegate/venv/bin/sluicegate version)
    echo "$version" >> {root}/var/lib/sluicegate/readings
    [ "$version" != bad ]
fi
"""


class Board:
    """A folder that stands for a board's root, with wheels of a made-up agent."""

    def __init__(self, root: Path) -> None:
        self.root, self.home = root, root / "opt/sluicegate"
        self.readings = root / "var/lib/sluicegate/readings"
        if root.exists() and any(root.iterdir()):
            return
        for folder in (self.home / "wheels", root / "etc/sluicegate", self.readings.parent):
            folder.mkdir(parents=True)
        (root / "etc/sluicegate/agent.toml").write_text("")
        self.readings.write_text("kept\n")
        (root / "systemctl").write_text(SYSTEMCTL.format(root=root))
        (root / "systemctl").chmod(0o755)

    def bring(self, version: str) -> None:
        """Replace the wheels by one of that version."""
        made_up.bring(self.home / "wheels", version)

    def switch(self, *, supervised: bool = True) -> subprocess.CompletedProcess[str]:
        """Run the script as the package's installation does."""
        more = {"SLUICEGATE_SYSTEMCTL": str(self.root / "systemctl")} if supervised else {}
        command = [sys.executable, SWITCH, "--root", self.root]
        return subprocess.run(command, capture_output=True, text=True, env=os.environ | more, timeout=300, check=False)

    @property
    def version(self) -> str:
        """What the installed command says of itself."""
        ran = subprocess.run([self.home / "venv/bin/sluicegate", "version"], capture_output=True, text=True, check=True)
        return ran.stdout.strip()


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a board is on which "first" was installed, and beside it how it was then: an environment cannot move."""
    board = Board(tmp_path_factory.mktemp("board") / "root")
    board.bring("first")
    done = board.switch()
    assert done.returncode == 0, done.stderr
    assert board.version == "first"
    shutil.copytree(board.root, board.root.with_name("then"), symlinks=True)
    return board.root


@pytest.fixture
def board(installed: Path, copied: None) -> Board:
    """A board on which version "first" runs, as it was installed."""
    shutil.rmtree(installed)
    shutil.copytree(installed.with_name("then"), installed, symlinks=True)
    return Board(installed)


def test_a_good_version_takes_over(board: Board) -> None:
    """It runs with the state of before, twice over changes nothing, and the version before stays at hand."""
    board.bring("second")
    for _ in range(2):
        assert board.switch().returncode == 0
        assert board.version == "second"
    assert board.readings.read_text().startswith("kept\nfirst\nsecond\n")
    assert not (board.root / "var/lib/sluicegate.before").exists()


def test_a_version_that_is_not_ready_is_taken_back(board: Board) -> None:
    """The version before runs again, with its state as it was; the message says where to look."""
    before = board.readings.read_text()
    board.bring("bad")
    done = board.switch()
    assert done.returncode == 1
    assert "not ready within 60 s" in done.stderr
    assert "runs again" in done.stderr
    assert board.version == "first"
    assert board.readings.read_text() == before + "first\n"


def test_a_version_that_refuses_the_configuration_never_stops_the_old_one(board: Board) -> None:
    """It is checked before anything is stopped."""
    asked = (board.root / "asked").read_text()
    board.bring("strict")
    done = board.switch()
    assert done.returncode == 1
    assert "state.disk" in done.stderr
    assert board.version == "first"
    assert (board.root / "asked").read_text() == asked


def test_a_configuration_with_a_secret_of_systemd_is_checked_with_it(board: Board) -> None:
    """`${CREDENTIALS_DIRECTORY}/credentials_mqtt` is there for the check too, as systemd gives it to the agent."""
    board.bring("secretive")
    secrets = board.root / "etc/sluicegate/credentials"
    secrets.mkdir()
    (secrets / "mqtt").write_text("of the broker")
    ran = board.switch()
    assert ran.returncode == 0, ran.stderr
    assert "of the broker" in ran.stdout
    assert board.version == "secretive"


def test_wheels_that_do_not_install_leave_the_old_version(board: Board) -> None:
    """A package for another Python is refused by name, and nothing half-made stays behind."""
    board.bring("second")
    wheel = next((board.home / "wheels").iterdir())
    wheel.rename(wheel.with_name("sluicegate-2.0-cp39-cp39-manylinux_2_31_armv7l.whl"))
    done = board.switch()
    assert done.returncode == 1
    assert "They are for Python 3.9 on " in done.stderr
    assert board.version == "first"
    assert len(list((board.home / "versions").iterdir())) == 1


def test_without_systemd_the_version_is_only_installed(tmp_path: Path, copied: None) -> None:
    """In an image that is being made nothing can be started: the command is there all the same."""
    board = Board(tmp_path)
    board.bring("first")
    assert board.switch(supervised=False).returncode == 0
    assert board.version == "first"
    assert board.readings.read_text() == "kept\n"


@pytest.fixture
def switch(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script as a module, whose systemd is a program that says yes."""
    spec = importlib.util.spec_from_file_location("switch", SWITCH)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setenv("SLUICEGATE_SYSTEMCTL", "true")
    return module


def test_without_room_nothing_is_touched(board: Board, switch: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says how much is free, how much is needed, and what to do."""
    board.bring("second")
    monkeypatch.setattr(switch.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 5 << 20}))
    with pytest.raises(switch.RefusedError, match=r"5 MiB free and 150 are needed .*: make room"):
        switch.environment_of(switch.Places(board.root))
    assert board.version == "first"


def test_a_state_that_cannot_be_copied_does_not_leave_the_agent_stopped(
    board: Board, switch: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full in the middle of the copy: the version before is started again, the half copy is gone."""
    places, asked = switch.Places(board.root), []

    def full(source: Path, copy: Path, **_: object) -> None:
        copy.mkdir()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(switch.shutil, "copytree", full)
    monkeypatch.setattr(switch, "systemctl", lambda word, *_: asked.append(word) or 0)
    with pytest.raises(switch.RefusedError, match=r"No space left on device.*the version before goes on"):
        switch.take_over(places, places.versions / "other")
    assert asked == ["stop", "start"]
    assert board.version == "first"
    assert not places.kept.exists()


def test_a_state_larger_than_the_room_is_seen_before_the_agent_is_stopped(
    board: Board, switch: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy of it has to fit beside it."""
    places, asked = switch.Places(board.root), []
    monkeypatch.setattr(switch.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 1 << 20}))
    monkeypatch.setattr(switch, "systemctl", lambda word, *_: asked.append(word) or 0)
    with pytest.raises(switch.RefusedError, match="a copy of the state"):
        switch.take_over(places, places.versions / "other")
    assert asked == []


def test_what_is_missing_is_said_before_anything_is_touched(
    tmp_path: Path, switch: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An old Python, one without venv, no root rights, no wheels: each with what to do."""
    places = switch.Places(Board(tmp_path).root)
    switch.look_around(places)
    with pytest.raises(switch.RefusedError, match="holds no wheel of sluicegate"):
        switch.environment_of(places)
    monkeypatch.setattr(switch.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(switch.RefusedError, match="apt install python3-venv"):
        switch.look_around(places)
    monkeypatch.setattr(switch.sys, "version_info", (3, 9, 2))
    with pytest.raises(switch.RefusedError, match=r"too old, 3\.11 or newer"):
        switch.look_around(places)
    monkeypatch.setattr(switch.os, "geteuid", lambda: 1000)
    places.is_system = True
    with pytest.raises(switch.RefusedError, match="sudo python3 "):
        switch.look_around(places)


def test_a_broken_configuration_at_the_first_installation_says_that_nothing_was_started(
    tmp_path: Path, copied: None
) -> None:
    """And how to try the file again."""
    board = Board(tmp_path)
    board.bring("strict")
    done = board.switch()
    assert done.returncode == 1
    assert "nothing was started" in done.stderr
    assert "bin/sluicegate check" in done.stderr
    assert not (board.root / "asked").exists()
