"""A database promises the rows of the version that was published, each window once; with a real PostgreSQL."""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from random_worlds import Cut, buckets_of, random_fleet
from table_worlds import anew, definition_of, documents_of, store_at, table_of, take_in, windows

from sluicegate.format.chunk import Chunk, encode
from sluicegate_cloud.errors import SinkError
from sluicegate_cloud.names import ALL
from sluicegate_cloud.table import postgres, read

psycopg = pytest.importorskip("psycopg", reason="needs the extra `postgres`")

SERVERS = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
CUT = Cut(60_000_000, 3, 0, 30)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A PostgreSQL of this test's own, on a socket in a folder of its own: no port is opened."""
    if not SERVERS:
        pytest.skip("needs Debian's postgresql")
    programs, folder = SERVERS[-1].parent, Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
    user: dict[str, Any] = {}
    if os.geteuid() == 0:  # PostgreSQL does not run as root
        shutil.chown(folder, "postgres")
        user = {"user": "postgres", "group": "postgres", "extra_groups": []}
    told: dict[str, Any] = {"check": True, "capture_output": True, "cwd": folder, **user}
    options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off"
    try:
        subprocess.run([programs / "initdb", "-D", folder / "data", "-U", "tester", "-A", "trust"], **told)
        control = [programs / "pg_ctl", "-D", folder / "data"]
        subprocess.run([*control, "-w", "-l", folder / "log", "-o", options, "start"], **told)
        yield f"postgresql://tester@/postgres?host={folder}"
        subprocess.run([*control, "-m", "immediate", "stop"], **told)
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def table(tmp_path: Path) -> tuple[Any, Any, list[bytes]]:
    """An empty table with roll-ups, and the documents of four boards."""
    rng = random.Random(5)
    documents = documents_of(random_fleet(rng, CUT, 4, 40, ordinary=True), "s", rng)
    rng.shuffle(documents)
    return *store_at(tmp_path / "table", definition_of(CUT, ("count", "mean", "max"), by=(("site",),))), documents


def rows(address: str, name: str) -> dict[Any, Any]:
    """What the database has, as `table_worlds.windows` tells it."""
    with psycopg.connect(address, row_factory=psycopg.rows.dict_row) as connection:
        found = connection.execute(f"SELECT * FROM {name}").fetchall()  # noqa: S608 - a name of ours
    out = {}
    for row in found:
        row.pop("tags")
        row["device"] = row["device"] or None
        out[tuple(row[of] for of in ("device", "stream", "rollup", "tag_site", "window_start", "window_end"))] = row
    assert len(out) == len(found)
    return out


def test_the_database_follows_the_table(address: str, table: Any) -> None:
    """Published after each run, and twice: the rows are the table's, to the bit, with their revisions."""
    store, version, documents = table
    third = len(documents) // 3
    for at in range(3):
        version = take_in(store, version, table_of(documents[at * third : (at + 1) * third], since=at * third))
        assert postgres.publish(store, version, "followed", address) > 0
        assert rows(address, "followed") == windows(store, version)
        assert postgres.publish(store, version, "followed", address) == 0


def test_a_database_that_is_far_behind_gets_all(address: str, table: Any) -> None:
    """The version that it has is no longer kept: its rows are replaced as a whole."""
    store, version, documents = table
    version = take_in(store, version, table_of(documents[:5]))
    postgres.publish(store, version, "behind", address)
    version = store.commit(anew(store, version))
    store.vacuum(kept=1, abandoned_s=-1)
    assert postgres.publish(store, version, "behind", address) == len(windows(store, version))
    assert rows(address, "behind") == windows(store, version)


def test_a_table_made_anew_at_the_same_place_replaces_all(address: str, table: Any) -> None:
    """Its versions have the numbers of the old one's, also that which the database says it has."""
    store, version, documents = table
    for at in (0, 9):
        version = take_in(store, version, table_of(documents[at : at + 9], since=at))
    postgres.publish(store, version, "anew", address)
    shutil.rmtree(store.root)
    store, version = store_at(store.root, definition_of(CUT, ("count", "mean", "max"), by=(("site",),)))
    for at in (0, 1, 2):
        version = take_in(store, version, table_of(documents[at : at + 1], since=at))
        postgres.publish(store, version, "anew", address)
        assert rows(address, "anew") == windows(store, version)


