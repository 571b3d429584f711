"""Messages that are taken together leave the state that they leave one by one, whatever stands between them."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from durable_agent import NOON, SECOND, configured
from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate_agent.messages import Message
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.record.recorder import Recorder
from sluicegate_agent.state import State

NUMBERED, PLANT, NAMED, LISTED = "line/numbered", "hall/+/made", "line/named", "line/listed"
BOOTED = "yard/+/said"
BARE = ["line/bare", "meter/1/bare", "meter/2/bare"]
SOURCES = [
    {"topic": NUMBERED, "streams": {"a": "a", "b": "b"}, "time": "t", "time_format": "us", "sequence": "n"},
    {"topic": PLANT, "streams": {"made": "v"}, "time": "t", "time_format": "ms", "sequence": "n"},
    {"topic": NAMED, "streams": {"c": "c"}, "time": "t", "time_format": "us", "sequence": "n", "epoch": "e"},
    {"topic": BOOTED, "streams": {"said": "v"}, "time": "t", "time_format": "us", "sequence": "n", "epoch": "e"},
    {"topic": LISTED, "format": "array", "streams": {"d": "a", "f": "b"}, "time": "t", "time_format": "us"},
    {"topic": BARE[0], "format": "number", "streams": {"g": ""}},
    {"topic": "meter/+/bare", "format": "number", "streams": {"metered": ""}},
    {"topic": "tank/+/list", "format": "array", "streams": {"filled": "a"}, "time": "t", "time_format": "us"},
]
TOPICS = [*BARE[:1] * 5, *BARE[1:], "hall/1/made", "hall/2/made", "nobody/reads"]
SENSORS = [*(f"hall/{number}/made" for number in range(5)), *(f"yard/{number}/said" for number in range(3)), NUMBERED]
LISTS = [LISTED] * 3 + ["tank/1/list", "tank/2/list"]
#: Most messages go on; some are repeats, ahead, behind, odd, late, in the future, of other topics or of no use.
MOVES = st.sampled_from(
    ["next"] * 12 + ["again", "ahead", "behind", "odd", "old", "future", "text", "list", "huge", "boot"]
)


def payloads(moves: list[tuple[str, str]]) -> list[tuple[str, bytes]]:
    """Topic and payload of each message of (move, topic)."""
    numbers: dict[str, int] = {}
    found = []
    for place, (move, topic) in enumerate(moves):
        n = numbers.get(topic, 0) + {"again": 0, "ahead": 3, "behind": -2}.get(move, 1)
        numbers[topic] = max(n, numbers.get(topic, 0))
        time = NOON + n * SECOND + {"old": -900 * SECOND, "future": 10**15}.get(move, 0)
        said: dict[str, Any] = {"n": max(n, 0), "t": time // 1000 if topic.startswith("hall") else time, "e": 1}
        said |= {"a": n / 8, "b": n % 7, "v": n % 5 / 4, "c": -n / 8}
        said |= {"odd": {"a": None, "v": "NA", "c": True}, "huge": {"a": 1e300}, "boot": {"e": place}}.get(move, {})
        listed = [said | {"t": time + place} for place in range(n % 4)] if topic in LISTS else said
        payload = {"text": b"junk", "list": json.dumps([said]).encode()}.get(move, json.dumps(listed).encode())
        if topic in BARE:
            bare = {"text": b"junk", "odd": b"NA", "huge": b"1e300", "list": b"1e999", "old": b" -7 "}
            payload = bare.get(move, str(n / 8).encode())
        found.append((topic, payload))
    return found


class Board:
    """An agent's inner half with a record, on a folder of its own."""

    def __init__(self, folder: Path, keys: dict[str, Any] | None = None) -> None:
        sources = [source | ({"keys": keys} if keys and "+" in source["topic"] else {}) for source in SOURCES]
        config = configured(folder, sources=sources, guard={"future": "1h"})
        self.state = State(config)
        self.pipeline = Pipeline(config, self.state, lambda: NOON, Recorder(config, self.state))
        self.pipeline.connected(session_present=True)

    def said(self) -> dict[str, Any]:
        """All that a start would find, after a commit."""
        self.pipeline.fold_next()
        acknowledged = self.pipeline.commit()
        tables: dict[str, Any] = {}
        named = "outbox", "window", "window_leaf", "window_run", "sequence", "identity", "held", "counter", "retained"
        for table in named:
            rows = self.state.store.connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall()  # noqa: S608
            tables[table] = [tuple(map(str, row)) for row in rows]
        letters = self.state.store.connection.execute("SELECT topic, reason, payload FROM dead_letter ORDER BY number")
        query = "SELECT value FROM meta WHERE key = 'deliveries'"
        tables["deliveries"] = self.state.store.connection.execute(query).fetchall()
        streams = self.state.store.connection.execute("SELECT id, name, row FROM stream ORDER BY id").fetchall()
        return tables | {"letters": letters.fetchall(), "streams": streams, "acknowledged": acknowledged}


