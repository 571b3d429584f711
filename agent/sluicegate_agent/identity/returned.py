"""Which readings of a bucket came late, and what did without a reading of its stream, as the extra "late" says it."""

from __future__ import annotations

from array import array

import msgspec

from sluicegate.constants import LATE, ORDERED
from sluicegate.format.bucket import Bucket
from sluicegate.format.late import LATE_NAME, NEVER, CameLate
from sluicegate_agent.carried import unpack_readings
from sluicegate_agent.identity import tally

#: Losses of a stream of which it is remembered when it was told of them.
RUNS = 32
#: What a stream's row keeps of these, beside what came.
TOLD_NAME = "told"
SINCE_NAME = "since"
_encode, _decode = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(list[int]).decode


def of_row(bucket: Bucket, readings: bytes | None) -> CameLate | None:
    """What a row that was never merged says of readings that came late; None where nobody knows it.

    What came late comes first in it. What has not its own time has that at which it came, and takes nothing back.
    """
    if bucket.gap >= 0:
        return None if bucket.flags & LATE else CameLate(bucket.t_first, bucket.t_last)
    if not bucket.flags & LATE:
        return CameLate(NEVER, NEVER)
    if not bucket.flags & ORDERED:
        return None
    some = min(bucket.n, -bucket.gap)
    recent = bucket.t_last if some < bucket.n else NEVER
    if readings is None:
        return CameLate(min(recent, bucket.t_first), recent, ((some, bucket.t_first, bucket.t_last),))
    times, _ = unpack_readings(readings)
    found = CameLate(times[some] if some < bucket.n else NEVER, recent)
    for time in times[:some]:
        found = found.then(CameLate(NEVER, NEVER, ((1, time, time),)))
    return found


def said_since(bucket: Bucket, readings: bytes | None, late: bytes | None, since: int) -> bytes | None:
    """The extra "late" of the first bucket of a stream that goes on from another one, which had readings until `since`.

    In its incarnation no reading stands before what it says is lost. `late`: what it says already.
    """
    told = CameLate.unpack(late) if late else of_row(bucket, readings)
    if told is None or bucket.gap <= 0:
        return late
    return told._replace(begin=since if told.begin == NEVER else min(since, told.begin)).pack()


class Returned:
    """What a stream was told is lost, and what of that came late in messages that have no reading of it.

    `came`: the latter, until a bucket says it: beside each a time between the two readings of the loss, and not before
    the first of them: there another loss ends. What was told is known of the last RUNS losses. `since`: of a stream
    that goes on from another the time of that one's last reading, until a bucket says what is lost; NEVER: of no other.
    `former`: so many of those passed over are told by that other one, if by any.
    """

    __slots__ = ("_told", "came", "former", "since")

    def __init__(self, since: int = NEVER, former: int = 0) -> None:
        self.came: CameLate | None = None
        self.since, self.former = since, former
        self._told = array("q")

    @property
    def waits(self) -> bool:
        """Whether the next bucket may have to say something of it."""
        return self.came is not None or self.since != NEVER

    def parts(self) -> dict[str, bytes]:
        """As a stream's row keeps it."""
        came = {LATE_NAME: self.came.pack()} if self.came else {}
        goes_on = self.since != NEVER or self.former
        since = {SINCE_NAME: _encode([self.since, self.former])} if goes_on else {}
        return came | since | {TOLD_NAME: _encode(self._told.tolist())}

    @classmethod
    def of(cls, parts: dict[str, bytes]) -> Returned | None:
        """What `parts` made, which leaves them; None where they have nothing of it. Raises ValueError."""
        came, told, since = (parts.pop(name, None) for name in (LATE_NAME, TOLD_NAME, SINCE_NAME))
        found = cls()
        if came is None and told is None:
            return None
        found.came = CameLate.unpack(came) if came else None
        try:
            found._told = array("q", _decode(told) if told else ())
            found.since, found.former = _decode(since) if since else (NEVER, 0)
        except (msgspec.MsgspecError, OverflowError, ValueError) as error:
            raise ValueError(f"what a stream was told: {error}") from error
        if len(found._told) % 3 or len(found._told) > 3 * RUNS:
            raise ValueError("what a stream was told is malformed")
        return found

    def is_former(self, missing: int) -> bool:
        """Whether what came late (`tally`) may be of a loss that the stream before told: here it takes none back."""
        return self.former > 0 and (not tally.is_known(missing) or tally.lost(missing) <= self.former)

    def tell(self, seen: int, lost: int, time: int) -> None:
        """The stream was told of those passed over from the `seen`th on (`tally`): one of them may have this time."""
        self._told.extend((seen, lost, time))
        del self._told[: -3 * RUNS]

    def take(self, at: int) -> bool:
        """The `at`th of those passed over came; False where it is not known when the stream was told of it."""
        for place in range(len(self._told) - 3, -1, -3):
            seen, lost, time = self._told[place : place + 3]
            if seen < at <= lost:
                one = CameLate(NEVER, NEVER, ((1, time, time),))
                self.came = one if self.came is None else self.came.then(one)
                return True
        return False

    def said(self, bucket: bytes, readings: bytes | None) -> bytes | None:
        """The extra of a row that closes and says it; None where there is nothing to say, or it cannot."""
        record = Bucket.unpack(bucket)
        late = of_row(record, readings) if self.waits else None
        if late is None:
            return None
        came, since, self.came = self.came, self.since, None
        said = late.then(came).pack() if came is not None else None
        if since == NEVER or record.gap < 0:  # that bucket came late: there may be a loss before the next one
            return said
        self.since = NEVER
        return said_since(record, readings, said, since)
