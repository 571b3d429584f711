"""Placing promises: each reading once, none of a second board dropped, and what is left out is known to be missing."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Any

import pyarrow as pa
import pytest
from thorough import number

from sluicegate.format.bucket import Bucket, Builder, merge
from sluicegate.format.chunk import Chunk, encode
from sluicegate_cloud import alarms
from sluicegate_cloud.documents import Found, bucket_rows, document_batches
from sluicegate_cloud.lines.placing import ORDER, place
from sluicegate_cloud.schema import CONFLICT, COPY, OVERLAP, USED

SECOND, CENTER = 1_000_000, 20.0
A, B = "a" * 32, "b" * 32
Reading = tuple[int, float]
Row = dict[str, Any]


def readings(seed: int, count: int, since: int = 0) -> list[Reading]:
    """A board's readings, one about each second, whole tenths of a degree: their sums are exact."""
    rng, now, out = random.Random(seed), since, []
    for _ in range(count):
        now += SECOND + rng.randrange(SECOND)
        out.append((now, 20.0 + rng.randrange(-80, 80) / 8))
    return out


@dataclass
class Board:
    """What a board took in one incarnation, by ordinal, and the documents that it made of it."""

    held: list[Reading]
    key: str | None = None
    incarnation: str = "0" * 16
    documents: list[bytes] = field(default_factory=list)

    def write(self, edges: list[int], cuts: set[int], health: dict[str, Any] | None = None) -> None:
        """Documents between each two `edges`; buckets are closed at edges and `cuts`."""
        for begin, end in pairwise(edges):
            buckets = buckets_of(self.held, begin, end, cuts)
            chunk = Chunk("d", "s", self.incarnation, CENTER, buckets, [None] * len(buckets), health, self.key)
            self.documents.append(encode(chunk))


def buckets_of(held: list[Reading], begin: int, end: int, cuts: set[int]) -> list[Bucket]:
    """The buckets of the readings begin … end − 1."""
    builder, out = Builder(CENTER, begin), []
    for at in range(begin, end):
        builder.add(held[at][1], held[at][0])
        if at + 1 in cuts or at + 1 == end:
            out.append(builder.close())
    return out


def placed(*documents: list[bytes], seed: int = 0) -> list[Row]:
    """The rows of the catalogue, whatever the batches are that they come in."""
    rng = random.Random(seed)
    found = [Found(f"{i:04d}.json", lambda data=data: data) for i, data in enumerate(chain(*documents))]
    table = pa.Table.from_batches(list(document_batches(found)))
    by = [(name.removesuffix(" desc"), "descending" if name.endswith("desc") else "ascending") for name in ORDER]
    table = table.take(pa.array(rng.sample(range(table.num_rows), table.num_rows))).sort_by(by).combine_chunks()
    whole, batches, at = table.to_batches()[0], [], 0
    while at < whole.num_rows:
        step = rng.randrange(1, 6)
        batches.append(whole.slice(at, step))
        at += step
    return [row for batch in place(batches) for row in batch.to_pylist()]


def used_buckets(rows: list[Row]) -> list[Row]:
    """The buckets that are merged."""
    out: list[Row] = []
    for row in rows:
        if row["fate"] == USED:
            schema = {
                name: pa.array([row[name]]) for name in ("device", "stream", "incarnation", "key", "center", "id")
            }
            schema |= {"buckets": pa.array([row["buckets"]]), "packed": pa.array([row["packed"]], pa.binary())}
            out += bucket_rows(pa.RecordBatch.from_pydict(schema)).to_pylist()
    return out


def merged(rows: list[Row], *boards: Board) -> Counter[tuple[int, Reading]]:
    """Which readings are merged, and how often: each bucket is found in the board that wrote it, by times and sum."""
    found: Counter[tuple[int, Reading]] = Counter()
    for bucket in used_buckets(rows):
        run = range(bucket["first"], bucket["first"] + bucket["n"])
        for board in boards:
            mine = board.held[run.start : run.stop]
            total = sum(x - CENTER for _, x in mine)
            times = [time for time, _ in mine[:: max(len(mine) - 1, 1)]]
            if (
                len(mine) == bucket["n"]
                and {*times} == {bucket["t_first"], bucket["t_last"]}
                and total == bucket["total"]
            ):
                found.update((at, board.held[at]) for at in run)
                break
        else:
            raise AssertionError(bucket)
    return found


