"""One Spark session for all Spark tests of the cloud: it takes ten seconds to start."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A local session on two cores, stopped at the end."""
    from sluicegate_cloud.session import QUICK, spark_session

    session = spark_session("local[2]", {**QUICK, "spark.driver.memory": "1g"})
    yield session
    session.stop()
