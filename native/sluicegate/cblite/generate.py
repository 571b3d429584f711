"""Writes `_ffi_3.py` and `_ffi_4.py`, the declarations as cffi parsed them: so no program parses C when it runs.

`python -m sluicegate.cblite.generate`, after a change in `declarations`. Nothing is compiled; a test compares.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
from pathlib import Path

import cffi

from sluicegate.cblite.declarations import MAJORS, text

HEAD = '''"""Declarations for libraries of major version {}, as cffi parsed them: made by `cblite.generate`."""
# ruff: noqa
# mypy: ignore-errors
'''


def generated(major: int) -> str:
    """The text of `_ffi_<major>.py`."""
    ffi = cffi.FFI()
    ffi.cdef(text(major))
    ffi.set_source(f"_ffi_{major}", None)
    with tempfile.TemporaryDirectory() as folder:
        with contextlib.redirect_stdout(io.StringIO()):  # it says where it writes
            ffi.emit_python_code(str(Path(folder, "made.py")))
        return HEAD.format(major) + Path(folder, "made.py").read_text()


def main() -> None:
    """Write both modules beside this one."""
    for major in MAJORS:
        Path(__file__).with_name(f"_ffi_{major}.py").write_text(generated(major))


if __name__ == "__main__":
    main()
