"""Texts with places to fill: `{site}` is a level of the topic, `{payload.meta.model}` what stands at a path."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

_PLACE = re.compile(r"\{([^{}]*)\}")
_PAYLOAD = "payload."


class Template:
    """A text and its places, in their order: `levels` names levels of the topic, `paths` places in the payload."""

    def __init__(self, written: str) -> None:
        self.written = written
        self._parts = _PLACE.split(written)  # text, place, text, …
        places = self._parts[1::2]
        self.paths = tuple(each.removeprefix(_PAYLOAD) for each in places if each.startswith(_PAYLOAD))
        self.levels = tuple(each for each in places if not each.startswith(_PAYLOAD))

    @property
    def is_fixed(self) -> bool:
        """Whether it has no place to fill."""
        return len(self._parts) == 1

    @property
    def texts(self) -> list[str]:
        """What stands between the places, before the first and after the last one."""
        return self._parts[::2]

    def fits(self, text: str) -> bool:
        """Whether a text may be this one filled."""
        return re.fullmatch(".+".join(re.escape(each) for each in self.texts), text) is not None

    def fill(self, levels: Mapping[str, str], at: Callable[[str], str] | None = None) -> str:
        """The text with its places filled; those of the payload by `at`, without it they stay."""
        filled = [*self._parts]
        for number, place in enumerate(self._parts[1::2]):
            filled[2 * number + 1] = self._filled(place, levels, at)
        return "".join(filled)

    def _filled(self, place: str, levels: Mapping[str, str], at: Callable[[str], str] | None) -> str:
        if not place.startswith(_PAYLOAD):
            return levels[place]
        if at is None:
            return "{" + place + "}"
        found = at(place.removeprefix(_PAYLOAD))
        # Beside other parts a slash would make two keys look alike.
        return found if len(self._parts) == 3 else found.replace("%", "%25").replace("/", "%2F")


def key_template(written: str) -> Template:
    """The template of a `key`: a text without braces is a path in the payload."""
    return Template(written if "{" in written else "{" + _PAYLOAD + written + "}")


def as_text(raw: Any) -> str | None:
    """A value of a payload as a key or tag has it: a text or a whole number; None for anything else."""
    if isinstance(raw, str):
        return raw
    return str(raw) if isinstance(raw, int) and not isinstance(raw, bool) else None
