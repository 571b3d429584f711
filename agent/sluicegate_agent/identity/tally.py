"""What a message says of its source's losses, in one number that goes with its readings to their streams.

Of most messages it is how many numbers were passed over so far, whether they came late or not: only grows. A message
that came late has a negative one: how many were passed over when its own number was. So a stream that is not in every
message knows whether it was told of that loss, and what came late for others takes nothing back that it was told.
"""

from __future__ import annotations

MOST = 1 << 48
_KINDS = 1 << 12


def late(at: int | None, lost: int, returned: int) -> int:
    """Of a message that came late, the `returned`th: its number was the `at`th of those passed over; None: not known,
    at most the `lost`th.
    """
    told = min(lost if at is None else at, MOST)
    return -1 - (told * _KINDS + returned % (_KINDS // 2) * 2 + (at is None))


def lost(tally: int) -> int:
    """How many numbers were passed over so far, or when that of this message was."""
    return tally if tally >= 0 else (-1 - tally) // _KINDS


def is_known(tally: int) -> bool:
    """Whether it is known when the number of a late message was passed over."""
    return (-1 - tally) % 2 == 0
