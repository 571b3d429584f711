"""The newest warnings and errors of the log, without secrets and of bounded size, for who looks at the listener."""

from __future__ import annotations

import logging
import time
from collections import deque
from typing import Any

from sluicegate_agent.logs.secrets import redacted

_KEPT, _LONGEST = 20, 300


class LastErrors(logging.Handler):
    """Keeps what the loggers of Sluicegate say from WARNING on, while it is open."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._kept: deque[tuple[int, str, str]] = deque(maxlen=_KEPT)
        logging.getLogger("sluicegate").addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one; what cannot be formatted is not worth an error of its own."""
        try:
            told = redacted(record.getMessage())[:_LONGEST]
        except (TypeError, ValueError):
            told = str(record.msg)[:_LONGEST]
        self._kept.append((time.time_ns() // 1000, record.levelname.lower(), told))

    def as_list(self) -> list[dict[str, Any]]:
        """The newest first."""
        return [{"at_us": at, "level": level, "said": said} for at, level, said in reversed([*self._kept])]

    def close(self) -> None:
        """Listen no more."""
        logging.getLogger("sluicegate").removeHandler(self)
        super().close()
