"""Documents in and out: every value comes back as it went in, checks find conflicts, nothing is used after close."""

from __future__ import annotations

import math
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("cffi", reason="missing: cffi (pip install 'sluicegate[cblite]')")

from sluicegate import cblite
from sluicegate.cblite import (
    ClosedError,
    Collection,
    Conflict,
    CouchbaseLiteError,
    Database,
    InvalidArgument,
    Maintenance,
    NotFound,
    Refused,
)
from sluicegate.cblite.listener import Mailbox

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=("Cs",)), max_size=40)
    | st.binary(max_size=60)
)
KEYS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=12).filter(
    lambda key: not key.startswith(("_", "@"))
)
VALUES = st.dictionaries(
    KEYS, st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4)),
    max_size=6,
)  # fmt: skip


@given(values=VALUES)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_values_come_back(things: Collection, values: dict[str, Any]) -> None:
    """Whatever Fleece can hold, bytes and 64-bit integers among it, to the bit."""
    things.save("one", values)
    found = things.get("one")
    assert found == values
    assert [type(value) for value in (found or {}).values()] == [type(values[key]) for key in (found or {})]


def test_floats_and_integers_stay_what_they_are(things: Collection) -> None:
    """No value is rounded on its way, and 1.0 compares to 1 whichever it comes back as."""
    values = {"tenth": 0.1, "least": 5e-324, "most": 2**64 - 1, "low": -(2**63), "big": 1.7976931348623157e308}
    things.save("numbers", values)
    assert things.get("numbers") == values


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"x": math.nan}, "finite"),
        ({"x": 2**64}, "64 bits|Number|number"),
        ({"x": b"", "y": 2**64}, "64 bits"),
        ({"x": {1, 2}}, "expected None, bool"),
        ({"x": b"", "y": math.inf}, "finite"),
        ({1: b""}, "expected a text"),
    ],
)
def test_what_no_document_can_hold_is_refused(things: Collection, values: Any, words: str) -> None:
    """Before it is saved: nothing is there afterwards."""
    with pytest.raises(InvalidArgument, match=words):
        things.save("bad", values)
    assert "bad" not in things


def test_too_deep_is_refused_both_ways(things: Collection) -> None:
    """A value nested without end neither exhausts the stack nor is cut."""
    deep: Any = b"end"
    for _ in range(100):
        deep = [deep]
    with pytest.raises(InvalidArgument, match="flatter"):
        things.save("deep", {"x": deep})


@pytest.mark.parametrize("id", ["", "_underscore", "x" * 300, "with\x01control"])
def test_ids_that_cannot_be(things: Collection, id: str) -> None:
    """The message says what an id is."""
    with pytest.raises(InvalidArgument, match="1 to 240 bytes"):
        things.save(id, {"a": 1})


def test_json_goes_in(things: Collection) -> None:
    """JSON text is stored as it says; what is none is refused and changes nothing."""
    things.save_json("json", '{"a": [1, 2.5, "é", null, true]}')
    with pytest.raises(CouchbaseLiteError, match="JSON"):
        things.save_json("json", b'{"a": ')
    assert things.get("json") == {"a": [1, 2.5, "é", None, True]}


