"""Which library it is, is known before anything is passed to it; what is not known is refused with what to do."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("cffi", reason="missing: cffi (pip install 'sluicegate[cblite]')")

from sluicegate import cblite
from sluicegate.cblite import loading
from sluicegate.cblite.loading import LibraryMissing, LibraryUnsupported, identify
from sluicegate.cblite.soname import soname

GENERATE = Path(__file__).parents[2] / "deploy/cblite/generate.py"
OF_3_1 = {"CBLCollection_GetDocument", "CBLDatabase_SaveDocument", "CBL_InstanceCount"}
OF_4 = {"CBLCollection_GetDocument", "CBLDocument_Timestamp", "CBL_InstanceCount", "CBLCollection_FullName"}


class Exports:
    """A library that exports these names and must not be called."""

    def __init__(self, *names: str) -> None:
        for name in names:
            setattr(self, name, None)


@pytest.mark.parametrize("major", [3, 4])
def test_the_parsed_declarations_are_those_of_the_headers(major: int) -> None:
    """`_ffi_3` and `_ffi_4` are what deploy/cblite/generate.py makes of the headers now."""
    made = Path(loading.__file__).with_name(f"_ffi_{major}.py").read_text()
    generated = runpy.run_path(str(GENERATE))["generated"]
    assert made == generated(major), f"run python {GENERATE}"


@pytest.mark.parametrize("major", [3, 4])
def test_structures_have_the_observed_sizes_and_places(major: int) -> None:
    """What the library was seen to use, byte by byte, on 64-bit machines."""
    if sys.maxsize < 2**32:
        pytest.skip("sizes are of 64-bit machines")
    ffi = loading._declared(major)
    sizes = {"DatabaseConfiguration": 24, "ReplicationCollection": 48, "ReplicatorStatus": 40, "Error": 12}
    sizes |= {"ReplicatedDocument": 64, "ReplicatorConfiguration": 160 if major == 3 else 120}
    assert {name: ffi.sizeof(f"CBL{name}") for name in sizes} == sizes
    if major == 3:
        places = {"endpoint": 8, "authenticator": 32, "pinnedServerCertificate": 56, "trustedRootCertificates": 72}
        places |= {"context": 128, "collections": 136, "acceptParentDomainCookies": 152}
        assert {name: ffi.offsetof("CBLReplicatorConfiguration", name) for name in places} == places


@pytest.mark.parametrize(
    ("exports", "name", "version"),
    [
        (OF_3_1, "libcblite.so.3", (3, "3.1")),
        (OF_3_1 | {"CBLCollection_FullName"}, "libcblite.so.3", (3, "3.2.0")),
        (OF_3_1 | {"CBLCollection_FullName", "CBLCollection_CreateArrayIndex"}, None, (3, "3.2.1")),
        (OF_3_1 | {"CBLLogSinks_SetConsole"}, "libcblite.so.3", (3, "3.2.2")),
        (OF_3_1 | {"CBLDatabase_PublicUUID"}, "libcblite.so.3", (3, "3.2.3")),
        (OF_4, "libcblite.so.4", (4, "4")),
    ],
)
def test_a_version_is_told_by_what_it_exports(exports: set[str], name: str | None, version: tuple[int, str]) -> None:
    """Each version by the functions that came with it."""
    assert identify(Exports(*exports), name, "here") == version


@pytest.mark.parametrize(
    ("exports", "name", "words"),
    [
        ({"CBLDatabase_SaveDocument", "CBL_InstanceCount"}, "libcblite.so.3", "3.0 or older"),
        (OF_4 | {"CBLDatabase_SaveDocument"}, None, "3.0 or older, without collections|not known here|expected"),
        (OF_4 - {"CBLDocument_Timestamp"}, "libcblite.so.5", "not known here .its name says 5"),
        (OF_4, "libcblite.so.5", "calls itself libcblite.so.5"),
        (OF_3_1, "libcblite.so.4", "calls itself libcblite.so.4"),
        (OF_3_1 | {"CBLDatabase_ChangeEncryptionKey"}, "libcblite.so.3", "Enterprise Edition"),
        ({"sqlite3_open"}, "libsqlite3.so.0", "not Couchbase Lite's C library"),
    ],
)
def test_what_is_not_known_is_refused(exports: set[str], name: str | None, words: str) -> None:
    """Older, newer, contradictory, of the other edition, or something else: an error that says what to install."""
    with pytest.raises(LibraryUnsupported, match=words) as caught:
        identify(Exports(*exports), name, "here")
    assert "SLUICEGATE_LIBCBLITE" in str(caught.value) or "agree" in str(caught.value)


def test_a_missing_library_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """An ImportError that names the package and the variable."""
    monkeypatch.setenv(loading.VARIABLE, "/nowhere/libcblite.so")
    with pytest.raises(LibraryMissing, match=r"/nowhere/libcblite.so.*libcblite-community.*SLUICEGATE_LIBCBLITE"):
        loading.load(loading.find())


def test_another_shared_library_is_refused() -> None:
    """A file that loads and is not Couchbase Lite."""
    import _ctypes

    with pytest.raises(LibraryUnsupported, match="not Couchbase Lite"):
        loading.load(Path(_ctypes.__file__))


def test_a_librarys_own_name_is_read_from_its_file(tmp_path: Path) -> None:
    """DT_SONAME of a real library; none for what is no library, however it is cut."""
    import _ctypes

    libc = next(line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libc.so" in line)
    assert soname(Path(libc)) == "libc.so.6"
    assert soname(Path(_ctypes.__file__)) is None
    (tmp_path / "text").write_text("no library")
    assert soname(tmp_path / "text") is None
    (tmp_path / "cut").write_bytes(Path(libc).read_bytes()[:20])
    assert soname(tmp_path / "cut") is None


def test_the_real_library_is_known(real: cblite.Library) -> None:
    """Found, checked, and of a major version that is supported."""
    assert real.major in (3, 4)
    assert Path(real.path).is_file()


MEASURE = """
import sys
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
import sluicegate, json, contextlib, collections, dataclasses, pathlib, enum, threading, weakref
import logging, queue, select, typing
before = resident()
import sluicegate.cblite
from sluicegate.cblite import loading
loading._declared(3)
print(resident() - before, sorted({"pycparser", "cffi", "numpy", "ctypes"} & set(sys.modules)))
"""


def test_importing_the_binding_is_small() -> None:
    """At most 3 MiB resident, declarations included, and no parser of C in the process."""
    done = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True)
    grown, modules = done.stdout.split(" ", 1)
    assert modules.strip() == "[]"
    assert int(grown) <= 3 << 20


def test_sluicegate_itself_loads_nothing_of_it() -> None:
    """`import sluicegate` needs neither cffi nor the library."""
    code = "import sys, sluicegate, sluicegate.stores; print([n for n in sys.modules if 'cblite' in n or 'cffi' in n])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
