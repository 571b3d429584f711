"""A source's sequence numbers: what was seen, and whether it begins again, wraps or jumps.

A number seen with the same content is a repeat. What contradicts the numbers so far waits in the table `held` until a
second message says which is right: the next number of the old run, or of a new one. identity.md has the rules.
"""

from __future__ import annotations

import logging
import sqlite3
import time as clock
from array import array
from collections.abc import Iterator
from itertools import accumulate

from sluicegate_agent.identity import tally
from sluicegate_agent.identity.allowance import Allowance
from sluicegate_agent.identity.epoch import UNKNOWN, Epoch
from sluicegate_agent.identity.epoch_rows import LOADED, NO_EPOCH, delete, epoch_key, load, save
from sluicegate_agent.identity.sighting import NEAR, Sighting, confirms, is_fresh, is_later, is_wrap, wants
from sluicegate_agent.identity.verdict import Found, Released, Verdict

log = logging.getLogger("sluicegate.identity")

EPOCHS_KEPT = 4
#: Messages of a source that wait for a second one; a further one decides the oldest.
WAITING_MOST = 4
#: Seconds that a message waits where none comes that decides it.
RESTART_WAIT, JUMP_WAIT = 600.0, 3600.0
#: A jump further than so many horizons is not reached soon: the next message of the old run refuses it.
REACH = 16
JUMP_MOST = 1 << 40
_NEW, _IN_DOUBT, _DUPLICATE = Found(Verdict.NEW), Found(Verdict.NEW, 1), Found(Verdict.DUPLICATE)


