#!/usr/bin/python3
"""Makes the agent of the wheels beside this file the one that runs, or leaves the one before running: never neither.

Standard library only, since it runs before anything of ours is installed. It needs no network: all wheels are there.
The new version gets an environment of its own. Before it takes over, it checks the configuration. Once started it has
a minute to say that it is ready; until then it has acknowledged nothing, so the state of before is put back with the
version of before, and no reading is lost.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SPACE = 150 << 20  # bytes that an environment takes, with room to spare
OLDEST = (3, 11)
READY = "60"  # seconds
AGAIN = "then try again (sudo dpkg --configure -a, or the script)"
SERVICE = "sluicegate.service"


class RefusedError(Exception):
    """The new version cannot take over; the message says why and what to do. The one before goes on."""


class Places:
    """Where things are below `root`: `/` on a board, a folder in a test."""

    def __init__(self, root: Path) -> None:
        self.is_system = root == Path("/")
        self.home = root / "opt/sluicegate"
        self.wheels, self.versions, self.current = self.home / "wheels", self.home / "versions", self.home / "venv"
        self.configuration = root / "etc/sluicegate/agent.toml"
        self.secrets = root / "etc/sluicegate/credentials"
        self.state, self.kept = root / "var/lib/sluicegate", root / "var/lib/sluicegate.before"


def systemctl(*words: str) -> int:
    """Ask systemd; `SLUICEGATE_SYSTEMCTL` names another program to ask. 0 where it did what was asked."""
    program = os.environ.get("SLUICEGATE_SYSTEMCTL", "systemctl")
    return subprocess.run([program, *words], check=False).returncode


def is_supervised() -> bool:
    """Whether there is a systemd to ask: not in a container or while an image is made."""
    return "SLUICEGATE_SYSTEMCTL" in os.environ or Path("/run/systemd/system").is_dir()


def look_around(places: Places) -> None:
    """What is asked before anything is touched: rights, Python, its venv. Raises RefusedError."""
    if places.is_system and os.geteuid() != 0:
        raise RefusedError(f"needs root rights: sudo python3 {places.home}/switch.py")
    if sys.version_info[:2] < OLDEST:
        raise RefusedError(
            f"Python {sys.version.split()[0]} is too old, {OLDEST[0]}.{OLDEST[1]} or newer is needed: "
            "Debian 12 (bookworm) and its Raspberry Pi OS have it; upgrade the system"
        )
    if not importlib.util.find_spec("ensurepip"):
        raise RefusedError(f"Python's venv is not complete: sudo apt install python3-venv, {AGAIN}")


def has_room(folder: Path, needed: int, what: str) -> None:
    """Raises RefusedError where the file system of `folder` has fewer bytes free."""
    if (free := shutil.disk_usage(folder).free) < needed:
        raise RefusedError(
            f"{folder} has {free >> 20} MiB free and {needed >> 20} are needed for {what}: make room (sudo apt clean, "
            f"old logs), {AGAIN}"
        )


def size_of(folder: Path) -> int:
    """Bytes of the files in it."""
    return sum(each.lstat().st_size for each in folder.rglob("*") if each.is_file() and not each.is_symlink())


def environment_of(places: Places) -> Path:
    """The new version's own environment, made unless it is there. Raises RefusedError."""
    wheels = sorted(places.wheels.glob("*.whl"))
    if not any(each.name.startswith("sluicegate-") for each in wheels):
        raise RefusedError(f"{places.wheels} holds no wheel of sluicegate: install the package again")
    named = hashlib.sha256("".join(f"{each.name} {each.stat().st_size}\n" for each in wheels).encode()).hexdigest()
    made = places.versions / f"{sys.version_info.major}.{sys.version_info.minor}-{named[:12]}"
    if (made / ".complete").exists():
        return made
    places.versions.mkdir(parents=True, exist_ok=True)
    has_room(places.versions, SPACE, "the new version")
    shutil.rmtree(made, ignore_errors=True)
    install = ["-m", "pip", "install", "--quiet", "--no-index", "--find-links", str(places.wheels), "sluicegate[agent]"]
    for command in ([sys.executable, "-m", "venv", str(made)], [str(made / "bin/python"), *install]):
        if subprocess.run(command, check=False).returncode:
            shutil.rmtree(made, ignore_errors=True)
            built_for = sorted({found[1] for each in wheels if (found := re.search(r"-cp3(\d+)-", each.name))}, key=int)
            raise RefusedError(
                f"the wheels could not be installed for Python {sys.version.split()[0]}: see above. They are for "
                f"Python {', '.join(f'3.{each}' for each in built_for) or '3'} on {os.uname().machine}; for another "
                "system take its package, or build a wheel (docs/how-to/install.md)"
            )
    (made / ".complete").touch()
    return made


