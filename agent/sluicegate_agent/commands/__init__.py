"""The agent's commands, one module each. They import only click at their top, so that `--help` costs nothing.

`starting`, which `run` calls, does without click.
"""
