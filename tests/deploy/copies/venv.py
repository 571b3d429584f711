"""Stands for Python's venv on PYTHONPATH: the environment that COPIED_ENVIRONMENT names, once more."""

from __future__ import annotations

import os
import shutil
import sys

if __name__ == "__main__":
    # Links: what is installed into a copy comes beside these files, and none of them is written again.
    shutil.copytree(
        os.environ["COPIED_ENVIRONMENT"], sys.argv[1], symlinks=True, dirs_exist_ok=True, copy_function=os.link
    )
