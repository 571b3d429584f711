"""A user of a Sync Gateway for one device, or a reader: made over the gateway's admin interface, with a new password.

A device's user has the device's name: deploy/couchbase/sync.js lets it add chunks of that device, and change none.
"""

from __future__ import annotations

import base64
import csv
import json
import os
import re
import secrets
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from sluicegate.hosts import is_loopback
from sluicegate_cloud.errors import GatewayError, ProvisionError

ADMIN_USER, ADMIN_PASSWORD = "SLUICEGATE_GATEWAY_ADMIN_USER", "SLUICEGATE_GATEWAY_ADMIN_PASSWORD"
SHARDS = 16
READER_ROLE = "reader"
CA_FILE = "SLUICEGATE_GATEWAY_CA"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,63}")
_LARGEST = 1 << 20
_SECONDS = 30.0
Ask = Callable[[str, str, "dict[str, Any] | None"], "tuple[int, Any]"]


class Credentials(NamedTuple):
    """What a device or reader needs to know, and nobody else."""

    url: str
    user: str
    password: str

    def as_json(self) -> str:
        """The credentials file: `sync.credentials_file` of an agent, SLUICEGATE_GATEWAY_CREDENTIALS of a reader."""
        return json.dumps(self._asdict(), indent=2) + "\n"


def shards() -> list[str]:
    """The channels for parallel reading: each chunk is in one of them, by its id (deploy/couchbase/sync.js)."""
    return [f"shard-{number:02d}" for number in range(SHARDS)]


def provision(
    admin_url: str,
    name: str,
    public_url: str,
    *,
    reader: bool = False,
    renew: bool = False,
    ca_file: Path | None = None,
    plain_http: bool = False,
) -> Credentials:
    """Make the user `name` of the database at `admin_url`; `renew` gives one that exists a new password.

    `public_url`: the database as devices reach it; `ca_file`: the authority of the admin interface; `plain_http`: send
    passwords over http to another machine. Raises ProvisionError where the user exists, or is none of a device, or
    where passwords would go unencrypted; GatewayError where the gateway does not answer or refuses.
    """
    if not _NAME.fullmatch(name):
        raise ProvisionError(f"{name!r}: expected 1 to 64 letters, digits, `_`, `-`, `.`: the device's id in its agent")
    rights = {"admin_roles": [READER_ROLE]} if reader else {"admin_channels": [f"device-{name}"]}
    ask = asker(admin_url, ca_file, plain_http=plain_http)
    path = f"/_user/{quote(name, safe='')}"
    _check_user(*ask("GET", path, None), name, rights, renew=renew)
    if reader:
        _made(*ask("PUT", f"/_role/{READER_ROLE}", {"admin_channels": shards()}), f"role {READER_ROLE}")
    password = secrets.token_urlsafe(24)
    _made(*ask("PUT", path, {"name": name, "password": password, **rights}), f"user {name}")
    return Credentials(public_url, name, password)


def devices_of(file: Path) -> list[str]:
    """The names in a CSV file's column `device`, each once and in its order; other columns are passed over.

    Raises ProvisionError for a file that cannot be read, has no such column or no name, or has one that cannot be a
    device's: nothing has been made then.
    """
    try:
        with file.open(newline="", encoding="utf-8-sig") as handle:
            rows = csv.DictReader(handle)
            if "device" not in (rows.fieldnames or ()):
                raise ProvisionError(f"{file}: expected a column `device` in its first line")
            named = [(rows.line_num, (row["device"] or "").strip()) for row in rows]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ProvisionError(f"{file}: cannot be read: {error}; expected a CSV file with a column `device`") from None
    for line, name in named:
        if not _NAME.fullmatch(name):
            raise ProvisionError(f"{file}, line {line}: {name!r}: expected 1 to 64 letters, digits, `_`, `-`, `.`")
    if not named:
        raise ProvisionError(f"{file}: no device in it; expected one a line below `device`")
    return list(dict.fromkeys(name for _, name in named))


@contextmanager
def reserved(file: Path) -> Iterator[Callable[[Credentials], None]]:
    """Take the place of a credentials file, for its owner alone, before any password is made; then write it.

    Raises ProvisionError where it exists or cannot be written: no password has changed then.
    """
    try:
        handle = os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w")
    except FileExistsError:
        raise ProvisionError(f"{file} exists: it may hold the password in use; move it away first") from None
    except OSError as error:
        raise ProvisionError(f"{file}: {error.strerror}; expected a folder that may be written") from None
    with handle:
        try:
            yield lambda credentials: print(credentials.as_json(), end="", file=handle)
        except BaseException:
            file.unlink(missing_ok=True)
            raise


