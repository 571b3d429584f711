"""Spark starts in half the processor's time where its classes are kept as Java has them once loaded and checked.

Java does this itself (class data sharing, two archives). `keep` makes them in this user's cache, for one Java and one
Spark. Where they do not fit what runs, Java says nothing and loads its classes as ever.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark import SparkContext

from sluicegate.format.bucket import Builder
from sluicegate.format.chunk import Chunk, encode
from sluicegate_cloud import job as batch
from sluicegate_cloud.errors import JavaError
from sluicegate_cloud.java import archives, find_java, kept_beside, option, sizes_of
from sluicegate_cloud.places.folder import Folder, locked
from sluicegate_cloud.session import QUICK, quiet, spark_session
from sluicegate_cloud.table import job

_HOUR = 3_600_000_000
#: Seconds that Java may take for one of the two.
_MOST_S = 600


def keep() -> Path:
    """Keep the classes of a merge and of a table's merge, which this runs; where they are.

    Raises JavaError, SinkError where the cache cannot be written.
    """
    base, spark = archives()
    busy = JavaError(f"another run keeps classes in {base.parent}: wait for it to end")
    with locked(base.parent, busy), TemporaryDirectory(dir=base.parent) as folder:
        new = Path(folder) / base.name, Path(folder) / spark.name
        _run([str(find_java()), "-Xshare:dump", f"-XX:SharedArchiveFile={new[0]}"])
        _require(new[0])
        kept_beside(base).unlink(missing_ok=True)
        new[0].replace(base)  # the second names the first by its path, and fits no other
        options = f"-XX:SharedArchiveFile={base}", f"-XX:ArchiveClassesAtExit={new[1]}"
        _run([sys.executable, "-m", __name__, " ".join(map(option, options))])
        _run([str(find_java()), "-Xshare:on", f"-XX:SharedArchiveFile={base}", "-version"])
        _require(new[1])
        new[1].replace(spark)
        Folder.at(str(base.parent)).settle([base.name, spark.name])
        kept_beside(base).write_text(sizes_of(base, spark))
    return spark


def _require(made: Path) -> None:
    if not made.is_file():
        raise JavaError(f"{find_java()} keeps no classes: it needs class data sharing, as OpenJDK has it")


def _run(command: list[str]) -> None:
    try:
        subprocess.run(command, capture_output=True, text=True, timeout=_MOST_S, check=True)
    except subprocess.CalledProcessError as error:
        said = (error.stderr or error.stdout).strip().splitlines()
        raise JavaError(f"{command[0]} could not keep its classes: {said[-1] if said else error}") from error
    except (OSError, subprocess.SubprocessError) as error:
        raise JavaError(f"{command[0]} could not keep its classes: {error}") from error


def _run_merges(java_options: str, folder: Path) -> None:
    """A merge, and one into a table, with these options; Java has ended then."""
    (folder / "chunks").mkdir()
    builder = Builder(20.0)
    builder.add(20.0, _HOUR)
    data = encode(Chunk("device", "stream", "0" * 16, 20.0, [builder.close()], [None]))
    (folder / "chunks" / "1.json").write_bytes(data)
    told = {"spark.driver.extraJavaOptions": f"{quiet()} {java_options}"}
    spark = spark_session("local[2]", {**QUICK, **told})
    batch.merge([str(folder / "chunks")], folder / "out", 24 * _HOUR, _HOUR, ("count", "mean", "min", "max"))
    definition = job.definition_of(24 * _HOUR, _HOUR, ("count", "mean"))
    job.merge(spark, [str(folder / "chunks")], folder / "table", definition)
    process = SparkContext._gateway.proc  # type: ignore[union-attr]
    spark.stop()
    process.stdin.close()  # so that Java ends
    process.wait(_MOST_S)


if __name__ == "__main__":
    os.environ.pop("SPARK_CONF_DIR", None)
    with TemporaryDirectory() as place:
        _run_merges(sys.argv[1], Path(place))
