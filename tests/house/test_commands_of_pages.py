"""Every command that a page tells its reader to type exists, with its options: `sluicegate`, make, scripts, bench."""

from __future__ import annotations

import functools
import importlib.util
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from sluicegate.commands import root

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    page
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "deploy").rglob("*.md")]
    if page.name != "CHANGELOG.md"
)
#: A placeholder in a command's place: `sluicegate COMMAND --help`.
ANY = re.compile(r"[A-Z…]+|…")


def lines(text: str) -> Iterator[str]:
    """The lines of the blocks for a shell, continued ones in one; and code within a sentence."""
    for block in re.findall(r"^```(?:sh|text|console)?\n(.*?)^```$", text, re.S | re.M):
        yield from block.replace("\\\n", " ").splitlines()
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M)
    yield from (code.replace("\n", " ") for code in re.findall(r"(?<!`)`([^`]+)`(?!`)", prose))


def commands(page: Path) -> list[list[str]]:
    """Each as its words, without what stands before it and behind it in the shell."""
    found = []
    for line in lines(page.read_text("utf-8")):
        try:
            words = shlex.split(line, comments=True)
        except ValueError:
            continue
        words = words[1:] if words[:1] == ["sudo"] else words
        end = next((n for n, word in enumerate(words) if re.match(r"\d?[<>|&;]", word)), len(words))
        found += [words[:end]] if words[:end] else []
    return found


def parsed(words: list[str]) -> str | None:
    """What click says against a line of `sluicegate`; None where it is a command with options that there are."""
    command: click.Command = root
    context = click.Context(root, info_name="sluicegate")
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        if ANY.fullmatch(words[0]):
            return None
        below = command.get_command(context, words[0])
        if below is None:
            return f"no command {words[0]}"
        command, context, words = below, click.Context(below, info_name=words[0], parent=context), words[1:]
    words = [word for word in words if word not in ("--help", "…")]
    try:
        _, left, _ = command.make_parser(context).parse_args(list(words))
    except click.BadOptionUsage as error:  # an option that a sentence names without its value
        return None if words[-1:] == [error.option_name] else str(error)
    except click.UsageError as error:
        return str(error)
    return f"too much: {left}" if left and not isinstance(command, click.Group) else None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_and_their_options_exist(page: Path) -> None:
    """By click's own parser, without running any."""
    told = [words[1:] for words in commands(page) if Path(words[0]).name == "sluicegate" and len(words) > 1]
    told += [words for words in commands(page) if words[0] == "cloud" and words[1:2] not in ([], ["="])]
    wrong = {shlex.join(words): said for words in told if (said := parsed(words))}
    assert wrong == {}


def test_what_a_page_makes_or_runs_from_a_checkout_is_there() -> None:
    """Goals of make, modules of `python -m bench`, and scripts by their path; options of bench stand in its source."""
    wrong = {page.name: [each for words in commands(page) for each in missing(words)] for page in PAGES}
    assert {page: found for page, found in wrong.items() if found} == {}


def missing(words: list[str]) -> list[str]:
    """Of one command: what of it is not in the checkout."""
    if words[0] == "make":
        return [word for word in words[1:] if re.fullmatch(r"[a-z][a-z0-9-]*", word) and word not in goals()]
    if words[:2] == ["python", "-m"] and words[2:] and words[2].startswith("bench"):
        return missing_of_bench(words[2], words[3:])
    paths = [word for word in words if re.match(r"(deploy|bench|tests)/[\w./-]+\.(sh|py)$", word)]
    return [path for path in paths if not (ROOT / path).exists()]


@functools.cache
def goals() -> set[str]:
    """What the Makefile makes."""
    text = (ROOT / "Makefile").read_text("utf-8")
    named = " ".join(re.findall(r"^([a-z][\w -]*):(?!=)", text, re.M)).split()
    return {*named, *(f"test-{path.parent.name}" for path in ROOT.glob("tests/*/test_*.py"))}


def missing_of_bench(name: str, words: list[str]) -> list[str]:
    """The module where there is none, and options that its package does not name."""
    if importlib.util.find_spec(name) is None:
        return [name]
    path = ROOT / name.replace(".", "/")
    files = path.glob("*.py") if path.is_dir() else [path.with_suffix(".py")]
    source = "".join(file.read_text("utf-8") for file in files)
    return [f"{name} {word}" for word in words if word.startswith("--") and f'"{word}"' not in source]


def test_the_test_sees_a_command_that_is_not_there() -> None:
    """A wrong command, option, or argument too many is told; a right one is not."""
    assert parsed(["plan", "agent.toml", "--json"]) is None
    assert parsed(["cloud", "mergee", "x"]) == "no command mergee"
    assert "No such option" in str(parsed(["plan", "agent.toml", "--jsn"]))
    assert "too much" in str(parsed(["plan", "agent.toml", "more"]))
    assert missing_of_bench("bench.engines", ["--quick", "--slow"]) == ["bench.engines --slow"]
