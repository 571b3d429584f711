"""Imports go one way: no circle between modules or a component's folders, no arrow from a component to one above.

An import inside a function counts, one for type checkers alone (`if TYPE_CHECKING:`) does not: nothing is loaded by it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HOMES = {
    "sluicegate": "native", "sluicegate_agent": "agent", "sluicegate_cloud": "cloud", "pyspark_sluicegate": "cloud",
    "sluicegate_demo": "deploy/demo",
}  # fmt: skip
#: What each component may import of the others.
BELOW = {
    "sluicegate": set(),
    "sluicegate_agent": {"sluicegate"},
    "sluicegate_cloud": {"sluicegate"},
    "pyspark_sluicegate": {"sluicegate_cloud"},
    "sluicegate_demo": {"sluicegate", "sluicegate_agent", "sluicegate_cloud"},
}
#: The command line: it calls the agent's start itself, so that a small board goes without click.
ROOTS = ("sluicegate.cli",)
Graph = dict[str, set[str]]


def modules() -> dict[str, Path]:
    """Every module of the components, compiled ones by their source."""
    found = {}
    for package, home in HOMES.items():
        base = ROOT / home
        for path in sorted([*(base / package).rglob("*.py"), *(base / package).rglob("*.pyx")]):
            name = ".".join(path.relative_to(base).with_suffix("").parts)
            found[name.removesuffix(".__init__")] = path
    return found


MODULES = modules()


def imported(path: Path) -> Iterator[str]:
    """The full names that a module imports."""
    if path.suffix == ".py":
        yield from _named(ast.parse(path.read_text()))
        return
    lines = path.read_text().splitlines()  # what Cython adds to Python's grammar is not in its import lines
    for line in (each.split("#")[0].strip() for each in lines if each.startswith("from sluicegate")):
        words = line.split()
        if words[2] == "import":
            yield from _named(ast.parse(line.rstrip("( ") + (" *" if line.endswith("(") else "")))


def _named(tree: ast.AST) -> Iterator[str]:
    if isinstance(tree, ast.If) and "TYPE_CHECKING" in ast.dump(tree.test):
        for each in tree.orelse:
            yield from _named(each)
        return
    if isinstance(tree, ast.Import):
        yield from (alias.name for alias in tree.names)
    elif isinstance(tree, ast.ImportFrom) and tree.module:
        yield from (f"{tree.module}.{alias.name}" for alias in tree.names)
    for child in ast.iter_child_nodes(tree):
        yield from _named(child)


def loaded(name: str) -> set[str]:
    """The modules that an import of `name` loads: itself, and the packages that it lies in."""
    parts = name.split(".")
    return {found for at in range(1, len(parts) + 1) if (found := ".".join(parts[:at])) in MODULES}


def graph() -> Graph:
    """What each module imports; a package does not count for what lies in it."""
    return {
        name: {each for full in imported(path) for each in loaded(full) if not f"{name}.".startswith(f"{each}.")}
        for name, path in MODULES.items()
    }


IMPORTS = graph()


def circles(of: Graph) -> list[list[str]]:
    """The sets of two and more that reach one another (Tarjan's components)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        order[name] = low[name] = len(order)
        stack.append(name)
        for each in sorted(of.get(name, ())):
            if each not in order:
                visit(each)
                low[name] = min(low[name], low[each])
            elif each in stack:
                low[name] = min(low[name], order[each])
        if low[name] == order[name]:
            at = stack.index(name)
            found.append(sorted(stack[at:]))
            del stack[at:]

    for name in sorted(of):
        if name not in order:
            visit(name)
    return [each for each in found if len(each) > 1]


def between(units: Iterable[tuple[str, str]]) -> Graph:
    """A graph of pairs, without those of a unit and itself."""
    found: Graph = {}
    for a, b in units:
        if a != b:
            found.setdefault(a, set()).add(b)
    return found


def test_no_modules_import_one_another() -> None:
    """Each can be understood, and loaded, after those that it imports."""
    assert len(MODULES) > 100
    assert circles(IMPORTS) == []


@pytest.mark.parametrize("package", ["sluicegate_agent", "sluicegate_cloud", "sluicegate_demo"])
def test_no_folders_import_one_another(package: str) -> None:
    """A folder is below or above another; a module beside the folders is a unit of its own."""

    def unit(name: str) -> str:
        return ".".join(name.split(".")[:2])

    inside = [(name, each) for name in IMPORTS for each in IMPORTS[name] if name.startswith(package)]
    pairs = [(unit(a), unit(b)) for a, b in inside if b.startswith(f"{package}.") and a != package]
    assert circles(between(pairs)) == []


@pytest.mark.parametrize("package", HOMES)
def test_arrows_point_down(package: str) -> None:
    """The agent and the cloud know the library, the demo knows all, and nobody else anything."""
    inside = (name for name in IMPORTS if name.split(".")[0] == package and name not in ROOTS)
    reached = {each.split(".")[0] for name in inside for each in IMPORTS[name]}
    assert reached - {package} <= BELOW[package]


def test_circles_are_found() -> None:
    """Of two, of three, and none where arrows only meet."""
    assert circles({"a": {"b", "c"}, "b": {"d"}, "c": {"d"}}) == []
    assert circles({"a": {"b"}, "b": {"a"}, "c": {"d"}, "d": {"e"}, "e": {"c"}}) == [["a", "b"], ["c", "d", "e"]]