def existing(*boards: Board) -> set[tuple[int, Reading]]:
    """Every reading in any document."""
    out = set()
    for board in boards:
        for data in board.documents:
            head = json.loads(data)
            out |= {(at, board.held[at]) for at in range(head["first"], head["first"] + head["readings"])}
    return out


def cuts_of(rng: random.Random, count: int, size: int) -> set[int]:
    """Where buckets close."""
    out, at = set(), 0
    while at < count:
        at += rng.randrange(1, size)
        out.add(at)
    return out


def edges_of(rng: random.Random, cuts: set[int], count: int) -> list[int]:
    """Where documents end: at edges of buckets."""
    inner = [cut for cut in sorted(cuts) if cut < count and rng.random() < 0.25]
    return [0, *inner, count]


def test_what_is_left_out_covers_nothing() -> None:
    """Seen with a cloned card: of A [0, 100), B [50, 150), A [100, 200), B [150, 250) … A's are all used."""
    a, b = Board(readings(1, 1_000)), Board(readings(2, 1_050))
    a.write([*range(0, 1_001, 100)], set(range(0, 2_000, 10)))
    b.write([*range(50, 1_051, 100)], set(range(0, 2_000, 10)))
    rows = placed(a.documents, b.documents)
    assert Counter(row["fate"] for row in rows) == {USED: 20}
    assert sum(row["readings"] for row in rows) == 1_050
    assert sum(row["lost"] for row in rows) == sum(row["hole"] for row in rows) == 950


def test_what_another_board_with_the_same_readings_has_sent_is_not_missing() -> None:
    """B goes on from what A had by then: what is before its document is A's, though its own last one ended earlier."""
    before = readings(1, 60)
    a, b = (Board(before + readings(seed, 40, before[-1][0]), key) for seed, key in ((2, A), (3, B)))
    cuts = {*range(0, 101, 10)}
    a.write([0, 20, 60, 100], cuts)
    b.write([0, 20], cuts)
    b.write([40, 100], cuts)
    rows = placed(a.documents, b.documents)
    assert merged(rows, a, b) == Counter(existing(a, b))
    assert sum(row["hole"] for row in rows) == 0


@pytest.mark.parametrize("seed", range(2, 6))
def test_what_is_left_out_may_come_again_with_a_key(seed: int) -> None:
    """Of nobody's key it may be A's readings once more; with B's it counts, whichever of the two is looked at first."""
    a, b = Board(readings(1, 100), A), Board(readings(seed, 100))
    a.write([0, 100], {50})
    b.write([50, 100], set())
    b.key = B
    b.write([50, 100], set())
    rows = placed(a.documents, b.documents)
    assert Counter(row["fate"] for row in rows) == {USED: 2, COPY: 1}
    assert merged(rows, a, b) == Counter(existing(a, b))


def test_a_cloned_card_without_keys_is_told() -> None:
    """4,096 readings taken, of which half are one board's after the copy: they are missing, not forgotten."""
    before = readings(1, 1_024)
    a, b = (Board(before + readings(seed, 1_536, before[-1][0])) for seed in (2, 3))
    cuts = {*range(0, 2_561, 32)}
    a.write([*range(0, 2_561, 256)], cuts)
    b.write([0, 512, 1_024, *range(1_184, 2_561, 344)], cuts | {*range(1_184, 2_561, 344)})
    rows = placed(a.documents, b.documents)
    used = used_buckets(rows)
    assert sum(bucket["n"] - bucket["doubt"] for bucket in used) == 2_560
    distinct = len(merged(rows, a, b))
    assert len(existing(a, b)) - distinct == sum(row["lost"] for row in rows) > 1_300


