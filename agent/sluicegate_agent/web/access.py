"""Who may read: everybody on this machine unless a token is asked for, nobody else without one, no page of others."""

from __future__ import annotations

import hmac

from sluicegate.hosts import is_loopback
from sluicegate_agent.config.outward import ListenConfig
from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.logs.secrets import hide
from sluicegate_agent.web.http import Refused, Request

_LONGEST, _SHORTEST = 4096, 16


class Access:
    """Judges requests; `token` is empty where none is asked for."""

    def __init__(self, config: ListenConfig, table: str = "metrics") -> None:
        """`table`: where it is configured.

        Raises EnvironmentRefused where the token cannot be read, or would be guessed.
        """
        self._private, self._is_unix = config.is_private, config.is_unix
        self._token = _token(config, table)
        self._table = table

    def check(self, request: Request) -> None:
        """Raises Refused for a request without the token, or one that a foreign page sends through a browser here."""
        if self._private and not self._is_unix and not _is_ours(request.headers.get("host", "")):
            raise Refused(421, "this listener is called 127.0.0.1, ::1 or localhost")
        if self._token and not hmac.compare_digest(_given(request).encode(), self._token.encode()):
            raise Refused(
                401, "expected the header `Authorization: Bearer` and the token of " + self._table + ".token_file"
            )


def _token(config: ListenConfig, table: str) -> str:
    if config.token_file is None:
        return ""
    try:
        with config.token_file.open(encoding="ascii") as handle:
            token = hide(handle.readline(_LONGEST).strip())
    except (OSError, UnicodeDecodeError) as error:
        raise EnvironmentRefused(f"{table}.token_file: {config.token_file} cannot be read: {error}") from None
    if len(token) < _SHORTEST:
        raise EnvironmentRefused(
            f"{table}.token_file: {config.token_file}: expected {_SHORTEST} characters or more on its first line; "
            "`openssl rand -hex 32` makes one"
        )
    return token


def _given(request: Request) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _is_ours(host: str) -> bool:
    """A page of another site can have its own name lead to this machine, but not call it by ours."""
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    return is_loopback(name)
