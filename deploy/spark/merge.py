"""What spark-submit runs: `sluicegate cloud merge` with the arguments behind it, on the master it was given."""

from __future__ import annotations

import os
import sys

from sluicegate.cli import main

if __name__ == "__main__":
    main(["cloud", "merge", *sys.argv[1:], "--master", os.environ.get("SLUICEGATE_MASTER", "yarn")])
