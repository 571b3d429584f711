"""The doctor runs what it finds: what is no such program or library is broken, and the remedy says what to do."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sluicegate import doctor

GATEWAY, LIBRARY = "SLUICEGATE_SYNC_GATEWAY", "SLUICEGATE_LIBCBLITE"


def program(folder: Path, script: str) -> str:
    """A shell script that can be run."""
    path = folder / "program"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("script", ["true", "false", "echo hello", "kill -9 $$", "yes | head -c 10000000"])
def test_a_program_that_is_no_gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """It runs, and says something else, or nothing: broken, with the package and the page of its steps."""
    monkeypatch.setenv(GATEWAY, program(tmp_path, script))
    found = doctor._sync_gateway()
    assert found.status == "broken"
    assert "does not say what sync_gateway says" in found.detail
    assert "couchbase-sync-gateway-community" in found.remedy
    assert "https://docs.couchbase.com/sync-gateway/" in found.remedy
    assert f"correct or unset {GATEWAY}" in found.remedy


def test_a_program_that_does_not_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is given up, and ended."""
    monkeypatch.setattr(doctor, "_PATIENCE", 0.3)
    monkeypatch.setenv(GATEWAY, program(tmp_path, "exec sleep 600"))
    assert "did not end in" in doctor._sync_gateway().detail


def test_a_gateway_by_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the real one: its name and version before the options, whatever its exit code."""
    monkeypatch.setenv(GATEWAY, program(tmp_path, 'echo "==== Couchbase Sync Gateway/4.0.0(1;abc) CE ===="; exit 1'))
    found = doctor._sync_gateway()
    assert (found.status, found.detail.endswith("(Couchbase Sync Gateway/4.0.0(1;abc))")) == ("ok", True)


def _empty(folder: Path) -> Path:
    (folder / "libcblite.so").write_bytes(b"")
    return folder / "libcblite.so"


def _built(folder: Path, source: str) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler here")
    (folder / "lib.c").write_text(source)
    made = folder / "libcblite.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", made, folder / "lib.c"], check=True)
    return made


@pytest.mark.skipif(sys.platform != "linux", reason="Couchbase Lite is bound for Linux")
@pytest.mark.parametrize(
    ("source", "words"),
    [
        (None, "file too short"),
        ("int x;", "not Couchbase Lite"),
        ("void CBLDatabase_ChangeEncryptionKey(void) {}", "Enterprise Edition"),
        ("__attribute__((constructor)) void end(void) { __builtin_trap(); }", "ended the process"),
    ],
    ids=["empty", "another", "refused", "crashing"],
)
def test_a_library_that_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str | None, words: str
) -> None:
    """Empty, another, of the wrong edition, or one that ends its process: broken, and the doctor lives to say so."""
    pytest.importorskip("cffi", reason="Couchbase Lite needs the extra `cblite`")
    monkeypatch.setenv(LIBRARY, str(_empty(tmp_path) if source is None else _built(tmp_path, source)))
    found = doctor._libcblite()
    assert (found.status, words in found.detail) == ("broken", True), found.detail
    assert "libcblite-community" in found.remedy
    assert "https://docs.couchbase.com/couchbase-lite/" in found.remedy


def test_a_library_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the variable names has to exist."""
    monkeypatch.setenv(LIBRARY, str(tmp_path / "libcblite.so"))
    assert doctor._libcblite().status == "broken"
