"""What spark-submit runs: `sluicegate cloud merge` with the arguments behind it, or `reconcile`, on its master."""

from __future__ import annotations

import os
import sys

from sluicegate.cli import main

if __name__ == "__main__":
    asked = sys.argv[1:] if sys.argv[1:2] == ["reconcile"] else ["merge", *sys.argv[1:]]
    main(["cloud", *asked, "--master", os.environ.get("SLUICEGATE_MASTER", "yarn")])