@settings(max_examples=20, deadline=None)
@given(
    moves=st.lists(
        st.tuples(MOVES, st.sampled_from([NUMBERED] * 6 + LISTS + [NAMED, *TOPICS])),
        max_size=80,
    ),
    cuts=st.lists(st.integers(1, 40), min_size=1, max_size=8),
)
def test_together_as_one_by_one(moves: list[tuple[str, str]], cuts: list[int]) -> None:
    """The same rows, counters, dead letters and acknowledgements, however the messages are cut into batches."""
    messages = [
        Message(*each, place % 65535 + 1, qos, dup=move == "again", retain=move == "boot")
        for place, (each, (move, _)) in enumerate(zip(payloads(moves), moves, strict=True))
        for qos in [0 if move == "ahead" else 1]
    ]
    again = [place for place, (move, topic) in enumerate(moves) if move == "again" and topic in BARE and place]
    for place in again:  # the same message, under the same packet id
        messages[place] = messages[place - 1]._replace(dup=True)
    assert left(messages, cuts, together=True) == left(messages, cuts, together=False)


def left(messages: list[Message], cuts: list[int], *, together: bool, keys: dict[str, Any] | None = None) -> Any:
    """What each commit acknowledged, and all that a start would find after messages that came in such batches."""
    with tempfile.TemporaryDirectory() as folder:
        board = Board(Path(folder), keys)
        if not together:
            board.pipeline._runs.take = lambda *_: 0  # type: ignore[method-assign]
        at, cut, found = 0, 0, []
        while at < len(messages):
            batch = messages[at : at + cuts[cut % len(cuts)]]
            cut += 1
            while batch:
                taken = board.pipeline.accept_all(batch)
                batch, at = batch[taken:], at + taken
                if board.pipeline.has_enough:
                    found.append(board.pipeline.commit())
        said = board.said()
        # Since which commit nothing of an epoch may come again: no row has it, and a forgotten epoch counts once more.
        sources = board.pipeline.identities.sequences.items()
        last = {name: [epoch.last for chain in of._chains.values() for epoch in chain] for name, of in sources}
        board.state.close()
    return found, said, last


@settings(max_examples=30, deadline=None)
@given(
    moves=st.lists(st.tuples(MOVES, st.sampled_from(SENSORS)), max_size=120),
    cuts=st.lists(st.integers(1, 40), min_size=1, max_size=8),
    every=st.sampled_from([1, 7]),
)
def test_topics_in_turn_as_one_by_one(moves: list[tuple[str, str]], cuts: list[int], every: int) -> None:
    """The same where topics take turns, as the sensors of a plant do; every first or seventh message has QoS 0."""
    messages = [Message(*each, place + 1, int(place % every > 0)) for place, each in enumerate(payloads(moves))]
    assert left(messages, cuts, together=True) == left(messages, cuts, together=False)


