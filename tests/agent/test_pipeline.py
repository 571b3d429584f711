"""From message to commit: each reading counts once, whatever the message, the clock, the disk or the broker does."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from durable_agent import BARE, NOON, SECOND, SEQUENCED, bare, configured, sequenced, timed

from sluicegate.format.bucket import Bucket
from sluicegate_agent import dead_letters, status
from sluicegate_agent.config import Config
from sluicegate_agent.identity.clock import CLOCK_NEVER_SET
from sluicegate_agent.messages import Message
from sluicegate_agent.pipeline import BACKLOG, Pipeline
from sluicegate_agent.state import State


class Board:
    """An agent's inner half on a folder, with a clock that stands at noon."""

    def __init__(self, folder: Path, **tables: Any) -> None:
        self.config: Config = configured(folder, **tables)
        self.now = NOON
        self.state = State(self.config)
        self.pipeline = Pipeline(self.config, self.state, clock=lambda: self.now)

    def take(self, *messages: Message) -> list[int]:
        """Accept and commit; what may be acknowledged."""
        for message in messages:
            self.pipeline.accept(message)
        return self.pipeline.commit()

    def restart(self) -> None:
        """As after kill -9: memory is gone, what was committed is there."""
        self.state.close()
        self.state = State(self.config)
        self.pipeline = Pipeline(self.config, self.state, clock=lambda: self.now)

    def accepted(self) -> dict[str, int]:
        """Readings counted, by stream."""
        return {name: stream.accepted for name, stream in self.state.streams.items() if stream.accepted}

    def outbox(self, stream: str) -> list[Bucket]:
        """A stream's rows, with the open bucket closed."""
        self.pipeline.flush()
        self.pipeline.commit()
        query = "SELECT bucket FROM outbox WHERE stream = ? ORDER BY first"
        number = self.state.streams[stream].number
        return [Bucket.unpack(row) for (row,) in self.state.store.connection.execute(query, (number,))]

    def letters(self) -> list[dead_letters.DeadLetter]:
        """The dead letters, newest first."""
        return dead_letters.read(self.state.store.connection)


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Callable[..., Board]]:
    """Makes a board; closes it."""
    made: list[Board] = []

    def make(**tables: Any) -> Board:
        made.append(Board(tmp_path, **tables))
        return made[-1]

    yield make
    for one in made:
        one.state.close()


def test_a_turn_ends_when_the_commit_is_due(board: Callable[..., Board], monkeypatch: pytest.MonkeyPatch) -> None:
    """Not up to a quarter of `commit.every` later; without a message nothing is due."""
    now = [100.0]
    monkeypatch.setattr("sluicegate_agent.pipeline.time.monotonic", lambda: now[0])
    one = board()
    every = one.config.commit.every.seconds
    assert one.pipeline.left(now[0]) == float("inf")
    one.pipeline.accept(bare(1, 1))
    assert one.pipeline.left(now[0] + every / 4) == pytest.approx(every * 3 / 4)
    assert not one.pipeline.due(now[0] + every / 2)
    assert one.pipeline.left(now[0] + 2 * every) == 0
    assert one.pipeline.due(now[0] + every)
    one.pipeline.commit()
    assert one.pipeline.left(now[0]) == float("inf")


def test_packet_ids_come_after_the_commit_in_order(board: Callable[..., Board]) -> None:
    """Everything with QoS 1 is acknowledged once, duplicates and dead letters too, in the order of arrival."""
    one = board()
    messages = [sequenced(1, 7), sequenced(1, 8), Message(BARE, b"no number", 9, 1), bare(1, 0, qos=0), timed(1, 3)]
    assert one.take(*messages) == [7, 8, 9, 3]
    assert one.take() == []
    assert one.pipeline.pending == 0


def test_what_was_committed_and_not_acknowledged_is_known_when_it_comes_again(board: Callable[..., Board]) -> None:
    """The process dies between commit and PUBACK: each kind of identity knows the redelivery."""
    one = board()
    messages = [sequenced(1, 101), timed(1, 102), bare(4, 103), bare(4, 104), sequenced(2, 105)]
    one.take(*messages)
    before = one.accepted()
    one.restart()
    assert one.take(*(message._replace(dup=True) for message in messages)) == [101, 102, 103, 104, 105]
    assert one.accepted() == before == {"level": 2, "flow": 2, "heat": 1, "door": 2}
    assert one.state.counters["duplicates"] == 5
    assert one.state.counters["duplicate_readings"] == 7


def test_what_was_not_committed_comes_again_and_counts(board: Callable[..., Board]) -> None:
    """The process dies before the commit: nothing of it is left, so the redelivery is new."""
    one = board()
    one.pipeline.accept(sequenced(1, 1))
    one.restart()
    assert one.accepted() == {}
    one.take(sequenced(1, 1))
    assert one.accepted() == {"level": 1, "flow": 1}
    assert one.state.counters["duplicates"] == 0


