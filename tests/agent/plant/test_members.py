"""Keys are bounded: who is refused is counted and named, who made room comes back without a reading lost or doubled."""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from plants import NOON, SECOND, Plant, configured, documents
from thorough import number as so_many

from sluicegate_agent.messages import EndedResult
from sluicegate_agent.plant import senders

SOURCE: dict[str, Any] = {
    "topic": "plant/{machine}",
    "streams": {"temp": "temp", "flow": "flow"},
    "time": "t",
    "time_format": "us",
    "sequence": "n",
}


SIGNS = {"temp": 1, "flow": -1}


def keyed(most: int, evict: str) -> dict[str, Any]:
    """The source with room for so many keys."""
    return SOURCE | {"keys": {"most": most, "evict": evict}}


def said(number: int) -> dict[str, Any]:
    """A message of two streams."""
    return {"n": number, "t": NOON + number * SECOND, "temp": number, "flow": -number}


def test_a_key_too_many_is_refused_counted_and_named(tmp_path: Path) -> None:
    """With "refuse" those that are there stay, and the others are told by name with how often they came."""
    plant = Plant(configured(tmp_path, keyed(2, "refuse")))
    for number in range(3):
        for machine in "abc":
            plant.say(f"plant/{machine}", said(number))
    plant.commit()
    assert {stream.partition("/")[2] for _, stream in plant.hand_over(tmp_path)} == {"a", "b"}
    assert plant.count("refused.key") == 3
    assert plant.pipeline.entry.members.status() == {
        "plant/{machine}": {"keys": 2, "most": 2, "refused": {"c": 3}},
    }


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize(("evict", "left"), [("oldest", "a"), ("lru", "b")])
def test_who_makes_room(tmp_path: Path, evict: str, left: str, restarted: bool) -> None:
    """The key that was heard of first, or the one that was heard of least lately; a start forgets neither."""
    plant = Plant(configured(tmp_path, keyed(2, evict)))
    for number, machine in enumerate("abac"):
        if restarted and machine == "c":
            plant.commit()
            plant.restart()
        plant.say(f"plant/{machine}", said(number))
    assert sorted(plant.state.streams) == sorted(f"{name}/{m}" for name in ("temp", "flow") for m in "abc" if m != left)


@pytest.mark.parametrize("evict", ["oldest", "lru"])
def test_a_smaller_limit_holds_from_the_next_key_on(tmp_path: Path, evict: str) -> None:
    """Those that an earlier configuration let in beyond it leave, too: the plan counts no more keys."""
    plant = Plant(configured(tmp_path, keyed(5, evict)))
    for number, machine in enumerate("abcde"):
        plant.say(f"plant/{machine}", said(number))
    plant.commit()
    plant.config = configured(tmp_path, keyed(2, evict))
    plant.restart()
    assert len(plant.state.streams) == 10, "nobody leaves for nobody"
    plant.say("plant/f", said(5))
    assert sorted(plant.state.streams) == ["flow/e", "flow/f", "temp/e", "temp/f"]
    found = plant.hand_over(tmp_path)
    assert {name: len(values) for (_, name), values in found.items()} == {
        f"{s}/{m}": 1 for s in SIGNS for m in "abcdef"
    }


