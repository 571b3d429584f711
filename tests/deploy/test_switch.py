"""A new version takes over whole, or the one before goes on with its state as it was."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

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
AGENT = """
import os, sys
VERSION = {version!r}
def main():
    if sys.argv[1] == "version":
        print(VERSION)
    elif VERSION == "strict":
        sys.exit("agent.toml: state.disk: not known any more")
    elif VERSION == "secretive":
        print(open(os.environ["CREDENTIALS_DIRECTORY"] + "/credentials_mqtt").read())
"""


class Board:
    """A folder that stands for a board's root, with wheels of a made-up agent."""

    def __init__(self, root: Path) -> None:
        self.root, self.home = root, root / "opt/sluicegate"
        self.readings = root / "var/lib/sluicegate/readings"
        for folder in (self.home / "wheels", root / "etc/sluicegate", self.readings.parent):
            folder.mkdir(parents=True)
        (root / "etc/sluicegate/agent.toml").write_text("")
        self.readings.write_text("kept\n")
        (root / "systemctl").write_text(SYSTEMCTL.format(root=root))
        (root / "systemctl").chmod(0o755)

    def bring(self, version: str) -> None:
        """Replace the wheels by one of that version."""
        for old in (self.home / "wheels").iterdir():
            old.unlink()
        about = f"sluicegate-{len(version)}.0.dist-info"
        with zipfile.ZipFile(self.home / f"wheels/sluicegate-{len(version)}.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr("agent_of_a_test.py", AGENT.format(version=version))
            wheel.writestr(
                f"{about}/METADATA",
                f"Metadata-Version: 2.1\nName: sluicegate\nVersion: {len(version)}.0\nProvides-Extra: agent\n",
            )
            wheel.writestr(
                f"{about}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            )
            wheel.writestr(f"{about}/entry_points.txt", "[console_scripts]\nsluicegate = agent_of_a_test:main\n")
            wheel.writestr(f"{about}/RECORD", "")

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


@pytest.fixture
def board(tmp_path: Path) -> Board:
    """A board on which version "first" runs."""
    board = Board(tmp_path)
    board.bring("first")
    done = board.switch()
    assert done.returncode == 0, done.stderr
    assert board.version == "first"
    return board


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
    assert "wheels for" in done.stderr
    assert board.version == "first"
    assert len(list((board.home / "versions").iterdir())) == 1


def test_without_systemd_the_version_is_only_installed(tmp_path: Path) -> None:
    """In an image that is being made nothing can be started: the command is there all the same."""
    board = Board(tmp_path)
    board.bring("first")
    assert board.switch(supervised=False).returncode == 0
    assert board.version == "first"
    assert board.readings.read_text() == "kept\n"
