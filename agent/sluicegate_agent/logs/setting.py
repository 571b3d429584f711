"""Sets logging up once for a process: structlog forms every line, the agent's and its libraries', as JSON or text.

A line has the time (ISO 8601, UTC), the level, the logger and the event; no secret, a bounded length, and no line
break or control character that a peer could have put there. JSON where the journal reads us, text for people.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import sys
import types
from typing import Any, Literal

from sluicegate_agent.lean import Names, stood_in
from sluicegate_agent.logs.secrets import redacted, without_secrets

Form = Literal["auto", "json", "text"]
#: Characters of an event, and of an exception's trace, that are logged.
LONGEST, LONGEST_TRACE = 2000, 8000


def set_up(level: str, form: Form = "auto") -> None:
    """Log to stderr from `level` on, whatever was set up before."""
    structlog = _structlog()
    shape = _as_json(structlog) if form == "json" or (form == "auto" and _to_journal()) else _as_text
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.stdlib.ExtraAdder(),
            structlog.processors.TimeStamper(fmt="iso", utc=True),
        ],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            without_secrets,
            _bounded,
            shape,
        ],
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.raiseExceptions = False  # a line that cannot be written is not worth a traceback with its arguments


def _structlog() -> Any:
    """structlog, without what it imports for methods that nobody here calls.

    That is asyncio (1.1 MiB resident), pickle (0.4 MiB), structlog's own lines for a console and trees of tracebacks
    (0.4 MiB) and, where another program has them installed, rich with pygments (4.9 MiB) and colorama.
    """
    unused: dict[str, types.ModuleType] = {name: types.ModuleType(name) for name in ("asyncio", "pickle")}
    unused |= {name: Names(name) for name in ("structlog.dev", "structlog.tracebacks", "structlog.testing")}
    unused["pickle"].PicklingError = Exception  # type: ignore[attr-defined]
    with stood_in({**unused, "rich": None, "better_exceptions": None, "colorama": None}):
        return importlib.import_module("structlog")


def _to_journal() -> bool:
    """Whether stderr is the journal's stream, as systemd.exec(5) says how to tell."""
    with contextlib.suppress(OSError, ValueError):
        device, inode = os.environ.get("JOURNAL_STREAM", "").split(":")
        found = os.fstat(sys.stderr.fileno())
        return (found.st_dev, found.st_ino) == (int(device), int(inode))
    return False


def _bounded(_: Any, __: str, event: dict[str, Any]) -> dict[str, Any]:
    for name, value in event.items():
        most = LONGEST_TRACE if name == "exception" else LONGEST
        if isinstance(value, str) and len(value) > most:
            event[name] = f"{value[:most]}… ({len(value)} characters)"
    return event


def _as_json(structlog: Any) -> Any:
    """One object a line, in the order in which people read it."""
    render = structlog.processors.JSONRenderer(ensure_ascii=False)

    def shape(logger: Any, method: str, event: dict[str, Any]) -> str:
        first = {name: event.pop(name) for name in ("timestamp", "level", "logger", "event") if name in event}
        return redacted(str(render(logger, method, first | event)))

    return shape


def _as_text(_: Any, __: str, event: dict[str, Any]) -> str:
    """`2026-11-23T16:30:12.123456Z WARNING sluicegate.mqtt: …`, what else there is behind it, the trace below."""
    trace = event.pop("exception", "") or event.pop("stack", "")
    head = f"{event.pop('timestamp')} {event.pop('level').upper()} {event.pop('logger')}: {event.pop('event')}"
    line = "".join([head, *(f" {name}={value}" for name, value in event.items())])
    line = "".join(c if c.isprintable() else repr(c)[1:-1] for c in line)
    return f"{line}\n{trace}" if trace else line
