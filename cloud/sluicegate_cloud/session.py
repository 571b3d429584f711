"""A local Spark session that needs no system Java, binds to the loopback only and keeps quiet on the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.sql import SparkSession

from sluicegate_cloud.errors import JavaError, SparkError
from sluicegate_cloud.java import java_home, private_folder, use_of_archives

#: How the URL of a Spark Connect server begins.
REMOTE = "sc://"
_LOG4J = """status = error
rootLogger.level = {level}
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = spark: %p %c{{1}}: %m%n%throwable{{short.message}}
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = {level}
"""

#: Settings that a merge of buckets wants; any of them can be overridden.
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.memory": "2g",
    "spark.sql.shuffle.partitions": "16",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20),
    "spark.sql.parquet.compression.codec": "zstd",
}
#: For a job of seconds: compiling its code to the last degree takes longer than running it (a third of all CPU time).
QUICK = {"spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1", "spark.sql.shuffle.partitions": "4"}
_LOCAL = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}


def spark_session(
    master: str = "local[*]", settings: Mapping[str, str] | None = None, app: str = "sluicegate"
) -> SparkSession:
    """The running session, or a new one on `master` with SETTINGS and `settings`; workers run this very Python.

    `master`: as Spark has it, or the URL of a Spark Connect server (sc://HOST:PORT), which has its own settings. Raises
    JavaError when there is no Java to start, or when Spark does not start with it, SparkError where no server answers.
    """
    if master.startswith(REMOTE):
        return _connected(master)
    if (running := SparkSession.getActiveSession()) is not None:
        return running
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    local = _LOCAL if master.startswith("local") else {}
    builder = SparkSession.builder.master(master).appName(app)
    java_options = {"spark.driver.extraJavaOptions": f"{quiet()} {use_of_archives()}".strip()}
    for key, value in {**SETTINGS, **local, **java_options, **(settings or {})}.items():
        builder = builder.config(key, value)
    with _java_home(str(java_home())):
        return _started(builder)


def is_remote(spark: SparkSession) -> bool:
    """Whether it is one of Spark Connect, which has no driver in this process."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def parallelism(spark: SparkSession) -> int:
    """Tasks that run at once, at least 1. A server of Spark Connect tells how many partitions it makes."""
    if is_remote(spark):
        return max(int(spark.conf.get("spark.sql.shuffle.partitions") or 1), 1)
    return max(spark.sparkContext.defaultParallelism, 1)


@contextmanager
def with_setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    """A setting of a session that runs, for what the block does."""
    before: Any = spark.conf.get(name, None)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, before)


def _connected(url: str) -> SparkSession:
    try:
        return SparkSession.builder.remote(url).getOrCreate()
    except ImportError as error:
        raise JavaError("Spark Connect needs more of PySpark: pip install 'pyspark[connect]'") from error
    except PySparkException as error:
        raise SparkError(f"no Spark Connect server answers at {url}: {str(error).splitlines()[0]}") from error


def _started(builder: SparkSession.Builder) -> SparkSession:
    try:
        return builder.getOrCreate()
    except PySparkRuntimeError as error:
        raise JavaError(f"Spark did not start with JAVA_HOME {os.environ['JAVA_HOME']}: {error}") from error
    except Py4JJavaError as error:
        raise SparkError(f"Spark did not start: {error.java_exception.getMessage()}") from error


@contextmanager
def _java_home(home: str) -> Iterator[None]:
    """JAVA_HOME only while the JVM is being launched: what the user had set stays the user's."""
    before = os.environ.get("JAVA_HOME")
    os.environ["JAVA_HOME"] = home
    try:
        yield
    finally:
        if before is None:
            del os.environ["JAVA_HOME"]
        else:
            os.environ["JAVA_HOME"] = before


def quiet() -> str:
    """Spark's own log off: what stops a job comes as one message. SLUICEGATE_DEBUG=1 shows its errors and stacks."""
    level = "error" if os.environ.get("SLUICEGATE_DEBUG") == "1" else "fatal"
    path = private_folder("spark") / f"log4j2-{level}.properties"
    path.write_text(_LOG4J.format(level=level))
    return f"-Dlog4j2.configurationFile={path.as_uri()}"
