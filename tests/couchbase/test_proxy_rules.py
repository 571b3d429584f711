"""The rules that docs/reference/gateway.md gives for a proxy do what it says, in a real nginx before a real gateway."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from chunked import document, target

from gateway import Gateway, databases
from sluicegate_demo.ports import free_ports

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/gateway.md"
_CONFIGURATION = """
daemon off; pid {folder}/pid; error_log {folder}/error.log; worker_processes 1; user root;
events {{}}
http {{
  access_log off; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{
    listen 127.0.0.1:{port};
    {rules}
    location / {{ proxy_pass {gateway}; }}
  }}
}}
"""


@pytest.fixture
def proxied(real_gateway: Gateway, tmp_path: Path) -> Iterator[str]:
    """The gateway's URL behind nginx with the page's rules."""
    program = shutil.which("nginx")
    if program is None:
        pytest.skip("missing: nginx")
    real_gateway.purge()  # type: ignore[attr-defined]
    found = re.search(r"```nginx\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None
    (port,) = free_ports(1)
    told = _CONFIGURATION.format(folder=tmp_path, port=port, rules=found[1], gateway=real_gateway.public_url)
    (tmp_path / "nginx.conf").write_text(told)
    running = subprocess.Popen([program, "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")])
    try:
        end = time.monotonic() + 30
        while not (tmp_path / "pid").exists() and time.monotonic() < end and running.poll() is None:
            time.sleep(0.02)
        yield f"http://127.0.0.1:{port}"
    finally:
        running.terminate()
        running.wait()


def asked(url: str, method: str, path: str, body: Any = None, user: str = "board-1") -> int:
    """The status of a request behind the proxy."""
    one = target(url, databases.TELEMETRY, user, basic=True)
    told = [] if body is None else [json.dumps(body).encode()]
    headers = one.login.headers(one.connection) | {"Content-Type": "application/json"}
    return one.connection.ask(method, path, told, headers).status


def test_the_rules_let_through_what_is_ours_and_nothing_else(proxied: str) -> None:
    """Chunks, changes, sessions and documents pass; `_local`, attachments by path and great bodies do not."""
    sent = document(3)
    assert target(proxied, databases.TELEMETRY, "board-1").put([sent]).accepted == (sent.id,)
    ours = ["/", "/_session", "/_changes?include_docs=true", f"/{sent.id}", f"/{sent.id.replace(':', '%3A')}"]
    assert {path: asked(proxied, "GET", path) for path in ours} == dict.fromkeys(ours, 200)
    others = ["/_local/mine", "/%5Flocal/mine", "/_local%2Fmine", f"/{sent.id}/big", f"/{sent.id}%2Fbig"]
    assert {path: asked(proxied, "PUT", path, {"a": 1}) for path in others} == dict.fromkeys(others, 403)
    assert asked(proxied, "GET", "/_local/mine") == 403
    assert _sent_plainly(proxied, 17_000_000) == 413


def _sent_plainly(url: str, size: int) -> int:
    """The status for a body of so many bytes; a proxy may close before all of them are sent."""
    connection = http.client.HTTPConnection("127.0.0.1", urlsplit(url).port or 0, timeout=60)
    try:
        connection.request("POST", f"/{databases.TELEMETRY}/_bulk_docs", b" " * size)
        return connection.getresponse().status
    except (BrokenPipeError, ConnectionResetError):
        return 413
    finally:
        connection.close()
