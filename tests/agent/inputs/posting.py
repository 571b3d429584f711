"""An agent's inputs with a listener for POST, turned by hand; requests are sent by threads."""

from __future__ import annotations

import json
import threading
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from desk import Desk

from sluicegate_agent.inputs.inputs import Inputs
from sluicegate_agent.inputs.no_broker import NoLink
from sluicegate_demo.ports import free_port

TIMED = {"topic": "timed", "input": "http", "streams": {"x": "x"}, "time": "t", "time_format": "s"}
BARE = {"topic": "bare", "input": "http", "streams": {"y": ""}, "format": "number"}
LINES = {"topic": "lines", "input": "http", "streams": {"z": "m.z"}, "format": "line", "time_format": "s"}
COARSE = TIMED | {"topic": "coarse", "streams": {"c": "x"}, "resolution": "1s"}
BOOTED = {"topic": "booted", "input": "http", "streams": {"b": "x"}, "sequence": "n", "epoch": "boot"}
OTHER = {"topic": "other", "streams": {"o": "o"}}


class Receiver:
    """An agent's inputs with a listener, turned by hand; requests are sent by threads."""

    def __init__(self, folder: Path, **http: Any) -> None:
        self.port = free_port()
        listen = {"listen": f"127.0.0.1:{self.port}"} | http
        self.desk = Desk(folder, [TIMED, COARSE, BARE, LINES, BOOTED, OTHER], http=listen)
        self.inputs = Inputs(self.desk.config, self.desk.pipeline, NoLink())

    def send(self, path: str, body: bytes, method: str = "POST", **headers: str) -> tuple[int, Any]:
        """Status and body of one request, without a turn."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            found = connection.getresponse()
            text = found.read()
            is_json = found.headers["Content-Type"] == "application/json"
            return found.status, json.loads(text) if is_json else text.decode()
        finally:
            connection.close()

    def post(self, path: str, body: bytes | str, *, commit: bool = True, **headers: str) -> tuple[int, Any]:
        """The same, while turns are made until it is answered."""
        found: list[tuple[int, Any]] = []
        raw = body.encode() if isinstance(body, str) else body
        thread = threading.Thread(target=lambda: found.append(self.send(path, raw, **headers)))
        thread.start()
        while thread.is_alive():
            self.turn(commit=commit)
            thread.join(0.002)
        return found[0]

    def turn(self, *, commit: bool = True) -> None:
        """Take what has come; where somebody waits for a commit, make one, or have it fail."""
        self.inputs.step()
        if self.inputs.wants_commit:
            if commit:
                self.desk.pipeline.commit()
                self.inputs.committed()
            else:
                self.inputs.failed("disk full")

    def killed(self) -> None:
        """Memory is gone, and the listener."""
        self.inputs.close()
        self.desk.killed()
        self.inputs = Inputs(self.desk.config, self.desk.pipeline, NoLink())