@pytest.mark.parametrize("size", [0, 1, 100_000, 5_000_000])
def test_bytes_of_any_length(things: Collection, size: int) -> None:
    """The quick way for opaque values."""
    data = bytes(range(256)) * (size // 256 + 1)
    things.save_bytes("page", "v", data[:size])
    assert things.get_bytes("page", "v") == data[:size]
    assert things.get_bytes("none", "v") is None
    assert things.get_bytes("page", "w") == b""


def test_insert_finds_what_is_there(things: Collection) -> None:
    """The second of two inserts raises, and the first stays."""
    things.save("one", {"n": 1}, insert=True)
    with pytest.raises(Conflict, match="read the document again"):
        things.save("one", {"n": 2}, insert=True)
    assert things.get("one") == {"n": 1}
    things.save("one", {"n": 3})
    assert things.get("one") == {"n": 3}


def test_deleting_and_purging(things: Collection) -> None:
    """Both take a document away and say whether there was one."""
    for id in ("a", "b"):
        things.save(id, {})
    assert len(things) == 2
    assert (things.delete("a"), things.delete("a"), things.purge("b"), things.purge("b")) == (True, False, True, False)
    assert len(things) == 0
    assert things.get("a") is None
    assert "a" not in things


def test_a_document_expires(things: Collection) -> None:
    """The library purges it at its time; 0 takes the time away."""
    for id in ("soon", "never"):
        things.save(id, {})
        things.expire(id, int(time.time() * 1000) + 60_000)
    assert things.expires("soon") > time.time() * 1000
    things.expire("never", 0)
    assert things.expires("never") == 0
    things.expire("soon", int(time.time() * 1000) + 200)
    end = time.monotonic() + 60
    while "soon" in things and time.monotonic() < end:
        time.sleep(0.05)
    assert "soon" not in things
    assert "never" in things


# transactions


class Stop(Exception):  # noqa: N818
    """Raised inside a transaction."""


def fail_after(things: Collection, id: str) -> None:
    """Save a document and raise."""
    things.save(id, {})
    raise Stop


def nested(database: Database, things: Collection) -> None:
    """End an inner transaction and raise in the outer one."""
    with database.transaction():
        things.save("c", {})
    fail_after(things, "d")


def test_a_transaction_is_all_or_nothing(database: Database, things: Collection) -> None:
    """What raises inside leaves nothing; what ends is there; an inner one ends with the outer."""
    with pytest.raises(Stop), database.transaction():
        fail_after(things, "a")
    assert "a" not in things
    with database.transaction():
        things.save("a", {})
        with database.transaction():
            things.save("b", {})
        assert database.in_transaction
    assert len(things) == 2
    with pytest.raises(Stop), database.transaction():
        nested(database, things)
    assert len(things) == 2


def test_a_database_in_a_transaction_is_not_closed(real: cblite.Library, tmp_path: Path) -> None:
    """It says so, and can be closed afterwards."""
    with Database("d", tmp_path) as database:
        with database.transaction(), pytest.raises(CouchbaseLiteError, match="transaction is open"):
            database.close()
        assert not database.closed


def test_what_was_saved_is_there_for_the_next(real: cblite.Library, tmp_path: Path) -> None:
    """Another opening, and another handle meanwhile, see it."""
    with Database("d", tmp_path, full_sync=True) as first, Database("d", tmp_path) as beside:
        first.collection("c").save("one", {"n": 1})
        assert beside.collection("c").get("one") == {"n": 1}
    with Database("d", tmp_path) as again:
        assert again.collection("c").get("one") == {"n": 1}
        again.maintain(Maintenance.CHECK)
        again.maintain()
        with pytest.raises(NotFound, match=r"no collection _default\.d"):
            again.collection("d", create=False)
        assert again.path == tmp_path / "d.cblite2"


def test_a_database_can_delete_itself(real: cblite.Library, tmp_path: Path) -> None:
    """With its folder, and the handle is closed."""
    database = Database("d", tmp_path)
    database.collection("c").save("one", {})
    database.delete()
    assert database.closed
    assert not (tmp_path / "d.cblite2").exists()


# queries


def test_queries_with_parameters(database: Database, things: Collection) -> None:
    """Compiled once, run with other values; rows are plain and in order."""
    with database.transaction():
        for i in range(100):
            things.save(f"d{i:03d}", {"n": i, "data": bytes([i]), "even": i % 2 == 0})
    with database.query(
        "SELECT META().id AS id, n, data FROM things WHERE n >= $low AND n < $high ORDER BY n"
    ) as query:
        assert query.columns == ["id", "n", "data"]
        assert query.run(low=5, high=7) == [
            {"id": "d005", "n": 5, "data": b"\x05"},
            {"id": "d006", "n": 6, "data": b"\x06"},
        ]
        assert [row[1] for row in query.rows(low=90, high=95)] == [90, 91, 92, 93, 94]
        partly = query.rows(low=0, high=50)
        assert next(partly)[0] == "d000"
        partly.close()  # type: ignore[attr-defined]


def test_a_wrong_query_says_where(database: Database) -> None:
    """The place in the text and the library's words."""
    with pytest.raises(InvalidArgument, match=r"SELECT FROM.*at byte"):
        database.query("SELECT FROM WHERE")


# misuse


def test_nothing_is_used_after_close(real: cblite.Library, tmp_path: Path) -> None:
    """Closing the database closes all that came from it; each use then raises; closing again is harmless."""
    database = Database("d", tmp_path)
    things = database.collection("c")
    things.save("one", {"n": 1})
    query = database.query("SELECT n FROM c")
    database.close()
    database.close()
    uses: list[Any] = [
        lambda: things.get("one"), lambda: things.save("two", {}), lambda: len(things), lambda: query.run(),
        lambda: database.collection("c"), lambda: database.query("SELECT n FROM c"), lambda: things.purge("one"),
        lambda: things.save_bytes("a", "v", b""),
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(ClosedError):
            use()
    with pytest.raises(ClosedError), database.transaction():
        pass


def test_a_forgotten_handle_is_closed_with_a_warning(real: cblite.Library, tmp_path: Path) -> None:
    """Nothing leaks, and the programmer learns of it."""
    database = Database("d", tmp_path)
    with pytest.warns(ResourceWarning, match="Database was not closed"):
        del database
    assert cblite.instances() == 0


def test_a_folder_that_refuses(real: cblite.Library, tmp_path: Path) -> None:
    """A path that is a file, or below one, is refused with what to do."""
    (tmp_path / "file").write_text("")
    with pytest.raises((Refused, CouchbaseLiteError), match="not opened"):
        Database("d", tmp_path / "file")


def test_a_damaged_file_is_said_to_be_damaged(real: cblite.Library, tmp_path: Path) -> None:
    """Rubbish where the database's file was: Damaged, with what to do."""
    with Database("d", tmp_path) as database:
        database.collection("c").save("one", {"n": 1})
    for file in (tmp_path / "d.cblite2").glob("db.sqlite3*"):
        file.write_bytes(b"rubbish" * 10_000)
    with pytest.raises(cblite.Damaged, match="set the database's folder aside"):
        Database("d", tmp_path)


# threads


def test_threads_share_a_database(database: Database, things: Collection) -> None:
    """Four write and read at once through one handle; nothing is lost."""

    def work(k: int) -> None:
        for i in range(50):
            things.save(f"{k}-{i}", {"k": k, "i": i, "data": b"x" * i})
            assert things.get(f"{k}-{i}") == {"k": k, "i": i, "data": b"x" * i}

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(things) == 200


def test_what_nobody_takes_is_bounded() -> None:
    """The oldest events go, and `lost` says how many; none is taken in after close."""
    mailbox: Mailbox[str] = Mailbox(most=10)
    for i in range(50):
        mailbox.put([f"d{i}"])
    assert mailbox.lost == 40
    assert mailbox.take(timeout=60) == [f"d{i}" for i in range(40, 50)]
    assert mailbox.take() == []
    mailbox.close()
    mailbox.put(["late"])
    assert mailbox.take() == []
    with pytest.raises(ClosedError):
        mailbox.fileno()
