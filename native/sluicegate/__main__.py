"""`python -m sluicegate` is the command line."""

from sluicegate.cli import main

main()