@pytest.mark.parametrize("more", [1, 2])
def test_a_table_that_was_restored_replaces_what_is_newer(address: str, table: Any, more: int) -> None:
    """From before the version that is there, whose number then comes again: with as many runs since, or not as many."""
    store, version, documents = table
    version = take_in(store, version, table_of(documents[:4]))
    shutil.copytree(store.root, store.root.with_name("backup"))
    for at in (4, 8):
        version = take_in(store, version, table_of(documents[at : at + 4], since=at))
    postgres.publish(store, version, f"restored_{more}", address)
    shutil.rmtree(store.root)
    store.root.with_name("backup").rename(store.root)
    version = store.load()
    for at in range(8, 8 + more):
        version = take_in(store, version, table_of(documents[at : at + 1], since=at))
    assert postgres.publish(store, version, f"restored_{more}", address) > 0
    assert rows(address, f"restored_{more}") == windows(store, version)
    assert postgres.publish(store, version, f"restored_{more}", address) == 0


def test_what_fails_in_between_leaves_the_version_before(
    address: str, table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection breaks when all is copied: the database has the rows it had, and the next try brings all."""
    store, version, documents = table
    first = take_in(store, version, table_of(documents[:9]))
    postgres.publish(store, first, "broken", address)
    second = take_in(store, first, table_of(documents[9:], since=9))

    def broken(*_: Any) -> str:
        raise psycopg.OperationalError("the connection is gone")

    monkeypatch.setattr(postgres, "_quoted", broken)
    with pytest.raises(SinkError, match="the connection is gone"):
        postgres.publish(store, second, "broken", address)
    monkeypatch.undo()
    assert rows(address, "broken") == windows(store, first)
    postgres.publish(store, second, "broken", address)
    assert rows(address, "broken") == windows(store, second)


def test_a_publisher_that_is_killed_is_made_up_for(address: str, table: Any) -> None:
    """At any moment of its transaction: the database has a version as a whole, and the next try brings the newest."""
    store, version, documents = table
    rng, third = random.Random(6), len(documents) // 3
    wanted: dict[int, Any] = {0: {}}
    for at in range(3):
        version = take_in(store, version, table_of(documents[at * third : (at + 1) * third], since=at * third))
        wanted[version.number] = windows(store, version)
        for again in range(3):
            child = multiprocessing.get_context("fork").Process(
                target=postgres.publish, args=(store, version, "killed", address)
            )
            child.start()
            child.join(rng.uniform(0.0, 0.3) / 2**again)
            child.kill()
            child.join()
            assert rows_if_any(address, "killed") in wanted.values()
        postgres.publish(store, version, "killed", address)
        assert rows(address, "killed") == wanted[version.number]


def rows_if_any(address: str, name: str) -> dict[Any, Any]:
    """Nothing where there is no table yet."""
    try:
        return rows(address, name)
    except psycopg.errors.UndefinedTable:
        return {}


def odd(at: int, value: float, tags: dict[str, str] | None = None, device: str = "d", stream: str = "s") -> bytes:
    """A document of one reading."""
    head = Chunk(device, stream, "0" * 16, value, buckets_of([(at, value)], 1), [None], tags=tags)
    return encode(head)


def published(address: str, folder: Path, name: str, sent: list[bytes], by: Any = ()) -> list[tuple[Any, ...]]:
    """What a database has of a table of these documents, the rows as the table's own; published in two runs."""
    store, version = store_at(folder / name, definition_of(CUT, ALL, by=by))
    for at in (0, 1):
        version = take_in(store, version, table_of(sent[at::2], at * 1_000))
        postgres.publish(store, version, name, address)
        names = [*read.schema_of(version.definition)]
        with psycopg.connect(address) as connection:
            there = connection.execute(f"SELECT {postgres._quoted(names)} FROM {name}").fetchall()  # noqa: S608 - ours
        wanted = read.rows_of(store, version).to_pylist()
        told = [tuple((row["device"] or "") if of == "device" else row[of] for of in names) for row in wanted]
        assert sorted(map(repr, told)) == sorted(map(repr, there))
    return there


def test_roll_ups_whose_values_are_null_are_rows_of_their_own(address: str, tmp_path: Path) -> None:
    """Of devices without a site, and of those without a line: the same time, the same stream, and null for both."""
    sent = [odd(at * 60_000_000, 1.0, device=f"d-{at}", tags={"site": "x"} if at == 3 else None) for at in range(4)]
    found = published(address, tmp_path, "nulls", sent, (("site",), ("line",), ("site", "line")))
    assert len(found) > 20


def test_whatever_texts_and_numbers_there_are_come_as_they_are(address: str, tmp_path: Path) -> None:
    """Quotes, commas, backslashes, other scripts, tags as long as they may be; the greatest and least numbers."""
    rng = random.Random(3)
    texts = ["".join(chr(rng.randrange(0x20000, 0x2A6DF)) for _ in range(256)) for _ in range(3)]
    longest = {"site": texts[0], "line": texts[1], "hall": texts[2]}
    sent = [odd(60_000_000 * at, 9e288 * (-1) ** at, longest, "a\"b'c\\.,;%s{}", 'x,"y"/\\N ü 🛰') for at in range(4)]
    sent += [
        odd(60_000_000, -9e288, {"site": "", "hall": '"NULL"'}, "\\.", "NULL"),
        odd(0, 5e-324, longest, "nan", "inf"),
    ]
    assert published(address, tmp_path, "texts", sent, (("site", "line", "hall"), ("hall",), ("/",)))


def test_a_database_of_another_encoding_has_the_same_texts(address: str, tmp_path: Path) -> None:
    """Its own encoding was taken for that of the rows: ü came as two letters, without a word."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
    latin = address.replace("/postgres?", "/latin?")
    found = published(latin, tmp_path, "umlauts", [odd(0, 1.0, stream="Wärme"), odd(1, 2.0, stream="Wärme")])
    assert {row[1] for row in found} == {"Wärme"}


def test_two_that_publish_at_once_both_come_to_an_end(address: str, table: Any) -> None:
    """Also the first time, when neither finds a table; the newest version is there then."""
    store, version, documents = table
    old = take_in(store, version, table_of(documents[:6]))
    new = take_in(store, old, table_of(documents[6:12], since=6))
    for name in ("at_once_0", "at_once_1"):
        with ThreadPoolExecutor(4) as several:
            list(several.map(lambda of, name=name: postgres.publish(store, of, name, address), (new, old, new, old)))
        assert rows(address, name) == windows(store, new)


def test_who_only_looks_waits_for_no_publication(address: str, table: Any) -> None:
    """What is noted can be read while another publishes: each publication shut it off until its end."""
    store, version, documents = table
    version = take_in(store, version, table_of(documents[:6]))
    postgres.publish(store, version, "looked_at", address)
    version = take_in(store, version, table_of(documents[6:12], since=6))
    blocks = postgres._blocks

    def looking(*of: Any) -> Iterator[bytes]:
        with psycopg.connect(address) as other:
            other.execute("SET lock_timeout = '3s'")
            assert other.execute("SELECT version FROM sluicegate_published WHERE name = 'looked_at'").fetchone() == (1,)
        yield from blocks(*of)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postgres, "_blocks", looking)
        assert postgres.publish(store, version, "looked_at", address) > 0


def test_a_server_that_ends_the_session_leaves_the_version_before(address: str, table: Any) -> None:
    """While rows are copied: the reason is said, and the next try brings all."""
    store, version, documents = table
    first = take_in(store, version, table_of(documents[:6]))
    postgres.publish(store, first, "ended", address)
    second = take_in(store, first, table_of(documents[6:], since=6))
    blocks = postgres._blocks

    def ending(*of: Any) -> Iterator[bytes]:
        yield from blocks(*of)
        with psycopg.connect(address, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE query LIKE 'COPY%'")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postgres, "_blocks", ending)
        with pytest.raises(SinkError, match="the database refused"):
            postgres.publish(store, second, "ended", address)
    assert rows(address, "ended") == windows(store, first)
    postgres.publish(store, second, "ended", address)
    assert rows(address, "ended") == windows(store, second)


def test_a_table_with_other_columns_is_left_as_it_is(address: str, table: Any, tmp_path: Path) -> None:
    """One that is not ours, or whose windows had fewer aggregates: what to do is said."""
    store, version, documents = table
    version = take_in(store, version, table_of(documents[:5]))
    postgres.publish(store, version, "fewer", address)
    shutil.rmtree(store.root)
    store, more = store_at(store.root, definition_of(CUT, ("count", "mean", "max", "std"), by=(("site",),)))
    more = take_in(store, more, table_of(documents[:5]))
    before = rows(address, "fewer")
    with pytest.raises(SinkError, match=r"'fewer' has no columns std, std_low, .*--name"):
        postgres.publish(store, more, "fewer", address)
    assert rows(address, "fewer") == before
    for name in ("sluicegate_published", "sluicegate_new", "Sluicegate_old"):
        with pytest.raises(SinkError, match="no name for a table"):
            postgres.publish(store, more, name, address)


def test_what_was_published_before_windows_told_of_silence_is_brought_on(address: str, table: Any) -> None:
    """The column is added where it is all that lacks."""
    store, version, documents = table
    version = take_in(store, version, table_of(documents[:5]))
    postgres.publish(store, version, "silent", address)
    with psycopg.connect(address) as connection:
        connection.execute("ALTER TABLE silent DROP COLUMN devices_silent")
    version = take_in(store, replace(version, heard=None), table_of(documents[5:9], since=5))
    postgres.publish(store, version, "silent", address)
    assert rows(address, "silent") == windows(store, version)


def test_what_an_older_sluicegate_published_is_replaced(address: str, table: Any) -> None:
    """Its rows had other keys: they would stay beside the new ones."""
    store, version, documents = table
    version = take_in(store, version, table_of(documents[:5]))
    postgres.publish(store, version, "older", address)
    with psycopg.connect(address) as connection:
        connection.execute("ALTER TABLE sluicegate_published DROP COLUMN keyed")
        connection.execute("UPDATE older SET tags = tags || ' '")
    version = take_in(store, version, table_of(documents[5:9], since=5))
    postgres.publish(store, version, "older", address)
    assert rows(address, "older") == windows(store, version)


def test_what_cannot_be_published_says_why(address: str, table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """No address, a name that is none, no database there."""
    store, version, _ = table
    monkeypatch.delenv(postgres.ADDRESS, raising=False)
    with pytest.raises(SinkError, match=postgres.ADDRESS):
        postgres.publish(store, version, "windows")
    with pytest.raises(SinkError, match="no name for a table"):
        postgres.publish(store, version, 'x"; DROP TABLE y', address)
    with pytest.raises(SinkError, match="the database refused"):
        postgres.publish(store, version, "windows", "postgresql://nobody@/none?host=/nonexistent")


def test_a_server_elsewhere_shows_a_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless the address says otherwise; one that cannot be read is refused without a word of it."""
    from psycopg.conninfo import conninfo_to_dict

    for name in ("PGHOST", "PGSSLMODE"):
        monkeypatch.delenv(name, raising=False)
    far = conninfo_to_dict(postgres.secured("postgresql://writer@db.example/plant"))
    assert (far["sslmode"], far["sslrootcert"]) == ("verify-full", "system")
    own = conninfo_to_dict(postgres.secured("host=db.example sslrootcert=/etc/ca.pem"))
    assert (own["sslmode"], own["sslrootcert"]) == ("verify-full", "/etc/ca.pem")
    for told in ("postgresql://writer@db.example/plant?sslmode=require", "host=/run/postgresql", "host=127.0.0.1"):
        assert postgres.secured(told) == told
    with pytest.raises(SinkError) as refused:
        postgres.secured("hush-hush")
    assert "hush" not in str(refused.value)
