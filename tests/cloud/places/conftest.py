"""One S3 server for the tests of places: it takes two seconds to start."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What the environment says of it, here as in what this process starts."""
    pytest.importorskip("moto", reason="needs the package moto[s3] with Flask")
    pytest.importorskip("obstore")
    from s3_server import s3_server

    with s3_server(tmp_path_factory.mktemp("s3") / "log") as told, pytest.MonkeyPatch.context() as patch:
        for name, value in told.items():
            patch.setenv(name, value)
        yield told


@pytest.fixture
def spark_at_s3(spark: Any, s3: dict[str, str]) -> Any:
    """The session, whose workers know the server too: they have the environment in which Java began."""
    spark.sparkContext.environment.update(s3)
    return spark
