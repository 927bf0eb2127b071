"""Public names of a package whose modules are imported on first use (PEP 562).

A package lists its names once, as imports that editors and type checkers read:

    if TYPE_CHECKING:
        from .plots import show
    __getattr__, __dir__, __all__ = lazy_imports(__name__, __file__)
"""

import ast
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path


def lazy_imports(package: str, file: str) -> tuple[Callable, Callable, list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` for the imports under an ``if`` in a package's file."""
    blocks = [node for node in ast.parse(Path(file).read_text(encoding="utf-8")).body if isinstance(node, ast.If)]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    modules = {alias.name: "." * node.level + node.module for node in imports for alias in node.names}

    def find(name: str) -> object:
        if name not in modules and find_spec(f"{package}.{name}"):  # a module of the package
            return import_module(f"{package}.{name}")
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(modules[name], package), name)

    return find, lambda: sorted(modules), sorted(modules)
