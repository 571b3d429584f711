"""The checks of [sync]: each target has what it needs, nothing that it does not use, and no secret in the file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from sluicegate_agent.config.credentials import resolved
from sluicegate_agent.config.errors import Problem
from sluicegate_agent.config.model import SyncConfig

#: Target → schemes of its URL (the second: without encryption), an example.
_URLS = {
    "sync-gateway": (("https", "http"), "https://gateway.example:4984/telemetry"),
    "couchbase-lite": (("wss", "ws"), "wss://gateway.example:4984/telemetry"),
    "couchbase": (("couchbases", "couchbase"), "couchbases://server.example"),
}
_IN_CREDENTIALS = ("url", "username", "password_file", "password_env")
_OF_URLS = ("credentials_file", *_IN_CREDENTIALS)


def sync_problems(sync: SyncConfig) -> Iterator[Problem]:
    """Every finding in [sync]."""
    if sync.target == "directory" and sync.path is None:
        yield Problem("sync.path", None, 'is required with target = "directory": the folder that receives the chunks')
    if sync.target != "directory" and sync.path is not None:
        remedy = f'is not used with target = "{sync.target}": write target = "directory"'
        yield Problem("sync.path", str(sync.path), remedy)
    if sync.target in _URLS:
        yield from _secrets(sync)
        try:
            found = resolved(sync)
        except ValueError as error:
            yield Problem("sync.credentials_file", str(sync.credentials_file), str(error))
            return
        yield from (_from_file(problem, sync) for problem in _url(found))
        yield from _tls(found)
        return
    for key in _OF_URLS:
        if getattr(sync, key) is not None:
            others = '"sync-gateway", "couchbase-lite" or "couchbase"'
            remedy = f'is not used with target = "{sync.target}": write target = {others}'
            yield Problem(f"sync.{key}", str(getattr(sync, key)), remedy)


def _from_file(problem: Problem, sync: SyncConfig) -> Problem:
    """A finding about the URL names the file that it stands in."""
    if sync.credentials_file is None:
        return problem
    said = f": its url {problem.value}" if problem.value is not None else ": its url"
    return Problem("sync.credentials_file", str(sync.credentials_file) + said, problem.remedy)


def _url(sync: SyncConfig) -> Iterator[Problem]:
    schemes, example = _URLS[sync.target]
    if sync.url is None:
        yield Problem("sync.url", None, f'is required with target = "{sync.target}", such as url = "{example}"')
        return
    parts = _parts(sync.url)
    if "@" in sync.url:
        # None, not the URL: what stands in the file is not to be shown.
        yield Problem("sync.url", None, "has a user or password in it: use sync.username and sync.password_file")
    elif parts is None or parts.scheme not in schemes or not parts.hostname or parts.query or parts.fragment:
        yield Problem(
            "sync.url", sync.url, f'expected {schemes[0]}:// with target = "{sync.target}", such as "{example}"'
        )
    elif sync.target in ("sync-gateway", "couchbase-lite") and not parts.path.strip("/"):
        yield Problem("sync.url", sync.url, f'lacks the name of the database: expected such as "{example}"')
    elif parts.scheme == schemes[1] and not sync.is_loopback and sync.tls.enabled is not False:
        remedy = f"is not encrypted: write {schemes[0]}://, or enabled = false in [sync.tls] where that is meant"
        yield Problem("sync.url", sync.url, remedy)


def _parts(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        return parts if parts.port is None or parts.port else None
    except ValueError:
        return None


def _secrets(sync: SyncConfig) -> Iterator[Problem]:
    for key in _IN_CREDENTIALS:
        if sync.credentials_file and getattr(sync, key) is not None:
            yield Problem(f"sync.{key}", str(getattr(sync, key)), "leave it out: the credentials file says it")
    if sync.password_file and sync.password_env:
        yield Problem("sync.password_env", sync.password_env, "leave out one of password_file and password_env")
    if sync.password_file:
        yield from readable("sync.password_file", sync.password_file)


def _tls(sync: SyncConfig) -> Iterator[Problem]:
    files = {"ca_file": sync.tls.ca_file, "pin_file": sync.tls.pin_file}
    for name, path in files.items():
        if path is None:
            continue
        yield from readable(f"sync.tls.{name}", path)
        if sync.url is not None and not sync.uses_tls:
            yield Problem(f"sync.tls.{name}", str(path), f"is not used: {sync.url} is not encrypted")
    if sync.tls.pin_file and sync.target == "couchbase":
        yield Problem(
            "sync.tls.pin_file", str(sync.tls.pin_file), "is not used by the SDK: name an authority in ca_file"
        )
    if all(files.values()):
        remedy = "leave out one of them: a pinned certificate is the only one that is trusted"
        yield Problem("sync.tls.pin_file", str(sync.tls.pin_file), remedy)
    if sync.tls.enabled and sync.url is not None and not sync.uses_tls:
        yield Problem("sync.tls.enabled", True, f"but {sync.url} is not encrypted: write {_URLS[sync.target][0][0]}://")


def readable(key: str, path: Path) -> Iterator[Problem]:
    """The finding that a file cannot be read, where it cannot."""
    try:
        with path.open("rb"):
            return
    except OSError as error:
        yield Problem(key, str(path), f"cannot be read: {error.strerror}; correct the path or its permissions")
