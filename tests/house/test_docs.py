"""What the pages say of themselves is so: every link leads somewhere, and their examples in Python and C run."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
#: Pages of the site that are made from the code when it is built: tests/house/test_site.py.
MADE = {f"reference/{name}.md" for name in ("commands", "keys", "python")}


def anchors(page: Path) -> set[str]:
    """The names that a page's headings have, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.S), re.M)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in plain}


def links(page: Path) -> list[str]:
    """Links within the repository."""
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.S)
    return [target for target in re.findall(r"\]\(([^)\s]+)\)", text) if not re.match(r"[a-z]+:", target)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """The file is there, and the heading in it."""
    for target in links(page):
        name, _, anchor = target.partition("#")
        path = Path(os.path.normpath(page.parent / name)) if name else page
        if path.is_relative_to(ROOT / "docs") and path.relative_to(ROOT / "docs").as_posix() in MADE:
            continue
        assert path.exists(), target
        assert not anchor or path.suffix != ".md" or anchor in anchors(path), target


def test_there_are_pages_with_links() -> None:
    """The test above has something to look at."""
    assert len(PAGES) > 50
    assert sum(len(links(page)) for page in PAGES) > 100


def blocks(page: str) -> list[str]:
    """The Python examples of a page."""
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text("utf-8"), re.S | re.M)


def follow(block: str) -> int:
    """Run each statement; one with a result behind it as a comment gives that. How many did."""
    names: dict[str, object] = {}
    seen = 0
    for statement in ast.parse(block).body:
        text = "\n".join(block.splitlines()[statement.lineno - 1 : statement.end_lineno])
        told = re.search(r"# [^{\[]*([{\[].*[}\]])$", text)
        if told and isinstance(statement, ast.Expr):
            assert eval(text, names) == ast.literal_eval(told[1])  # noqa: S307  the page's own text
            seen += 1
        else:
            exec(text, names)  # noqa: S102  the page's own text
    return seen


@pytest.mark.parametrize(
    ("page", "answers"),
    [
        ("README.md", 2),
        ("docs/reference/stores.md", 0),
        ("docs/reference/windows.md", 6),
        ("docs/reference/kinds.md", 3),
    ],
)
def test_the_examples_run(page: str, answers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of the page, to the answers they tell."""
    monkeypatch.chdir(tmp_path)
    assert sum(map(follow, blocks(page))) == answers


def test_the_aggregate_in_c_is_compiled_and_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The source and the command of own-aggregate.md, then its Python."""
    pytest.importorskip("cffi", reason="the example loads its library with cffi")
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    page = "docs/how-to/own-aggregate.md"
    (source,) = re.findall(r"^```c\n(.*?)^```$", (ROOT / page).read_text("utf-8"), re.S | re.M)
    (tmp_path / "own.c").write_text(source)
    command = re.findall(r"own\.c: (cc .*) \*/", source)[0].split()
    subprocess.run(command, check=True, cwd=tmp_path)
    monkeypatch.chdir(tmp_path)
    (block,) = [block for block in blocks(page) if "import cffi" in block]
    assert follow(block) == 1
