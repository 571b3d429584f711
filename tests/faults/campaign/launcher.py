"""Starts agents by forking: everything is imported once, so a start costs milliseconds. A tool of the tests only.

Reads one JSON object a line from stdin: {"id", "args", "env", "log"}; forks a child that runs the command line with
those arguments, as `python -m sluicegate` would. Writes {"id", "pid"}, and {"id", "status"} when the child has ended.
An order with "plant" puts one purpose-built defect into that agent (campaign.plants).
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import random
import select
import selectors
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

_SAMPLE = """
[device]
id = "warm"
[state]
path = "state"
[mqtt]
host = "127.0.0.1"
port = 9
[[source]]
topic = "t"
sequence = "n"
streams = { level = "v" }
[[window]]
name = "all"
policy = { count = 1000000 }
aggregate = ["count", "sum"]
[sync]
target = "directory"
path = "chunks"
"""


def prepare() -> None:
    """Import all that an agent imports."""
    import sluicegate_agent.agent
    import sluicegate_agent.commands.run
    import sluicegate_agent.commands.status
    import sluicegate_agent.config
    import sluicegate_agent.plan
    import sluicegate_agent.status
    import sluicegate_agent.sync.directory
    import sluicegate_agent.sync.sync_gateway
    from campaign import hangs, plants  # noqa: F401

    hangs.install()
    if "faketime" in os.environ.get("LD_PRELOAD", ""):
        # libfaketime 0.9.10 refuses every time.sleep of Python 3.11 (clock_nanosleep with an absolute time).
        time.sleep = lambda seconds: select.select([], [], [], seconds) and None
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "agent.toml"
        file.write_text(_SAMPLE)
        (Path(folder) / "chunks").mkdir()
        for name in _used(file):
            importlib.import_module(name)
        sluicegate_agent.plan.refuse_over_budget(sluicegate_agent.config.load(file))  # fills caches of parsers
    gc.collect()
    gc.freeze()


def _used(file: Path) -> list[str]:
    """The modules that an agent has imported by the time it ends: one is run for a moment, without a broker."""
    import sluicegate.cli

    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            sluicegate.cli.main(["run", str(file), "--drain", "--idle", "0", "--log", "error"])
        with os.fdopen(write, "w") as out:
            json.dump([name for name in sys.modules if not name.startswith("__")], out)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as told:
        names: list[str] = json.load(told)
    os.waitpid(pid, 0)
    return [name for name in names if name not in sys.modules]


def become(order: dict[str, Any]) -> None:
    """Be the agent of an order, in a fork; never returns."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(log, 2)
    out = os.open(order["out"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644) if order.get("out") else log
    os.dup2(out, 1)
    os.closerange(3, 64)
    os.environ.update(order["env"])
    random.seed()
    from sluicegate import cli
    from sluicegate_agent import faults

    if order["plant"]:
        from campaign import plants

        plants.install(order["plant"])
    at, _, name = order["env"].get(faults.VARIABLE, "").partition("@")
    if at:
        faults.arm(int(at), only=name)
    code = 70
    try:
        cli.main(order["args"])
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def serve() -> None:
    """Take orders until stdin ends; then kill what still runs."""
    running: dict[int, Any] = {}
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    chosen = selectors.DefaultSelector()
    chosen.register(0, selectors.EVENT_READ)
    chosen.register(read, selectors.EVENT_READ)
    kept = b""
    while True:
        for key, _ in chosen.select():
            data = os.read(key.fd, 65536)
            if key.fd == read:
                _reap(running)
                continue
            if not data:
                for pid in running:
                    os.kill(pid, signal.SIGKILL)
                return
            *lines, kept = (kept + data).split(b"\n")
            for line in lines:
                order = json.loads(line)
                pid = os.fork()
                if pid == 0:
                    become(order)
                running[pid] = order["id"]
                _say({"id": order["id"], "pid": pid})


def _reap(running: dict[int, Any]) -> None:
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        if pid in running:
            _say({"id": running.pop(pid), "status": os.waitstatus_to_exitcode(status)})


def _say(told: dict[str, Any]) -> None:
    os.write(1, json.dumps(told).encode() + b"\n")


if __name__ == "__main__":
    prepare()
    _say({"ready": True})
    serve()
