"""What who helps needs to see of an agent, in one archive: no secret, no payload, of bounded size."""

from __future__ import annotations

import io
import json
import logging
import os
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluicegate_agent import private
from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.logs.secrets import cleaned, hide, redacted

if TYPE_CHECKING:
    from sluicegate_agent.config import Config

log = logging.getLogger("sluicegate.support")
_LARGEST = 4 << 20


def pack(file: Path, archive: Path) -> list[str]:
    """Write the archive, for its owner alone; the names in it. Raises ConfigError, and EnvironmentRefused."""
    from sluicegate_agent.config import load

    config = load(file)
    learn_secrets(config)
    parts: dict[str, Callable[[], Any]] = {
        "configuration.toml": lambda: file.read_text("utf-8"),
        "plan.json": lambda: _plan(config),
        "status.json": lambda: _status(config),
        "doctor.json": lambda: _doctor(file),
        "versions.json": _versions,
        "state.txt": lambda: _listing(config.state.path),
    }
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, look in parts.items():
            _add(tar, name, _looked(look))
    try:
        private.write(archive, buffer.getvalue())
    except OSError as error:
        raise EnvironmentRefused(f"{archive}: {error.strerror}: give a file that this user may write") from error
    return [*parts]


def learn_secrets(config: Config) -> None:
    """Every secret that the configuration names, so that each is known by its value wherever it stands."""
    from sluicegate_agent.config.credentials import read

    tables = {"mqtt": config.mqtt, "sync": config.sync, "alerts": config.alerts, "metrics": config.metrics}
    for table in tables.values():
        for key in ("password_file", "token_file"):
            path = getattr(table, key, None)
            if path is not None:
                _hide_lines(path)
        variable = getattr(table, "password_env", None)
        if variable is not None and variable in os.environ:
            hide(os.environ[variable])
    if config.sync.credentials_file is not None:
        try:
            read(config.sync.credentials_file)  # hides its password
        except ValueError as error:
            log.warning("sync.credentials_file: %s", error)


def _hide_lines(path: Path) -> None:
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            for line in lines.read(65536).splitlines():
                hide(line.strip())
    except OSError as error:
        log.warning("%s: %s", path, error)


def _looked(look: Callable[[], Any]) -> str:
    """What was found, as text without secrets; or why it could not be, which is no reason to have no others."""
    try:
        found = look()
        return redacted(found) if isinstance(found, str) else json.dumps(cleaned("", found), indent=2)
    except Exception as error:
        # Whoever needs a bundle has something that is broken: what that is goes into it.
        return redacted(f"could not be looked at: {type(error).__name__}: {error}\n")


def _add(tar: tarfile.TarFile, name: str, text: str) -> None:
    data = text.encode("utf-8", "replace")[:_LARGEST]
    entry = tarfile.TarInfo(f"sluicegate-support/{name}")
    entry.size, entry.mode, entry.mtime = len(data), 0o600, int(time.time())
    tar.addfile(entry, io.BytesIO(data))


def _plan(config: Config) -> Any:
    from sluicegate_agent.plan import plan

    return plan(config).as_dict()


def _status(config: Config) -> Any:
    from sluicegate_agent.status import gather

    found = gather(config)
    letters: list[dict[str, Any]] = found["dead_letters"]
    found["dead_letters"] = [{key: each[key] for key in each if key != "payload"} for each in letters]
    return found


def _doctor(file: Path) -> Any:
    from sluicegate_agent.diagnosis.findings import findings

    return [look._asdict() for look in findings(file)]


def _versions() -> Any:
    import platform
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version(), "platform": platform.platform()}
    for name in ("sluicegate", "paho-mqtt", "msgspec", "structlog", "prometheus-client"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def _listing(folder: Path) -> str:
    """Names, sizes and rights of what is in the state folder."""
    rows = []
    for path in sorted(folder.iterdir())[:1000]:
        found = path.lstat()
        rows.append(f"{found.st_mode:o} {found.st_size:>12} {int(found.st_mtime)} {path.name}")
    return "\n".join(rows) + "\n"
