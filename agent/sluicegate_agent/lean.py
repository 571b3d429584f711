"""Imports libraries without the parts of Python that they name and the agent never calls, to save memory on a board.

OpenSSL is the largest: `hashlib` loads it although Python has every hash itself, paho and `http.client` although the
connection may be plain. Where TLS is used, `load_tls` brings it, and these libraries have it as if it never lacked.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any


class _NeverRaisedError(OSError):
    """What no plain connection raises."""


#: In the place of `ssl`: names for `except` and `isinstance`, which nothing answers to.
NO_TLS: Any = ModuleType("ssl", "A stand-in: no TLS is used here.")
for _name in ("SSLError", "SSLCertVerificationError", "SSLWantReadError", "SSLWantWriteError", "CertificateError"):
    setattr(NO_TLS, _name, _NeverRaisedError)
NO_TLS.SSLSocket = _NeverRaisedError
#: Python's own hashes, all that `hashlib` promises.
_HASHES = (
    "_md5",
    "_sha1",
    "_sha3",
    "_blake2",
    *(("_sha2",) if sys.version_info >= (3, 12) else ("_sha256", "_sha512")),
)
_USERS_OF_TLS = ("paho.mqtt.client", "http.client")


@contextmanager
def stood_in(modules: dict[str, Any]) -> Iterator[None]:
    """Meanwhile each import of these names finds what is given, None: nothing; what is loaded already stays.

    Afterwards they are as they were: who imports them then gets the real ones.
    """
    absent = {name: module for name, module in modules.items() if name not in sys.modules}
    sys.modules.update(absent)
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]


def import_hashes() -> None:
    """`hashlib` with Python's own hashes; as it is anywhere where this Python was built without one of them."""
    if all(map(find_spec, _HASHES)):
        with stood_in({"_hashlib": None}):
            import_module("hashlib")
            import_module("hmac")


class Names(ModuleType):
    """In the place of a module: whatever name is asked of it is a class that nobody uses."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"__init__": lambda *_, **__: None})


class _Later(ModuleType):
    """In the place of a module: it is imported when a name of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(import_module(self.__name__), name)


def import_dataclasses() -> None:
    """`dataclasses`, which reads signatures (`inspect`, with it `ast` and `dis`: 0.9 MiB) for missing docstrings."""
    with stood_in({"inspect": _Later("inspect")}):
        import_module("dataclasses")


def import_msgspec() -> None:
    """msgspec with the names of `typing`, which it takes where `typing_extensions` (0.3 MiB) is not there.

    Without decimal numbers (0.4 MiB), and without what describes types (0.1 MiB): nobody asks for these.
    """
    unused = ("decimal", "msgspec.inspect", "msgspec._json_schema")
    with stood_in({"typing_extensions": None, **{name: Names(name) for name in unused}}):
        import_module("msgspec")


def import_paho() -> None:
    """paho without TLS, and without `urllib.request`, which it asks for proxies where PySocks is installed."""
    proxies = {} if find_spec("socks") else {"urllib.request": ModuleType("urllib.request")}
    with stood_in({"ssl": NO_TLS, **proxies}):
        import_module("paho.mqtt.client")


def import_http() -> None:
    """`http.client` without TLS."""
    with stood_in({"ssl": NO_TLS}):
        import_module("http.client")


#: What prometheus_client's exposition imports to serve and to push, which nobody here asks it to.
_SERVERS = ("ssl", "gzip", "http.server", "socketserver", "urllib.request", "urllib.error", "wsgiref.simple_server")


def import_prometheus() -> tuple[ModuleType, ModuleType]:
    """`exposition` and `metrics_core` of prometheus_client without its servers and clients (0.1 of 3.3 MiB)."""
    parts = ("prometheus_client.exposition", "prometheus_client.metrics_core")
    if not all(name in sys.modules for name in parts):
        found = find_spec("prometheus_client")
        if found is None:
            raise ModuleNotFoundError("No module named 'prometheus_client'", name="prometheus_client")
        package = ModuleType("prometheus_client")
        package.__path__ = list(found.submodule_search_locations or ())
        ours = ("prometheus_client.registry", "prometheus_client.asgi")
        standing = {name: Names(name) for name in (*_SERVERS, *ours)}
        with stood_in({"prometheus_client": package, **standing}):
            for name in parts:
                import_module(name)
    exposition, core = (sys.modules[name] for name in parts)
    return exposition, core


def load_tls() -> None:
    """The real `ssl`, for whoever imports it, and for the libraries that were imported without it."""
    ssl = import_module("ssl")
    for name in _USERS_OF_TLS:
        if name in sys.modules:
            sys.modules[name].ssl = ssl  # type: ignore[attr-defined]


def tls() -> Any:
    """`ssl` where it is loaded, else NO_TLS: for `except` and `isinstance`, which then need not load it."""
    return sys.modules.get("ssl", NO_TLS)
