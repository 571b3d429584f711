"""What a plain agent leaves out is not in its process, and what it uses instead is the same."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")

CONFIG = """
[device]
id = "board-1"
[state]
path = "state"
memory = "64MiB"
[mqtt]
host = "127.0.0.1"
port = 1
[[source]]
topic = "t"
streams = {{ x = "x" }}
[sync]
{sync}
"""
RUN = """
import sys
from pathlib import Path
from sluicegate.cli import main
try:
    main(["run", sys.argv[1], "--idle", "0.1"])
except SystemExit as end:
    assert end.code == 0, end.code
libraries = Path("/proc/self/maps")
print(*sys.modules, *(libraries.read_text().split() if libraries.exists() else ()))
"""
WITH_TLS = """
import sys
from sluicegate_agent import lean
lean.import_hashes(); lean.import_paho(); lean.import_http()
import http.client, paho.mqtt.client
assert paho.mqtt.client.ssl is http.client.ssl is lean.NO_TLS
assert not {"ssl", "urllib.request", "_hashlib"} & set(sys.modules), "left as it was before"
lean.load_tls()
import ssl, urllib.request
assert paho.mqtt.client.ssl is http.client.ssl is ssl is lean.tls()
context = ssl.create_default_context()
http.client.HTTPSConnection("localhost", context=context)
client = paho.mqtt.client.Client(paho.mqtt.client.CallbackAPIVersion.VERSION2)
client.tls_set_context(context)
assert urllib.request.getproxies() is not None
"""
LATER = """
import sys
from sluicegate_agent.lean import import_dataclasses
import_dataclasses()
import dataclasses
assert "inspect" not in sys.modules
told = dataclasses.make_dataclass("Two", ["a", ("b", int, 3)])
print(told.__doc__)
"""
HASHES = """
from sluicegate_agent.lean import import_hashes
import_hashes()
import hashlib, hmac, sys
assert "_hashlib" not in sys.modules
for name in sorted(hashlib.algorithms_guaranteed):
    found = hashlib.new(name, b"reading")
    print(name, found.hexdigest(16) if name.startswith("shake") else found.hexdigest())
print("hmac", hmac.new(b"key", b"reading", "sha256").hexdigest())
"""


def _run(code: str, *arguments: str) -> str:
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "sync",
    ['target = "directory"\npath = "."', 'target = "sync-gateway"\nurl = "http://localhost:1/x"\nauth = "none"'],
    ids=["directory", "http"],
)
def test_an_agent_without_tls_has_no_openssl(tmp_path: Path, sync: str) -> None:
    """Neither the modules nor the libraries; nor the pure-Python engines and the reader of packages' metadata."""
    (tmp_path / "password").write_text("letmein")
    (tmp_path / "password").chmod(0o600)
    sync = sync.replace('auth = "none"', 'username = "board-1"\npassword_file = "password"')
    (tmp_path / "agent.toml").write_text(CONFIG.format(sync=sync))
    loaded = _run(RUN, str(tmp_path / "agent.toml")).split()
    unneeded = {"ssl", "_ssl", "_hashlib", "urllib.request", "importlib.metadata", "sluicegate.reference.object_core"}
    assert not unneeded & set(loaded)
    assert not {"typing_extensions", "click", "inspect", "decimal", "structlog.dev"} & set(loaded)
    assert not [each for each in loaded if "libcrypto" in each or "libssl" in each]


def test_tls_comes_back_where_it_is_used() -> None:
    """paho and http.client get the real `ssl`; whoever imports what was left out gets the real module."""
    _run(WITH_TLS)


def test_a_class_without_a_docstring_has_pythons() -> None:
    """`inspect` is imported when a signature is asked for, and says what it always says."""
    assert _run(LATER).strip() == "Two(a: 'typing.Any', b: int = 3)"


def test_hashes_are_those_of_openssl() -> None:
    """Each algorithm that Python promises, against this process's."""
    for line in _run(HASHES).splitlines()[:-1]:
        name, digest = line.split()
        expected = hashlib.new(name, b"reading")
        assert digest == (expected.hexdigest(16) if name.startswith("shake") else expected.hexdigest())  # type: ignore[call-arg]


def test_the_version_is_the_packages() -> None:
    """The constant that the agent reports is what pyproject.toml says."""
    from sluicegate.version import VERSION

    told = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert told["project"]["version"] == VERSION
