"""Where a Sync Gateway is and how it is trusted; who reads there comes from the environment and is never kept."""

from __future__ import annotations

import base64
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from sluicegate.hosts import is_loopback
from sluicegate_cloud.errors import GatewayError, SourceError
from sluicegate_cloud.feed.provision import CA_FILE as CA_FILE
from sluicegate_cloud.places.credentials import Names, credentials

#: The environment's names; a password never is an option, for Spark logs and shows options.
USER, PASSWORD, CREDENTIALS = (f"SLUICEGATE_GATEWAY_{name}" for name in ("USER", "PASSWORD", "CREDENTIALS"))
PLAIN = "SLUICEGATE_GATEWAY_PLAIN"
_EXPECTED = "expected https://HOST:4984/DATABASE"


@dataclass(frozen=True)
class Gateway:
    """A database of a Sync Gateway: `url` without a trailing slash, a file of CA certificates, seconds to wait.

    `credentials` is a file's path, not what is in it: this travels to Spark's workers, and is shown.
    """

    url: str
    ca: str = ""
    timeout: float = 60.0
    credentials: str = ""

    @classmethod
    def at(cls, url: str, ca: str = "", timeout: float = 60.0, credentials: str = "") -> Gateway:
        """The gateway at `url`; what is not given comes from the environment. Raises SourceError for another URL."""
        _check(url)
        environment = os.environ
        ca, credentials = ca or environment.get(CA_FILE, ""), credentials or environment.get(CREDENTIALS, "")
        return cls(url.rstrip("/"), ca, timeout, credentials)

    @property
    def secure(self) -> bool:
        """Whether TLS is spoken."""
        return self.url.startswith("https://")

    @property
    def host(self) -> str:
        """Name or address."""
        return urlsplit(self.url).hostname or ""

    @property
    def port(self) -> int:
        """Of the public interface."""
        return urlsplit(self.url).port or (443 if self.secure else 80)

    @property
    def root(self) -> str:
        """The database's path on the host."""
        return urlsplit(self.url).path

    def tls(self) -> ssl.SSLContext:
        """Verifies the chain and the name, by `ca` where there is one, else by the system's roots."""
        try:
            return ssl.create_default_context(cafile=self.ca or None)
        except (OSError, ssl.SSLError) as error:
            said = f"{CA_FILE} or option ca: {self.ca!r} holds no CA certificate in PEM that can be read"
            raise SourceError(f"{said}: {error.strerror or error}") from error


def is_gateway(source: str) -> bool:
    """Whether a source names a gateway."""
    return source.startswith(("http://", "https://"))


def authorization(file: str, environment: Mapping[str, str] = os.environ) -> str:
    """The header that says who reads: by a file, else by this process's environment. Raises SourceError."""
    nobody = (
        f"nothing says who reads at the gateway: set {CREDENTIALS} to the file that `sluicegate cloud provision` "
        f"wrote, or {USER} and {PASSWORD}, before Spark starts"
    )
    names = Names(USER, PASSWORD, CREDENTIALS, "sluicegate cloud provision")
    user, password = credentials(names, nobody, file, environment)
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def _check(url: str) -> None:
    """Raises SourceError for what is no database, for a password in the URL and for one sent in the clear."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise SourceError(f"source {url!r}: {error}; {_EXPECTED}") from error
    if parts.username is not None or parts.password is not None:
        raise SourceError(f"source {parts.hostname}: no name and password in a URL, it is logged; set {CREDENTIALS}")
    database = parts.path.strip("/")
    if not parts.hostname or not database or "/" in database or parts.query or parts.fragment or port == 0:
        raise SourceError(f"source {url!r}: {_EXPECTED}")
    if parts.scheme == "http" and not is_loopback(parts.hostname) and os.environ.get(PLAIN) != "1":
        raise GatewayError(
            f"source {url!r} would send the reader's password in the clear: use https://, or set {PLAIN}=1 "
            "where the network itself is private"
        )
