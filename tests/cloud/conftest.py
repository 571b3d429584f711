"""One Spark session for all Spark tests of the cloud: it takes ten seconds to start.

A job that finds no session begins one as users have it, and that stays for all tests after it, with more partitions and
plans made anew as they run. So each test that merges in this process asks for `spark`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from small_spark import SMALL


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A local session on two cores, stopped at the end."""
    from sluicegate_cloud.session import QUICK, spark_session

    session = spark_session("local[2]", {**QUICK, **SMALL})
    yield session
    session.stop()
