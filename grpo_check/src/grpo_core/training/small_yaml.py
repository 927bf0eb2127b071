"""Read a YAML file that a person wrote. One whose aliases or brackets only make it huge is rejected at once."""

import math
from pathlib import Path

import yaml

#: Limits that no config of a person comes near: bytes of the file, nested levels, and values once each alias
#: (``*name``) is replaced by what it stands for. A few lines of aliases can stand for billions of values.
MOST_BYTES, MOST_LEVELS, MOST_VALUES = 1_000_000, 50, 100_000


class SmallLoader(yaml.SafeLoader):
    """A YAML loader for plain values that rejects what is nested too deeply, or too large with its aliases replaced."""

    _level = 0

    def compose_node(self, parent: yaml.Node | None, index: object) -> yaml.Node:
        """Count the levels, because each of them takes a few calls of Python, which allows about a thousand."""
        self._level += 1
        if self._level > MOST_LEVELS:
            raise yaml.YAMLError(f"it is nested more than {MOST_LEVELS} levels deep")
        node = super().compose_node(parent, index)
        self._level -= 1
        return node

    def get_single_node(self) -> yaml.Node | None:
        """Count the values of the whole file."""
        node = super().get_single_node()
        if node is not None and _values(node, {}) > MOST_VALUES:
            raise yaml.YAMLError(f"it has more than {MOST_VALUES:,} values, once its aliases (*name) are replaced")
        return node


def _values(node: yaml.Node, counted: dict[int, float]) -> float:
    """How many values a node has; ``counted`` has those of the nodes before it, and infinity for the ones around it."""
    if id(node) not in counted:
        counted[id(node)] = math.inf
        parts = [] if isinstance(node, yaml.ScalarNode) else node.value
        parts = [part for pair in parts for part in pair] if isinstance(node, yaml.MappingNode) else parts
        counted[id(node)] = 1 + sum(_values(part, counted) for part in parts)
    return counted[id(node)]


def load_yaml(path: Path, loader: type[SmallLoader] = SmallLoader) -> object:
    """What is in a YAML file.

    Raises:
        OSError, UnicodeDecodeError, yaml.YAMLError: it cannot be read, is not UTF-8, not YAML, or too large.
    """
    if path.stat().st_size > MOST_BYTES:
        raise yaml.YAMLError(f"it has more than {MOST_BYTES:,} bytes; is it another file?")
    return yaml.load(path.read_text(encoding="utf-8"), loader)
