from typing import Any

ADD: int
LEAST: int
GREATEST: int

def numbers(
    first: Any, last: Any, values: Any, windows: Any, width: int, neutral: float, how: int, room: Any, out: Any
) -> None: ...
def squares(first: Any, last: Any, rows: Any, windows: Any, width: int, room: Any, out: Any) -> None: ...
def occurrences(first: Any, last: Any, rows: Any, windows: Any, width: int, room: Any, out: Any) -> None: ...
