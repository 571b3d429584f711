"""Whether a reading is too far ahead of the board's clock, and when to judge again because the clock was set.

A clock counts as set when it steps against the monotonic one, when the kernel begins to call it synchronised, and at a
start. Where the kernel does not call it synchronised and most sources agree that it is behind, theirs is believed.
A board without a clock chip starts with a wrong time: until it is set, readings without a time of their own wait.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

#: 2024-01-01: a clock that is earlier was never set, and judges no reading.
CLOCK_NEVER_SET = 1_704_067_200_000_000
#: A reading so far ahead (20 years, µs) is wrong whatever the clock does: no board is as far behind after 2024.
FAR = 20 * 365 * 86_400 * 1_000_000
#: Against the monotonic clock; NTP turns a clock by at most 0.5 ms a second where it does not step it.
_STEP = 1_000_000
#: Sources that said nothing for so long are not asked; seconds between two questions to the kernel.
_HEARD, _ASKED = 3600.0, 10.0
#: Sources whose lead is known at once, at most.
LEADS_MOST = 4096
#: How far apart the leads of sources that agree may be.
_AGREEMENT = 3600 * 1_000_000
_UNSYNCHRONISED, _ERROR = 0x40, 5
_WORDS = 64
_BOOT = Path("/proc/sys/kernel/random/boot_id")


def is_synchronised() -> bool:
    """Whether the kernel calls its clock synchronised (adjtimex); False where it cannot be asked."""
    import ctypes

    try:
        timex = (ctypes.c_long * _WORDS)()
        state = ctypes.CDLL(None).adjtimex(ctypes.byref(timex))
        # struct timex: modes, offset, freq, maxerror, esterror, status: each in a long's place but the last, an int
        return 0 <= state < _ERROR and not ctypes.c_int(timex[5]).value & _UNSYNCHRONISED
    except (OSError, AttributeError):
        return False


def boot() -> tuple[str, int]:
    """Which boot this is, and µs since it began, with those asleep: a clock that nobody sets."""
    name = _BOOT.read_text(encoding="ascii").strip()[:8]
    return name, time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000


class Guard:
    """The judgement on readings' times; `wall` in µs since 1970, `monotonic` in seconds."""

    def __init__(
        self,
        future: int,
        wall: Callable[[], int],
        monotonic: Callable[[], float] = time.monotonic,
        synchronised: Callable[[], bool] = is_synchronised,
        sources: int = 0,
        unset: float = 0.0,
    ) -> None:
        """`sources`: how many have times of their own; those that say nothing agree to nothing.

        `unset`: seconds for which the clock may not be set yet, on a board without a clock chip.
        """
        self.future, self.behind, self.sources = future, 0, sources
        self._unset_until = monotonic() + unset if unset else None
        self._wall, self._monotonic, self._synchronised = wall, monotonic, synchronised
        self._apart = wall() - int(monotonic() * 1e6)
        self._leads: dict[str, tuple[int, float]] = {}
        self._asked, self._was_synchronised = float("-inf"), False
        self._judge = True

    def is_unset(self) -> bool:
        """Whether the clock has not been set since the board started, as far as can be told, and may still be."""
        if self._unset_until is not None and (self._monotonic() >= self._unset_until or self._ask()):
            self._unset_until, self._judge = None, True
        return self._unset_until is not None

    def latest(self, arrival: int) -> int:
        """The latest time that a reading may have which arrived at `arrival`."""
        if not self.future or arrival < CLOCK_NEVER_SET:
            return 1 << 61
        return arrival + self.behind + self.future

    def undisputed(self, arrival: int) -> int:
        """The latest time of a reading that says nothing about the clock."""
        return min(self.latest(arrival), arrival + self.future) if self.future else self.latest(arrival)

    def heard(self, source: str, lead: int) -> None:
        """The newest message of a source with a time is `lead` µs ahead of the clock."""
        if not self.future or lead <= self.future:
            self._leads.pop(source, None)
            return
        self._leads[source] = lead, self._monotonic()
        if len(self._leads) > LEADS_MOST:
            del self._leads[next(iter(self._leads))]
        if lead > self.behind + self.future:
            self._judge |= self._agree()

    def _agree(self) -> bool:
        """Whether most sources say that the clock is behind, at least two: then by as much as all of these say.

        One alone may be insane, and a clock that the kernel calls synchronised is not overruled.
        """
        now = self._monotonic()
        ahead = [lead for lead, heard in self._leads.values() if now - heard < _HEARD]
        if len(ahead) < 2:
            return False
        middle = sorted(ahead)[(len(ahead) - 1) // 2]  # `statistics` would bring fractions and decimal along
        agreeing = [lead for lead in ahead if abs(lead - middle) <= min(_AGREEMENT, self.future)]
        if len(agreeing) < 2 or 2 * len(agreeing) <= max(len(ahead), self.sources) or self._ask():
            return False
        behind, self.behind = self.behind, min(agreeing)
        return self.behind != behind

    def was_set(self, *, waiting: bool) -> bool:
        """Whether to judge what waits again. A step is looked for at each call, the kernel asked where much waits."""
        apart = self._wall() - int(self._monotonic() * 1e6)
        if abs(apart - self._apart) > _STEP:
            self._judge, self.behind = True, 0
            self._leads.clear()
            if self._wall() >= CLOCK_NEVER_SET:
                self._unset_until = None
        self._apart = apart
        self.is_unset()
        if waiting and not self._judge:
            before = self._was_synchronised
            self._judge = self._ask() and not before
        judge, self._judge = self._judge, False
        return judge

    def _ask(self) -> bool:
        now = self._monotonic()
        if now - self._asked >= _ASKED:
            self._asked, self._was_synchronised = now, self._synchronised()
        return self._was_synchronised
