"""The schema that editors get: it is one, the sample is valid by it, and what `check` refuses as unknown is not."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
pytest.importorskip("jsonschema", reason="the schema is held against jsonschema, which is not here")
import jsonschema

from sluicegate_agent.commands.check import sample_text
from sluicegate_agent.config.schema import schema

LEAST: dict[str, Any] = {
    "device": {"id": "a"},
    "state": {"path": "state"},
    "source": [{"topic": "t/{x}", "streams": {"a": "v"}, "keys": {"most": 5, "evict": "lru"}, "tags": {"x": "{x}"}}],
    "window": [{"name": "w", "policy": {"time": "24h"}, "aggregate": ["mean", "max"]}],
}


def test_the_sample_is_valid() -> None:
    """The sample, and a small configuration, are valid; the schema itself is one of its dialect."""
    jsonschema.Draft202012Validator.check_schema(schema())
    for raw in (tomllib.loads(sample_text()), LEAST, LEAST | {"mqtt": {"port": "${PORT}"}}):
        jsonschema.validate(raw, schema())


@pytest.mark.parametrize(
    "wrong",
    [{"devise": {}}, {"mqtt": {"hots": "x"}}, {"mqtt": {"port": "x"}}, {"mqtt": {"version": 4}}, {"source": [{}]}],
)
def test_what_check_refuses_is_not(wrong: dict[str, Any]) -> None:
    """An unknown table or key, a wrong type, a value that is not allowed, and a missing key are found by an editor."""
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(LEAST | wrong, schema())
