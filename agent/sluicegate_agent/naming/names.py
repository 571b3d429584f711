"""What streams are called inside the agent: `[device::]name[/key]`, the parts told apart by what no name may hold."""

from __future__ import annotations

#: Bytes of a key at most, in UTF-8: with a device and a stream of 64 a document's id stays below its limit of 250.
KEY_MOST = 64


def full_name(device: str, name: str, key: str) -> str:
    """The one name by which the agent knows a stream; an empty `device` is the agent's own."""
    return f"{device}::{name}/{key}" if device and key else f"{device}::{name}" if device else _titled(name, key)


def _titled(name: str, key: str) -> str:
    return f"{name}/{key}" if key else name


def device_of(stream: str) -> str:
    """The device that a stream speaks for; empty: the agent's own."""
    device, mark, _ = stream.partition("::")
    return device if mark else ""


def title_of(stream: str) -> str:
    """What the stream is called in documents: `name` or `name/key`."""
    return stream.partition("::")[2] if "::" in stream else stream


def base_of(stream: str) -> str:
    """The name in the configuration, without device and key."""
    return title_of(stream).partition("/")[0]


def key_of(stream: str) -> str:
    """The key, empty where there is none."""
    return title_of(stream).partition("/")[2]


def flaw_of_key(key: str) -> str:
    """Why a text can be no key; empty where it can."""
    if not key:
        return "it is empty"
    if len(key) > KEY_MOST or len(key.encode()) > KEY_MOST:
        return f"it is longer than {KEY_MOST} bytes"
    if not key.isprintable() or "::" in key or ":" in (key[0], key[-1]) or key != key.strip():
        return "it has characters that no name may have (control characters, `::`, a colon or blank at its ends)"
    return ""
