"""The scripts that get jars promise those that were tried, or none; Maven and the resolver are stood in for."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from jars_of_make import ROOT, listed_jars, pinned_jars

#: Stands in for Maven: brings what HAS has under that name, and notes what it was asked for.
MAVEN = """#!/bin/bash
for word in "$@"; do case $word in
-Dartifact=*) IFS=: read -r group name version <<<"${word#*=}" ;;
-DoutputDirectory=*) to=${word#*=} ;;
esac; done
echo "$group" >>"$ASKED"
cp "$HAS/$name-$version.jar" "$to/"
"""
#: Stands in for a Java: brings what HAS has.
RESOLVER = '#!/bin/bash\necho asked >>"$ASKED"\ncp -r "$HAS/." "$JARS/"\n'


def run(script: list[str | Path], folder: Path, name: str, text: str, **more: str) -> tuple[int, str, list[str]]:
    """A script's exit code and words, and what the stand-in that it ran was asked."""
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "bin" / name).write_text(text)
    (folder / "bin" / name).chmod(0o755)
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    told = {**os.environ, "PATH": path, "ASKED": str(folder / "asked"), **more}
    (folder / "asked").write_text("")
    ran = subprocess.run(script, env=told, capture_output=True, text=True, check=False, timeout=120)
    return ran.returncode, ran.stdout + ran.stderr, (folder / "asked").read_text().splitlines()


@pytest.mark.parametrize("what", ["delta", "kafka"])
def test_a_user_gets_the_jars_that_were_tried(what: str, tmp_path: Path) -> None:
    """Each is asked of Maven once; those that are there stay."""
    has, out = listed_jars(what), tmp_path / "out"
    script: list[str | Path] = [ROOT / "deploy/spark/jars.sh", what, out]
    code, said, asked = run(script, tmp_path, "mvn", MAVEN, HAS=str(has))
    assert (code, said, len(asked)) == (0, "", len(pinned_jars(what)))
    assert {path.name for path in out.iterdir()} == set(pinned_jars(what))
    assert all("." in group for group in asked)
    assert run(script, tmp_path, "mvn", MAVEN, HAS=str(has)) == (0, "", [])


def test_a_user_is_told_of_a_jar_that_is_another(tmp_path: Path) -> None:
    """By its name."""
    (has := tmp_path / "has").mkdir()
    for name in (names := sorted(pinned_jars("delta"))):
        (has / name).write_text("another")
    script: list[str | Path] = [ROOT / "deploy/spark/jars.sh", "delta", tmp_path / "out"]
    code, said, _ = run(script, tmp_path, "mvn", MAVEN, HAS=str(has))
    assert code != 0
    assert all(f"{name}: FAILED" in said for name in names)


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """One with Spark's resolver in it."""
    (jars := tmp_path / "venv/lib/pyspark/jars").mkdir(parents=True)
    (jars / "ivy-2.jar").touch()
    return tmp_path / "venv"


def test_make_keeps_no_jar_but_those_of_its_list(environment: Path, tmp_path: Path) -> None:
    """Another file goes, so that no test takes it, and what came stays; the next time only the resolver is asked."""
    good, *_ = pinned_jars("couchbase")
    shutil.copytree(listed_jars("couchbase"), tmp_path / "has/couchbase")
    (tmp_path / "has/delta").mkdir()
    (tmp_path / "has/delta" / next(iter(pinned_jars("delta")))).write_text("another")
    told = {"HAS": str(tmp_path / "has"), "JARS": str(environment / "jars"), "VENV": str(environment)}
    for _ in range(2):
        code, _, asked = run([ROOT / "deploy/make/jars.sh"], tmp_path, "java", RESOLVER, **told)
        assert (code != 0, asked) == (True, ["asked"])
        assert [path.name for path in (environment / "jars").glob("*/*")] == [good]
        assert not (environment / "ivy").exists()


def test_make_asks_for_nothing_that_is_there(environment: Path, tmp_path: Path) -> None:
    """All of the list: the resolver does not even start."""
    for name in {line.split()[1] for line in (ROOT / "deploy/make/jars.list").read_text().splitlines()[1:]}:
        shutil.copytree(listed_jars(name), environment / "jars" / name)
    code, _, asked = run([ROOT / "deploy/make/jars.sh"], tmp_path, "java", RESOLVER, VENV=str(environment))
    assert (code, asked) == (0, [])