@pytest.mark.parametrize("seed", range(number(60, 25)))
def test_two_boards_without_keys_lose_nothing_in_silence(seed: int) -> None:
    """Whatever their edges: each ordinal once, and every reading of any document is merged or missing."""
    rng = random.Random(seed)
    parting = rng.randrange(0, 120)
    before = readings(seed, parting)
    a, b = (Board(before + readings(seed + n, 200 - parting, before[-1][0] if before else 0)) for n in (1_000, 2_000))
    cuts = cuts_of(rng, 200, rng.choice([2, 6]))
    for board in (a, b):
        merges = rng.choice([0.0, 0.0, 0.5])  # each board's outbox makes one bucket of several as it has to
        mine = {cut for cut in cuts if cut <= parting and rng.random() >= merges}
        mine |= {cut for cut in cuts_of(rng, 200, 6) if cut > parting}
        board.write(edges_of(rng, mine, 200), mine)
    rows = placed(a.documents, b.documents, seed=seed)
    found = merged(rows, a, b)
    ordinals = Counter({at: 0 for at, _ in found})
    for (at, _), often in found.items():
        ordinals[at] += often
    assert sorted(ordinals) == list(range(200))
    assert sum(ordinals.values()) - 200 <= sum(bucket["doubt"] for bucket in used_buckets(rows)) <= 90
    there, missing = existing(a, b), sum(row["hole"] for row in rows)
    assert len(there) <= len(found) + missing <= len(there) + 40  # a lump over two documents' edge may count as lost
    assert all(row["lost"] > 0 for row in rows if row["fate"] in (OVERLAP, CONFLICT))


@pytest.mark.parametrize("seed", range(number(60, 25)))
def test_two_boards_with_keys_both_count(seed: int) -> None:
    """Nothing of either is dropped; what both have from before counts once, in doubt where a bucket goes over it."""
    rng = random.Random(seed)
    parting = rng.randrange(0, 120)
    before = readings(seed, parting)
    a, b = (
        Board(before + readings(seed + n, 200 - parting, before[-1][0] if before else 0), key)
        for n, key in ((1_000, A), (2_000, B))
    )
    cuts = cuts_of(rng, 200, 6)
    merges = rng.choice([0.0, 0.5])
    for board in (a, b):
        mine = {cut for cut in cuts if cut <= parting and rng.random() >= merges}
        mine |= {cut for cut in cuts_of(rng, 200, 6) if cut > parting}
        board.write(edges_of(rng, mine, 200), mine, {"uptime_s": rng.randrange(9)})
    rows = placed(a.documents, b.documents, seed=seed)
    assert {row["fate"] for row in rows} <= {USED, COPY}
    assert sum(row["hole"] for row in rows) == 0
    found = merged(rows, a, b)
    there = existing(a, b)
    assert set(found) == there
    twice = sum(found.values()) - len(there)
    doubt = sum(bucket["doubt"] for bucket in used_buckets(rows))
    assert twice <= doubt
    assert doubt <= (parting if merges else 0) + 20


def test_a_card_copied_between_two_buckets_counts_each_reading_once() -> None:
    """The same documents of before from both boards are copies, the same buckets in other documents count once."""
    before = readings(1, 96)
    a, b = (Board(before + readings(seed, 64, before[-1][0]), key) for seed, key in ((2, A), (3, B)))
    a.write([0, 32, 96, 160], {*range(0, 161, 16)})
    b.write([0, 32, 64, 160], {*range(0, 161, 16)})
    rows = placed(a.documents, b.documents)
    assert Counter(row["fate"] for row in rows) == {USED: 4, COPY: 2}
    found = merged(rows, a, b)
    assert (sum(found.values()), max(found.values())) == (96 + 64 + 64, 1)
    assert sum(bucket["doubt"] for bucket in used_buckets(rows)) == 16  # where they part, in the first bucket after


def test_buckets_that_were_merged_are_known_again() -> None:
    """One board's outbox merged pairs of buckets from before: the same readings all the same."""
    before = readings(4, 128)
    a, b = (Board(before + readings(seed, 32, before[-1][0]), key) for seed, key in ((5, A), (6, B)))
    a.write([0, 128, 160], {*range(0, 161, 8)})
    fine = buckets_of(b.held, 0, 128, {*range(0, 161, 8)})
    coarse = [merge(*fine[i : i + 2]) for i in range(0, 16, 2)]
    b.documents = [encode(Chunk("d", "s", "0" * 16, CENTER, coarse, [None] * 8, None, B))]
    b.write([128, 160], {*range(0, 161, 8)})
    rows = placed(a.documents, b.documents)
    assert sum(row["readings"] for row in rows if row["fate"] == USED) == 128 + 32 + 32
    assert sum(row["hole"] for row in rows) == 0


def test_incarnations_of_their_own_are_both_used() -> None:
    """The agent begins a new incarnation where its state was copied: the ordinals begin anew, and all counts."""
    a, b = Board(readings(1, 100), A), Board(readings(2, 100), B, "0" * 15 + "1")
    a.write([0, 50, 100], {*range(0, 101, 10)})
    b.write([0, 50, 100], {*range(0, 101, 10)})
    rows = placed(a.documents, b.documents)
    assert [row["fate"] for row in rows] == [USED] * 4


