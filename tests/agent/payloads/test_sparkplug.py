"""Sparkplug B: each reading once and under its own name, through repeats, births, deaths, losses and kills."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
pytest.importorskip("google.protobuf", reason="needs the extra `sparkplug`")
from desk import Desk
from edge_node import DATASET, DOUBLE, INT16, TEMPLATE, TEXT, TRUTH, EdgeNode, sent_again
from hostile import hostile
from thorough import number

from sluicegate_agent.messages import Message
from sluicegate_agent.payloads.sparkplug import wire

SOURCE = {"topic": "spBv1.0/#", "format": "sparkplug", "streams": {"temp": "Inputs/Temp", "load": "Load"}}
NAMES = {"Inputs/Temp": 1, "Load": 2, "Other": 3}
SWAPPED = {"Inputs/Temp": 2, "Load": 1}


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Callable[..., Desk]]:
    """Makes a desk; closes it."""
    made: list[Desk] = []

    def make(**keys: Any) -> Desk:
        made.append(Desk(tmp_path, SOURCE | keys, guard={"future": "0"}))
        return made[-1]

    yield make
    for one in made:
        one.state.close()


def commands(one: Desk) -> list[str]:
    """The topics on which births were asked for."""
    found: list[str] = []
    one.pipeline.entry.command(lambda topic, payload: found.append(topic) is None)
    return found


def test_aliases_stand_for_names_of_node_and_devices(desk: Callable[..., Desk]) -> None:
    """Streams are named by group, node and device; metrics that no stream asks for are passed over."""
    one, node = desk(), EdgeNode()
    one.take(node.birth(NAMES, {"Inputs/Temp": 1}), node.device("D", {"Load": 7}, {"Load": 5}))
    one.take(node.data({1: 2, 3: 9}), node.data({7: 6}, "D"), node.data({"Load": 4}))
    assert one.sums() == {"temp/G/E": (3.0, 2), "load/G/E": (4.0, 2), "load/G/E/D": (11.0, 2)}
    assert (one.reasons(), commands(one)) == ([], [])
    assert one.pipeline.identities.missing("spBv1.0/G/E") == 0


def test_a_birth_that_is_asked_for_says_nothing_again(desk: Callable[..., Desk]) -> None:
    """The same session, numbers from 0: what the birth repeats with its old time counts once."""
    one, node = desk(), EdgeNode()
    one.take(node.birth(NAMES), node.data({1: 2, 2: 3}))
    told = node.now
    one.take(node.birth(NAMES, {"Inputs/Temp": 2, "Load": 3}, at=told), node.data({1: 4}))
    one.take(node.birth(NAMES, {"Inputs/Temp": 5, "Load": 3}))
    assert one.sums() == {"temp/G/E": (11.0, 4), "load/G/E": (6.0, 3)}
    assert one.state.counters["sparkplug.restated"] == 2


@pytest.mark.parametrize("committed", [True, False])
def test_what_the_broker_sends_again_is_read_by_its_own_birth(desk: Callable[..., Desk], committed: bool) -> None:
    """Aliases are used again for other names: what is sent again is a repeat, never renamed."""
    one, node = desk(), EdgeNode(qos=1)
    sent = [node.birth(NAMES), node.data({1: 10, 2: 1}), node.data({2: 2}), node.birth(SWAPPED), node.data({1: 3})]
    one.take(*sent, commit=committed)
    one.killed()
    one.take(*map(sent_again, sent), node.data({2: 20}))
    assert one.sums() == {"temp/G/E": (30.0, 4), "load/G/E": (6.0, 5)}
    assert one.reasons() == []
    assert one.state.counters["duplicates"] == (5 if committed else 0)


def test_killed_between_birth_and_data(desk: Callable[..., Desk]) -> None:
    """With QoS 0 the birth is lost, and with it what aliases mean: nothing is counted by those of before."""
    one, node = desk(), EdgeNode()
    one.take(node.birth(NAMES), node.data({1: 10}))
    one.take(node.birth(SWAPPED), commit=False)
    one.killed()
    one.take(node.data({1: 3, "Load": 4}))
    one.take(node.data({1: 3, "Load": 5}))
    assert one.sums() == {"temp/G/E": (10.0, 2), "load/G/E": (9.0, 3)}
    assert one.state.counters["sparkplug.births_missed"] == 1
    assert commands(one) == ["spBv1.0/G/NCMD/E"]
    one.take(node.birth(SWAPPED, {"Load": 3}), node.data({1: 5}))
    assert one.sums() == {"temp/G/E": (10.0, 3), "load/G/E": (17.0, 5)}


def test_after_a_restart_aliases_of_qos_0_need_a_new_birth(desk: Callable[..., Desk]) -> None:
    """Even where the numbers go on by chance: while nobody listened a birth may have come and gone."""
    one, node = desk(), EdgeNode()
    one.take(node.birth(NAMES), node.data({1: 10}))
    one.killed()
    one.take(node.data({1: 3}))
    assert one.sums()["temp/G/E"] == (10.0, 2)
    assert commands(one) == ["spBv1.0/G/NCMD/E"]


def test_with_qos_1_aliases_are_kept_over_a_restart(desk: Callable[..., Desk]) -> None:
    """The session keeps what comes meanwhile; where it is gone nothing of before is believed, after a kill too."""
    one, node = desk(), EdgeNode(qos=1)
    one.take(node.birth(NAMES), node.data({1: 10}))
    one.killed()
    one.pipeline.connected(session_present=True)
    one.take(node.data({1: 3}))
    assert one.sums()["temp/G/E"] == (13.0, 3)
    one.pipeline.connected(session_present=False)
    one.take()
    one.killed()
    one.pipeline.connected(session_present=True)
    one.take(node.data({1: 7}))
    assert one.sums()["temp/G/E"] == (13.0, 3)
    assert commands(one) == ["spBv1.0/G/NCMD/E"]


def test_a_number_that_is_missing_ends_the_belief_in_aliases(desk: Callable[..., Desk]) -> None:
    """What is lost may have been a birth; what is missing is known, and a new birth heals it."""
    one, node = desk(), EdgeNode()
    one.take(node.birth(NAMES))
    node.data({1: 1}), node.data({1: 1})
    one.take(node.data({1: 3}), node.data({"Inputs/Temp": 5}))
    assert one.sums()["temp/G/E"] == (5.0, 2)
    assert one.pipeline.identities.missing("spBv1.0/G/E") == 2
    assert commands(one) == ["spBv1.0/G/NCMD/E"]
    one.take(node.birth(NAMES, at=node.now), node.data({1: 3}))
    assert one.sums()["temp/G/E"] == (8.0, 3)


def test_a_node_that_starts_again_counts_on(desk: Callable[..., Desk]) -> None:
    """A new session is a new epoch; the will of the one before, which comes late, ends nothing."""
    one, node = desk(), EdgeNode()
    one.take(node.birth(NAMES), node.data({1: 1}))
    will = node.death()
    node.again()
    one.take(node.birth(NAMES, {"Inputs/Temp": 2}), will, node.data({1: 4}))
    assert one.sums()["temp/G/E"] == (7.0, 4)
    one.take(node.death(), node.data({1: 8}))
    assert one.sums()["temp/G/E"] == (7.0, 4)
    assert "after the death" in one.reasons()[-1]
    assert commands(one) == ["spBv1.0/G/NCMD/E"]


def test_devices_are_born_and_die_for_themselves(desk: Callable[..., Desk]) -> None:
    """Data of a device needs its own birth; a death is a message among the numbers."""
    one, node = desk(), EdgeNode()
    one.take(node.birth({}), node.device("D", {"Load": 1}, {"Load": 1}), node.message("DDEATH", [], "D"))
    one.take(node.data({1: 2}, "D"), node.data({"Load": 2}, "X"))
    assert one.sums()["load/G/E/D"] == (1.0, 1)
    assert all("before a birth of its device" in reason for reason in one.reasons())
    one.take(node.device("D", {"Load": 1}, {"Load": 4}))
    assert one.sums()["load/G/E/D"] == (5.0, 2)


def test_numbers_wrap_at_256(desk: Callable[..., Desk]) -> None:
    """Three laps and more, with losses and repeats at the wraps: nothing twice, and what is missing is known."""
    one, node, sent = desk(keys={"most": 5}), EdgeNode(qos=1), []
    one.take(node.birth({"Inputs/Temp": 1}))
    total, lost = 0.0, 0
    for i in range(1, 900):
        message = node.data({"Inputs/Temp": i})
        if 250 < i < 262 or i == 600:
            lost += 1
            continue
        total += i
        one.take(message, commit=i % 50 == 0)
        sent.append(message)
        if i % 97 == 0:
            one.take(*map(sent_again, sent[-20:]))
    one.take()
    assert one.sums() == {"temp/G/E": (total, 900 - lost)}
    assert one.pipeline.identities.missing("spBv1.0/G/E") == lost


def test_what_is_no_number_is_refused_by_its_name(desk: Callable[..., Desk]) -> None:
    """Datasets, templates, texts and truths are counted as what they are; null is no reading; signs are kept."""
    one, node = desk(streams={name: name for name in ("d", "t", "s", "b", "n", "i")}), EdgeNode()
    odd = [
        wire.Metric("d", None, None, DATASET, is_null=False, value=None),
        wire.Metric("t", None, None, TEMPLATE, is_null=False, value=None),
        wire.Metric("s", None, None, TEXT, is_null=False, value=1.0),
        wire.Metric("b", None, None, TRUTH, is_null=False, value=1),
        wire.Metric("n", None, None, DOUBLE, is_null=True, value=None),
        wire.Metric("i", None, None, INT16, is_null=False, value=-5),
    ]
    one.take(node.birth({}), node.message("NDATA", odd))
    assert one.sums() == {"i/G/E": (-5.0, 1)}
    assert one.reasons() == [
        "d/G/E: d is a dataset, not a number", "t/G/E: t is a template, not a number",
        "s/G/E: s is a text, not a number", "b/G/E: b is true or false, not a number",
    ]  # fmt: skip
    assert one.state.counters["absent"] == 1


def test_commands_and_states_say_nothing(desk: Callable[..., Desk]) -> None:
    """The agent hears its own commands: neither a reading nor a dead letter."""
    one = desk()
    one.take(("spBv1.0/G/NCMD/E", b"\x00\x01"), ("spBv1.0/STATE/host", b"{}"), ("spBv1.0/G/DDATA/E", b""))
    assert (one.sums(), one.reasons()) == ({}, [])


def test_a_damaged_birth_is_no_birth(desk: Callable[..., Desk]) -> None:
    """A row that is not as it was written names nothing: a new birth is asked for."""
    one, node = desk(), EdgeNode(qos=1)
    one.take(node.birth(NAMES))
    with one.state.transaction() as connection:
        (row,) = connection.execute("SELECT value FROM meta WHERE key = 'birth spBv1.0/G/E'").fetchone()
        connection.execute("UPDATE meta SET value = ? WHERE key LIKE 'birth %'", (row[:-3] + b"\x02" + row[-2:],))
    one.killed()
    one.take(node.data({1: 3}))
    assert one.sums()["temp/G/E"] == (0.0, 1)
    assert commands(one) == ["spBv1.0/G/NCMD/E"]


def test_nodes_that_are_too_many_are_forgotten_with_their_rows(desk: Callable[..., Desk]) -> None:
    """As many nodes as keys: whoever makes up names fills no store."""
    one = desk(keys={"most": 4})
    for i in range(20):
        one.take(EdgeNode(f"G/E{i}").birth(NAMES))
    rows = one.state.store.connection.execute("SELECT count(*) FROM meta WHERE key LIKE 'birth %'").fetchone()[0]
    assert rows <= 4


@pytest.mark.parametrize("seed", range(number(200, 4)))
def test_random_lives_count_each_reading_once(desk: Callable[..., Desk], seed: int) -> None:
    """Births, aliases used again, restarts, kills and repeats at random, with QoS 1: exactly what was sent."""
    chance, one, node = random.Random(seed), desk(), EdgeNode(qos=1)
    names, session, expected = dict(NAMES), [node.birth(NAMES)], {"temp/G/E": [0.0], "load/G/E": [0.0]}
    streams = {"Inputs/Temp": "temp/G/E", "Load": "load/G/E"}
    unacknowledged: list[Message] = [*session]
    one.take(*session, commit=False)
    for _ in range(300):
        what = chance.random()
        if what < 0.05:
            shuffled = [*names]
            chance.shuffle(shuffled)
            names = {name: alias for alias, name in enumerate(shuffled)}
            if chance.random() < 0.5:
                node.again()
            session.append(node.birth(names))
            for stream in streams.values():
                expected[stream].append(0.0)
        else:
            name = chance.choice([*streams])
            value = float(chance.randrange(1000))
            session.append(node.data({names[name] if chance.random() < 0.8 else name: value}))
            expected[streams[name]].append(value)
        one.take(session[-1], commit=False)
        unacknowledged.append(session[-1])
        if what > 0.9:
            one.pipeline.commit()
            if chance.random() < 0.7:
                unacknowledged.clear()
        if what > 0.96:
            one.killed()
            one.pipeline.connected(session_present=True)
            one.take(*map(sent_again, unacknowledged), commit=False)
    one.take()
    assert one.sums() == {stream: (sum(values), len(values)) for stream, values in expected.items()}
    assert all("sent again" in reason for reason in one.reasons()), "of more births than are kept"


def test_nothing_but_readings_or_refusals(desk: Callable[..., Desk]) -> None:
    """Broken messages of every kind, one after the other: none raises, and a good birth is believed after them."""
    one, node, chance = desk(keys={"most": 8}), EdgeNode(), random.Random(1)
    good = [node.birth(NAMES), node.device("D", NAMES), node.data({1: 2}), node.data({2: 3}, "D"), node.death()]
    payloads = [each.payload for each in good]
    topics = [each.topic for each in good] + ["spBv1.0/G/DDEATH/E/D", "spBv1.0/G/NDATA/E2", "spBv1.0/G/NBIRTH/E3"]
    for i, payload in enumerate(hostile(payloads, number(1_000_000, 3_000), seed=7)):
        one.take(Message(chance.choice(topics), payload, i % 60_000 + 1, i & 1, dup=i % 7 == 0), commit=i % 64 == 0)
    one.take(node.birth(NAMES), node.data({1: 123_456}))
    assert one.state.counters["accepted"] > 10
    assert one.state.counters["refused.unreadable"] > 10
    assert any(answer.value == 123_456 for answer in one.pipeline.answers("temp/G/E", "newest"))
