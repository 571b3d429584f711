"""Builds the timing probe (probe.pyx) once for each state of its sources, below build/bench, and loads it."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import sysconfig
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
NATIVE = ROOT / "native"


@cache
def probe() -> Any:
    """The probe, compiled against the contracts (.pxd) as they are now."""
    folder = ROOT / "build" / "bench" / _fingerprint()
    target = folder / f"sluicegate_bench_probe{sysconfig.get_config_var('EXT_SUFFIX')}"
    if not target.exists():
        _build(folder)
    spec = importlib.util.spec_from_file_location("sluicegate_bench_probe", target)
    if spec is None or spec.loader is None:
        raise ImportError(f"{target}: not built; run `make build` first, then again")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _fingerprint() -> str:
    sources = [*sorted(HERE.glob("*.h")), HERE / "probe.pyx", *sorted(NATIVE.rglob("*.pxd"))]
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]


def _build(folder: Path) -> None:
    """Where another process builds the same at the same time, the last one's equal result stays."""
    from Cython.Build import cythonize
    from setuptools import Distribution, Extension  # type: ignore[import-untyped]

    source = folder / "sluicegate_bench_probe.pyx"
    source.parent.mkdir(parents=True, exist_ok=True)
    source.write_bytes((HERE / "probe.pyx").read_bytes())
    extension = Extension(
        "sluicegate_bench_probe",
        [str(source)],
        include_dirs=[str(HERE)],
        extra_compile_args=["-O3", "-ffp-contract=off"],
    )
    directives = {"language_level": 3, "boundscheck": False, "wraparound": False, "initializedcheck": False}
    made = cythonize(  # type: ignore[no-untyped-call]
        [extension], include_path=[str(NATIVE)], compiler_directives=directives, quiet=True
    )
    command = Distribution({"ext_modules": made}).get_command_obj("build_ext")
    command.build_lib, command.build_temp = str(folder), str(folder / "temp")
    command.ensure_finalized()
    command.run()
