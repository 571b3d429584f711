"""The sync function by itself, in a JavaScript engine: every bound it states, its shards, and its twin in Python."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from chunked import chunk, document
from gateway.rule import Forbidden, shard_of
from node_rule import NodeRule, node_rule

import sluicegate_cloud
from gateway import databases, rule
from sluicegate.format import chunk as chunks
from sluicegate_cloud.feed import provision

KEY = "0123456789abcdef0123456789abcdef"
MINE = ["device-board-1"]


@pytest.fixture(scope="module")
def node() -> NodeRule:
    """The deployed function."""
    return node_rule()


def body_of(place: str | None = None, **changed: Any) -> dict[str, Any]:
    """A chunk as a gateway hands it to the function; None takes a key out."""
    made = chunk(3)
    made.key = place
    body = json.loads(chunks.encode(made))
    body = {"_id": body["id"], **body, **changed}
    return {name: value for name, value in body.items() if value is not None}


def named(stream: str) -> dict[str, Any]:
    """A chunk of this stream."""
    body = body_of(KEY)
    name = body["id"].replace(f"::{body['stream']}::", f"::{stream}::")
    return body | {"stream": stream, "id": name, "_id": name}


def nested(depth: int, leaf: Any = 1) -> Any:
    """An object in an object, so many deep."""
    for _ in range(depth):
        leaf = {"a": leaf}
    return leaf


TAKEN: dict[str, dict[str, Any]] = {
    "a chunk": body_of(),
    "one with the key of its place": body_of(KEY),
    "doubt and no key": body_of(format=3, codec="columns-3"),
    "health of four levels": body_of(health=nested(4)),
    "health with numbers of 64 bits": body_of(health={"a": [2**63 - 1, -(2**63), 1.5, None, True, "ok"]}),
    "health of many values": body_of(health={str(n): n for n in range(1_000)}),
    "no health": body_of(health=None),
    "a stream by key": named("temp/hall 3/äöü"),
    "tags": body_of(KEY, tags={"site": "Graz, Süd", "line": ""}),
    "tags and no key": body_of(format=3, codec="columns-1", tags={"site": "graz"}),
    "what buckets carry": body_of(format=4, codec="columns-2", extras={"moments": "AAAA", "kll(64)": ""}),
    "what single readings carry": body_of(format=5, codec="columns-1", extras={"pair": "AAAA"}),
}
REFUSED: dict[str, dict[str, Any]] = {
    "health nested deeply": body_of(health=nested(5)),
    "health nested very deeply": body_of(health=nested(900)),
    "lists nested deeply": body_of(health={"a": [[[[1]]]]}),
    "an integer of 300 digits": body_of(health={"a": int("9" * 300)}),
    "an integer of 65 bits": body_of(health={"a": 2**64}),
    "a text too long": body_of(health={"a": "x" * 1025}),
    "a name too long": body_of(health={"x" * 1025: 1}),
    "too many values": body_of(health={str(n): n for n in range(1_025)}),
    "too many in lists": body_of(health={"a": [0] * 1_024}),
    "data over its bound": body_of(data="A" * (8 * 2**20 + 4)),
    "an ordinal beyond 62 bits": body_of(gap=2**63),
    "a center beyond all values": body_of(center=2.0**961),
    "an attachment": body_of(_attachments={"a": {"data": "AA=="}}),
    "a key of another shape": body_of(KEY, key=KEY.upper()),
    "a key that is no text": body_of(KEY, key=7),
    "a key in an older format": body_of(key=KEY),
    "format 3 that says nothing new": body_of(format=3),
    "a newer format": body_of(format=6, codec="columns-4", extras={"moments": "AAAA"}),
    "a key with a control character": named("temp/\x07"),
    "a key too long": named("temp/" + "x" * 65),
    "no key behind the slash": named("temp/"),
    "tags in an older format": body_of(tags={"site": "graz"}),
    "no tags": body_of(KEY, tags={}),
    "too many tags": body_of(KEY, tags={f"t{n}": "" for n in range(33)}),
    "a tag too long": body_of(KEY, tags={"site": "x" * 257}),
    "a tag that is no text": body_of(KEY, tags={"site": 7}),
    "format 4 that carries nothing": body_of(format=4, codec="columns-2"),
    "format 5 that carries nothing": body_of(format=5, codec="columns-2"),
    "too much carried": body_of(format=4, codec="columns-2", extras={str(n): "AAAA" for n in range(17)}),
    "carried bytes over their bound": body_of(format=4, codec="columns-2", extras={"a": "A" * (8 * 2**20 + 4)}),
    "carried and no base64": body_of(format=4, codec="columns-2", extras={"a": "<html>"}),
}


def test_a_chunk_of_every_format_comes_in(node: NodeRule) -> None:
    """With key, with doubt, with as much health as an agent may ever have."""
    for what, answer in zip(TAKEN, node.asked([*TAKEN.values()], "board-1", MINE), strict=True):
        assert answer.get("put") == ["device-board-1", shard_of(TAKEN[what]["id"])], (what, answer)


def test_whatever_a_device_may_put_into_a_document_is_bounded(node: NodeRule) -> None:
    """Depth, length, number of values, size of numbers: each is refused with a reason that names it."""
    for what, answer in zip(REFUSED, node.asked([*REFUSED.values()], "board-1", MINE), strict=True):
        assert answer.get("refused", "").startswith("sluicegate: "), (what, answer)
        assert len(answer["refused"]) < 200


@pytest.mark.parametrize(
    ("user", "channels", "taken"),
    [
        ("board-1", MINE, True),
        ("board-1", provision.shards(), False),  # a reader who has a device's name
        ("board-2", ["device-board-2"], False),
        ("spark", provision.shards(), False),
        (None, [], True),  # the administrator
    ],
)
def test_only_the_device_s_own_user_writes(node: NodeRule, user: str | None, channels: list[str], taken: bool) -> None:
    """The name alone is not enough: a reader's user has no device's channel."""
    (answer,) = node.asked([body_of()], user, channels)
    assert ("put" in answer) == taken, answer


def test_the_shards_are_the_readers(node: NodeRule) -> None:
    """What the function puts into is what `cloud provision` and configure.sh let a reader read, and a reader reads."""
    bodies = [json.loads(document(1, first=8 * n).data) for n in range(400)]
    answers = node.asked([{"_id": body["id"], **body} for body in bodies], "board-1", MINE)
    put = [answer["put"][1] for answer in answers]
    assert sorted(set(put)) == provision.shards()
    assert put == [shard_of(body["id"]) for body in bodies]
    told = re.search(r"^  var SHARDS = (\d+);", databases.SYNC_FUNCTION.read_text(), flags=re.MULTILINE)
    assert told is not None
    assert int(told[1]) == provision.SHARDS
    folder = Path(databases.SYNC_FUNCTION).parent
    assert "'s/^  var SHARDS" in (folder / "configure.sh").read_text()
    assert f"`{provision.shards()[-1]}`" in (folder / "README.md").read_text()


def test_no_file_names_a_module_that_is_not_there() -> None:
    """What deploy/ says of this package's modules is so."""
    for file in databases.SYNC_FUNCTION.parent.iterdir():
        for name in re.findall(r"sluicegate_cloud\.((?:[a-z]+\.)*[a-z]+)", file.read_text()):
            assert (Path(sluicegate_cloud.__file__).parent / f"{name.replace('.', '/')}.py").exists(), (file.name, name)


