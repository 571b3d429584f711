"""A Sync Gateway that is slow or lies for a while: it is busy, loses its answers, talks nonsense, claims conflicts.

It never says that it stored what it did not: of that no agent could know.
"""

from __future__ import annotations

import json
import time
from typing import Any

from gateway import databases, stand_in

DEVICE = databases.DEVICES[0]


class Gateway(stand_in.StandIn):
    """The tests' stand-in, with `lie`: how it answers puts now; "" is the truth."""

    lie = ""
    pause = 0.0

    def found(self) -> list[bytes]:
        """Every document that it has."""
        return [json.dumps(document).encode() for document in self.documents_of(databases.TELEMETRY).values()]


class _Liar(stand_in._Handler):
    def _answer(self, status: int, answer: Any, headers: dict[str, str]) -> None:
        gateway = self.server.gateway
        lie, pause = getattr(gateway, "lie", ""), getattr(gateway, "pause", 0.0)
        time.sleep(pause)
        if lie == "close":
            self.close_connection = True
        elif lie == "garbage":
            self._raw(200, b"\x00<html>" * 50)
        elif lie == "deep":
            self._raw(201, b"[" * 5000 + b"]" * 5000)
        elif lie == "short" and isinstance(answer, list):
            super()._answer(status, answer[: len(answer) // 2], headers)
        elif lie == "conflict" and isinstance(answer, list):
            rows = [{"id": row["id"], "error": "conflict", "status": 409, "reason": "exists"} for row in answer]
            super()._answer(201, rows, headers)
        elif lie == "busy":
            super()._answer(503, {"error": "Service Unavailable"}, {"Retry-After": "0"})
        elif lie == "lost":
            self.close_connection = True
        else:
            super()._answer(status, answer, headers)

    def _raw(self, status: int, data: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def make() -> Gateway:
    """One that listens."""
    gateway = Gateway()
    gateway.start()
    for server in gateway._servers:
        server.RequestHandlerClass = _Liar
    return gateway


def configuration(gateway: Gateway) -> dict[str, Any]:
    """[sync] for it."""
    return {
        "target": "sync-gateway",
        "url": f"{gateway.public_url}/{databases.TELEMETRY}",
        "username": DEVICE,
        "password_env": "CAMPAIGN_PASSWORD",
        "timeout": "2s",
    }


PASSWORD = {"CAMPAIGN_PASSWORD": databases.PASSWORD}
