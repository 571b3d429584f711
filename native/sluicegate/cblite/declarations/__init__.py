"""The C interface of Couchbase Lite, by topic, as facts that cffi reads: only `cblite.generate` imports this.

Types that both layouts share stand in the topics; what 4.x orders differently has two texts, chosen by major version.
"""

from __future__ import annotations

from sluicegate.cblite.declarations import (
    base,
    blob,
    collection,
    database,
    document,
    fleece,
    listener,
    log,
    query,
    replicator,
)

MAJORS = (3, 4)


def text(major: int) -> str:
    """Everything that is declared for libraries of one major version."""
    topics = (fleece, base, database, collection, document, blob, query, log, listener)
    return "\n".join([*(topic.TEXT for topic in topics), replicator.TEXTS[major]])
