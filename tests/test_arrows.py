"""Imports go one way: course and checks import what they share, and no module imports itself by way of others."""

import ast
import importlib
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from course import ROOT

SOURCES = ROOT / "grpo_check" / "src"
#: Each package, and those of this repository that it may import.
MAY_IMPORT = {
    SOURCES / "grpo_core": {"grpo_core"},
    SOURCES / "grpo_run": {"grpo_run", "grpo_core"},
    SOURCES / "grpo_check": {"grpo_check", "grpo_core", "grpo_run"},
    ROOT / "grpo_utils": {"grpo_utils", "grpo_core"},
}
OURS = {path.name for path in MAY_IMPORT}


def imports(path: Path, package: Path, nodes: Iterator[ast.AST]) -> Iterator[str]:
    """The full names of the modules that a file imports, and of what it imports from them."""
    here = [package.name, *path.relative_to(package).with_suffix("").parts]
    here = here[:-1] if here[-1] == "__init__" else here
    inside = here if path.name == "__init__.py" else here[:-1]
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = inside[: len(inside) - node.level + 1] if node.level else []
            module = ".".join([*base, *filter(None, [node.module])])
            yield from (f"{module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("package", MAY_IMPORT, ids=lambda path: path.name)
def test_a_package_imports_only_what_lies_below_it(package):
    for path in package.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        used = {name.partition(".")[0] for name in imports(path, package, ast.walk(tree))}
        assert used & OURS <= MAY_IMPORT[package], path


@pytest.mark.parametrize("name", [*sorted(OURS), "grpo_core.rewards", "grpo_utils.plots"])
def test_no_module_has_the_name_of_what_its_package_exports(name):
    """An import of the module would replace what is exported."""
    package = importlib.import_module(name)
    folder = Path(package.__file__).parent
    assert not {path.stem for path in folder.iterdir()} & {*getattr(package, "__all__", ())}


@pytest.mark.parametrize("package", MAY_IMPORT, ids=lambda path: path.name)
def test_no_modules_import_each_other(package):
    """Imports for type checkers count, too; those of an ``__init__`` list what it imports on first use."""
    names = {
        path: ".".join([package.name, *path.relative_to(package).with_suffix("").parts])
        for path in package.rglob("*.py")
    }
    graph = {}
    for path, name in names.items():
        body = ast.parse(path.read_text(encoding="utf-8")).body
        if path.name != "__init__.py":
            body += [inner for node in body if isinstance(node, ast.If) for inner in node.body]
        used = {*imports(path, package, body)}
        used |= {found.rpartition(".")[0] for found in used}
        graph[name.removesuffix(".__init__")] = used & {*names.values()}
    assert [*TopologicalSorter(graph).static_order()]  # raises CycleError, which names the circle
