"""What the tests of inputs begin with: a growing file that is read, a listener for POST."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from growing_file import Reader
    from posting import Receiver


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Reader]]:
    """Makes a reader that looks for rotations at once; closes it."""
    pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
    from growing_file import Reader

    from sluicegate_agent.inputs import tail as tails

    monkeypatch.setattr(tails, "LOOKED_EVERY", 0.0)
    made: list[Reader] = []

    def make(**keys: Any) -> Reader:
        made.append(Reader(tmp_path, **keys))
        return made[-1]

    yield make
    for one in made:
        one.inputs.close()
        one.desk.state.close()


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Callable[..., Receiver]]:
    """Makes a receiver; closes it."""
    pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
    from posting import Receiver

    made: list[Receiver] = []

    def make(**http: Any) -> Receiver:
        made.append(Receiver(tmp_path, **http))
        return made[-1]

    yield make
    for one in made:
        one.inputs.close()
        one.desk.state.close()


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Puts a package of one module where Python finds it, with its entry points, as pip does."""
    pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
    from sluicegate_agent.config.inputs import input_of

    place = tmp_path / "site"
    place.mkdir()
    monkeypatch.syspath_prepend(place)
    input_of.cache_clear()
    put_there: list[str] = []

    def put(name: str, code: str, points: str) -> None:
        put_there.append(name)
        about = place / f"{name}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(points)
        (place / f"{name}.py").write_text(code)
        importlib.invalidate_caches()

    yield put
    input_of.cache_clear()
    for name in put_there:
        sys.modules.pop(name, None)
