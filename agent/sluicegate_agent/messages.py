"""What passes between the agent's stages: a message, what was read from it, why it could not be, and an answer."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from types import MappingProxyType
from typing import Any, NamedTuple

from msgspec import Struct

from sluicegate.monoids.kll import Quantiles
from sluicegate.monoids.results import DistinctCount

NO_TAGS: Mapping[str, dict[str, str]] = MappingProxyType({})


class Message(NamedTuple):
    """One MQTT message as it arrived; `whole` is the payload's full length where it was larger than allowed and cut.

    `dup`: the broker has sent it before; `retain`: it was kept at the broker and came with a subscription.
    `packet_id`: with QoS 0 the number of the request that it came in, or 0.
    """

    topic: str
    payload: bytes
    packet_id: int = 0
    qos: int = 0
    whole: int = 0
    dup: bool = False
    retain: bool = False


Reading = tuple[str, int, float]


class Columns(Sequence[Reading]):
    """The readings of a list of items, (stream, time in µs, value) item by item, kept as one column a stream.

    `newest`: the latest time; `largest`: the greatest magnitude of a value.
    """

    __slots__ = ("largest", "newest", "streams", "times", "values")

    def __init__(
        self, streams: Iterable[str], times: array[int], values: list[array[float]], newest: int, largest: float
    ) -> None:
        self.streams, self.times, self.values = (*streams,), times, values
        self.newest, self.largest = newest, largest

    def __len__(self) -> int:
        return len(self.times) * len(self.streams)

    def __iter__(self) -> Iterator[Reading]:
        columns = [
            zip(repeat(stream), self.times, column) for stream, column in zip(self.streams, self.values, strict=True)
        ]
        return chain.from_iterable(zip(*columns, strict=True))

    def __getitem__(self, at: Any) -> Any:
        return [*self][at]

    def __eq__(self, other: object) -> bool:
        return [*self] == ([*other] if isinstance(other, Columns) else other)

    def __hash__(self) -> int:
        return hash((*self,))

    def __repr__(self) -> str:
        return repr([*self])  # what a message is known by again


class Decoded(NamedTuple):
    """What one message holds: its identity's parts and its readings (stream, time in µs, value), in their order.

    `absent` counts metrics without a value (null, "NA", missing); `refused` names those whose value cannot be used,
    as (stream, reason): the others of the message count nevertheless. `source`: whose message it is: the topic or,
    where each key has numbers of its own, topic and key. `tags`: by stream, where the payload has any.
    """

    source: str
    sequence: int | None
    epoch: str | int | None
    time_us: int
    readings: Sequence[Reading]
    absent: int = 0
    refused: tuple[tuple[str, str], ...] = ()
    tags: Mapping[str, dict[str, str]] = NO_TAGS


class Unreadable(Exception):  # noqa: N818  it is a verdict on a message, not a failure of the agent
    """Raised by `decode` for a message that cannot be used at all; `str()` is the dead letter's reason."""

    counter = "unreadable"


class NotAsked(Unreadable):
    """Raised for a topic that no source reads."""

    counter = "unknown_topic"


class NotLetIn(Unreadable):
    """Raised for a topic or payload of which the name of a stream or device cannot be made."""

    counter = "key"


PERCENTILES = (1, 5, 25, 50, 75, 95, 99)
"""What a message tells of a window's quantiles, besides the least and the greatest value."""

#: A number, none, or what has parts: named numbers (a run, bins), or a list of those (top_k).
Told = float | int | dict[str, Any] | list[Any] | None


class Result(Struct, frozen=True, gc=False):
    """One window's answer to one aggregate over one stream, as of reading `ordinal` and event time `time_us`.

    A window by time ends at `time_us`: the newest reading's time, or a later one in silence.
    `undecidable`: so many of its readings may be repeats; the interval holds the answer without any of them.
    """

    stream: str
    window: str
    aggregate: str
    ordinal: int
    time_us: int
    value: Told
    low: Told
    high: Told
    exact: bool
    count: int
    buckets: int
    undecidable: int = 0


class EndedResult(Result, frozen=True, gc=False):
    """An answer of the window start ≤ time < end: "early", "revised" or "final", after so many results before it.

    `time_us` is the event time at which it was due. `replaces`: starts of the sessions that this one has taken up.
    """

    start_us: int = 0
    end_us: int = 0
    stage: str = "final"
    revision: int = 0
    replaces: tuple[int, ...] = ()


def plain(answer: Any) -> Told:
    """An answer as JSON has it: what has parts by their names, a distinct count's estimate, quantiles' percentiles."""
    if answer is None or answer.__class__ is float:
        return answer
    if isinstance(answer, DistinctCount):
        return answer.estimate
    if isinstance(answer, Quantiles):
        return _percentiles(answer)
    if isinstance(answer, list):
        return [plain(each) for each in answer]
    if isinstance(answer, tuple):
        named: dict[str, Any] = answer._asdict()  # type: ignore[attr-defined]  # answers with parts are named tuples
        return named
    told: float | int | None = answer
    return told


def _percentiles(answer: Quantiles) -> dict[str, Any]:
    """Percentiles by name; by how much of the readings their ranks may be wrong (99 %), and how much the edge adds."""
    told = {f"p{each}": answer.quantile(each / 100) for each in PERCENTILES}
    ends = {"least": answer.quantile(0.0), "greatest": answer.quantile(1.0)}
    return {"n": answer.n, **ends, **told, "error": answer.error, "cut": answer.cut}
