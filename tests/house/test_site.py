"""The site builds without a warning, fetches nothing from elsewhere, and its how-tos' configurations are right."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WIDTH = 100

pytest.importorskip("mkdocs", reason="the site needs the extra dev")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole site, built once, warnings as errors."""
    out = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-P", "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)],
        capture_output=True, text=True, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    return out


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    """Scripts, styles, fonts and pictures are the site's own: it reads the same without a network."""
    loads = re.compile(
        r"<(?:script|img|iframe|link rel=\"(?:stylesheet|preconnect)\")[^>]*(?:src|href)=\"(https?:[^\"]*)"
    )
    pages = list(site.rglob("*.html"))
    assert len(pages) > 50
    assert {url for page in pages for url in loads.findall(page.read_text("utf-8"))} == set()


def test_it_can_be_searched_from_a_folder(site: Path) -> None:
    """Without a server a page may neither fetch the index nor start a worker: both are scripts of the site."""
    assert (site / "search/search_index.js").read_text("utf-8").startswith("var __index = ")
    assert 'src="../site/iframe-worker.js"' in (site / "how-to/alert.html").read_text("utf-8")
    assert (site / "site/iframe-worker.js").exists()


def test_the_made_pages_name_every_key_and_command(site: Path) -> None:
    """Each key of the configuration's schema, each command, and what `import sluicegate` gives."""
    import sluicegate
    from sluicegate.commands import root
    from sluicegate_agent.config.schema import schema

    keys = (site / "reference/keys.html").read_text("utf-8")
    for table in schema()["$defs"].values():
        assert all(f">{key}</code>" in keys for key in table["properties"])
    commands = (site / "reference/commands.html").read_text("utf-8")
    assert all(f"sluicegate {name}" in commands for name in root.list_commands(None))  # type: ignore[arg-type]
    python = (site / "reference/python.html").read_text("utf-8")
    assert all(f"sg.{name}" in python for name in sluicegate.__all__)


def test_every_kind_of_window_is_played(site: Path) -> None:
    """The tables of that page, which are empty in the repository."""
    assert (site / "reference/kinds-played.html").read_text("utf-8").count("</table>") == 7


@pytest.mark.parametrize("page", ["tutorial/index.md", "how-to/alert.md", "how-to/history.md"])
def test_configurations_are_right(page: str, tmp_path: Path) -> None:
    """What a page says to write passes `check`; a part is put behind the least configuration."""
    from sluicegate_agent.config.load import load

    (written,) = re.findall(r"^```toml.*?\n(.*?)^```$", (ROOT / "docs" / page).read_text("utf-8"), re.S | re.M)
    least = '[device]\nid = "a"\n[state]\npath = "state"\n[[source]]\ntopic = "t"\nstreams = { temp = "temp" }\n'
    file = tmp_path / "agent.toml"
    file.write_text(written if "[device]" in written else least + written)
    load(file)


def test_the_tutorial_says_what_python_answers() -> None:
    """Its first window, statement by statement."""
    found = doctest.testfile(str(ROOT / "docs/tutorial/index.md"), module_relative=False)
    assert found.attempted > 5
    assert found.failed == 0


def test_prose_is_wrapped() -> None:
    """No line of prose is longer than the width: `python deploy/site/wrap.py FILE` does it."""
    sys.path.insert(0, str(ROOT / "deploy/site"))
    try:
        from wrap import wrapped
    finally:
        sys.path.pop(0)
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    texts = {page.relative_to(ROOT): page.read_text("utf-8") for page in pages}
    assert [str(page) for page, text in texts.items() if wrapped(text) != text] == []


def test_first_pages_are_short() -> None:
    """README within 120 lines, each page of measurements within 150, a decision within 60."""
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 120
    measured = {page.name: page.read_text("utf-8").splitlines() for page in (ROOT / "docs/measurements").glob("*.md")}
    assert {name: len(lines) for name, lines in measured.items() if len(lines) > 150} == {}
    decisions = {page.name: page.read_text("utf-8").splitlines() for page in (ROOT / "docs/decisions").glob("0*.md")}
    assert len(decisions) > 20
    assert {name: len(lines) for name, lines in decisions.items() if len(lines) > 60} == {}
