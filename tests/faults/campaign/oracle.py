"""What came of what was published: lost, twice, refused, silent; from the driver's list and the documents alone.

A reading has to be at the target where the agent acknowledged it (its PUBACK was seen on the wire), or where the broker
acknowledged it to the sensor and could not have lost it since. It may be there no oftener than it was said, beyond what
the documents count as doubt. Where values are not unique, [count - doubt, count] has to hold the truth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from campaign.sensor import STREAM, Message
from sluicegate.format import chunk as chunks


@dataclass
class Found:
    """What the documents of one run say about the stream."""

    values: Counter[int] = field(default_factory=Counter)
    readings: int = 0
    total: float = 0.0
    doubt: int = 0
    gap: int = 0
    whole: int = 0
    troubles: list[str] = field(default_factory=list)


@dataclass
class Verdict:
    """The columns of the table, and in words what is wrong."""

    lost: int = 0
    twice: int = 0
    doubt: int = 0
    refused: int = 0
    silent: int = 0
    stuck: int = 0
    words: list[str] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Whether a promise was broken."""
        return bool(self.lost or self.twice or self.refused or self.silent or self.stuck)


@dataclass
class Seen:
    """What the driver saw beside its own list: PUBACKs of the agent, answers, spans in which the broker may lose."""

    promised: Counter[bytes]
    answers: list[dict[str, Any]]
    excused: list[tuple[float, float]]
    counters: dict[str, int]
    odd: bool


def read(documents: Iterable[bytes]) -> Found:
    """Decode every document; ordinals of an incarnation are contiguous and none comes twice."""
    found, spans = Found(), []
    for data in documents:
        try:
            chunk = chunks.decode(data)
        except chunks.ChunkError as error:
            found.troubles.append(f"a document cannot be read: {error}")
            continue
        if chunk.stream.partition("/")[0] != STREAM:  # what stands behind it is a key
            continue
        for bucket, singles in zip(chunk.buckets, chunk.readings, strict=True):
            spans.append((chunk.incarnation, bucket.first, bucket.n))
            found.readings += bucket.n
            found.total += bucket.total + bucket.n * chunk.center
            found.doubt += bucket.doubt
            found.gap += bucket.gap
            if singles is None:
                found.whole += bucket.n
            else:
                found.values.update(int(value) for value in singles[1])
    found.troubles += _holes(sorted(spans))
    return found


def _holes(spans: Sequence[tuple[str, int, int]]) -> list[str]:
    said, following = [], {}
    for incarnation, first, n in spans:
        expected = following.get(incarnation, 0)
        if first != expected:
            said.append(f"incarnation {incarnation}: a bucket at {first}, expected at {expected}")
        following[incarnation] = first + n
    return said


def judge(identity: str, published: Sequence[Message], found: Found, seen: Seen) -> Verdict:
    """Hold the documents against the list."""
    verdict = Verdict(doubt=found.doubt, words=[*found.troubles], silent=len(found.troubles))
    due = [message for message in published if _is_due(message, seen, constant=identity == "constant")]
    if identity == "constant":
        _judge_counts(verdict, len(due), len(published), found)
    elif found.whole:
        _judge_sums(verdict, due, published, found)
    else:
        _judge_values(verdict, due, published, found, identity)
    _tell_refused(verdict, seen.counters)
    if identity in ("sequence", "epochs") and not seen.odd and not found.whole:
        _judge_gaps(verdict, published, found)
    _judge_answers(verdict, due, published, found, seen)
    return verdict


def _is_due(message: Message, seen: Seen, *, constant: bool) -> bool:
    """Whether it has to be there: the agent acknowledged it, or the broker did and could not lose it since."""
    if not constant and seen.promised[message.payload]:
        return True
    if message.acknowledged == inf:
        return False
    return not any(message.sent <= end and message.acknowledged >= start for start, end in seen.excused)