def test_a_new_connection_forgets_packet_ids_and_not_readings(board: Callable[..., Board]) -> None:
    """Ids of the old connection are never acknowledged on the new one; what waits is known when it comes again."""
    one = board()
    for message in (sequenced(1, 1), bare(4, 2)):
        one.pipeline.accept(message)
    one.pipeline.connected(session_present=True)
    assert one.take(bare(4, 2)._replace(dup=True)) == [2]
    assert one.accepted() == {"level": 1, "flow": 1, "door": 1}


def test_losses_are_told_by_the_next_bucket_of_each_stream(board: Callable[..., Board]) -> None:
    """A lost message is a gap in every stream of its source, also in one whose value was missing when it showed."""
    one = board()
    one.take(sequenced(1, 1), sequenced(4, 2, flow=None), sequenced(5, 3), sequenced(3, 4))
    assert sum(bucket.gap for bucket in one.outbox("level")) == 1
    assert sum(bucket.gap for bucket in one.outbox("flow")) == 1
    assert [bucket.n for bucket in one.outbox("level")] == [3, 1], "the late one has a bucket of its own"
    assert one.state.counters["absent"] == 1


def test_too_old_a_number_is_a_dead_letter(board: Callable[..., Board]) -> None:
    """Beyond the horizon it cannot be told whether it was counted: refused, counted, kept, acknowledged."""
    one = board(identity={"horizon": 50})
    one.take(sequenced(1, 1), sequenced(51, 2), sequenced(100, 2))
    assert one.take(sequenced(50, 3)) == [3]
    assert one.accepted()["level"] == 3
    assert one.state.counters["refused.beyond_horizon"] == 1
    assert "identity.horizon" in one.letters()[0].reason


@pytest.mark.parametrize(
    ("message", "counter"),
    [
        (Message(SEQUENCED, b"\xff\xfe{", 1, 1), "unreadable"),
        (Message("somewhere/else", b"1", 1, 1), "unknown_topic"),
        (sequenced(1, 1, t=NOON + 7200 * SECOND), "future"),
        (sequenced(1, 1, level=1e300), "value"),
        (sequenced(1, 1, level="warm"), "value"),
    ],
)
def test_what_cannot_count_is_kept_with_its_reason(board: Callable[..., Board], message: Message, counter: str) -> None:
    """Acknowledged, counted by reason, kept with topic, reason and first bytes; the rest of a message still counts."""
    one = board(guard={"future": "1h"}, held={"rows": 0})
    assert one.take(message) == [1]
    letter = one.letters()[0]
    assert one.state.counters[f"refused.{counter}"] >= 1
    assert (letter.topic, letter.payload, letter.size) == (message.topic, message.payload[:16], len(message.payload))
    assert letter.reason
    assert one.accepted() == ({"flow": 1} if counter == "value" else {})


def test_dead_letters_are_a_ring(board: Callable[..., Board]) -> None:
    """Of a flood of rubbish the newest are kept, over a restart too, and all are counted."""
    one = board()
    for number in range(35):
        one.pipeline.accept(Message(BARE, f"rubbish {number}".encode(), 1, 1))
        if number % 9 == 8:
            one.pipeline.commit()
            one.restart()
    one.pipeline.commit()
    assert [letter.payload for letter in one.letters()] == [f"rubbish {n}".encode() for n in range(34, 24, -1)]
    assert one.state.counters["refused.unreadable"] == 35


def test_a_clock_that_was_never_set_judges_nothing(board: Callable[..., Board]) -> None:
    """A board without a battery starts in 1970: its readings count, though all are later than its clock."""
    one = board(guard={"future": "1h"})
    one.now = CLOCK_NEVER_SET - 1
    one.take(timed(0, 1))
    assert one.accepted() == {"heat": 1}


def test_a_commit_is_due_by_number_or_by_time(board: Callable[..., Board]) -> None:
    """At half of Receive Maximum, or when the oldest has waited `commit.every`; never for nothing."""
    one = board(commit={"every": "10s"})
    now = time.monotonic()
    assert not one.pipeline.due(now + 1000)
    one.pipeline.accept(bare(1, 1))
    assert not one.pipeline.due(now)
    assert one.pipeline.due(now + 11)
    for packet in range(2, 21):
        one.pipeline.accept(bare(1, packet))
    assert one.pipeline.due(now)