def twin(body: dict[str, Any]) -> bool:
    """Whether the Python twin takes it."""
    try:
        rule.telemetry(body, "board-1", set(MINE))
    except Forbidden:
        return False
    return True


def odd(rng: random.Random) -> Any:
    """Something that a field may hold, mostly wrong."""
    simple: list[Any] = [0, 1, -1, 2**53, 2**62, 2**63, 1.5, "", "x", KEY, "columns-1", "columns-3", True, [], {}, 3]
    return rng.choice([*simple, [rng.choice(simple)], {"a": rng.choice(simple)}, nested(rng.randrange(8)), "é" * 70])


def test_the_twin_says_what_the_function_says(node: NodeRule) -> None:
    """Two thousand documents with one or two fields changed at random: taken by both or by neither."""
    rng, bodies = random.Random(3), []
    for _ in range(2_000):
        body = body_of(rng.choice([None, KEY]))
        for _ in range(rng.randrange(3)):
            body[rng.choice([*body, "key", "tags", "extras", "health", "colour"])] = odd(rng)
        bodies.append(body)
    answers = node.asked(bodies, "board-1", MINE)
    different = [(b, a) for b, a in zip(bodies, answers, strict=True) if twin(b) != ("put" in a)]
    assert different == []
    assert 300 < sum("put" in answer for answer in answers) < 1_700