def _judge_values(
    verdict: Verdict, due: Sequence[Message], published: Sequence[Message], found: Found, identity: str
) -> None:
    missing = [message for message in due if not found.values[message.value]]
    verdict.lost = len(missing)
    if missing:
        verdict.words.append(f"lost: {[message.payload.decode(errors='replace') for message in missing[:5]]}")
    # Two messages of one time and one value, sent twice by the sensor: who could tell a repeat from a reading?
    allowed = {message.value: message.sends if identity == "time" else 1 for message in published}
    extra = {value: count - allowed.get(value, 0) for value, count in found.values.items()}
    extra = {value: count for value, count in extra.items() if count > 0}
    verdict.twice = max(0, sum(extra.values()) - found.doubt)
    if verdict.twice:
        verdict.words.append(f"twice: {sum(extra.values())} beyond a doubt of {found.doubt}: {list(extra)[:5]}")


def _judge_counts(verdict: Verdict, least: int, most: int, found: Found) -> None:
    verdict.lost = max(0, least - found.readings)
    verdict.twice = max(0, found.readings - found.doubt - most)
    if verdict.lost or verdict.twice:
        truth = f"{least} … {most} were published"
        verdict.words.append(f"[{found.readings - found.doubt}, {found.readings}] counted, {truth}")


def _judge_sums(verdict: Verdict, due: Sequence[Message], published: Sequence[Message], found: Found) -> None:
    """Some buckets hold no single readings: their count and their sum tell, as values are unique and large."""
    most = sum(message.sends for message in published)
    _judge_counts(verdict, len(due), most, found)
    # Where all was due and nothing is in doubt, equal counts of other readings would give another sum.
    if len(due) == len(published) == most == found.readings and not found.doubt:
        wrong = abs(found.total - sum(message.value for message in published)) > 1e-9 * abs(found.total)
        verdict.lost += wrong
        verdict.twice += wrong
        verdict.words += ["as many readings as were published, of another sum"] if wrong else []


def _tell_refused(verdict: Verdict, counters: dict[str, int]) -> None:
    """What is missing and was refused is refused wrongly: the sensors of these runs say nothing that is not so."""
    refused = {name: count for name, count in counters.items() if name.startswith("refused.") and count}
    verdict.refused = min(verdict.lost, sum(refused.values()))
    verdict.lost -= verdict.refused
    if verdict.refused:
        verdict.words.append(f"refused: {refused}")


def _judge_gaps(verdict: Verdict, published: Sequence[Message], found: Found) -> None:
    """`gap` is exactly how many numbers are missing between the first and the last of each epoch that came."""
    came: dict[int, set[int]] = {}
    for message in published:
        if message.number is not None and found.values[message.value]:
            came.setdefault(message.epoch, set()).add(message.number)
    missing = sum(max(numbers) - min(numbers) + 1 - len(numbers) for numbers in came.values())
    if missing != found.gap:
        verdict.silent += 1
        verdict.words.append(f"gap says {found.gap} are missing, the numbers say {missing}")


def _judge_answers(
    verdict: Verdict, due: Sequence[Message], published: Sequence[Message], found: Found, seen: Seen
) -> None:
    """The window over all: its count never falls, and the last answer's interval holds the truth."""
    counts = [answer for answer in seen.answers if answer.get("aggregate") == "count" and answer.get("window") == "all"]
    last = 0
    for answer in counts:
        if answer["high"] < last:
            verdict.silent += 1
            verdict.words.append(f"answered {last} readings, later {answer['high']}: an answer without its commit")
            break
        last = max(last, answer["low"])
    if not counts:
        verdict.silent += 1
        verdict.words.append("no window was ever answered")
        return
    low, high = counts[-1]["low"], counts[-1]["high"]
    least, most = len(due), sum(message.sends for message in published)
    if high < least - verdict.lost - verdict.refused or low > most + verdict.twice:
        verdict.silent += 1
        verdict.words.append(f"the last answer: {low} … {high} readings; {least} … {most} were published")
