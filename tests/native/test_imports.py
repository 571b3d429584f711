"""Every module of the package may be the first that is imported: none waits for another that waits for it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

EACH_FIRST = textwrap.dedent("""
    import os, pkgutil, sys, traceback
    import array, ctypes, dataclasses, enum, hashlib, heapq, json, sqlite3, struct, tempfile, typing  # once for all
    import importlib, sluicegate

    def names(path, prefix):
        for found in pkgutil.iter_modules(path, prefix):
            if not found.name.endswith(".__main__"):
                yield found.name
            if found.ispkg and found.name.rpartition(".")[2] not in ("engines", "cblite", "stores"):
                yield from names([os.path.join(path[0], found.name.rpartition(".")[2])], found.name + ".")

    before = set(sys.modules)
    only = os.environ.get("ONLY", "sluicegate.")
    for name in (each for each in names(sluicegate.__path__, "sluicegate.") if each.startswith(only)):
        if os.fork() == 0:
            assert set(sys.modules) == before
            try:
                importlib.import_module(name)
            except ModuleNotFoundError as missing:  # of an extra that is not installed here
                if (missing.name or "").startswith("sluicegate"):
                    print(name, traceback.format_exc())
            except BaseException:
                print(name, traceback.format_exc())
            sys.stdout.flush()
            os._exit(0)
        os.wait()
    print("all")
""")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process for each module")
def test_each_module_may_be_the_first() -> None:
    """In a process of its own."""
    run = subprocess.run(
        [sys.executable, "-c", EACH_FIRST],
        env={**os.environ, "ONLY": "sluicegate."},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert run.stdout == "all\n", run.stdout + run.stderr
