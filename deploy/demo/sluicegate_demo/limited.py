"""`python -m sluicegate_demo.limited BYTES ARGS…`: the command `sluicegate ARGS…` with its data segment held to BYTES.

RLIMIT_DATA (heap and anonymous memory) is what `sluicegate plan` states, and what the kernel then holds the agent to:
one that needs more than its plan gets MemoryError, it does not merely look bad in a table.
"""

from __future__ import annotations

import resource
import sys


def main(arguments: list[str]) -> None:
    """Set the limit, then become the command."""
    limit = int(arguments[0])
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    from sluicegate.cli import main as sluicegate

    sluicegate(arguments[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
