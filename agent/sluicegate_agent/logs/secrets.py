"""No secret in a log line: those that the agent was given, by their value, and what looks like one, by its place."""

from __future__ import annotations

import base64
import json
import re
from typing import Any
from urllib.parse import quote, quote_plus

HIDDEN = "***"
#: Shorter ones are not looked for by value: they would stand in every other word.
SHORTEST = 4
_VALUES: set[str] = set()

_USERINFO = re.compile(r"(?<=://)[^/\s\"'@]*(?:@[^/\s\"'@]*)*@")
_HEADER = re.compile(r"(?i)\b(authorization|proxy-authorization|cookie|set-cookie)(['\"]?\s*[:=,]\s*)[^\r\n]*")
_SCHEME = re.compile(r"(?i)\b(basic|bearer|digest)\s+[a-z0-9+/=._~-]{6,}")
_SESSION = re.compile(r"(?i)\b(SyncGatewaySession)=[^;,\s\"']+")
_NAMED = re.compile(
    r"(?i)((?:passw(?:or)?d|passphrase|secret|token|api[_-]?key|private[_-]?key|session[_-]?id|credential)[\w-]{0,24})"
    r"((?:\\?['\"])?\s*[:=]\s*)"
    r"(\\?\"(?:[^\"\\]|\\.)*\\?\"|\\?'(?:[^'\\]|\\.)*\\?'|[^\s,;&}\])]+)"
)
_NAMES = re.compile(r"(?i)passw|passphrase|secret|token|api[_-]?key|private[_-]?key|authorization|cookie|credential")
_PEM = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)


def hide(value: str) -> str:
    """Remember a secret, in the forms that it is sent in; whatever has it is logged without it. Returns the secret."""
    if len(value) >= SHORTEST:
        plain = base64.b64encode(value.encode()).decode()
        _VALUES.update((value, quote(value, safe=""), quote_plus(value), json.dumps(value)[1:-1], repr(value)[1:-1]))
        _VALUES.add(plain.rstrip("="))
    return value


def redacted(text: str) -> str:
    """A text without secrets."""
    for value in sorted(_VALUES, key=len, reverse=True):
        if value in text:
            text = text.replace(value, HIDDEN)
    text = _PEM.sub(HIDDEN, text)
    text = _USERINFO.sub(f"{HIDDEN}@", text)
    text = _HEADER.sub(rf"\1\2{HIDDEN}", text)
    text = _SCHEME.sub(rf"\1 {HIDDEN}", text)
    text = _SESSION.sub(rf"\1={HIDDEN}", text)
    return _NAMED.sub(_named, text)


def _named(match: re.Match[str]) -> str:
    """`password = …` without what follows; `password_file: /run/secret` names a place, which helps."""
    name, between, value = match.groups()
    return match[0] if name.lower().endswith(("_file", "_env")) else f"{name}{between}{HIDDEN if value else ''}"


def without_secrets(_: Any, __: str, event: dict[str, Any]) -> dict[str, Any]:
    """A processor of structlog: every text of an event redacted, in whatever it is nested; other things as texts."""
    return {name: cleaned(name, value) for name, value in event.items()}


def cleaned(name: str, value: Any) -> Any:
    """A value without secrets, in whatever they are nested; `name` is what it is called."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if _NAMES.search(name) and not name.lower().endswith(("_file", "_env")):
        return HIDDEN
    if isinstance(value, dict):
        return {str(key): cleaned(str(key), part) for key, part in value.items()}
    if isinstance(value, list | tuple | set):
        return [cleaned("", part) for part in value]
    return redacted(value if isinstance(value, str) else str(value))