def asker(url: str, ca_file: Path | None = None, *, plain_http: bool = False) -> Ask:
    """Requests to an admin interface, with the administrator's name and password from the environment, if any.

    Raises ProvisionError for a URL that is none, and for http to another machine unless `plain_http` says so.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or not parts.path.strip("/"):
        raise ProvisionError(f"{url}: expected the admin URL of a database, such as http://127.0.0.1:4985/telemetry")
    if parts.username or parts.password:
        raise ProvisionError(f"the URL has a user or password in it: use {ADMIN_USER} and {ADMIN_PASSWORD}")
    if parts.scheme == "http" and not is_loopback(parts.hostname) and not plain_http:
        raise ProvisionError(
            f"{parts.scheme}://{parts.netloc}: the administrator's password and the new user's would cross the network "
            "unencrypted: use https, or a tunnel to 127.0.0.1; where the network is trusted, --plain-http"
        )
    headers = {"Content-Type": "application/json", **_authorization()}
    opener = _opener(_trusting(ca_file) if parts.scheme == "https" else None)

    def ask(method: str, path: str, body: dict[str, Any] | None) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url.rstrip("/") + path, data, headers, method=method)  # noqa: S310  checked
        return _asked(request, opener, f"{parts.scheme}://{parts.netloc}")

    return ask


def _authorization() -> dict[str, str]:
    if ADMIN_USER not in os.environ:
        return {}
    told = f"{os.environ[ADMIN_USER]}:{os.environ.get(ADMIN_PASSWORD, '')}"
    return {"Authorization": "Basic " + base64.b64encode(told.encode()).decode()}


def _trusting(ca_file: Path | None) -> ssl.SSLContext:
    """By `ca_file`, else the roots of SLUICEGATE_GATEWAY_CA as readers do, else the system's. Raises ProvisionError."""
    roots = str(ca_file or os.environ.get(CA_FILE, ""))
    try:
        return ssl.create_default_context(cafile=roots or None)
    except OSError as error:
        raise ProvisionError(f"{roots}: cannot be used: {error}; expected an authority's certificate (PEM)") from None


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows no redirection: it would take the password along, perhaps unencrypted and to another host."""

    def redirect_request(self, *told: Any) -> None:
        """None: what the gateway said is the answer."""


def _opener(context: ssl.SSLContext | None) -> urllib.request.OpenerDirector:
    """By TLS as trusted; without it past every proxy, which would read the password."""
    if context is None:
        return urllib.request.build_opener(_Stay, urllib.request.ProxyHandler({}))
    return urllib.request.build_opener(_Stay, urllib.request.HTTPSHandler(context=context))


def _asked(request: urllib.request.Request, opener: urllib.request.OpenerDirector, place: str) -> tuple[int, Any]:
    try:
        try:
            with opener.open(request, timeout=_SECONDS) as response:
                return response.status, _decoded(response.read(_LARGEST))
        except urllib.error.HTTPError as error:
            return error.code, _decoded(error.read(_LARGEST))
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise GatewayError(f"{place}: {_said(reason)}") from None


def _said(reason: Any) -> str:
    if isinstance(reason, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({reason.verify_message}); name its authority in {CA_FILE}"
    if isinstance(reason, ConnectionRefusedError):
        return "nobody listens there (connection refused); start the gateway, or correct the admin URL"
    return f"{reason}; is this the admin interface, and does it run?"


def _decoded(data: bytes) -> Any:
    """The answer's JSON; a text that is none is the reason for it."""
    try:
        return json.loads(data) if data else None
    except ValueError:
        return {"reason": data[:200].decode(errors="replace").strip()}


def _check_user(status: int, found: Any, name: str, rights: dict[str, list[str]], *, renew: bool) -> None:
    if status == 404 and isinstance(found, dict) and "no such database" in str(found.get("reason")):
        raise GatewayError(f"{name}: the gateway has no such database; check the end of the admin URL")
    if status == 404:
        return
    if status != 200 or not isinstance(found, dict):
        raise _refused(status, found, f"user {name}")
    if any(set(found.get(key) or []) != set(wanted) for key, wanted in rights.items()):
        raise ProvisionError(f"{name}: the gateway has a user of that name with other rights; choose another name")
    if not renew:
        raise ProvisionError(f"{name}: the gateway has this user already; --renew gives it a new password")


def _made(status: int, found: Any, what: str) -> None:
    if status not in (200, 201):
        raise _refused(status, found, what)


def _refused(status: int, found: Any, what: str) -> GatewayError:
    reason = f": {found['reason']}" if isinstance(found, dict) and found.get("reason") else ""
    hint = f"; set {ADMIN_USER} and {ADMIN_PASSWORD}" if status == 401 else ""
    return GatewayError(f"{what}: the gateway refused with {status}{reason}{hint}")
