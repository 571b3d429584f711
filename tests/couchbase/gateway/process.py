"""A server of the tests' own: a process that is started by `with`, and killed."""

from __future__ import annotations

import subprocess
from types import TracebackType
from typing import Self


class Killed:
    """Subclasses start `_process`."""

    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        """Start, and return when it answers."""
        raise NotImplementedError

    def kill(self) -> None:
        """SIGKILL, as a power cut would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.kill()
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()
