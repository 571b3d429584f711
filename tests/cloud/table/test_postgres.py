"""A database promises the rows of the version that was published, each window once; with a real PostgreSQL."""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from random_worlds import Cut, random_fleet
from table_worlds import anew, definition_of, documents_of, store_at, table_of, take_in, windows

from sluicegate_cloud.errors import SinkError
from sluicegate_cloud.table import postgres

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
