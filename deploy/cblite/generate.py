"""Writes `_ffi_3.py` and `_ffi_4.py` of `sluicegate.cblite`, the declarations as cffi parsed them.

So no program parses C when it runs. `python deploy/cblite/generate.py`, after a change in the headers beside it.
Nothing is compiled; a test compares.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
from pathlib import Path

import cffi

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parents[1] / "native/sluicegate/cblite"
MAJORS = (3, 4)
LAYOUT = "/* Here stands the layout of one major version: replicator_3.h or replicator_4.h. */"
HEAD = '''"""Declarations for libraries of major version {}, as cffi parsed them: made by deploy/cblite/generate.py."""
# ruff: noqa
# mypy: ignore-errors
'''


def generated(major: int) -> str:
    """The text of `_ffi_<major>.py`."""
    interface, layout = (HERE / name for name in ("interface.h", f"replicator_{major}.h"))
    ffi = cffi.FFI()
    ffi.cdef(interface.read_text().replace(LAYOUT, layout.read_text()))
    ffi.set_source(f"_ffi_{major}", None)
    with tempfile.TemporaryDirectory() as folder:
        with contextlib.redirect_stdout(io.StringIO()):  # it says where it writes
            ffi.emit_python_code(str(Path(folder, "made.py")))
        return HEAD.format(major) + Path(folder, "made.py").read_text()


if __name__ == "__main__":
    for each in MAJORS:
        (PACKAGE / f"_ffi_{each}.py").write_text(generated(each))
