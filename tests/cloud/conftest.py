"""One Spark session for all Spark tests of the cloud: it takes ten seconds to start.

A job that finds no session begins one as users have it, and that stays for all tests after it, with more partitions and
plans made anew as they run. So each test that merges in this process asks for `spark`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

#: Tables of a few thousand rows: two partitions, plans made once, a collector without threads of its own.
SMALL = {
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A local session on two cores, stopped at the end."""
    from sluicegate_cloud.session import QUICK, spark_session

    session = spark_session("local[2]", {**QUICK, **SMALL})
    yield session
    session.stop()
