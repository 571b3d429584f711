"""MkDocs hooks: add pages made from the code, and the repository's own; links to sources become their paths."""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import python_api

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))  # MkDocs puts it back as it was

from bench.kinds import put  # noqa: E402

#: The repository's own pages, by their names in the site.
BORROWED = {"CHANGELOG.md": "changes.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md"}
LINK = re.compile(r"(?<!!)\[([^\[\]]+)\]\(([^)\s#:]+)(#[^)\s]*)?\)")
KEYS_HEAD = """# Every key of the configuration

Made from the JSON Schema that `sluicegate check --schema` prints. What each key is for is said in
[configuration](configuration.md), and in the comments of `sluicegate check --sample`.
"""

COMMANDS_HEAD = """# Commands

Made from the commands themselves: what `sluicegate COMMAND --help` prints. What they are for, and the exit codes:
[the agent on a board](agent.md#commands).
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the borrowed pages and the table of all keys."""
    for source, name in BORROWED.items():
        text = (ROOT / source).read_text("utf-8")
        files.append(File.generated(config, name, content=LINK.sub(_from_root, text)))
    files.append(File.generated(config, "reference/keys.md", content=keys_page()))
    files.append(File.generated(config, "reference/commands.md", content=commands_page()))
    files.append(File.generated(config, "reference/python.md", content=python_api.page()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """A link to a page has its title; one that leaves the site says where in the repository its file is.

    Kinds of windows are played where the page says so.
    """
    if page.file.src_uri == "reference/kinds-played.md":
        markdown = put(markdown)
    folder = posixpath.dirname(page.file.src_uri)

    def plain(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join("docs", folder, link[2]))
        name = path.removeprefix("docs/")
        found = files.get_file_from_path(name)
        if found:
            return f"[{_titled(link[1], found)}]({link[2]}{link[3] or ''})"
        if path in BORROWED:
            return f"[{link[1]}]({posixpath.relpath(BORROWED[path], folder or '.')}{link[3] or ''})"
        return f"{link[1]} (`{path}`)" if (ROOT / path).exists() else link[0]

    return LINK.sub(plain, markdown)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Short code in a sentence stays in one piece: extra.css."""
    return re.sub(r"<code>([^<\n]{1,24})</code>", r'<code class="short">\1</code>', html)


def _titled(text: str, file: File) -> str:
    """A link that is a file's name in the repository is the page's title in the site."""
    title = file.page.title if file.page else None
    return str(title) if title and text.endswith(".md") else text


def _from_root(link: re.Match[str]) -> str:
    path = BORROWED.get(link[2], link[2]).removeprefix("docs/")
    return f"[{link[1]}]({'decisions/README.md' if path.rstrip('/') == 'decisions' else path}{link[3] or ''})"


def keys_page() -> str:
    """A heading for each table of the configuration, a row for each of its keys."""
    from sluicegate_agent.config.schema import schema

    whole = schema()
    lines = [KEYS_HEAD]
    waiting = [(name, kind) for name, kind in whole["properties"].items()]
    while waiting:
        name, kind = waiting.pop(0)
        table = _table_of(kind, whole)
        if table is None:
            continue
        title = f"[[{name}]]" if kind.get("type") == "array" else f"[{name}]"
        about = re.sub(r"^`?\[.*?\]+`?: *", "", table["description"])
        lines += [f"\n## `{title}`\n\n{about[:1].upper()}{about[1:]}\n", "| key | default | kind |", "|---|---|---|"]
        for key, value in table["properties"].items():
            lines.append(f"| `{key}` | {_default(key, value, table)} | {_kind(value, whole)} |")
            inner = _table_of(value, whole)
            if inner is not None:
                named = isinstance(value.get("additionalProperties"), dict)
                waiting.insert(0, (f"{name}.{key}.NAME" if named else f"{name}.{key}", value))
    return "\n".join(lines) + "\n"


def _table_of(kind: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any] | None:
    """The table that a kind is, or is a list or a mapping of; None where it is a plain value."""
    named = kind.get("additionalProperties")
    within = [kind, kind.get("items", {}), named if isinstance(named, dict) else {}]
    for each in [one for part in within for one in (part, *part.get("anyOf", ()))]:
        if "$ref" in each:
            found: dict[str, Any] = whole["$defs"][each["$ref"].rpartition("/")[2]]
            return found
    return None


def _default(key: str, value: dict[str, Any], table: dict[str, Any]) -> str:
    """As it would be written in a configuration: lengths of time and sizes with their units."""
    if key in table.get("required", ()):
        return "required"
    default, about = value.get("default"), value.get("description", "")
    if about.startswith("a length of time"):
        default = _written(default, {"d": 86_400_000_000, "h": 3_600_000_000, "min": 60_000_000, "s": 1_000_000})
    elif about.startswith("a size"):
        default = _written(default, {"GB": 10**9, "MiB": 2**20, "KiB": 2**10, "B": 1})
    return "–" if default is None else f"`{default}`"


def _written(default: Any, units: dict[str, int]) -> Any:
    """A number by the greatest unit that goes into it."""
    if default is None or not int(default):
        return default
    name, unit = next(((name, unit) for name, unit in units.items() if int(default) % unit == 0), ("us", 1))
    return f"{int(default) // unit}{name}"


def _kind(value: dict[str, Any], whole: dict[str, Any]) -> str:
    """In words, short enough for a table."""
    if "$ref" in value:
        return "a table"
    if "enum" in value:
        return ", ".join(f"`{each}`" for each in value["enum"])
    if "const" in value:
        return f"`{value['const']}`"
    if "description" in value:
        return str(value["description"])
    if "anyOf" in value:
        kinds = (_kind(each, whole) for each in value["anyOf"] if "pattern" not in each and each.get("type") != "null")
        return " or ".join(dict.fromkeys(kinds))
    if value.get("type") == "array":
        return f"a list: {_kind(value.get('items', {}), whole)}"
    names = {
        "string": "text",
        "integer": "whole number",
        "number": "number",
        "boolean": "`true`, `false`",
        "object": "a table",
    }
    kind = value.get("type", "anything")
    return " or ".join(names.get(each, each) for each in ([kind] if isinstance(kind, str) else kind))


def commands_page() -> str:
    """What `--help` prints of the root and of each command."""
    from sluicegate.commands import root

    return COMMANDS_HEAD + "\n".join(_helps(root, click.Context(root, info_name="sluicegate", terminal_width=96)))


def _helps(command: click.Command, context: click.Context) -> list[str]:
    """The help of a command, then of those below it."""
    lines = [f"\n## `{context.command_path}`\n\n```text\n{command.get_help(context)}\n```"]
    for name in command.list_commands(context) if isinstance(command, click.Group) else ():
        below = command.get_command(context, name)
        if below is not None:
            lines += _helps(below, click.Context(below, info_name=name, parent=context, terminal_width=96))
    return lines
