"""`install.sh` does what the Debian package does, and says what to do where it cannot."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import made_up
import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "deploy/raspberrypi/install.sh"
NOWHERE = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0", "PIP_TIMEOUT": "1"}  # no network


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    """A folder with the wheel of a made-up agent that needs nothing else."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    made_up.bring(folder, "first")
    return folder


def install(*words: str | Path, command: tuple[str, ...] = (), **environment: str) -> subprocess.CompletedProcess[str]:
    """Run it with this Python, or `PYTHON`, and no network."""
    more = NOWHERE | {"PYTHON": sys.executable} | environment
    asked = [*command, "sh", str(SCRIPT), *map(str, words)]
    return subprocess.run(asked, capture_output=True, text=True, env=os.environ | more, timeout=300, check=False)


def program(folder: Path, name: str, text: str) -> Path:
    """A stand-in for a program, in a folder that goes before all others in PATH."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)
    return folder / name


def test_the_program_alone_needs_no_root_rights(wheels: Path, tmp_path: Path) -> None:
    """`--prefix`: an environment, and what to do next; again is harmless."""
    for _ in range(2):
        done = install("--wheels", wheels, "--prefix", tmp_path / "here")
        assert done.returncode == 0, done.stderr
        assert "installed first: " in done.stdout
    assert (tmp_path / "here/bin/sluicegate").exists()


def test_it_installs_upgrades_and_keeps_what_runs_where_the_new_one_refuses(
    wheels: Path, tmp_path: Path, copied: None
) -> None:
    """As the package: the unit, the generator, the command; a configuration that the new version refuses."""
    root = tmp_path / "root"
    root.mkdir()
    assert (done := install("--wheels", wheels, "--root", root)).returncode == 0, done.stderr
    for name in ("etc/systemd/system/sluicegate.service", "usr/local/bin/sluicegate", "opt/sluicegate/switch.py"):
        assert (root / name).exists()
    agent = root / "opt/sluicegate/venv/bin/sluicegate"
    (root / "etc/sluicegate").mkdir(parents=True)
    (root / "etc/sluicegate/agent.toml").write_text("")
    made_up.bring(wheels, "strict")
    done = install("--wheels", wheels, "--root", root)
    assert done.returncode == 1
    assert "state.disk" in done.stderr
    assert "the version before goes on" in done.stderr
    assert subprocess.run([agent, "version"], capture_output=True, text=True, check=True).stdout == "first\n"


@pytest.mark.skipif(os.geteuid() == 0 and shutil.which("setpriv") is None, reason="no setpriv to give up root by")
def test_without_root_rights_it_says_how_to_get_them_and_how_to_do_without(tmp_path: Path) -> None:
    """Nothing has been touched by then."""
    anyone = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups") if os.geteuid() == 0 else ()
    copy = Path(shutil.copytree(SCRIPT.parents[1], tmp_path / "deploy", ignore=shutil.ignore_patterns("demo")))
    for each in (tmp_path, *tmp_path.parents[:2]):  # those that pytest made for this user alone
        each.chmod(0o755)
    python = shutil.which("python3", path="/usr/bin:/bin") or sys.executable
    asked = [*anyone, "sh", str(copy / "raspberrypi/install.sh")]
    told = subprocess.run(asked, capture_output=True, text=True, env=os.environ | {"PYTHON": python}, check=False)
    if "venv is not complete" in told.stderr or told.returncode == 126:
        pytest.skip("no Python that anyone may run, with venv")
    assert told.returncode == 4, told.stderr
    assert "sudo sh " in told.stderr
    assert "--prefix" in told.stderr


def test_an_old_python_is_named_with_the_systems_that_have_a_newer_one(wheels: Path, tmp_path: Path) -> None:
    """By its version."""
    old = program(tmp_path / "bin", "old", '[ "$1" = --version ] && echo "Python 3.9.2" || exit 1')
    done = install("--wheels", wheels, "--prefix", tmp_path / "here", PYTHON=str(old))
    assert done.returncode == 3
    assert "Python 3.9.2 is too old, 3.11 or newer" in done.stderr
    assert "bookworm" in done.stderr


def test_a_python_without_venv_names_the_package(wheels: Path, tmp_path: Path) -> None:
    """As Debian's is without python3-venv."""
    text = f'case "$*" in *ensurepip*) exit 1 ;; esac\nexec {sys.executable} "$@"'
    bare = program(tmp_path / "bin", "bare", text)
    done = install("--wheels", wheels, "--prefix", tmp_path / "here", PYTHON=str(bare))
    assert done.returncode == 3
    assert "sudo apt install python3-venv" in done.stderr


def test_no_room_is_said_before_anything_is_written(wheels: Path, tmp_path: Path) -> None:
    """With what is free and what is needed."""
    program(tmp_path / "bin", "df", "printf 'Filesystem 1024-blocks Used Available\\n/dev/card 9 4 5120\\n'")
    done = install("--wheels", wheels, "--prefix", tmp_path / "here", PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert done.returncode == 4
    assert "has 5 MiB free and 150 are needed: make room" in done.stderr
    assert not (tmp_path / "here").exists()


@pytest.mark.parametrize("where", ["--prefix", "--root"])
def test_without_a_network_it_says_how_to_bring_what_is_missing(
    where: str, wheels: Path, tmp_path: Path, copied: None
) -> None:
    """A requirement that is neither there nor reached: the command that gets it elsewhere, and what there is."""
    made_up.bring(wheels, "first", needs="a-requirement-that-is-not-here")
    (tmp_path / "here").mkdir()
    done = install("--wheels", wheels, where, tmp_path / "here")
    assert done.returncode == 3
    assert "python3 -m pip download --dest wheels" in done.stderr
    assert "there is: sluicegate-5.0-py3-none-any.whl" in done.stderr
    assert not (tmp_path / "here/opt").exists()


def test_a_folder_without_the_wheel_and_a_wrong_word_are_named(tmp_path: Path) -> None:
    """Exit codes 3 and 2."""
    (tmp_path / "none").mkdir()
    done = install("--wheels", tmp_path / "none", "--prefix", tmp_path / "here")
    assert done.returncode == 3
    assert "holds no sluicegate-*.whl" in done.stderr
    done = install("--perfix", tmp_path)
    assert done.returncode == 2
    assert "unknown: --perfix" in done.stderr


def test_the_command_by_hand_finds_the_secrets_that_systemd_hands_to_the_service(tmp_path: Path) -> None:
    """Under the service's names, for that call; without secrets the agent gets no folder of them."""
    text = (SCRIPT.parents[1] / "debian/sluicegate.sh").read_text("utf-8").replace("/opt/", f"{tmp_path}/opt/")
    command = program(tmp_path / "bin", "sluicegate", text.replace("/etc/", f"{tmp_path}/etc/"))
    seen = 'echo "$1 ${CREDENTIALS_DIRECTORY-none}"; cat "$CREDENTIALS_DIRECTORY/credentials_mqtt" 2>/dev/null; exit 3'
    (tmp_path / "opt/sluicegate/venv").mkdir(parents=True)
    program(tmp_path / "opt/sluicegate/venv/bin", "sluicegate", seen)
    run = partial(subprocess.run, [command, "check"], capture_output=True, text=True, timeout=30, check=False)
    assert (run().returncode, run().stdout) == (3, "check none\n")
    (tmp_path / "etc/sluicegate/credentials").mkdir(parents=True)
    (tmp_path / "etc/sluicegate/credentials/mqtt").write_text("secret")
    done = run()
    folder, secret = done.stdout.split()[1:]
    assert (done.returncode, secret) == (3, "secret")
    assert not Path(folder).exists()
