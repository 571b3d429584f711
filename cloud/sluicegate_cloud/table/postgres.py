"""A table's windows in PostgreSQL: what changed since the version that is there, upserted in one transaction.

A version's files never change, so what changed between two versions is in the files that only one of them names. The
database notes the version that it has in the same transaction. So publishing again does nothing, whoever dies in
between leaves the version before, and a window is there once, by stream, device, tags and times, with its newest
revision. Needs the extra `postgres`.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv as csv

from sluicegate_cloud.errors import SinkError
from sluicegate_cloud.names import SILENT
from sluicegate_cloud.table import read
from sluicegate_cloud.table.grouping.groups import column_of
from sluicegate_cloud.table.versions import Store, Version, is_same

#: Where the database is said, so that a password is in no command line.
ADDRESS = "SLUICEGATE_POSTGRES"
_KEY = ("stream", "device", "tags", "window_start", "window_end")
_KINDS = {"string": "text", "bigint": "bigint", "double": "double precision", "boolean": "boolean",
          "array<double>": "double precision[]"}  # fmt: skip
_ROWS = 1 << 15
_LONGEST_NAME, _LONGEST_COLUMN = 50, 63
#: Tables of this module's own begin so.
_OURS = "sluicegate_"
#: Bytes of `tags` as they are: an index has no room for more than some 2,700 bytes of a key.
_LONGEST_TAGS = 1_000
#: How rows are keyed: 1 since `tags` has the roll-up's own alone. What has other keys is replaced.
_KEYED = 1


def publish(store: Store, version: Version, name: str, address: str | None = None) -> int:
    """Bring the table `name` of the database to `version`; how many rows were written or removed.

    `address`: a connection string, or that of ADDRESS in the environment. Raises SinkError where there is none, or the
    database refuses: nothing of it counts then.
    """
    import psycopg

    where = address or os.environ.get(ADDRESS)
    if not where:
        raise SinkError(f"no database: set {ADDRESS}, such as postgresql://user@host/database")
    is_name = name.isidentifier() and name.isascii() and len(name) <= _LONGEST_NAME
    if not is_name or name.lower().startswith(_OURS):
        raise SinkError(
            f"{name!r} is no name for a table: letters, digits and _, at most {_LONGEST_NAME}, none that begins {_OURS}"
        )
    try:
        with psycopg.connect(secured(where)) as connection, connection.cursor() as cursor:
            cursor.execute("SET client_encoding TO 'UTF8'")  # rows are, whatever the database's own is
            _make(cursor, name.lower(), {"tags": "string", **read.schema_of(version.definition)})
            connection.commit()  # or who looks at what is noted waits for the end
            return _published(cursor, store, version, name.lower())
    except psycopg.Error as error:
        said = str(error).strip() or type(error).__name__
        raise SinkError(f"the database refused: {said.splitlines()[0]}") from error


def secured(where: str) -> str:
    """A connection string, by which a server elsewhere has to show a valid certificate unless `sslmode` says otherwise.

    Raises SinkError for what is none; nothing of it is repeated, since a password may be in it.
    """
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    try:
        told = conninfo_to_dict(where)
    except ProgrammingError:
        raise SinkError(f"{ADDRESS} is no connection string, such as postgresql://user@host/database") from None
    host = str(told.get("host") or os.environ.get("PGHOST", ""))
    is_here = host.startswith("/") or host in ("", "localhost", "127.0.0.1", "::1")
    if is_here or "sslmode" in told or "PGSSLMODE" in os.environ:
        return where
    roots = {} if "sslrootcert" in told else {"sslrootcert": "system"}
    return make_conninfo(where, sslmode="verify-full", **roots)


def _published(cursor: Any, store: Store, version: Version, name: str) -> int:
    columns = {"tags": "string", **read.schema_of(version.definition)}
    _one_at_a_time(cursor, name)
    cursor.execute("SELECT place, version, identity, made_us, keyed FROM sluicegate_published WHERE name = %s", (name,))
    *there, keyed = cursor.fetchone() or (None,)
    if there and there[0] != str(store.root):
        raise SinkError(
            f"the database's {name!r} has the windows of {there[0]}: publish {store.root} under another name"
        )
    since = there[1] if there and keyed == _KEYED and is_same(store, version, *there[1:]) else None
    if since is not None and since >= version.number:
        return 0
    before = store.load(since) if since in store.numbers() else None
    if before is None:
        cursor.execute(f'TRUNCATE "{name}"')
    changed = _replace(cursor, store, before, version, name, columns)
    cursor.execute(
        "INSERT INTO sluicegate_published (name, place, version, identity, made_us, keyed) "
        "VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (name) DO UPDATE SET version = excluded.version, "
        "identity = excluded.identity, made_us = excluded.made_us, keyed = excluded.keyed",
        (name, str(store.root), version.number, version.identity, version.made_us, _KEYED),
    )
    return changed


def _one_at_a_time(cursor: Any, what: str) -> None:
    """Until the transaction ends."""
    cursor.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (f"sluicegate {what}",))


def _make(cursor: Any, name: str, columns: dict[str, str]) -> None:
    """The tables, where they are not there. Raises SinkError where one is there with other columns."""
    _one_at_a_time(cursor, "")  # two that make a table at once are an error to PostgreSQL
    cursor.execute("SET LOCAL client_min_messages = warning")
    cursor.execute(
        "CREATE TABLE IF NOT EXISTS sluicegate_published "
        "(name text PRIMARY KEY, place text NOT NULL, version bigint NOT NULL)"
    )
    kinds = {"identity": "text", "made_us": "bigint", "keyed": "bigint"}
    for of in _lacking(cursor, "sluicegate_published", kinds):  # asked first: to add one waits for all who look
        cursor.execute(f"ALTER TABLE sluicegate_published ADD COLUMN {of} {kinds[of]}")
    spelled = ", ".join(f'"{of}" {_KINDS[kind]}{" NOT NULL" if of in _KEY else ""}' for of, kind in columns.items())
    cursor.execute(f'CREATE TABLE IF NOT EXISTS "{name}" ({spelled}, PRIMARY KEY ({", ".join(_KEY)}))')
    if (lacking := _lacking(cursor, name, columns)) == [SILENT]:  # an older Sluicegate made it
        cursor.execute(f'ALTER TABLE "{name}" ADD COLUMN {SILENT} {_KINDS[columns[SILENT]]}')
    elif lacking:
        raise SinkError(
            f"the database's {name!r} has no columns {', '.join(lacking)}: publish under another --name, or drop it"
        )


def _lacking(cursor: Any, name: str, columns: Iterable[str]) -> list[str]:
    """Which columns a table does not have."""
    cursor.execute(f'SELECT * FROM "{name}" LIMIT 0')  # noqa: S608 - names are checked
    there = {of.name for of in cursor.description}
    return [of for of in columns if of.encode()[:_LONGEST_COLUMN].decode() not in there]


def _replace(
    cursor: Any, store: Store, before: Version | None, now: Version, name: str, columns: dict[str, str]
) -> int:
    """The rows of files that only the new version has are written, those that only the old one has are removed."""
    names = [*columns]
    for temporary, files in zip(
        ("sluicegate_new", "sluicegate_old"), read.changed_files(store, before, now), strict=True
    ):
        cursor.execute(f'CREATE TEMP TABLE {temporary} (LIKE "{name}") ON COMMIT DROP')
        with cursor.copy(f"COPY {temporary} ({_quoted(names)}) FROM STDIN (FORMAT csv)") as copy:
            for block in _blocks(store, files, now, names):
                copy.write(block)
    same = " AND ".join(f"w.{of} = o.{of}" for of in _KEY)
    gone = same.replace("w.", "n.")
    cursor.execute(
        f'DELETE FROM "{name}" w USING sluicegate_old o WHERE {same} '  # noqa: S608 - names are checked, values are none
        f"AND NOT EXISTS (SELECT FROM sluicegate_new n WHERE {gone})"
    )
    removed = cursor.rowcount
    values = [of for of in names if of not in _KEY]
    update = ", ".join(f'"{of}" = excluded."{of}"' for of in values)
    cursor.execute(
        f'INSERT INTO "{name}" AS w ({_quoted(names)}) SELECT {_quoted(names)} FROM sluicegate_new '  # noqa: S608
        f"ON CONFLICT ({', '.join(_KEY)}) DO UPDATE SET {update} WHERE excluded.revision > w.revision"
    )
    return int(removed + cursor.rowcount)


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _blocks(store: Store, files: Sequence[str], version: Version, names: list[str]) -> Iterator[bytes]:
    """The rows as CSV, null unquoted, some at a time."""
    for file in files:
        for batch in read.as_asked(store.read(file), version.definition).to_batches(_ROWS):
            rows = _keyed(pa.Table.from_batches([batch])).select(names)
            sink = io.BytesIO()
            csv.write_csv(rows, sink, csv.WriteOptions(include_header=False, quoting_style="all_valid"))
            yield sink.getvalue()


def _keyed(rows: pa.Table) -> pa.Table:
    """With what no key may be null: all devices are "", and the values of a roll-up as JSON, "" where it is none."""
    text = [_values(row) for row in rows.select([of for of in rows.column_names if _is_of_rollup(of)]).to_pylist()]
    for at, column in enumerate(rows.columns):
        if pa.types.is_list(column.type):
            rows = rows.set_column(at, rows.column_names[at], pa.array(map(_array, column.to_pylist()), pa.string()))
    device = rows["device"].fill_null("")
    rows = rows.set_column(rows.column_names.index("device"), "device", device)
    return rows.append_column("tags", pa.array(text, pa.string()))


def _is_of_rollup(column: str) -> bool:
    return column == read.ROLLUP or column.startswith(("tag_", "key_"))


def _values(row: dict[str, Any]) -> str:
    """Of the roll-up's own words, so that no other roll-up has the same; hashed where they are long."""
    words = row[read.ROLLUP].split(",") if row[read.ROLLUP] else ()
    told = (
        json.dumps({column_of(word): row.get(column_of(word)) for word in words}, ensure_ascii=False) if words else ""
    )
    if len(told.encode()) <= _LONGEST_TAGS:
        return told
    return json.dumps({"sha256": hashlib.sha256(told.encode()).hexdigest()})


def _array(values: list[float] | None) -> str | None:
    """As PostgreSQL writes one."""
    return None if values is None else f"{{{','.join(map(repr, values))}}}"