@pytest.mark.parametrize("evict", ["oldest", "lru"])
@pytest.mark.parametrize("seed", range(so_many(6, 3)))
def test_keys_that_come_and_go_lose_and_double_nothing(tmp_path: Path, evict: str, seed: int) -> None:
    """Random machines with room for few, repeats, commits and restarts: each reading is at the target once."""
    rng = random.Random(seed)
    plant = Plant(configured(tmp_path, keyed(3, evict)))
    truth: dict[tuple[str, str], list[float]] = defaultdict(list)
    numbers: dict[str, int] = defaultdict(int)
    unsure: list[tuple[str, int]] = []
    for _ in range(150):
        machine = rng.choice("abcdef")
        number = numbers[machine]
        numbers[machine] += 1
        plant.say(f"plant/{machine}", said(number))
        unsure.append((machine, number))
        for name, value in (("temp", number), ("flow", -number)):
            truth["gateway", f"{name}/{machine}"].append(float(value))
        if rng.random() < 0.2:
            plant.say(f"plant/{unsure[-1][0]}", said(unsure[-1][1]), dup=True)
        if rng.random() < 0.3:
            plant.commit()
            if rng.random() < 0.4:
                plant.restart()
                for again in unsure[-8:]:  # their PUBACKs were lost
                    plant.say(f"plant/{again[0]}", said(again[1]), dup=True)
    found = plant.hand_over(tmp_path)
    assert {name: sorted(values) for name, values in found.items()} == {k: sorted(v) for k, v in truth.items()}
    assert plant.count("keys.evicted") > 10


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("evict", ["oldest", "lru"])
def test_what_a_key_lost_while_it_was_away_is_missing(tmp_path: Path, evict: str, late: bool) -> None:
    """The buckets of both its stays tell of every number between that did not come, and of no other.

    What comes late after all may go on being told as missing: nobody remembers what the former stay told.
    """
    rng = random.Random(7)
    plant = Plant(configured(tmp_path, keyed(3, evict)))
    came: dict[str, set[int]] = defaultdict(set)
    numbers: dict[str, int] = defaultdict(int)
    for _ in range(120):
        machine = rng.choice("abcdef")
        numbers[machine] += rng.choice([1, 1, 1, 3])
        said_now = {numbers[machine]} | ({rng.randrange(1, numbers[machine] + 1)} if late else set())
        for number in sorted(said_now):
            plant.say(f"plant/{machine}", said(number))
            came[machine].add(number)
        if rng.random() < 0.2:
            plant.commit()
        if rng.random() < 0.1:
            plant.restart() if not plant.pipeline.pending else plant.commit()
    plant.hand_over(tmp_path)
    assert plant.count("keys.evicted") > 20
    told: dict[str, int] = defaultdict(int)
    for chunk in documents(tmp_path):
        told[chunk.stream] += sum(bucket.gap for bucket in chunk.buckets)
    lost = {machine: max(of) - min(of) + 1 - len(of) for machine, of in came.items()}
    assert sum(lost.values()) > 10
    for name in SIGNS:
        for machine, missing in lost.items():
            assert told[f"{name}/{machine}"] >= missing
            assert late or told[f"{name}/{machine}"] == missing


@pytest.mark.parametrize("evict", ["oldest", "lru"])
@pytest.mark.parametrize("restarted", [False, True])
def test_a_key_that_comes_back_says_that_it_lacks_what_it_had(tmp_path: Path, evict: str, restarted: bool) -> None:
    """Its windows hold what came since; no answer is exact until what it had before would have left them."""
    plant = Plant(configured(tmp_path, keyed(2, evict)))
    exact: dict[int, list[bool]] = {}
    for second, machine in enumerate("aabbccaaaaaaaa"):
        plant.say(f"plant/{machine}", said(second))
        plant.commit()
        if restarted and second == 5:
            plant.restart()
        names = ("last", "minute", "minutes")
        exact[second] = [plant.pipeline.answers(f"temp/{machine}", name)[0].exact for name in names]
    assert all(exact[second] == [True] * 3 for second in range(4)), "nobody had left"
    assert all(exact[second] == [False] * 3 for second in range(4, 11)), "c may have been here"
    assert exact[13] == [True, False, False], "five came since"
    for number in (900, 1600, 2500):
        plant.say("plant/a", said(number))
        plant.commit()
    assert [plant.pipeline.answers("temp/a", name)[0].exact for name in ("last", "minute", "minutes")] == [True] * 3