@pytest.mark.parametrize("evict", ["oldest", "lru", "refuse"])
def test_a_sensor_that_made_room_is_asked_anew(evict: str) -> None:
    """There is room for two: what is known of a topic ends with its stream, also before the commit."""
    halls = [f"hall/{number}/made" for number in (0, 1, 0, 1, 0, 1, 2, 1, 0, 2, 0, 1, 1, 2, 0, 2, 1, 0)]
    messages = [Message(*each, place + 1, 1) for place, each in enumerate(payloads([("next", each) for each in halls]))]
    for cuts in ([2], [6], [18], [7, 11]):
        keys = {"most": 2, "evict": evict}
        assert left(messages, cuts, together=True, keys=keys) == left(messages, cuts, together=False, keys=keys)


def test_messages_of_many_topics_are_one_run(tmp_path: Path) -> None:
    """The first of each sensor takes a closer look, and later one that has no value: the others do not wait for it."""
    board = Board(tmp_path)
    halls = [f"hall/{number}/made" for number in range(6)] * 3
    moves = [("odd" if place == 15 else "next", each) for place, each in enumerate(halls)]
    messages = [Message(*each, place + 1, 1) for place, each in enumerate(payloads(moves))]
    assert board.pipeline.accept_all(messages[:6]) == 6
    lengths = noted(board)
    assert board.pipeline.accept_all(messages[6:12]) == 6
    assert lengths == [6]
    assert board.pipeline.accept_all(messages[12:]) == 6
    assert lengths[1:] == [3, 0, 1, 1], "of a half at a time that can be read; then few, and the last one by itself"
    board.pipeline.commit()
    assert board.state.counters["accepted"] == 17
    board.state.close()


def noted(board: Board) -> list[int]:
    """How many messages each run takes from now on."""
    lengths: list[int] = []
    take = board.pipeline._runs.take

    def taken(*asked: Any) -> int:
        lengths.append(take(*asked))
        return lengths[-1]

    board.pipeline._runs.take = taken  # type: ignore[method-assign]
    return lengths


def test_runs_are_as_long_as_a_commit_takes(tmp_path: Path) -> None:
    """Of messages that go on all are taken at once; one that does not by itself, and the rest at once again."""
    board = Board(tmp_path)
    lengths = noted(board)
    moves = [("next", NUMBERED)] * 10 + [("ahead", NUMBERED)] + [("next", NUMBERED)] * 15
    messages = [Message(*each, place + 1, 1) for place, each in enumerate(payloads(moves))]
    assert board.pipeline.accept_all(messages) == 20, "half of mqtt.receive_maximum"
    closer = "the first of a source, and what is ahead, take a closer look; few are read at once after one"
    assert lengths == [0, 1, 8, 0, 1, 8], closer
    board.pipeline.commit()
    assert board.pipeline.accept_all(messages[20:]) == 6
    assert lengths[6:] == [6]
    board.state.close()


@pytest.mark.parametrize("topic", [NUMBERED, NAMED, "hall/1/made"])
@pytest.mark.parametrize("odd", [b"[]", b'[{"n": 2}]', b"7", b'"e"', b"null", b"true"])
def test_json_that_is_no_object_is_refused_and_ends_nothing(tmp_path: Path, topic: str, odd: bytes) -> None:
    """As the first of a batch, and in the middle of one: those beside it count."""
    board = Board(tmp_path)
    payload = [said for _, said in payloads([("next", topic)] * 4)]
    for batch in ([payload[0]], [odd, payload[1]], [payload[2], odd, payload[3]]):
        messages = [Message(topic, said, place + 1, 1) for place, said in enumerate(batch)]
        while messages:
            messages = messages[board.pipeline.accept_all(messages) :]
        board.pipeline.commit()
    counters = board.state.counters
    assert (counters["accepted"], counters["refused.unreadable"]) == (8 if topic == NUMBERED else 4, 2)
    board.state.close()
