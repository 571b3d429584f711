"""The JSON Schema of a configuration, made from their own definition: for editors that complete and check TOML."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from msgspec import NODEFAULT
from msgspec.structs import FieldInfo, fields

from sluicegate_agent.config import inputs
from sluicegate_agent.config.formats import BUILT_IN
from sluicegate_agent.config.model import Config
from sluicegate_agent.config.table import Table
from sluicegate_agent.config.units import Duration, Pace, Share, Size

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_VARIABLE = {"type": "string", "pattern": r"\$\{[A-Za-z_][A-Za-z0-9_]*\}"}
_PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    Path: {"type": "string", "minLength": 1},
    Duration: {"type": ["string", "integer"], "description": 'a length of time, such as "10s", "5min", "24h"'},
    Pace: {"type": ["string", "integer"], "description": 'a length of time, such as "10s", or "reading": after each'},
    Size: {"type": ["string", "integer"], "description": 'a size, such as "256KiB", "16MiB"'},
    Share: {"type": ["string", "number"], "description": 'a share, such as "0.1%" or 0.001'},
}


def schema() -> dict[str, Any]:
    """The whole of it; each table is defined once."""
    defined: dict[str, Any] = {}
    root = _table(Config, defined)
    return {"$schema": DIALECT, "title": "Sluicegate agent", **root, "$defs": dict(sorted(defined.items()))}


def _table(kind: type[Table], defined: dict[str, Any]) -> dict[str, Any]:
    infos = fields(kind)
    found: dict[str, Any] = {
        "type": "object",
        "description": (kind.__doc__ or "").partition("\n")[0],
        "properties": {info.encode_name: _field(info, defined) for info in infos},
        "additionalProperties": False,
    }
    required = [info.encode_name for info in infos if info.required]
    return found | ({"required": required} if required else {})


def _field(info: FieldInfo, defined: dict[str, Any]) -> dict[str, Any]:
    found = _kind(info.type, defined)
    known = {"format": [*BUILT_IN], "input": [inputs.MQTT, *inputs.BUILT_IN]}.get(info.name)
    if known:  # packages may add some
        found = {"anyOf": [{"enum": known}, found]}
    if info.name == "options":  # each input has its own
        found = {"type": "object"}
    default = info.default
    if default is NODEFAULT or not isinstance(default, bool | int | float | str) or default == "":
        return found
    return found | {"default": default if type(default) in (bool, int, float, str) else str(default)}


def _kind(kind: Any, defined: dict[str, Any]) -> dict[str, Any]:
    if isinstance(kind, type) and issubclass(kind, Table):
        if kind.__name__ not in defined:
            defined[kind.__name__] = {}
            defined[kind.__name__] = _table(kind, defined)
        return {"$ref": f"#/$defs/{kind.__name__}"}
    if kind in _PLAIN:
        # A number or a switch may come out of an environment variable.
        return _PLAIN[kind] if kind not in (int, float, bool) else {"anyOf": [_PLAIN[kind], _VARIABLE]}
    return _composed(kind, defined)


def _composed(kind: Any, defined: dict[str, Any]) -> dict[str, Any]:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        return {"enum": [*arguments]}
    if origin in (Union, types.UnionType):
        kinds = [_kind(each, defined) for each in arguments if each is not type(None)]
        return kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    if origin is tuple:
        return {"type": "array", "items": _kind(arguments[0], defined)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _kind(arguments[1], defined)}
    return {}
