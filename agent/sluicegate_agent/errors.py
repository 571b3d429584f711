"""Errors of the agent that end a command, each with the exit code that says what it asks for."""

from __future__ import annotations


class EnvironmentRefused(Exception):  # noqa: N818  the environment is what refused; the agent did not fail
    """Raised when the machine, not the configuration, stands in the way: permission, lock, budget, a missing secret."""

    exit_code = 4


class InputRefused(Exception):  # noqa: N818  the input is what was refused
    """Raised for a file of readings, or an option, that does not fit: the message says what was expected."""

    exit_code = 2