def test_versions_of_one_id_are_told_by_what_they_say() -> None:
    """Sealed again with other health: a copy. Other readings: the longer counts, what only the other has is missing."""
    a, b = Board(readings(1, 60)), Board(readings(1, 40) + readings(9, 10, 10**9))
    cuts = {*range(0, 61, 10)}
    a.write([0, 60], cuts, {"uptime_s": 1})
    a.write([0, 60], cuts, {"uptime_s": 2})
    b.write([0, 50], cuts)
    rows = placed(a.documents, b.documents)
    assert Counter(row["fate"] for row in rows) == {USED: 1, COPY: 1, CONFLICT: 1}
    assert [row["hole"] for row in rows if row["fate"] == CONFLICT] == [10]


def test_a_board_that_was_updated_goes_on() -> None:
    """Documents without a key, then with one: one board, and an overlap is one as ever."""
    board, cuts = Board(readings(1, 100)), {*range(0, 101, 10)}
    board.write([0, 40], cuts)
    board.key = A
    board.write([40, 100], cuts)
    other = Board(readings(1, 30) + readings(7, 40, 10**9), A)
    other.write([50, 70], cuts)
    rows = placed(board.documents, other.documents)
    assert Counter(row["fate"] for row in rows) == {USED: 2, OVERLAP: 1}
    assert [row["lost"] for row in rows if row["fate"] == OVERLAP] == [20]


def test_a_state_that_was_copied_goes_on_in_the_old_incarnation_until_it_is_sent() -> None:
    """As the agent does: the copy closes its open bucket early and sends what waited under the old incarnation and key.

    In one larger document or in small ones, before or after the other board's: each reading once, none missing.
    """
    a = Board(readings(1, 200), A)
    cuts = {*range(0, 201, 16)}
    for edges in ([0, 90], [0, 32, 64, 90], [0, 64, 90]):
        for others in ([0, 64, 128, 192, 200], [0, 128, 200], [0, 200]):
            a.documents = []
            a.write(others, cuts)
            copy = Board(a.held, A)
            copy.write(edges, cuts)
            rows = placed(a.documents, copy.documents, seed=len(edges))
            assert sum(row["lost"] for row in rows) == sum(row["hole"] for row in rows) == 0, (edges, others)
            assert not {row["fate"] for row in rows} & {OVERLAP, CONFLICT}
            found, doubt = merged(rows, a, copy), sum(bucket["doubt"] for bucket in used_buckets(rows))
            assert len(found) == 200
            assert sum(found.values()) - 200 == doubt <= 16


def test_what_two_documents_leave_out_is_missing_once() -> None:
    """Whole documents left out, and the beginnings of some: a reading that none in use has is told by the first."""
    a, b, cuts = Board(readings(1, 100)), Board(readings(2, 130)), {*range(0, 131, 10)}
    a.write([0, 100], cuts)
    for begin, end in ((50, 100), (60, 90)):
        b.write([begin, end], cuts)
    assert sum(row["lost"] for row in placed(a.documents, b.documents)) == 50
    for begin, end in ((20, 110), (40, 120)):
        b.write([begin, end], cuts)
    rows = placed(a.documents, b.documents)
    assert sum(row["lost"] for row in rows) == 80
    assert sum(row["readings"] for row in rows if row["fate"] == USED) == 120


def test_what_cannot_be_within_a_bucket_is_no_repeat_of_it() -> None:
    """Within its ordinals, but not its times, or not its values, or with another first or last reading: missing."""
    board = Board(readings(1, 100))
    board.write([0, 100], set())
    earlier, later = (Board([(time + by, x) for time, x in board.held]) for by in (-(10**12), 10**12))
    high = Board([(time, x + 1e6) for time, x in board.held])
    first = Board([(board.held[0][0], 20.0 if board.held[0][1] != 20.0 else 20.5), *board.held[1:]])
    last = Board([*board.held[:-1], (board.held[-1][0], 20.0 if board.held[-1][1] != 20.0 else 20.5)])
    cases = [(earlier, 40, 60), (later, 40, 60), (high, 40, 60), (first, 0, 20), (last, 80, 100)]
    for other, begin, end in cases:
        other.write([begin, end], set())
        assert sum(row["lost"] for row in placed(board.documents, other.documents)) == 20
    within = Board(board.held)
    within.write([40, 60], set())
    rows = placed(board.documents, within.documents)
    assert [(row["fate"], row["lost"], row["doubt"]) for row in rows] == [(USED, 0, 0), (USED, 0, 20)]