def check(places: Places, made: Path) -> None:
    """Let the new version read the configuration. Raises RefusedError where it would not run with it."""
    if places.configuration.exists():
        # As the agent's own user: what the check writes beside the state has to stay its own.
        own = places.is_system and os.geteuid() == 0
        user = ["runuser", "-u", "sluicegate", "--"] if own else []
        command = [*user, str(made / "bin/sluicegate"), "check", str(places.configuration)]
        with tempfile.TemporaryDirectory() as folder:
            lend_secrets(places, Path(folder), own)
            environment = os.environ | {"CREDENTIALS_DIRECTORY": folder}
            refused = subprocess.run(command, env=environment, check=False).returncode
        if refused:
            goes_on = "the version before goes on" if places.current.is_symlink() else "nothing was started"
            raise RefusedError(
                f"the new version refuses {places.configuration}: see above; {goes_on}. Correct the file, try it with "
                f"{made}/bin/sluicegate check {places.configuration}, {AGAIN}"
            )


def lend_secrets(places: Places, folder: Path, own: bool) -> None:
    """Copy the secrets into `folder` under the names that systemd gives them (LoadCredential=credentials:…)."""
    for secret in sorted(places.secrets.glob("*")) if places.secrets.is_dir() else ():
        copy = folder / f"credentials_{secret.name}"
        copy.touch(mode=0o600)
        copy.write_bytes(secret.read_bytes())
        if own:
            shutil.chown(copy, "sluicegate")
    if own:
        shutil.chown(folder, "sluicegate")


def point_to(places: Places, made: Path) -> None:
    """Let `venv` be that environment, from one moment to the next."""
    link = places.home / "venv.new"
    link.unlink(missing_ok=True)
    link.symlink_to(made.relative_to(places.home))
    link.replace(places.current)


def take_over(places: Places, made: Path) -> None:
    """Start the new version in place of what runs; where it is not ready go back and raise RefusedError."""
    before = places.current.resolve() if places.current.is_symlink() else None
    if not is_supervised() or not places.configuration.exists():
        point_to(places, made)
        return
    shutil.rmtree(places.kept, ignore_errors=True)
    if places.state.exists():
        has_room(places.state, size_of(places.state) + (8 << 20), "a copy of the state while the new version starts")
    systemctl("stop", SERVICE)
    try:
        if places.state.exists():
            shutil.copytree(places.state, places.kept, symlinks=True)
            copy_owners(places.state, places.kept)
    except OSError as error:
        shutil.rmtree(places.kept, ignore_errors=True)
        systemctl("start", SERVICE)
        raise RefusedError(f"the state could not be copied ({error}); the version before goes on") from error
    point_to(places, made)
    systemctl("daemon-reload")
    if subprocess.run(
        ["timeout", READY, os.environ.get("SLUICEGATE_SYSTEMCTL", "systemctl"), "start", SERVICE]
    ).returncode:
        systemctl("stop", SERVICE)
        go_back(places, before)
    shutil.rmtree(places.kept, ignore_errors=True)


def go_back(places: Places, before: Path | None) -> None:
    """Put state and version of before back, and start it. Raises RefusedError with what to look at."""
    if places.kept.exists():
        shutil.rmtree(places.state, ignore_errors=True)
        places.kept.replace(places.state)
    if before is None:
        raise RefusedError(f"the agent was not ready within {READY} s: see journalctl -u {SERVICE}")
    point_to(places, before)
    started = systemctl("start", SERVICE) == 0
    raise RefusedError(
        f"the new version was not ready within {READY} s (journalctl -u {SERVICE}); the one before "
        f"{'runs again' if started else 'does not start either'}, with its state as it was"
    )


def copy_owners(source: Path, copy: Path) -> None:
    """Give a copied tree the owners of its source, as far as this user may."""
    for path in [source, *source.rglob("*")]:
        try:
            os.chown(copy / path.relative_to(source), path.lstat().st_uid, path.lstat().st_gid, follow_symlinks=False)
        except PermissionError:
            return


def prune(places: Places, *keep: Path | None) -> None:
    """Remove environments that are neither in use nor the one before."""
    kept = {each.resolve() for each in keep if each is not None}
    for each in places.versions.iterdir():
        if each.resolve() not in kept:
            shutil.rmtree(each, ignore_errors=True)


def main() -> int:
    """0: the new version is in place; 1: the one before is, with the reason on stderr."""
    parser = argparse.ArgumentParser(description="Install the agent from the wheels of this folder and start it.")
    parser.add_argument("--root", type=Path, default=Path("/"), help="for tests: the folder to take for /")
    places = Places(parser.parse_args().root)
    before = places.current.resolve() if places.current.is_symlink() else None
    try:
        look_around(places)
        made = environment_of(places)
        check(places, made)
        take_over(places, made)
    except (RefusedError, OSError) as reason:
        print(f"sluicegate: {reason}", file=sys.stderr)
        return 1
    prune(places, made, before)
    return 0


if __name__ == "__main__":
    sys.exit(main())
