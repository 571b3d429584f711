"""What is wrong with a configuration, each finding with its key, value and remedy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SHOWN = 60


@dataclass(frozen=True)
class Problem:
    """One finding: where (`window[2].policy.time`, tables counted from 1), the value written there, and what to do."""

    key: str
    value: Any
    remedy: str

    def __str__(self) -> str:
        """One line: key, value if there is one, remedy."""
        return (
            f"{self.key}: {self.remedy}" if self.value is None else f"{self.key} = {_show(self.value)}: {self.remedy}"
        )


class ConfigError(Exception):
    """Raised before anything starts when a configuration file cannot be used; `problems` has every finding."""

    exit_code = 2

    def __init__(self, file: Path, problems: list[Problem]) -> None:
        self.file = file
        self.problems = problems
        lines = [str(problem) for problem in problems]
        several = f"{len(lines)} things to correct\n  " if len(lines) > 1 else ""
        super().__init__(f"{file}: {several}" + "\n  ".join(lines))


def _show(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
