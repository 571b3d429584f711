"""A real Sync Gateway on loopback, over rosmar (no Couchbase Server): started, killed and started again by a test."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import subprocess
import time
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from gateway import databases
from gateway.process import Killed
from sluicegate_demo.ports import free_ports

_UP_SECONDS = 120.0


class SyncGateway(Killed):
    """`public_url` and `admin_url` stay the same over `kill` and `start`; `disk`: what it took survives its death."""

    real = True

    def __init__(self, folder: Path, *, disk: bool = False) -> None:
        """A gateway whose files are below `folder`; in memory unless `disk`. Not started yet."""
        self.folder, self.disk = folder, disk
        folder.mkdir(parents=True, exist_ok=True)
        public, admin, metrics = free_ports(3)
        self.public_url, self.admin_url = f"http://127.0.0.1:{public}", f"http://127.0.0.1:{admin}"
        interfaces = {"interface": public, "adminInterface": admin, "metricsInterface": metrics}
        config: dict[str, Any] = {key: f"127.0.0.1:{port}" for key, port in interfaces.items()}
        # Authorising an administrator takes a Couchbase Server; here the interface is on loopback and lives for a test.
        config |= {"admin_interface_authentication": False, "metrics_interface_authentication": False}
        config |= {"databases": self._databases(), "logging": {"console": {"log_level": "error"}}}
        self._write(config, "-disable_persistent_config")

    def _write(self, config: dict[str, Any], *options: str) -> None:
        self._options = options
        (self.folder / "gateway.json").write_text(json.dumps(config))
        self._environment: dict[str, str] | None = None
        self._context: ssl.SSLContext | None = None

    def _databases(self) -> dict[str, Any]:
        shards = {"admin_channels": databases.SHARDS}
        function = databases.SYNC_FUNCTION.read_text()
        return {
            databases.TELEMETRY: self._database("telemetry", function, databases.users(), {"reader": shards}),
            databases.PLAIN: self._database(
                "plain", databases.PLAIN_FUNCTION, databases.plain_users(), {"any": {"admin_channels": ["*"]}}
            ),
        }

    def _database(self, name: str, sync: str, users: dict[str, Any], roles: dict[str, Any]) -> dict[str, Any]:
        folder = self.folder / "buckets"
        folder.mkdir(exist_ok=True)
        server = f"rosmar://{folder}" if self.disk else "rosmar:/?mode=memory"
        shared = {"use_views": True, "enable_shared_bucket_access": True}
        return {"server": server, "bucket": name, **shared, "sync": sync, "users": users, "roles": roles}

    def start(self) -> Self:
        """Start, and return when it answers. Raises AssertionError with its output where it does not."""
        program = databases.program()
        assert program is not None, "the caller skips where there is no gateway"
        log = (self.folder / "gateway.log").open("ab")
        command = [program, *self._options, str(self.folder / "gateway.json")]
        self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder, env=self._environment)
        log.close()
        end = time.monotonic() + _UP_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > end:
                raise AssertionError((self.folder / "gateway.log").read_text(errors="replace")[-4000:])
            time.sleep(0.02)
        return self

    def admin(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Ask the admin interface: status and decoded answer."""
        port = urlsplit(self.admin_url).port or 0
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        if self._context:
            connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=30, context=self._context)
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, {"Content-Type": "application/json"})
            response = connection.getresponse()
            answer = response.read()
            return response.status, json.loads(answer) if answer else None
        finally:
            connection.close()

    def documents_of(self, database: str) -> dict[str, dict[str, Any]]:
        """Every document of a database by id, without the gateway's own keys."""
        _, answer = self.admin("GET", f"/{database}/_all_docs?include_docs=true")
        rows = {row["id"]: row["doc"] for row in answer["rows"]}
        return {name: {key: doc[key] for key in doc if key[:1] != "_"} for name, doc in rows.items()}

    def revisions_of(self, database: str) -> dict[str, str]:
        """The current revision of every document, by id."""
        _, answer = self.admin("GET", f"/{database}/_all_docs")
        return {row["id"]: row["value"]["rev"] for row in answer["rows"]}

    def purge(self) -> None:
        """Forget every document, as if none had ever been there, whether it can be read or not."""
        for name in (databases.TELEMETRY, databases.PLAIN):
            ids = {key: ["*"] for key in self.revisions_of(name)}
            assert not ids or self.admin("POST", f"/{name}/_purge", ids)[0] == 200

    def resident(self) -> int:
        """Bytes resident now."""
        assert self._process is not None
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) * 1024

    def _answers(self) -> bool:
        try:
            return all(self.admin("GET", f"/{name}/")[0] == 200 for name in (databases.TELEMETRY, databases.PLAIN))
        except (OSError, http.client.HTTPException, ValueError):
            return False


class Bootstrapped(SyncGateway):
    """A gateway without a database, by deploy/couchbase/gateway.json, in memory and on loopback."""

    def __init__(self, folder: Path, tls: tuple[Path, Path] | None = None, trusted: Path | None = None) -> None:
        """In memory; `tls`: certificate and key of its interfaces, `trusted`: the authority that signed it."""
        super().__init__(folder)
        public, admin = (urlsplit(url).netloc for url in (self.public_url, self.admin_url))
        told = (databases.SYNC_FUNCTION.parent / "gateway.json").read_text()
        config = json.loads(told.replace("${COUCHBASE_TLS}", '"${COUCHBASE_TLS}"'))
        https = dict(zip(config["api"]["https"], map(str, tls), strict=True)) if tls else None
        config["api"] = {"public_interface": public, "admin_interface": admin, "metrics_interface": "127.0.0.1:0"}
        config["api"] |= {"admin_interface_authentication": False, "metrics_interface_authentication": False}
        if https:
            config["api"]["https"] = https
            self.public_url, self.admin_url = (f"https://{netloc}" for netloc in (public, admin))
        self._write(config)
        if https:
            self._context = ssl.create_default_context(cafile=trusted)
        file = folder / "gateway.json"
        file.write_text(file.read_text().replace('"${COUCHBASE_TLS}"', "${COUCHBASE_TLS}"))
        server = {"COUCHBASE_URL": "rosmar:/?mode=memory", "COUCHBASE_TLS": "false"}
        self._environment = {**os.environ, **server, "GATEWAY_SERVER_USER": "nobody", "GATEWAY_SERVER_PASSWORD": "none"}

    def _answers(self) -> bool:
        try:
            return self.admin("GET", "/")[0] == 200
        except (OSError, http.client.HTTPException, ValueError):
            return False
