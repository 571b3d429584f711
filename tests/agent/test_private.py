"""The state, and what secrets are in, is for its owner alone; where it is not, that is mended or told."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from durable_agent import configured, sequenced
from msgspec import Struct, structs
from test_commands import CONFIGURATION, sluicegate

from sluicegate_agent import health
from sluicegate_agent.passwords import exposed_files
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.private import make_private
from sluicegate_agent.state import State


@pytest.fixture(autouse=True)
def _open_umask() -> None:
    """As a service without UMask= has it."""
    os.umask(0o022)


def modes(folder: Path) -> dict[str, str]:
    """The rights of a folder and of all in it."""
    return {path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in (folder, *folder.rglob("*"))}


def used(folder: Path) -> Path:
    """A state with readings, still open files closed."""
    settings = configured(folder)
    with State(settings) as state:
        pipeline = Pipeline(settings, state)
        pipeline.accept(sequenced(1, 1))
        pipeline.commit()
        health.write(settings.state.path, health.process())
        found = modes(settings.state.path)
    assert {"state.db", "state.db-wal", "state.db-shm", "lock", "agent.json", "incarnation.json"} <= set(found)
    assert {name: mode for name, mode in found.items() if mode not in ("0o600", "0o700")} == {}
    return settings.state.path


def test_a_new_state_is_private(tmp_path: Path) -> None:
    """From its first byte on: database, log, index, health, lock, and the folder."""
    used(tmp_path)


def test_an_older_state_becomes_private(tmp_path: Path) -> None:
    """What an older version left readable is closed at the start, also what was set aside."""
    folder = used(tmp_path)
    (folder / "damaged-0000.db").write_bytes(b"x")
    for path in (folder, *folder.iterdir()):
        path.chmod(0o755 if path.is_dir() else 0o644)
    used(tmp_path)
    assert set(modes(folder).values()) == {"0o600", "0o700"}


def test_what_is_not_ours_keeps_its_rights(tmp_path: Path) -> None:
    """A folder in which other things lie stays open to them; so do they, and what a link points to."""
    (tmp_path / "target").write_text("x")
    folder = tmp_path / "state"
    folder.mkdir(mode=0o755)
    (folder / "notes.txt").write_text("mine")
    (folder / "state.db").write_text("")
    (folder / "damaged-link").symlink_to(tmp_path / "target")
    make_private(folder)
    found = modes(folder)
    assert (found["state"], found["notes.txt"], found["state.db"]) == ("0o755", "0o644", "0o600")
    assert modes(tmp_path)["target"] == "0o644"


def test_a_store_that_is_set_aside_is_private(tmp_path: Path) -> None:
    """The damaged file, and the reason beside it."""
    folder = used(tmp_path)
    (folder / "state.db").write_bytes(b"no database at all" * 100)
    with State(configured(tmp_path)):
        found = modes(folder)
    assert any(name.startswith("damaged-") and name.endswith(".txt") for name in found)
    assert {name: mode for name, mode in found.items() if mode not in ("0o600", "0o700")} == {}


def test_a_password_file_that_others_may_read_is_told(tmp_path: Path) -> None:
    """By `check`, `run` and `doctor`, with the command that mends it; a private one draws nothing."""
    file, secret = tmp_path / "agent.toml", tmp_path / "secret"
    secret.write_text("hush-hush\n")
    file.write_text(CONFIGURATION + f'[mqtt]\nport = 1\nusername = "u"\npassword_file = "{secret}"\n')
    for mode, told in ((0o644, True), (0o640, True), (0o600, False)):
        secret.chmod(mode)
        warning = f"mqtt.password_file: others than its owner may read {secret}; chmod 600 {secret}"
        assert (warning in sluicegate("check", file).stdout) is told
        if mode != 0o640:
            assert (warning in sluicegate("run", file, "--idle", "0").stderr) is told
            found = sluicegate("doctor", file)
            assert (f"chmod 600 {secret}" in found.stdout) is told
            assert "hush" not in found.stdout


def test_no_script_puts_a_password_on_a_command_line() -> None:
    """Every user of a machine sees command lines: in deploy/ and docs/ secrets go by files and the environment."""
    root = Path(__file__).parents[2]
    options = r"\s(-p|-u|--user|--(?:cluster-|rbac-)?password)[ =][\"']?\$\w*(PASS|USER)"
    on_a_line = re.compile(options + r"|\s-u\s+\S+:\S|password=[\"']?\$|://[^/\s<]+:[^/\s<]+@")
    files = [*root.glob("deploy/**/*.sh"), *root.glob("deploy/**/*.md"), *root.glob("deploy/**/*.yaml")]
    files += [*root.glob("docs/**/*.md"), root / "README.md"]
    found = [
        f"{file.name}: {line}" for file in files for line in file.read_text().splitlines() if on_a_line.search(line)
    ]
    assert len(files) > 20
    assert found == []


def test_each_file_with_a_secret_that_others_may_read_is_named(tmp_path: Path) -> None:
    """Whatever key of the configuration names one, in whatever table."""
    secrets = {"token_file", "password_file", "credentials_file", "key_file"}
    keys = [
        (*at, name)
        for at, table in _tables(configured(tmp_path))
        for name in table.__struct_fields__
        if name in secrets
    ]
    assert len(keys) >= 6
    (open_one := tmp_path / "secret").write_text("x")
    for *at, name in keys:
        config = _with(configured(tmp_path), (*at, name), open_one)
        (said,) = exposed_files(config)
        assert said.startswith(".".join((*at, name)))


def _tables(table: Any, *at: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield at, table
    for name in table.__struct_fields__:
        if isinstance(inner := getattr(table, name), Struct):
            yield from _tables(inner, *at, name)


def _with(table: Any, at: tuple[str, ...], value: Any) -> Any:
    inner = value if len(at) == 1 else _with(getattr(table, at[0]), at[1:], value)
    return structs.replace(table, **{at[0]: inner})
