"""A message of several readings that are known each for itself: each counts once, however they are put together."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
import msgspec
from desk import Desk

from sluicegate_agent.messages import Message

NUMBERED = {
    "topic": "w", "format": "array", "items": "data", "streams": {"x": "x"}, "sequence": "n", "epoch": "boot",
    "time": "t", "time_format": "s",
}  # fmt: skip
OF_LISTS = NUMBERED | {"sequence_in": "message"}
LINES = {"topic": "w", "format": "line", "streams": {"x": "m.x"}, "time_format": "s"}


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Callable[..., Desk]]:
    """Makes a desk; closes it."""
    made: list[Desk] = []

    def make(source: dict[str, Any], **tables: Any) -> Desk:
        made.append(Desk(tmp_path, source, **tables))
        return made[-1]

    yield make
    for one in made:
        one.state.close()


def item(n: int, boot: int = 1) -> dict[str, Any]:
    """The reading of a number."""
    return {"n": n, "boot": boot, "t": 1_600_000_000 + n, "x": n}


def listed(numbers: range, packet_id: int = 1, *, dup: bool = False, boot: int = 1, encode: Any = None) -> Message:
    """A message with the readings of these numbers."""
    document = {"data": [item(n, boot) for n in numbers]}
    return Message("w", encode(document) if encode else json.dumps(document).encode(), packet_id, 1, dup=dup)


@pytest.mark.parametrize("form", ["array", "msgpack-array", "cbor-array"])
def test_lists_that_overlap_count_each_item_once(desk: Callable[..., Desk], form: str) -> None:
    """A logger sends again what it does not know to have arrived, together with what is new; a gap is known."""
    encode = {"msgpack-array": msgspec.msgpack.encode}.get(form)
    if form == "cbor-array":
        encode = pytest.importorskip("cbor2", reason="needs the extra `cbor`").dumps
    one = desk(NUMBERED | {"format": form})
    one.take(listed(range(1, 11), 1, encode=encode), listed(range(6, 21), 2, encode=encode))
    one.killed()
    one.take(listed(range(6, 21), 2, dup=True, encode=encode), listed(range(23, 25), 3, encode=encode))
    expected = [*range(1, 21), 23, 24]
    assert one.sums() == {"x": (float(sum(expected)), len(expected))}
    assert one.state.counters["duplicates"] == 20
    assert one.pipeline.identities.missing("w") == 2


def test_an_item_of_a_list_that_is_broken_costs_itself_only(desk: Callable[..., Desk]) -> None:
    """A dead letter has the item, not the list."""
    one = desk(NUMBERED)
    document = {"data": [item(1), 5, item(2) | {"n": "two"}, item(3)]}
    one.take(Message("w", json.dumps(document).encode(), 1, 1))
    assert one.sums() == {"x": (4.0, 2)}
    assert one.reasons() == ["payload is not a JSON object", "n (the sequence) is a text, not a whole number from 0"]


def test_a_restart_and_a_contradiction_within_a_list(desk: Callable[..., Desk]) -> None:
    """A new epoch begins in the middle of the lists; an item that waits for another is an item still after a kill."""
    one = desk({key: value for key, value in NUMBERED.items() if key != "epoch"})
    one.take(listed(range(1, 200)))
    again = {"data": [{"n": n, "t": 1_600_001_000 + n, "x": 1000} for n in (0, 1, 2)]}
    first = {"data": again["data"][:1]}
    one.take(Message("w", json.dumps(first).encode(), 2, 1))
    one.killed()
    one.take(Message("w", json.dumps(again).encode(), 3, 1))
    assert one.sums() == {"x": (float(sum(range(1, 200)) + 3000), 202)}


def test_a_number_of_the_whole_list(desk: Callable[..., Desk]) -> None:
    """`sequence_in = "message"`: the list has one number, and counts once whole."""
    one = desk(OF_LISTS)
    whole = {"n": 5, "boot": 1, "data": [{"t": 1, "x": 1}, {"t": 2, "x": 2}]}
    one.take(*[Message("w", json.dumps(whole | {"n": n}).encode(), n, 1) for n in (5, 5, 7)])
    assert one.sums() == {"x": (6.0, 4)}
    assert one.pipeline.identities.missing("w") == 1


def test_lines_put_together_otherwise_count_once(desk: Callable[..., Desk]) -> None:
    """A sender that failed sends again with other lines around: each line counts once, through kills too."""
    one = desk(LINES)
    chance = random.Random(5)
    lines = [f"m,host=h{n % 3} x={n} {1_600_000_000 + n}" for n in range(200)]
    sent = 0
    while sent < len(lines):
        begin, end = max(0, sent - chance.randrange(30)), min(len(lines), sent + chance.randrange(1, 20))
        batch = lines[begin:end]
        chance.shuffle(batch)
        one.take(Message("w", "\n".join(batch).encode(), 0, 0))
        sent = max(sent, end)
        if chance.random() < 0.2:
            one.killed()
    assert one.sums() == {"x": (float(sum(range(200))), 200)}


def test_lines_of_tags_become_streams_of_keys(desk: Callable[..., Desk]) -> None:
    """The key is a tag; the measurement may be one part of it."""
    one = desk({"topic": "w", "format": "line", "streams": {"v": "*.value"}, "time_format": "s",
                "key": "{payload.measurement}/{payload.tags.room}"})  # fmt: skip
    one.take(("w", b"temp,room=a value=1 1\ntemp,room=b value=2 1\nhumid,room=a value=3 1\ntemp value=4 1"))
    assert one.sums() == {"v/temp/a": (1.0, 1), "v/temp/b": (2.0, 1), "v/humid/a": (3.0, 1)}
    assert "tags.room (the key) is missing" in one.reasons()[0]