class Sequences:
    """The numbers of one source: its newest EPOCHS_KEPT epochs, and any whose messages may not be acknowledged."""

    def __init__(
        self, connection: sqlite3.Connection, source: str, horizon: int, allowance: Allowance | None = None,
        in_flight: int = 1000, width: int = 0,
    ) -> None:  # fmt: skip
        """`width`: at 2^width the numbers wrap, 0: it is seen from them."""
        self.source, self.horizon, self._width = source, horizon, width
        self.restarts = self.wraps = self.forgotten_early = self.maybe_missing = self._more = self._returned = 0
        self._allowance = allowance or Allowance(3 * in_flight)
        self._gone: list[tuple[bytes, int]] = []
        self._late: dict[int, tuple[Epoch, int] | int] = {}
        self._waiting: list[Sighting] = []
        self.heard_at = clock.monotonic()
        self._replay: tuple[bytes, int] = (b"", -1)
        self._commit = self._stamp = 1
        self._loaded_until = self._in_flight = 3 * in_flight  # brokers send more than they were told
        self._chains, self._carried = load(connection, source, horizon)
        self._count_more()
        #: Whether `save` may have something to write; whether `confirmed` may have something to let go.
        self.touched, self.unconfirmed = False, self._more > 0

    @property
    def missing(self) -> int:
        """Numbers that were passed over so far, whether they came late or not."""
        found = [epoch.missing for chain in self._chains.values() for epoch in chain]
        return max(0, min(tally.MOST, self._carried + sum(found)))

    def tally(self, number: int | None) -> int:
        """What the message of this number, which is counted, says of losses; of those below all the next does."""
        late = 0 if number is None else self._late.pop(number, 0)
        if isinstance(late, int):
            return self.missing - late
        epoch, number = late
        self._returned += 1
        is_newest = epoch.order == max(other.order for _, other in self._epochs())
        at, before = epoch.passed_at(number) if is_newest else None, self.missing - epoch.missing
        return tally.late(None if at is None else before + at, self.missing, self._returned)

    def _epochs(self) -> Iterator[tuple[bytes, Epoch]]:
        return ((key, epoch) for key, chain in self._chains.items() for epoch in chain)

    # one message

    def check(
        self, number: int, epoch: str | int | None, content: int = UNKNOWN, time: int | None = None,
        *, comes_again: bool = True, dup: bool = False,
    ) -> Found:  # fmt: skip
        """The verdict on a message, which is marked as seen where it is new; `time` where it has one of its own.

        `comes_again`: the broker sends it again until it is acknowledged. `dup`: it says that it sent it before.
        """
        self.touched = self.unconfirmed = True
        key = NO_EPOCH if epoch is None else epoch_key(epoch)
        self._stamp, self._late = self._commit if comes_again else 0, {}
        self._count_loaded(1)
        chain, run = self._chains.get(key), self.run_of(epoch)
        if run is not None and number == run.awaited:
            return self._next(run, content, time)
        seen = Sighting(key, number, content, time, dup=dup)
        if chain is None:
            self._begin(seen, 0)
            return Found(Verdict.NEW)
        now = chain[-1]
        if (width := now.wrap(number)) and is_wrap(now, seen, self.horizon):
            return self._wrapped(now, seen, width)
        for known in reversed(chain):
            is_known = known.is_repeat(number, content, timed=time is not None, fresh=is_fresh(known, seen))
            if is_known or (time is None and known.read_anew(number, content)):
                known.last = max(known.last, self._stamp)
                self._replay = (seen.key, number) if is_known else self._replay
                return _DUPLICATE if is_known else _IN_DOUBT
        if any((w.key, w.raw, w.content) == (seen.key, number, content) for w in self._waiting):
            return _DUPLICATE
        return self._ahead(chain, seen) if now.extended(number) > now.high else self._behind(chain, seen)

    def _next(self, now: Epoch, content: int, time: int | None) -> Found:
        """Take it without the questions whose answers are known of it."""
        now.put_next(content, time)
        if now.last < self._stamp:
            now.last = self._stamp
        return _IN_DOUBT if time is None and now.high < now.doubtful_below else _NEW

    def run_of(self, epoch: str | int | None) -> Epoch | None:
        """The only run of an epoch, where nothing waits: the next number can be no other then; None where it may be."""
        chain = self._chains.get(NO_EPOCH if epoch is None else epoch_key(epoch))
        return None if chain is None or len(chain) != 1 or self._waiting or chain[0].width else chain[0]

    def take_next(self, run: Epoch, content: int, time: int, *, comes_again: bool) -> None:
        """A message with the number that its `run_of` awaits is new: what it says, its time. Otherwise as `check`."""
        self.touched = self.unconfirmed = True
        self._stamp = self._commit if comes_again else 0
        self._count_loaded(1)
        self._next(run, content, time)

    def take_run(self, run: Epoch, contents: array[int], time: int, *, comes_again: bool) -> None:
        """The same of messages with that number and those after it: what each says; the last one's time."""
        self.touched = self.unconfirmed = True
        self._stamp = self._commit if comes_again else 0
        self._count_loaded(len(contents))
        run.put_run(contents, time)
        run.last = max(run.last, self._stamp)

    def knows(self, number: int, epoch: str | int | None, content: int, *, fresh: bool = False) -> bool:
        """Whether this was said under the number in one of the runs that are known; `fresh`: with just this content."""
        chain = self._chains.get(epoch_key(epoch), ())
        return any(each.is_repeat(number, content, timed=True, fresh=fresh) for each in chain)

    def _ahead(self, chain: list[Epoch], seen: Sighting) -> Found:
        """Beyond the newest: the next one, some were lost, an older run's late one, or a jump."""
        now = chain[-1]
        number = now.extended(seen.raw)
        for older in reversed(chain[:-1]):
            if number - now.high > 1 and wants(older, now, seen, number - now.high):
                self._put(older, older.extended(seen.raw), seen)
                return Found(Verdict.NEW)
        if now.width and seen.raw >= 1 << now.width:  # it does not wrap there, as one thought
            if number != now.high + 1:
                return self._jumps(now, seen, number)
            now.width = 0
        if number - now.high > self.horizon:
            return self._jumps(now, seen, number)
        if not self._waiting:
            self._put(now, number, seen)
            return _IN_DOUBT if self._doubt(now, number, seen) else _NEW
        released = self._contradicted(now, seen, number)
        self._put(now, number, seen)
        return Found(Verdict.NEW, self._doubt(now, number, seen), (*released, *self._reached(now, seen)))

    def _behind(self, chain: list[Epoch], seen: Sighting) -> Found:
        """At or below the newest and no repeat: late, or the second sign that the source began again, or the first."""
        now = chain[-1]
        number = now.extended(seen.raw)
        within = number > now.high - self.horizon
        is_newer = is_fresh(now, seen)
        is_hole = within and not now.content(number) and not is_newer
        near = [w for w in self._that_wait(seen.key, jumps=False) if confirms(w, seen, now, is_hole=is_hole)]
        if near:
            return self._begun_again(now, near, seen)
        if is_hole:
            released = self._refuse([w for w in self._waiting if w.key == seen.key and now.extended(w.raw) == number])
            self._put(now, number, seen)
            return Found(Verdict.NEW, self._doubt(now, number, seen), released)
        if within:
            return _NEW if now.corrects(number, content=seen.content) else self._wait(seen, Verdict.SEQUENCE_CONFLICT)
        is_known = now.first_content(number) > UNKNOWN
        if is_newer or is_known or number < now.base:
            return self._wait(seen, Verdict.SEQUENCE_CONFLICT if is_known else Verdict.BEYOND_HORIZON)
        if seen.time is not None or self._goes_on(seen):
            return Found(Verdict.BEYOND_HORIZON)
        seen.doubt = 1
        return self._wait(seen, Verdict.BEYOND_HORIZON)

    def _goes_on(self, seen: Sighting) -> bool:
        """Whether it goes on where repeats were: a log that is sent again, beyond what is known of it."""
        key, last = self._replay
        if key != seen.key or not 0 <= seen.raw - last <= NEAR:
            return False
        self._replay = key, seen.raw
        return True

    def _doubt(self, now: Epoch, number: int, seen: Sighting) -> int:
        comes_again = seen.dup and now.laps_look_alike(number, seen.content, self._in_flight)
        return int(seen.time is None and (comes_again or number < now.doubtful_below))

    def _put(self, epoch: Epoch, number: int, seen: Sighting) -> None:
        if number > epoch.high:
            epoch.offset = number - seen.raw
        before, is_late = epoch.missing, epoch.put(number, seen.content, seen.time)
        if number < epoch.high:
            self._late[seen.raw] = (epoch, number) if is_late else epoch.missing - before
        epoch.last = max(epoch.last, self._stamp)

    # wraps

    def _wrapped(self, now: Epoch, seen: Sighting, width: int) -> Found:
        doubt = int(now.is_repeat(seen.raw, seen.content, timed=False))
        released = self._contradicted(now, seen, now.high + 1)
        now.width, self.wraps = width, self.wraps + 1
        log.info("source %s: its numbers wrap at 2^%d", self.source, width)
        self._put(now, now.extended(seen.raw), seen)
        return Found(Verdict.NEW, doubt, released)

    # what waits

    def _that_wait(self, key: bytes, *, jumps: bool) -> list[Sighting]:
        return [w for w in self._waiting if w.key == key and (w.why is Verdict.SEQUENCE_JUMP) == jumps]

    def _wait(self, seen: Sighting, why: Verdict) -> Found:
        seen.why, seen.since = why, clock.monotonic()
        oldest = self._waiting[0] if len(self._waiting) >= WAITING_MOST else None
        released = self._refuse([oldest], self._chains.get(oldest.key, [None])[-1]) if oldest else ()
        self._waiting.append(seen)
        return Found(Verdict.WAITS, 0, released)

    @property
    def waiting(self) -> tuple[Verdict, int]:
        """What the message that was just found to wait is if nothing confirms it, and its doubt if something does."""
        return self._waiting[-1].why, self._waiting[-1].doubt

    def waits(self, held: int) -> None:
        """The message that was just found to wait has this row in the table `held`."""
        self._waiting[-1].held = held

    def told(self) -> dict[str, int]:
        """What happened since the last call, by counter."""
        found = {"sequence_restarts": self.restarts, "sequence_wraps": self.wraps, "maybe_missing": self.maybe_missing}
        found["epochs_forgotten_early"] = self.forgotten_early
        self.restarts = self.wraps = self.forgotten_early = self.maybe_missing = 0
        return {name: count for name, count in found.items() if count}

    def wait_again(
        self, held: int, why: Verdict, doubt: int, number: int, epoch: str | int | None, content: int, time: int | None
    ) -> None:
        """A row that waited when the agent ended."""
        self._waiting.append(Sighting(epoch_key(epoch), number, content, time, why, doubt, held, clock.monotonic()))

    def dropped(self, held: int) -> None:
        """Its row made room for others: it waits no more."""
        self._waiting = [w for w in self._waiting if w.held != held]

    def _leave(self, ones: list[Sighting]) -> None:
        self._waiting = [w for w in self._waiting if all(w is not one for one in ones)]

    def _refuse(self, ones: list[Sighting], epoch: Epoch | None = None) -> tuple[Released, ...]:
        self._leave(ones)
        return tuple(self._refused(w, epoch) for w in ones)

    def _refused(self, w: Sighting, epoch: Epoch | None) -> Released:
        """What it is where nothing confirmed it: late, where its number never came in `epoch`."""
        number = epoch.extended(w.raw) if epoch is not None else 0
        if epoch is None or not epoch.fill(number, w.content):
            return Released(w.held, w.why)
        self._late[w.raw] = epoch, number
        return Released(w.held, Verdict.NEW, w.doubt)

    def _contradicted(self, now: Epoch, seen: Sighting, number: int) -> tuple[Released, ...]:
        """The old run goes on: what looked like a new one was none, unless its time says that it came later."""
        if number - now.high > NEAR:
            return ()
        wrong = [w for w in self._that_wait(seen.key, jumps=False) if not is_later(w.time, seen.time)]
        ahead = [(w, now.extended(w.raw)) for w in self._that_wait(seen.key, jumps=True)]
        wrong += [w for w, at in ahead if at - now.high > REACH * self.horizon or at == number]
        return self._refuse(wrong, now)

    def _reached(self, now: Epoch, seen: Sighting) -> tuple[Released, ...]:
        """The numbers have come to a jump that waits and passed it: it was early, not wrong."""
        ones = self._that_wait(seen.key, jumps=True)
        return self._refuse([w for w in ones if now.extended(w.raw) <= now.high - NEAR], now)

    def _jumps(self, now: Epoch, seen: Sighting, number: int) -> Found:
        """Too far ahead for one message to be believed: the second one decides."""
        for w in self._that_wait(seen.key, jumps=True):
            before = now.extended(w.raw)
            if -NEAR <= number - before <= max(self.horizon, 2 * (before - now.high)) and number != before:
                return self._jumped(now, w, seen)
        return self._wait(seen, Verdict.SEQUENCE_JUMP)

    def _jumped(self, now: Epoch, w: Sighting, seen: Sighting) -> Found:
        if min(now.extended(w.raw), now.extended(seen.raw)) - now.high > JUMP_MOST:
            return self._begun_again(now, [w], seen)
        self._leave([w])
        now.width = 0 if max(w.raw, seen.raw) >> max(now.width, 1) else now.width
        self._put_in_turn(now, [w], [w, seen])
        return Found(Verdict.NEW, 0, (Released(w.held, Verdict.NEW),))

    def _put_in_turn(self, epoch: Epoch, waited: list[Sighting], ones: list[Sighting]) -> None:
        """Of `ones` those that waited count before the last one: none of them tells of what was lost after it."""
        missing = dict[int, int]()
        for one in sorted(ones, key=lambda one: one.raw):
            if epoch.content(epoch.extended(one.raw)):  # it began with this one, or is a counter that stands still
                epoch.mark(epoch.extended(one.raw), one.content)
                epoch.high_time = one.time
            else:
                self._put(epoch, epoch.extended(one.raw), one)
            missing[one.raw] = self.missing
        told = accumulate((missing[w.raw] for w in waited), max)
        self._late |= {w.raw: self.missing - before for w, before in zip(waited, told, strict=True)}

    def _begun_again(self, now: Epoch, near: list[Sighting], seen: Sighting | None) -> Found:
        """The source began again without saying so: an epoch of its own, in which what waited and this one count."""
        self._leave(near)
        ones = sorted([*near, *([seen] if seen else [])], key=lambda one: one.raw)
        epoch = self._begin(ones[0], now.generation + 1)
        epoch.width = now.width if not ones[-1].raw >> max(now.width, 1) else 0
        doubtful = any(one.doubt for one in ones)
        epoch.doubtful_below = now.high - now.offset - self.horizon + 1 if doubtful else epoch.doubtful_below
        self._put_in_turn(epoch, near, ones)
        self.restarts += 1
        self.maybe_missing += (lost := now.lost_if_wrapped(ones[0].raw))
        told = self.source, ones[0].raw, now.high - now.offset, f"; if they wrap, {lost} are missing" if lost else ""
        log.warning("source %s: its numbers begin again at %d, after %d%s", *told)
        return Found(Verdict.NEW, int(doubtful), tuple(Released(one.held, Verdict.NEW, one.doubt) for one in near))

    def due(self, now: float) -> list[Released]:
        """What has waited for so long that nothing will decide it, at monotonic second `now`.

        A run that had gone on would have said so: a beginning is believed, in doubt where no time says that it is new.
        A jump is refused.
        """
        found: list[Released] = []
        self.touched |= bool(self._waiting)
        self.unconfirmed |= self.touched
        for w in list(self._waiting):
            is_jump = w.why is Verdict.SEQUENCE_JUMP
            if now - w.since >= (JUMP_WAIT if is_jump else RESTART_WAIT):
                found += self._refuse([w]) if is_jump or w.key not in self._chains else [self._believed(w)]
        return found

    def _believed(self, w: Sighting) -> Released:
        last = self._chains[w.key][-1]
        released = Released(w.held, Verdict.NEW, 0 if is_fresh(last, w) else 1)
        self._begun_again(last, [w], None)
        return released

    def take_back(self, number: int, epoch: str | int | None, content: int) -> None:
        """A message that was new is refused for another reason: it is new again when it comes again."""
        self.touched = True
        for known in reversed(self._chains.get(epoch_key(epoch), [])):
            if known.content(known.extended(number)) == content:
                known.take_back(known.extended(number))
                return

    # epochs

    def _begin(self, seen: Sighting, generation: int) -> Epoch:
        order = 1
        for _, other in self._epochs():
            other.changed |= other.passed is not None
            order, other.passed = max(order, other.order + 1), None  # asked of the newest alone
        epoch = Epoch(order, self.horizon, seen.raw, generation)
        epoch.begin(seen.content, seen.time)
        epoch.width, epoch.last = self._width, max(epoch.last, self._stamp)
        self._chains.setdefault(seen.key, []).append(epoch)
        self._forget()
        return epoch

    def committed(self, generation: int) -> None:
        """The commit just made has this number."""
        self._commit = generation + 1

    def confirmed(self, generation: int) -> None:
        """The broker knows the messages of commit number `generation`, and of those before, to be acknowledged."""
        waits = False
        for chain in self._chains.values():
            for epoch in chain:
                if epoch.last > generation:
                    waits = True
                else:
                    epoch.last = 0
        self._forget()
        self.unconfirmed = waits or self._more > 0

    def _count_loaded(self, messages: int) -> None:
        """What was on its way when the agent ended has come again before so many messages: then epochs are free."""
        before, self._loaded_until = self._loaded_until, max(0, self._loaded_until - messages)
        if before and not self._loaded_until:
            for _, epoch in self._epochs():
                epoch.last = self._commit if epoch.last == LOADED else epoch.last

    def _forget(self) -> None:
        """The oldest epochs go that nothing on its way belongs to; any, and counted, where there are too many."""
        if not self._more and sum(map(len, self._chains.values())) <= EPOCHS_KEPT:
            return
        oldest = sorted(self._epochs(), key=lambda each: each[1].order)
        beyond = oldest[: max(0, len(oldest) - EPOCHS_KEPT)]
        for key, epoch in beyond:
            if not epoch.last:
                self._drop(key, epoch)
        self._count_more()
        for key, epoch in beyond:
            if self._allowance.left < 0 and epoch.last:
                self._drop(key, epoch)
                self.forgotten_early += 1
                self._count_more()

    def _count_more(self) -> None:
        more = max(0, sum(len(chain) for chain in self._chains.values()) - EPOCHS_KEPT)
        self._allowance.left -= more - self._more
        self._more = more

    def put_away(self) -> bool:
        """It goes out of memory, and its epochs out of what all may keep; False where a message waits for a second."""
        if not self._waiting:
            self._allowance.left, self._more = self._allowance.left + self._more, 0
        return not self._waiting

    def _drop(self, key: bytes, epoch: Epoch) -> None:
        self._carried += epoch.missing
        self._chains[key].remove(epoch)
        if not self._chains[key]:
            del self._chains[key]
        self._gone.append((key, epoch.generation))
        if epoch.missing:  # this is in the rows of the others from now on: one of them is written with its deletion
            max(self._epochs(), key=lambda each: each[1].order)[1].changed = True

    # rows

    def save(self, connection: sqlite3.Connection) -> None:
        """Delete the epochs that were forgotten, then write those that changed, inside the caller's transaction."""
        delete(connection, self.source, self._gone)
        save(connection, self.source, self._epochs(), self._carried)

    def saved(self) -> None:
        """The transaction is durable: nothing is waiting."""
        self._gone.clear()
        self._commit += 1
        if self.touched:
            self.heard_at = clock.monotonic()
        self.touched = False
        for chain in self._chains.values():
            for epoch in chain:
                epoch.saved()
