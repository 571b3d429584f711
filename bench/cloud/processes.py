"""What a piece of work takes of the processor and of memory, in this process and all below it, whenever these end.

The times that the kernel keeps of ended children are theirs only where each parent waited for its own; so all of them
are looked at ten times a second, and each counts for what it had used when it was seen last.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

_TICKS, _PAGE, _EVERY_S = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE"), 0.1


class Seen(NamedTuple):
    """A process: seconds of processor of its own, and bytes of memory that are resident."""

    cpu_s: float
    resident: int
    name: str


def processes() -> dict[tuple[int, int], Seen]:
    """This process and all below it, by number and the time they started."""
    parents, found = {}, {}
    for at in Path("/proc").iterdir():
        if at.name.isdigit():
            try:
                head, _, rest = (at / "stat").read_text().rpartition(")")
            except OSError:  # it has ended since
                continue
            told, number = rest.split(), int(at.name)
            parents[number] = int(told[1])
            cpu = (int(told[11]) + int(told[12])) / _TICKS
            found[number] = (int(told[19]), Seen(cpu, int(told[21]) * _PAGE, head.partition("(")[2]))
    mine, before = {os.getpid()}, 0
    while len(mine) > before:
        before = len(mine)
        mine |= {process for process, parent in parents.items() if parent in mine}
    return {(number, found[number][0]): found[number][1] for number in mine if number in found}


class Usage:
    """`cpu_s`, seconds of processor; `peak_mb`: most memory of all at once; `worker_mb`: most of one below this one
    that is not Java.
    """

    def __init__(self) -> None:
        self._begun = {process: seen.cpu_s for process, seen in processes().items()}
        self._last: dict[tuple[int, int], float] = {}
        self._me, self.peak_mb, self.worker_mb = os.getpid(), 0.0, 0.0

    @property
    def cpu_s(self) -> float:
        """Of all that were seen."""
        return sum(cpu - self._begun.get(process, 0.0) for process, cpu in self._last.items())

    def look(self) -> None:
        """See how they are."""
        seen = processes()
        self._last |= {process: of.cpu_s for process, of in seen.items()}
        self.peak_mb = max(self.peak_mb, sum(of.resident for of in seen.values()) / 1e6)
        workers = (of.resident / 1e6 for (number, _), of in seen.items() if number != self._me and of.name != "java")
        self.worker_mb = max(self.worker_mb, *workers, 0.0)


@contextmanager
def watched() -> Iterator[Usage]:
    """What the block takes; read it afterwards."""
    usage, over = Usage(), threading.Event()

    def watch() -> None:
        while not over.wait(_EVERY_S):
            usage.look()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield usage
    finally:
        over.set()
        thread.join()
        usage.look()