def test_a_stream_that_was_taken_out_is_still_handed_on(board: Callable[..., Board], tmp_path: Path) -> None:
    """Its open bucket closes, its rows wait for the target, its windows are gone."""
    one = board()
    one.take(timed(1, 1), bare(5, 2))
    one.state.close()
    kept = [source for source in one.config.sources if source.topic != BARE]
    raw = [{"topic": s.topic, "streams": s.streams, "time": s.time, "time_format": "us"} for s in kept]
    two = board(source=raw)
    two.pipeline.commit()
    assert two.state.outbox.rows == 1
    assert [bucket.n for bucket in two.outbox("door")] == [1]
    assert "door" not in {window["stream"] for window in two.state.status()["windows"]}


def test_a_window_whose_question_changed_begins_anew(board: Callable[..., Board]) -> None:
    """The same name over another length is another window; the others go on."""
    one = board()
    one.take(*(timed(minute, minute + 1) for minute in range(4)))
    one.state.close()
    windows = [
        {"name": "recent", "policy": {"time": "9min"}, "aggregate": ["count"], "buckets": 6},
        {"name": "last9", "policy": {"count": 9}, "aggregate": ["min", "first"], "buckets": 0},
    ]
    two = board(window=windows)
    assert two.pipeline.windows["heat"][0].count == 0
    assert two.pipeline.windows["heat"][1].count == 4


def test_answers_are_those_of_the_windows_that_took_a_reading(board: Callable[..., Board]) -> None:
    """One result a window and aggregate, once; value, bounds and count agree with the readings."""
    one = board()
    one.take(*(timed(minute, minute + 1, value=float(minute)) for minute in range(4)))
    found = {(r.window, r.aggregate): r for r in one.pipeline.results()}
    assert found["recent", "sum"].value == 6.0
    assert found["recent", "max"].exact
    assert (found["last9", "first"].value, found["last9", "first"].count, found["last9", "first"].ordinal) == (
        0.0,
        4,
        3,
    )
    assert found["last9", "first"].time_us == NOON + 180 * SECOND
    assert len(found) == 13
    assert one.pipeline.results() == []


def batch(start: int) -> list[Message]:
    """Twelve messages of all kinds, enough for level evictions and a squeeze over a few batches."""
    numbers = range(start, start + 4)
    return [m for n in numbers for m in (sequenced(n, 3 * n + 1), timed(n, 3 * n + 2), bare(n % 3, 3 * n + 3))]


def content(one: Board) -> dict[str, Any]:
    """All tables but the incarnation."""
    tables = ("stream", "outbox", "window", "window_leaf", "sequence", "identity", "counter")
    found = {t: sorted(one.state.store.connection.execute(f"SELECT * FROM {t}")) for t in tables}  # noqa: S608
    found["stream"] = [row[:3] for row in found["stream"]]
    return found | {
        "answers": [str(r) for w in one.pipeline.windows["heat"] for r in one.pipeline.answers("heat", w.name)]
    }


def test_memory_is_bounded_while_commits_fail(board: Callable[..., Board]) -> None:
    """Beyond twice Receive Maximum nothing more is taken, nor acknowledged later: the broker still has it."""
    one = board()
    most = BACKLOG * 40
    for minute in range(most + 5):
        one.pipeline.accept(timed(minute, minute + 1))
    assert one.pipeline.is_full
    assert one.pipeline.commit() == list(range(1, most + 1))
    assert one.accepted() == {"heat": most}
    assert one.state.counters["refused.backlog"] == 5


def test_the_last_readings_of_a_silent_stream_are_handed_on(board: Callable[..., Board]) -> None:
    """Its bucket is not full and never will be: after `outbox.chunk_age` without a reading it closes."""
    one = board(outbox={"chunk_age": "10s"})
    one.take(timed(1, 1))
    now = time.monotonic()
    assert not one.pipeline.due(now + 9)
    assert one.pipeline.due(now + 11)
    assert one.pipeline.due(now + 11), "until it is committed"
    assert one.pipeline.commit() == []
    assert one.state.outbox.rows == 1
    assert not one.pipeline.due(now + 100)


def test_a_silent_stream_is_noticed_beside_a_busy_one(board: Callable[..., Board]) -> None:
    """Also where messages always wait for a commit when the agent looks."""
    one = board(outbox={"chunk_age": "10s"})
    one.take(timed(1, 1))
    now = time.monotonic()
    for second in range(15):
        one.pipeline.accept(bare(second, second + 2))
        one.pipeline.due(now + second)
        one.pipeline.commit()
    assert one.state.outbox.lanes[one.state.streams["heat"].number].firsts.tolist() == [0]


def test_status_tells_what_is_there(board: Callable[..., Board]) -> None:
    """Streams, windows, outbox, counters and dead letters; all of it plain JSON."""
    one = board()
    one.take(sequenced(1, 1), sequenced(3, 2), timed(5, 3), Message(BARE, b"\xff", 4, 1))
    found = json.loads(json.dumps(one.state.status()))
    assert found["streams"]["level"]["accepted"] == 2
    assert found["streams"]["level"]["missing"] == 1
    assert found["streams"]["heat"]["newest_us"] == NOON + 300 * SECOND
    assert found["streams"]["door"]["newest_us"] is None
    kept = [(window["stream"], window["window"], window["bucket_limit"]) for window in found["windows"]]
    assert ("heat", "last9", 0) in kept
    assert ("heat", "peak", 7) in kept
    assert found["outbox"]["rows"] == 0
    assert found["counters"]["messages"] == 4
    assert found["dead_letters"][0]["payload"] == "\\xff"


