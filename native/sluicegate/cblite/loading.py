"""Finds libcblite, says which version it is by what it exports, and only then hands out its functions.

Structures differ between versions and editions, so nothing is passed to a library that is not known to have the
layout that deploy/cblite declares: Community Edition, 3.1 to 4.x. A version is told by the functions that came with it.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import threading
from pathlib import Path
from typing import Any, NamedTuple

from sluicegate.cblite.soname import soname

VARIABLE = "SLUICEGATE_LIBCBLITE"
NAMES = ("libcblite.so.4", "libcblite.so.3", "libcblite.so")
REMEDY = (
    "install the vendor's package libcblite-community (3.1 to 4.x; pip has none for Linux), or set "
    f"{VARIABLE} to the library's path"
)
NEWEST = 4
ERROR, NONE = 4, 5  # levels of its messages
ALL_DOMAINS = 0xFF


class LibraryMissing(ImportError):
    """There is no libcblite here, or cffi is not installed. The message says what to install."""


class LibraryUnsupported(ImportError):
    """There is a library, and it is not one whose layout is known: another version, or the Enterprise Edition."""


class Library(NamedTuple):
    """A library that may be called: `ffi` makes and reads its data, `lib` has its functions."""

    ffi: Any
    lib: Any
    major: int
    version: str
    path: str


#: What a version brought, newest first; the first that is exported tells the version ("3.2.3" stands for 3.2.4 too).
_SIGNS = (
    ("3.2.3", "CBLDatabase_PublicUUID"),
    ("3.2.2", "CBLLogSinks_SetConsole"),
    ("3.2.1", "CBLCollection_CreateArrayIndex"),
    ("3.2.0", "CBLCollection_FullName"),
    ("3.1", "CBLCollection_GetDocument"),
)
_loading = threading.Lock()
_loaded: Library | None = None


def library() -> Library:
    """The library, loaded at the first call. Raises LibraryMissing, LibraryUnsupported."""
    global _loaded
    with _loading:
        if _loaded is None:
            _loaded = load(find())
            _silence(_loaded)
        return _loaded


def find() -> Path | str:
    """Where `SLUICEGATE_LIBCBLITE` says, else the first name that the system's loader is asked for."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named)
    return NAMES[0]


def load(path: Path | str) -> Library:
    """The library at a path or under a loader's name, checked. Raises LibraryMissing, LibraryUnsupported."""
    if sys.platform != "linux" or sys.byteorder != "little":
        raise LibraryUnsupported("Couchbase Lite is bound for Linux on little-endian machines")
    ffi3 = _declared(3)
    opened, lib3 = _opened(ffi3, path)
    name = soname(Path(opened)) if "/" in opened else opened
    major, version = identify(lib3, name, opened)
    if major == 3:
        return Library(ffi3, lib3, major, version, opened)
    ffi = _declared(major)
    return Library(ffi, ffi.dlopen(opened, ffi.RTLD_NOW), major, version, opened)


def identify(lib: Any, name: str | None, path: str) -> tuple[int, str]:
    """Major version and version of a library by its exports and its own name. Raises LibraryUnsupported."""
    if exports(lib, "CBLDatabase_ChangeEncryptionKey"):
        raise LibraryUnsupported(
            f"{path}: the Enterprise Edition, whose structures differ; expected the Community Edition: {REMEDY}"
        )
    older, newer = exports(lib, "CBLDatabase_SaveDocument"), exports(lib, "CBLDocument_Timestamp")
    told = re.search(r"\.so\.(\d+)", name or "")
    named = int(told[1]) if told else None
    major = 4 if newer and not older else 3 if older and not newer else None
    if major is None or not exports(lib, "CBLCollection_GetDocument"):
        raise LibraryUnsupported(f"{path}: {_strange(lib, named)}; expected Couchbase Lite 3.1 to 4.x: {REMEDY}")
    if named is not None and named != major:
        raise LibraryUnsupported(f"{path}: calls itself {name} and exports what {major}.x does; expected both to agree")
    if major == NEWEST:
        return major, "4"
    return major, next(version for version, sign in _SIGNS if exports(lib, sign))


def exports(lib: Any, name: str) -> bool:
    """Whether the library has a function of this name."""
    try:
        getattr(lib, name)
    except Exception:  # cffi's own kind of error, which differs between its modes
        return False
    return True


def _strange(lib: Any, named: int | None) -> str:
    if exports(lib, "CBLDatabase_SaveDocument"):
        return "Couchbase Lite 3.0 or older, without collections"
    if exports(lib, "CBL_InstanceCount"):
        return f"a version of Couchbase Lite that is not known here (its name says {named})"
    return "not Couchbase Lite's C library"


def _declared(major: int) -> Any:
    try:
        return importlib.import_module(f"sluicegate.cblite._ffi_{major}").ffi
    except ImportError as error:
        raise LibraryMissing(f"{error}; Couchbase Lite needs cffi: pip install 'sluicegate[cblite]'") from error


def _opened(ffi: Any, path: Path | str) -> tuple[str, Any]:
    """The name that worked, and the library. A name without a folder is the loader's to find."""
    names = [str(path)] if isinstance(path, Path) else list(dict.fromkeys([path, *NAMES]))
    reasons = []
    for name in names:
        try:
            lib = ffi.dlopen(name, ffi.RTLD_NOW)
            return _located(name), lib
        except OSError as error:
            reasons.append(str(error))
    raise LibraryMissing(f"no libcblite: {reasons[0]}; {REMEDY}")


def _located(name: str) -> str:
    """The file that the loader has mapped under a bare name, where /proc says so; else the name."""
    if "/" in name:
        return name
    with Path("/proc/self/maps").open() as maps:
        for line in maps:
            mapped = line.rsplit(" ", 1)[-1].strip()
            if Path(mapped).name.startswith("libcblite.so"):
                return mapped
    return name


def _silence(library: Library) -> None:
    """Let the library print nothing: what goes wrong is raised."""
    lib = library.lib
    if exports(lib, "CBLLogSinks_SetConsole"):
        # The library acts on a change of level alone, and takes NONE for what it was: at first it is not.
        for level in (ERROR, NONE):
            lib.CBLLogSinks_SetConsole({"level": level, "domains": ALL_DOMAINS})
    elif exports(lib, "CBLLog_SetConsoleLevel"):
        lib.CBLLog_SetConsoleLevel(NONE)
