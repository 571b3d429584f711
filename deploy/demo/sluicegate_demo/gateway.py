"""The real Sync Gateway for the demo, over rosmar on disk: one database, the deployed sync function, on loopback."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sluicegate_demo.ports import free_ports

DATABASE = "telemetry"
#: From a checkout: deploy/demo/sluicegate_demo → deploy/couchbase.
SYNC_FUNCTION = Path(__file__).resolve().parents[2] / "couchbase" / "sync.js"
_UP_SECONDS = 60.0
_PAGE = 500


class GatewayError(Exception):
    """Raised when the gateway does not start, or refuses what the demo asks of it."""

    exit_code = 4


class LocalGateway:
    """One gateway; `start` and `kill` as often as wanted: what it has taken stays in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port, self._admin_port, self._metrics_port = free_ports(3)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start, and return when it answers. Raises GatewayError."""
        log = self.folder / "gateway.log"
        configuration = self.folder / "gateway.json"
        configuration.write_text(json.dumps(self._configuration(), indent=1))
        command = [_program(), "-disable_persistent_config", str(configuration)]
        with log.open("ab") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=output, cwd=self.folder)
        end = time.monotonic() + _UP_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > end:
                self.kill()
                raise GatewayError(f"the Sync Gateway did not start within {_UP_SECONDS:.0f} s; see {log}")
            time.sleep(0.05)

    def kill(self) -> None:
        """SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """SIGTERM, and SIGKILL where that does not help."""
        if self._process is not None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(10)
            self.kill()

    @property
    def admin_url(self) -> str:
        """The database for administrators."""
        return f"http://127.0.0.1:{self._admin_port}/{DATABASE}"

    def documents(self) -> Iterator[dict[str, Any]]:
        """Every document as the administrator sees it, in pages by key. Raises GatewayError."""
        start, shown = "", 0
        while True:
            key = f"&startkey={_quoted(start)}" if start else ""
            found = self._admin("GET", f"/{DATABASE}/_all_docs?include_docs=true&limit={_PAGE}{key}")["rows"]
            yield from (row["doc"] | {"_id": row["id"]} for row in found[shown:])
            if len(found) < _PAGE:
                return
            start, shown = found[-1]["id"], 1

    @property
    def process_id(self) -> int:
        """Of the gateway that runs; 0 where none does."""
        return self._process.pid if self._process else 0

    def _configuration(self) -> dict[str, Any]:
        interfaces = {
            "interface": self.port,
            "adminInterface": self._admin_port,
            "metricsInterface": self._metrics_port,
        }
        disk = self.folder / "buckets"
        disk.mkdir(exist_ok=True)
        database: dict[str, Any] = {"server": f"rosmar://{disk}", "bucket": DATABASE, "sync": SYNC_FUNCTION.read_text()}
        database |= {"use_views": True, "enable_shared_bucket_access": True}
        return {
            **{name: f"127.0.0.1:{port}" for name, port in interfaces.items()},
            "admin_interface_authentication": False,
            "metrics_interface_authentication": False,
            "logging": {"console": {"log_level": "error"}},
            "databases": {DATABASE: database},
        }

    def _answers(self) -> bool:
        try:
            return bool(self._admin("GET", f"/{DATABASE}/"))
        except (OSError, http.client.HTTPException, ValueError, GatewayError):
            return False

    def _admin(self, method: str, path: str, body: Any = None) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self._admin_port, timeout=60)
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, {"Content-Type": "application/json"})
            response = connection.getresponse()
            answer = response.read()
        finally:
            connection.close()
        if response.status >= 300:
            raise GatewayError(f"the Sync Gateway refused {method} {path}: HTTP {response.status} {answer[:300]!r}")
        return json.loads(answer) if answer else None


def _program() -> str:
    """Where the gateway is, as `sluicegate doctor` looks for it."""
    return shutil.which(os.environ.get("SLUICEGATE_SYNC_GATEWAY") or "sync_gateway") or "sync_gateway"


def _quoted(key: str) -> str:
    return quote(json.dumps(key), safe="")