def test_status_shows_what_decides_and_how_many_buckets_there_may_be_now(board: Callable[..., Board]) -> None:
    """Each window's policy with its hop, its histograms, and its limit, squeezed or not."""
    one = board()
    one.take(*(timed(i / 6, i + 1, i % 5) for i in range(30)))
    one.pipeline.squeeze_windows(lambda buckets: max(4, buckets // 2))
    one.pipeline.commit()
    lines = status.show(status.gather(one.config)).splitlines()
    hopping = next(line.split() for line in lines if line.lstrip().startswith("hopping") and " heat " in line)
    peak = next(line.split() for line in lines if line.lstrip().startswith("peak") and " heat " in line)
    last = next(line.split() for line in lines if line.lstrip().startswith("last9") and " heat " in line)
    assert " ".join(hopping[2:]).startswith("mean, sum over 30.0 s by 10.0 s in 9 buckets sum-like, hop")
    assert " ".join(peak[2:]).startswith("max over 2.0 min up to the max in 7 buckets max-like")
    merged = next(line.split() for line in lines if line.lstrip().startswith("merged") and " heat " in line)
    assert " ".join(merged[2:]).startswith("mean, min over 20.0 min in 5 buckets merged by pairs")
    assert [row[-3] for row in (hopping, peak, last)] == ["4", "4", "-"]


def test_a_reading_that_one_window_cannot_take_counts_in_all_others(
    board: Callable[..., Board], caplog: pytest.LogCaptureFixture
) -> None:
    """A geometric mean of 0 or less: refused there, with counter and reason, once; outbox and other windows have it."""
    windows = [
        {"name": "growth", "policy": {"count": 9}, "aggregate": "geometric_mean", "buckets": 0},
        {"name": "growth_in_buckets", "policy": {"time": "1d"}, "aggregate": "geometric_mean", "buckets": 4},
        {"name": "plain", "policy": {"count": 9}, "aggregate": ["count", "sum"], "buckets": 0},
    ]
    one = board(window=windows)
    values = (2.0, -1.0, 8.0, 0.0, 4.0)
    one.take(*(timed(i, i + 1, value) for i, value in enumerate(values)))
    for name in ("growth", "growth_in_buckets"):
        (answer,) = one.pipeline.answers("heat", name)
        assert answer.value == pytest.approx(4.0)
        assert answer.low <= 4.0 <= answer.high
        assert answer.count == 3
    plain = {answer.aggregate: answer.value for answer in one.pipeline.answers("heat", "plain")}
    assert plain == {"count": 5, "sum": 13.0}
    assert one.accepted() == {"heat": 5}
    assert sum(bucket.n for bucket in one.outbox("heat")) == 5
    assert one.state.counters.as_dict()["refused.window"] == 4
    reasons = [record.getMessage() for record in caplog.records if "refused" in record.getMessage()]
    assert len(reasons) == 2
    assert "geometric mean" in reasons[0]
    one.restart()
    (answer,) = one.pipeline.answers("heat", "growth")
    assert answer.value == pytest.approx(4.0)


def test_a_renamed_topic_takes_no_known_loss_back(board: Callable[..., Board]) -> None:
    """Renamed, without its number, renamed back: the gaps told stay told, what was not yet told is told, no more."""

    def sources(topic: str, **numbered: Any) -> list[dict[str, Any]]:
        return [{"topic": topic, "streams": {"level": "level", "flow": "flow"}, **numbered}]

    def told(one: Board) -> int:
        return sum(bucket.gap for bucket in one.outbox("level"))

    def message(topic: str, number: int) -> Message:
        return Message(topic, json.dumps({"n": number, "level": number, "flow": number}).encode(), number + 1, 1)

    one = board(source=sources("old", sequence="n"))
    one.take(message("old", 0), message("old", 16))
    one.take(Message("old", b'{"n": 20, "flow": 1}', 3, 1))  # three more are lost: this stream does not know of it yet
    assert told(one) == 15
    for topic, more in (("new", {"sequence": "n"}), ("new", {}), ("old", {"sequence": "n"})):
        one.state.close()
        one = board(source=sources(topic, **more))
        one.take(message(topic, 21), message(topic, 22))
        assert told(one) == 18, (topic, more)
        assert one.state.status()["streams"]["level"]["missing"] == 18
    one.take(message("old", 24))
    assert told(one) == 19
