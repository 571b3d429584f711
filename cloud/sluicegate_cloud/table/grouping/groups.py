"""Whose windows are added up: all devices of a stream, those with the same tags, and all keys of a stream's name.

A roll-up is a list of words: the name of a tag, `device`, `/` for all keys of a name together, `/2` for those with the
same second level of the key. A group is JSON of its label and its values. Its label is the stream, or NAME:: where it
has several keys, which is no stream's name: what must be answered anew, and where readings are, is known by label.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

ALL_KEYS, DEVICE = "/", "device"
#: A level of the key, counted from 1.
LEVEL = re.compile(r"/[1-9]")
_NAMED = "::"
By = Sequence[str]


def labels_of(by: Iterable[By], stream: str) -> tuple[str, ...]:
    """The labels of the groups that a stream's windows are added to."""
    return (stream, *dict.fromkeys(_label(stream, words) for words in by if across_keys(words)))


def across_keys(words: By) -> bool:
    """Whether a roll-up is of several keys."""
    return any(word.startswith(ALL_KEYS) for word in words)


def groups_of(by: Iterable[By], device: str, stream: str, tags: dict[str, str] | None = None) -> list[str]:
    """All devices of its stream, and of each roll-up those with its values."""
    return [group(stream, words, tags, device) for words in ((), *by)]


def group(stream: str, words: By = (), tags: dict[str, str] | None = None, device: str | None = None) -> str:
    """A roll-up's group; without words that of all devices."""
    levels = stream.split("/")
    told = {DEVICE: device} | (tags or {}) | {f"/{at}": level for at, level in enumerate(levels) if at}
    return json.dumps([_label(stream, words), {word: told.get(word) for word in words}], ensure_ascii=False)


def _label(stream: str, words: By) -> str:
    return stream.partition("/")[0] + _NAMED if across_keys(words) else stream


def label_of(group: str) -> str:
    """The label of a group."""
    return str(json.loads(group)[0])


def stream_of(label: str) -> str:
    """The stream, or the name of those with keys."""
    return label.removesuffix(_NAMED)


def column_of(word: str) -> str:
    """The column of a word's values."""
    return f"key_{word[1:]}" if word.startswith(ALL_KEYS) else f"tag_{word}"


def columns_of(by: Iterable[By]) -> list[str]:
    """The columns of all roll-ups: all keys together have none."""
    return [*dict.fromkeys(column_of(word) for words in by for word in words if word != ALL_KEYS)]
