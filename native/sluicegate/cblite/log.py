"""The library's own messages: silent until a level is asked for; then into Python's `logging`, from a queue.

The library logs on its own threads and inside its locks, so its callback only copies and enqueues.
"""

from __future__ import annotations

import logging
import queue
from typing import Any

from sluicegate.cblite.loading import ALL_DOMAINS, ERROR, NONE, exports, library

DEBUG, VERBOSE, INFO, WARNING = range(4)
DOMAINS = ("database", "query", "replicator", "network", "listener")
_LEVELS = (logging.DEBUG, logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)
#: Messages kept for `drain`; more are dropped and counted.
KEPT = 1_000

_waiting: queue.Queue[tuple[int, int, str]] = queue.Queue(KEPT)
_dropped = 0
_callback: Any = None


def listen(level: int = WARNING) -> None:
    """Collect messages of `level` and above for `drain`; NONE ends it. Needs 3.2.2 or newer, else does nothing."""
    global _callback
    ffi, lib = library()[:2]
    if not exports(lib, "CBLLogSinks_SetCustom"):
        return
    if _callback is None:
        _callback = ffi.callback("void(uint8_t, uint8_t, FLString)", _take(ffi))
    lib.CBLLogSinks_SetCustom(
        {"level": level, "callback": _callback if level < NONE else ffi.NULL, "domains": ALL_DOMAINS}
    )


def drain() -> int:
    """Hand what was collected to the loggers `cblite.<domain>`; how many messages."""
    count = 0
    while True:
        try:
            domain, level, message = _waiting.get_nowait()
        except queue.Empty:
            return count
        name = DOMAINS[domain] if domain < len(DOMAINS) else str(domain)
        logging.getLogger(f"cblite.{name}").log(_LEVELS[min(level, ERROR)], "%s", message)
        count += 1


def _take(ffi: Any) -> Any:
    def take(domain: int, level: int, message: Any) -> None:
        global _dropped
        text = ffi.buffer(message.buf, message.size)[:].decode("utf-8", "replace") if message.size else ""
        try:
            _waiting.put_nowait((domain, level, text))
        except queue.Full:
            _dropped += 1

    return take
