"""A registry promises the roll-ups that tags of the documents would give, whenever it is given."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from random_worlds import random_cut, random_fleet
from table_worlds import anew, definition_of, differences, documents_of, here, store_at, table_of, take_in, windows
from thorough import number

from sluicegate.format.chunk import Chunk, decode, encode
from sluicegate_cloud.errors import SourceError
from sluicegate_cloud.table import run
from sluicegate_cloud.table.grouping import registry


def tagged(document: bytes, tags: dict[str, str]) -> bytes:
    """With these tags beside its own."""
    of = decode(document)
    more = (of.tags or {}) | tags
    return encode(Chunk(of.device, of.stream, of.incarnation, of.center, of.buckets, of.readings, tags=more or None))


@pytest.mark.parametrize("seed", range(number(40, 1)))
def test_a_registry_is_as_if_documents_had_its_tags(seed: int, tmp_path: Path) -> None:
    """Given before the first document, and between two runs, where it said something else before."""
    rng = random.Random(seed)
    cut = random_cut(rng)
    boards = random_fleet(rng, cut, 3, 9, ordinary=True)
    definition = definition_of(cut, ("count", "mean", "min", "max"), by=(("site",), ("site", "/")))
    sent = documents_of(boards, "s/k", rng)
    told = {"board-0": {"site": "here"}, "board-1": {"site": "there", "line": "7"}, "board-9": {"site": "nowhere"}}
    wanted_of = [tagged(one, told.get(decode(one).device, {})) for one in sent]
    store, version = store_at(tmp_path / "wanted", definition)
    wanted = windows(store, take_in(store, version, table_of(wanted_of)))
    half = len(sent) // 2
    for name, steps in {"first": "rab", "corrected": "oarb"}.items():
        store, version = store_at(tmp_path / name, definition)
        for step in steps:
            if step in "ro":
                rows = told if step == "r" else {"board-0": {"site": "x"}, "board-2": {"site": "y"}}
                version = run.registered(here, store, version, rows)
            else:
                some = sent[:half] if step == "a" else sent[half:]
                version = take_in(store, version, table_of(some, 1_000 * (step == "b")))
        assert differences(wanted, windows(store, version)) == []
        assert registry.of_version(store, version) == told
        before = windows(store, version)
        version = run.registered(here, store, version, told | {"board-1": {"site": "there", "line": "8"}})
        assert {of: row | {"revision": 0} for of, row in before.items() if of[0] != "board-1"} == {
            of: row | {"revision": 0} for of, row in windows(store, version).items() if of[0] != "board-1"
        }
        assert all(
            row["revision"] < version.number for of, row in windows(store, version).items() if of[0] == "board-2"
        )
    assert differences(wanted, windows(store, anew(store, version))) == []


def test_only_what_an_older_reader_would_take_for_something_else_has_a_newer_format(tmp_path: Path) -> None:
    """A table of devices alone, without registry and keys together, stays as it was: no new format, and no new word in
    it. Windows of all of them say how many are silent, which an older one would leave as it is.
    """
    formats, cut = {}, random_cut(random.Random(1))
    for name, by in (("tags", (("site",),)), ("keys", (("/1",),)), ("registry", ()), ("all", ())):
        definition = definition_of(cut, ("count",), by=by, fleet=name == "all")
        store, version = store_at(tmp_path / name, definition)
        if name == "registry":
            run.registered(here, store, version, {"d": {"site": "x"}})
        else:
            take_in(store, version, table_of([b"{}"]))
        told = json.loads((tmp_path / name / "versions/00000001.json").read_text())
        formats[name] = told["format"], "registry" in told
    assert formats == {"tags": (2, False), "keys": (3, False), "registry": (3, True), "all": (4, False)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name,site\nd,x\n", "one of them `device`"),
        ("device,site,site\nd,x,y\n", "each once"),
        ("device,site\nd,x\nd,y\n", "line 3: 'd' is there twice"),
        ("device,site\n,x\n", "line 2: expected 2 fields"),
        ("device,site\nd\n", "line 2: expected 2 fields"),
        ("device,site\nd,x,y\n", "line 2: expected 2 fields"),
        ("device,the site\nd,x\n", "line 2: tag 'the site'"),
        ('device,site\nd,"a\tb"\n', "line 2: tag site: expected a printable text"),
        ("device,site\nd," + "x" * 257 + "\n", "line 2: tag site"),
        ('device,site\nd,"x\n', "cannot be read"),
        ("", "one of them `device`"),
        (b"device,site\nd,\xff\n", "cannot be read"),
        (None, "cannot be read"),
    ],
)
def test_what_is_no_registry_is_refused_by_its_line(text: str | bytes | None, said: str, tmp_path: Path) -> None:
    """Before anything is written."""
    file = tmp_path / "devices.csv"
    if text is not None:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(SourceError, match=r"devices\.csv") as refused:
        registry.read(file)
    assert said in str(refused.value)


def test_a_registry_is_read_as_spreadsheets_write_it(tmp_path: Path) -> None:
    """With a mark of its encoding, quotes, and fields left empty."""
    file = tmp_path / "devices.csv"
    file.write_bytes('\ufeffsite,device,line\r\n"north, hall 2",d,\r\n,e,7\r\n,f,\r\n'.encode())
    assert registry.read(file) == {"d": {"site": "north, hall 2"}, "e": {"line": "7"}, "f": {}}
