"""Builds the compiled modules; everything that is not a C extension is declared in pyproject.toml."""

from __future__ import annotations

import os
import re
import sys
from multiprocessing import set_start_method
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

NATIVE = Path("native")
COMPILER = 315 << 20  # bytes that compiling the largest module takes
CHECKED = os.environ.get("SLUICEGATE_BUILD_CHECKED") == "1"
# A folder for the C code by what it is made from: who builds the same sources twice has them translated once.
CACHE = os.environ.get("SLUICEGATE_BUILD_CACHE") or None
# Python's own flags ask for debugging information: a quarter of the compiler's time, four fifths of a module.
DEBUGGED = CHECKED or "CFLAGS" in os.environ

# What Cython needs behind typed memoryviews, once for all modules: it was a fifth of a wheel in ten copies.
SHARED = "sluicegate.partials.memoryviews"

DIRECTIVES = {
    "language_level": 3,
    "binding": True,
    "embedsignature": True,
    "auto_pickle": False,
    "autotestdict": False,
    "boundscheck": CHECKED,
    "wraparound": False,
    "initializedcheck": CHECKED,
    "cdivision": True,
}


def compilers() -> int:
    """How many compile at once: as many as there are cores, and as fit into the memory that is free."""
    cores = os.cpu_count() or 1
    memory = Path("/proc/meminfo")
    free = re.search(r"MemAvailable: *(\d+) kB", memory.read_text("ascii")) if memory.exists() else None
    fitting = max(1, min(cores, (int(free[1]) << 10) // COMPILER)) if free else cores
    if fitting < cores:
        print(f"sluicegate: memory for {fitting} compilers, not {cores}: slow; a wheel needs none", file=sys.stderr)
    return fitting


PARALLEL = compilers()
# Cython's helpers are copies of this process: Python 3.14 would start each anew, and run this file again in it.
set_start_method("fork", force=True)


def extensions() -> list[Extension]:
    """One extension per .pyx below native/, named after its place in the package."""
    # -ffp-contract=off: a fused multiply-add would make the compiled sums differ in the last bit from the Python twin.
    # No code looks at errno or at exception flags after a square root or a division: so both may go two at a time.
    # -fwrapv: CPython's own flags have it, but a CFLAGS in the environment replaces those.
    flags = [
        "-O3", "-fwrapv", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-Wno-unreachable-code"
    ]  # fmt: skip
    # Nothing unwinds through these modules' C: the tables for it are a twentieth of a wheel.
    flags += [] if CHECKED else ["-fno-asynchronous-unwind-tables"]
    flags += [] if DEBUGGED else ["-g0"]
    # Names of functions that only a debugger asks for are a fifth of a module.
    links = [] if DEBUGGED or sys.platform != "linux" else ["-Wl,-s"]
    sources = {
        ".".join(source.relative_to(NATIVE).with_suffix("").parts): source.as_posix()
        for source in sorted(NATIVE.rglob("*.pyx"))
    }
    return [
        Extension(
            name,
            [source],
            extra_compile_args=flags,
            extra_link_args=links,
            # Named, so that exp and log bind to libm's present ones, and not to those for programs of before 2018.
            libraries=["m"],
        )
        for name, source in [*sources.items(), (SHARED, "build/cython/memoryviews.c")]
    ]


setup(
    ext_modules=cythonize(
        extensions(),
        include_path=[NATIVE.as_posix()],
        compiler_directives=DIRECTIVES,
        build_dir="build/cython",
        nthreads=PARALLEL,
        cache=CACHE,
        shared_utility_qualified_name=SHARED,
    ),
    options={"build_ext": {"parallel": PARALLEL}},
)