@pytest.mark.parametrize("seed", range(4))
def test_a_window_with_ends_that_says_exact_has_all_that_its_key_ever_said(tmp_path: Path, seed: int) -> None:
    """Sessions and hops of keys that come and go: the extent and the count of an exact result are those of no break."""
    rng, gap = random.Random(seed), 10
    windows = [
        {"name": "pause", "kind": "session", "evict": {"time": f"{gap}s"}, "aggregate": "count"},
        {"name": "hop", "kind": "hopping", "evict": {"time": "20s", "hop": "10s"}, "lateness": "0s",
         "aggregate": "count"},
    ]  # fmt: skip
    plant = Plant(configured(tmp_path, keyed(2, "oldest") | {"streams": {"temp": "temp"}}, window=windows))
    came: dict[str, list[int]] = defaultdict(list)
    told: list[EndedResult] = []
    for _ in range(150):
        newest = max((of[-1] for of in came.values()), default=0)
        machine, second = rng.choice("aaabc"), newest + rng.choice([0, 1, 4, 9, 10, 11, 30])
        came[machine].append(second)
        plant.say(f"plant/{machine}", said(second) | {"n": len(came[machine])})
        plant.commit()
        told += [each for each in plant.pipeline.results() if isinstance(each, EndedResult)]
    sure = 0
    for each in (each for each in told if each.exact and each.stage == "final"):
        times = came[each.stream[-1]]
        start, end = ((at - NOON) // SECOND for at in (each.start_us, each.end_us))
        assert each.value == sum(start <= time < end for time in times), each
        if each.window == "pause":
            sure += 1
            assert not any(start - gap < time < start or end <= time < end for time in times), each
    assert sure > 3


@pytest.mark.parametrize("told", ["sequence", "time"])
def test_a_batch_that_is_sent_again_is_known_however_many_senders_it_has(tmp_path: Path, told: str) -> None:
    """Killed between a commit and its PUBACKs, of twenty machines with room for three; more come after a commit."""
    source = keyed(3, "lru") if told == "sequence" else {k: v for k, v in keyed(3, "lru").items() if k != "sequence"}
    plant = Plant(configured(tmp_path, source))
    batch: list[int] = []
    for machine in range(21):
        if plant.pipeline.has_enough or machine == 20:
            plant.commit()
            plant.restart()
            for again in batch:
                plant.say(f"plant/m{again}", said(again), dup=True)
            plant.commit()
            batch = []
        if machine < 20:
            batch.append(machine)
            plant.say(f"plant/m{machine}", said(machine))
    found = plant.hand_over(tmp_path)
    assert found == {("gateway", f"{name}/m{m}"): [sign * m] for name, sign in SIGNS.items() for m in range(20)}
    assert plant.count("duplicates") == 20


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("told", ["sequence", "time"])
def test_what_comes_again_of_senders_that_are_forgotten_is_in_doubt(tmp_path: Path, told: str, restarted: bool) -> None:
    """PUBACKs of several commits lost at once, of twenty machines with room for three: at most once for certain.

    Once the broker has taken a later acknowledgement, what is new counts without doubt, also over a connection more.
    """
    source = keyed(3, "lru") if told == "sequence" else {k: v for k, v in keyed(3, "lru").items() if k != "sequence"}
    plant = Plant(configured(tmp_path, source))

    def all_say(machines: range, *, dup: bool = False) -> None:
        for machine in machines:
            if plant.pipeline.has_enough:
                plant.commit()
            plant.say(f"plant/m{machine}", said(machine), dup=dup)
        plant.commit()

    all_say(range(20))
    if restarted:
        plant.restart()
    plant.pipeline.connected(session_present=True)
    all_say(range(20), dup=True)
    assert plant.count("accepted") - plant.count("undecidable") <= 20 * len(SIGNS)
    plant.pipeline.confirmed(plant.pipeline.generation)
    plant.pipeline.connected(session_present=True)
    before = plant.count("undecidable")
    all_say(range(20, 23))
    assert plant.count("undecidable") == before
    plant.hand_over(tmp_path)
    buckets = [bucket for chunk in documents(tmp_path) for bucket in chunk.buckets]
    assert sum(bucket.n - bucket.doubt for bucket in buckets) <= 23 * len(SIGNS)


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("most", [3, 10])
def test_what_a_subscription_brings_of_senders_that_are_forgotten_is_in_doubt(
    tmp_path: Path, most: int, restarted: bool
) -> None:
    """Retained messages of twenty machines come once more: of those that are remembered none counts again."""
    plant = Plant(configured(tmp_path, keyed(most, "lru")))
    for retain in (False, True):
        plant.pipeline.connected(session_present=False)
        for machine in range(20):
            if plant.pipeline.has_enough:
                plant.commit()
                plant.pipeline.confirmed(plant.pipeline.generation)
            plant.say(f"plant/m{machine}", said(machine), retain=retain)
        plant.commit()
        plant.pipeline.confirmed(plant.pipeline.generation)
        if restarted and not retain:
            assert plant.count("undecidable") == 0
            plant.restart()
    assert plant.count("accepted") - plant.count("undecidable") == 20 * len(SIGNS)
    assert plant.count("undecidable") == (0 if most == 10 else 20 * len(SIGNS))


def test_rows_of_keys_that_left_do_not_pile_up(tmp_path: Path) -> None:
    """Of 200 keys with room for 3, at most twice as many senders and streams are in the store once all is sent."""
    plant = Plant(configured(tmp_path, keyed(3, "lru")))
    for machine in range(200):
        plant.say(f"plant/m{machine}", said(0))
        if machine % 20 == 0:
            plant.hand_over(tmp_path)
    plant.hand_over(tmp_path)
    plant.say("plant/last", said(0))
    plant.commit()
    count = plant.state.store.connection.execute
    assert count("SELECT count(DISTINCT source) FROM sequence").fetchone()[0] <= 6
    assert count("SELECT count(*) FROM stream").fetchone()[0] <= 3 * 2 + 2 * 2
    assert count("SELECT count(*) FROM window").fetchone()[0] == 3 * 2 * len(plant.config.windows)
    assert len(plant.pipeline.identities.sequences) <= 3


@pytest.mark.parametrize("told", ["sequence", "time"])
def test_what_is_known_of_a_silent_sender_is_in_its_rows(
    told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its memory is let go of, and what it repeats is known all the same."""
    monkeypatch.setattr(senders, "AWAY", 0.0)
    source = SOURCE if told == "sequence" else {key: SOURCE[key] for key in SOURCE if key != "sequence"}
    plant = Plant(configured(tmp_path, source))
    identities = plant.pipeline.identities
    for first in (0, 3, 4):
        for number in range(first, first + 4):
            for machine in "ab":
                plant.say(f"plant/{machine}", said(number))
        plant.commit()
        assert not identities.sequences
        assert not identities.contents
    assert plant.count("duplicates") == 2 * (1 + 3)
    found = plant.hand_over(tmp_path)
    assert found == {("gateway", f"{name}/{m}"): [s * n for n in range(8)] for name, s in SIGNS.items() for m in "ab"}


def test_a_sender_of_which_something_waits_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until a second message says whether its numbers begin again."""
    monkeypatch.setattr(senders, "AWAY", 0.0)
    plant = Plant(configured(tmp_path, SOURCE))
    for number in (7, 8):
        plant.say("plant/a", said(number))
    plant.say("plant/a", said(9) | {"n": 1})
    plant.commit()
    assert len(plant.pipeline.identities.sequences) == 1
    plant.say("plant/a", said(10) | {"n": 2})
    plant.commit()
    assert not plant.pipeline.identities.sequences
    assert plant.hand_over(tmp_path)["gateway", "temp/a"] == [7, 8, 9, 10]
