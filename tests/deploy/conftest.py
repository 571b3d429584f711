"""An environment of Python for what installs the agent: made once, since each takes six seconds of processor."""

from __future__ import annotations

import shutil
import venv
from pathlib import Path

import pip
import pytest

COPIES = Path(__file__).parent / "copies"


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One as Python's own venv makes it, with the pip that is here."""
    made = tmp_path_factory.mktemp("environment") / "made"
    venv.create(made, symlinks=True)
    packages = next(made.glob("lib/python*/site-packages"))
    for each in Path(pip.__file__).parents[1].glob("pip*"):
        shutil.copytree(each, packages / each.name)
    return made


@pytest.fixture
def copied(environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`python -m venv` copies that one. What is asked here is what is done with it."""
    monkeypatch.setenv("PYTHONPATH", str(COPIES))
    monkeypatch.setenv("COPIED_ENVIRONMENT", str(environment))
