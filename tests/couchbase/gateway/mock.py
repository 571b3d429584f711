"""CouchbaseMock, a Couchbase Server's key-value part in Java: started on loopback, killed, started again empty."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
import urllib.request
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

from gateway.process import Killed
from sluicegate_demo.ports import free_ports

BUCKET, PASSWORD = "telemetry", "secret"
_UP_SECONDS = 120.0


def jar() -> Path | None:
    """The mock: SLUICEGATE_COUCHBASE_MOCK, or where `make dev` puts it."""
    if named := os.environ.get("SLUICEGATE_COUCHBASE_MOCK"):
        return Path(named) if Path(named).is_file() else None
    return next(iter(sorted((Path(sys.prefix) / "jars/couchbase").glob("CouchbaseMock-*.jar"))), None)


def lacking() -> str:
    """Why there can be no mock here; empty where there can."""
    if find_spec("couchbase") is None:
        return "missing: the SDK couchbase (pip install 'sluicegate[couchbase]')"
    return "" if jar() else "missing: CouchbaseMock (SLUICEGATE_COUCHBASE_MOCK)"


class CouchbaseMock(Killed):
    """Killed, all it had is gone. `url` is for the SDK, and differs after each start: the mock chooses its port."""

    def __init__(self) -> None:
        self.url = ""

    def start(self) -> Self:
        """Start, and return when it says where its key-value port is."""
        from sluicegate_cloud.java import find_java

        (self._port,) = free_ports(1)
        where = ["-h", "127.0.0.1", "-p", str(self._port), "-n", "1", "-v", "64", "-R", "0", "-c"]
        command = [str(find_java()), "-Xmx256m", "-jar", str(jar()), *where, "-b", f"default:,{BUCKET}:{PASSWORD}"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + _UP_SECONDS
        while (port := self._key_value_port()) is None:
            assert self._process.poll() is None, "CouchbaseMock ended"
            assert time.monotonic() < end, "CouchbaseMock did not start"
            time.sleep(0.05)
        self.url = f"couchbase://127.0.0.1:{port}"
        return self

    def _key_value_port(self) -> int | None:
        told = base64.b64encode(f"{BUCKET}:{PASSWORD}".encode()).decode()
        url = f"http://127.0.0.1:{self._port}/pools/default/buckets/{BUCKET}"
        request = urllib.request.Request(url, headers={"Authorization": f"Basic {told}"})
        try:
            with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310
                found: dict[str, Any] = json.load(response)
        except (OSError, ValueError):
            return None
        return int(found["nodesExt"][0]["services"]["kv"])