def test_a_document_of_readings_that_others_have_is_a_copy() -> None:
    """Sealed again with other edges: nothing is lost, so nobody need look into it."""
    board, cuts = Board(readings(1, 100)), {*range(0, 101, 10)}
    board.write([0, 50, 100], cuts)
    board.write([20, 80], cuts)
    rows = placed(board.documents)
    assert Counter(row["fate"] for row in rows) == {USED: 3}
    assert sum(row["readings"] for row in rows) == 100
    board.write([60, 80], cuts)
    rows = placed(board.documents)
    assert Counter(row["fate"] for row in rows) == {USED: 3, COPY: 1}
    assert sum(row["hole"] for row in rows) == 0


def test_holes_are_each_board_s_own() -> None:
    """A board that begins where the other is has lost nothing; what it skips afterwards it has."""
    a, b = (Board(readings(seed, 400), key) for seed, key in ((1, A), (2, B)))
    a.write([0, 400], {*range(0, 401, 50)})
    b.documents = []
    b.write([200, 250], set())
    b.write([300, 400], set())
    rows = placed(a.documents, b.documents)
    assert {(row["key"], row["first"]): row["hole"] for row in rows} == {(A, 0): 0, (B, 200): 0, (B, 300): 50}


def tallied(*rows: Row) -> list[Row]:
    """Rows of `quality.tally` with what is left out filled in."""
    usual = {"device": "d", "stream": "s", "incarnation": "0" * 16, "key": None, "fate": USED, "lost": 0}
    usual |= {"readings": 100, "first_us": 0, "last_us": 100, "id": "d::s::0::0"}
    return [usual | row for row in rows]


@pytest.mark.parametrize(
    ("rows", "kinds"),
    [
        (tallied({}), []),
        (tallied({"fate": COPY}, {}), []),  # the same readings in another document
        (tallied({"fate": OVERLAP, "lost": 7}, {}), ["two_contents"]),
        (tallied({"lost": 7}, {}), ["two_contents"]),  # a part of it is used
        (tallied({"key": A}, {"key": B}), ["two_keys"]),
        (tallied({"key": A}, {"key": B, "incarnation": "1" * 16}), ["two_boards"]),
        (tallied({"key": A}, {"key": B, "incarnation": "1" * 16, "first_us": 101, "last_us": 300}), []),  # set up anew
        (tallied({}, {"key": B, "first_us": 50}), []),  # updated
        (tallied({"key": A}, {"key": B, "stream": "t"}), []),
        (tallied({"fate": "refused", "key": None, "device": None}, {}), []),
    ],
)
def test_an_alarm_is_raised_for_two_boards_and_nothing_else(rows: list[Row], kinds: list[str]) -> None:
    """By keys, by contents; not for a board that was updated or set up anew, nor for copies."""
    found = alarms.alarms(rows)
    assert [alarm["kind"] for alarm in found] == kinds
    for alarm in found:
        assert alarm["device"] == "d"
        assert alarm["ids"]
        assert alarm["readings"] in (7, 100)
        assert alarm["keys"] == ([] if alarm["kind"] == "two_contents" else [A, B])


def test_a_stream_of_overlapping_documents_is_held_a_few_at_a_time() -> None:
    """A thousand documents of two boards, each over the edge of the other's: no more than a handful wait."""
    a, b = Board(readings(1, 8_000)), Board(readings(2, 8_000))
    a.write([*range(0, 8_001, 16)], set())
    b.write([0, *range(8, 8_001, 16)], set())
    found = [Found(f"{i}.json", lambda data=data: data) for i, data in enumerate(a.documents + b.documents)]
    table = pa.Table.from_batches(list(document_batches(found))).sort_by([("first", "ascending")]).combine_chunks()
    whole = table.to_batches()[0]
    given, most, out = 0, 0, 0

    def batches() -> Any:
        nonlocal given
        for at in range(whole.num_rows):
            given += 1
            yield whole.slice(at, 1)

    for batch in place(batches()):
        most = max(most, given - out)
        out += batch.num_rows
    assert out == whole.num_rows == 1_000
    assert most <= 8
