"""The page of all that `import sluicegate` gives: by what a reader wants, each with signature and docstring."""

from __future__ import annotations

import inspect
import re
from types import ModuleType
from typing import Any

#: What a reader looks for, in this order; what no group names is an aggregate's constructor or a result.
GROUPS = {
    "Windows": ("Window", "Windows", "KeyedWindows", "PartitionEviction", "WindowSpec", "WindowOperator"),
    "What leaves, and when a window answers": ("policies", "triggers"),
    "Aggregates": (),
    "Buckets": ("SumLike", "MaxLike", "Hop", "Constrained"),
    "Operators and handlers": ("operators", "WindowHandler", "WindowSummarizer"),
    "Stores": ("stores",),
    "Results": (),
    "Buckets as they are stored and sent": ("Bucket", "Builder", "merge", "Changes"),
    "Errors": ("SluicegateError", "errors"),
}
HEAD = """# Python: every name

Made from the docstrings of `import sluicegate as sg`. Times are int64 microseconds, usually since
1970 UTC. A length of time may be written as a text such as `"24h"`.
"""


def page() -> str:
    """A heading for each group, below it one for each name and its members."""
    import sluicegate

    lines = [HEAD]
    for title, names in GROUPS.items():
        lines.append(f"\n## {title}\n")
        for name in names or _found(sluicegate, title):
            thing = getattr(sluicegate, name)
            lines += _entry("###", f"sg.{name}", thing)
            for member, value in _members(thing):
                lines += _entry("####", f"{'sg.' if inspect.ismodule(thing) else ''}{name}.{member}", value)
    return "\n".join(lines) + "\n"


def _found(package: ModuleType, title: str) -> list[str]:
    """Of the names in no group: functions make aggregates, all else is a result or says what there is."""
    rest = [name for name in package.__all__ if not any(name in names for names in GROUPS.values())]
    return [name for name in rest if inspect.isroutine(getattr(package, name)) == (title == "Aggregates")]


def _members(thing: Any) -> list[tuple[str, Any]]:
    """What a module offers to call; public methods and properties of a class of ours that have a docstring."""
    if inspect.ismodule(thing):
        own = [name for name, each in vars(thing).items() if getattr(each, "__module__", "") == thing.__name__]
        named = [(name, getattr(thing, name)) for name in getattr(thing, "__all__", sorted(own))]
        return [(name, value) for name, value in named if name[0] != "_" and callable(value)]
    if not inspect.isclass(thing) or issubclass(thing, tuple | Exception):
        return []
    ours = {name for each in thing.__mro__ if each.__module__.startswith("sluicegate") for name in vars(each)}
    members = [(name, getattr(thing, name)) for name in sorted(ours) if name[0] != "_" and name != "name"]
    return [(name, value) for name, value in members if inspect.getdoc(value)]


def _entry(level: str, name: str, thing: Any) -> list[str]:
    """A heading, the signature and the docstring as it is."""
    lines = [f"\n{level} `{name}`\n"]
    signature = _signature(thing)
    if signature:
        lines.append(f"```python\n{name.removeprefix('sg.')}{signature}\n```\n")
    described = callable(thing) or inspect.ismodule(thing) or inspect.isdatadescriptor(thing)
    return [*lines, _plain((inspect.getdoc(thing) or "") if described else f"`{thing}`", name.rpartition(".")[2])]


def _plain(text: str, name: str) -> str:
    """A docstring as Markdown: without the signature that Cython repeats; what is no code does not turn into markup."""
    first, _, rest = text.partition("\n")
    if re.match(rf"(\w+\.)?{re.escape(name)}\(", first):
        text = rest.lstrip("\n")
    parts = text.split("`")
    parts[::2] = [re.sub(r"([*_<|\[])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


def _signature(thing: Any) -> str:
    """As it would be written: annotations without quotes, defaults with theirs, over several lines where it is long."""
    if not callable(thing) or (inspect.isclass(thing) and issubclass(thing, Exception)):
        return ""
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return ""
    if len(str(found)) < 90:
        return _unquoted(str(found))
    lines = []
    for each in found.parameters.values():
        keyword = each.kind is inspect.Parameter.KEYWORD_ONLY
        lines += ["    *,"] if keyword and "    *," not in lines else []
        lines.append(f"    {_unquoted(str(each))},")
    whole = _unquoted(str(found.replace(parameters=[])))
    return "(\n" + "\n".join(lines) + "\n" + whole.removeprefix("(")


def _unquoted(text: str) -> str:
    """Annotations as they stand in the source; defaults keep their quotes."""
    text = re.sub(r"ForwardRef\('([^']*)'\)", r"'\1'", text)
    return re.sub(r"(: |-> )(?:'([^']*)'|\"([^\"]*)\")", r"\1\2\3", text)
