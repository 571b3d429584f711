"""Formats by name: those of this package, those that others add, and what is said where one is missing."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from sluicegate_agent.config import ConfigError, build
from sluicegate_agent.config.formats import BUILT_IN, GROUP, Payload, payload_of
from sluicegate_agent.messages import Decoded
from sluicegate_agent.naming.plugins import UnknownName

RAW = {"device": {"id": "d"}, "state": {"path": "s"}, "source": [{"topic": "w", "streams": {"x": "x"}}]}
OTHERS = Payload(lambda source, payload, arrival, limits: Decoded("w", None, None, 0, [("x", 0, float(len(payload)))]))


@pytest.fixture(autouse=True)
def _forgetful() -> None:
    payload_of.cache_clear()


def test_a_package_of_others_adds_a_format(monkeypatch: pytest.MonkeyPatch) -> None:
    """By an entry point: it is found by its name, checked, and reads."""
    module = sys.modules[__name__]
    point = importlib.metadata.EntryPoint("length", f"{module.__name__}:OTHERS", GROUP)
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [point] if group == GROUP else [])
    config = build(RAW | {"source": [RAW["source"][0] | {"format": "length"}]}, Path("agent.toml"))
    assert payload_of(config.sources[0].format) is OTHERS
    with pytest.raises(UnknownName, match='or "length"'):
        payload_of("width")


def test_a_package_of_others_that_cannot_be_imported_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """It names the source and the package; it was an error of the agent's."""
    point = importlib.metadata.EntryPoint("length", "no_such_package:OTHERS", GROUP)
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [point] if group == GROUP else [])
    with pytest.raises(ConfigError) as caught:
        build(RAW | {"source": [RAW["source"][0] | {"format": "length"}]}, Path("agent.toml"))
    assert "no_such_package:OTHERS cannot be imported: ModuleNotFoundError" in str(caught.value)


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """`check` says what to install; nothing is imported for it."""
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "sluicegate_agent.config.formats.find_spec", lambda name: None if name == "cbor2" else find(name)
    )
    with pytest.raises(ConfigError) as caught:
        build(RAW | {"source": [RAW["source"][0] | {"format": "cbor"}]}, Path("agent.toml"))
    assert 'source[1].format = "cbor": needs the package cbor2: pip install "sluicegate[cbor]"' in str(caught.value)


def test_what_is_not_configured_is_not_imported() -> None:
    """An agent of JSON loads no other format, and none loads a library before the first message."""
    script = (
        "import sys; from pathlib import Path; from sluicegate_agent.config import build\n"
        "import sluicegate_agent.agent\n"
        f"build({RAW!r}, Path('agent.toml'))\n"
        "print([name for name in sys.modules if name.startswith(('cbor2', 'google')) or name in "
        f"{[place.partition(':')[0] for name, place in BUILT_IN.items() if 'text' not in place]!r}])"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
