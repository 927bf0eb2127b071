"""Values in a lesson's Markdown: the builder fills ``{{expression:format}}`` from the kernel that runs the lesson.

A value is the replacement field of an f-string, evaluated in the state after the code cells above it:

    Strict accuracy rose from {{before.accuracy.rate:.2f}} to {{after.accuracy.rate:.2f}}.

The first cell opens the lesson with what it found, so its values are those at the end of the lesson.

Each cell of the built notebook keeps its values in its metadata, so that its text can change without a new run.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator

import nbformat
from nbclient import NotebookClient

VALUE = re.compile(r"\{\{(.+?)\}\}")


def stored(cell: nbformat.NotebookNode) -> dict[str, str]:
    """The values of a built cell, by expression."""
    return cell.metadata.get("values", {})


def expressions(cell: nbformat.NotebookNode) -> list[str]:
    """The expressions in a Markdown cell, in their order; none in a code cell."""
    return VALUE.findall(cell.source) if cell.cell_type == "markdown" else []


def check(book: nbformat.NotebookNode) -> None:
    """Find an expression that is no Python before a run of an hour. Only the run finds an unknown name.

    Raises:
        ValueError: an expression in a Markdown cell is not valid Python.
    """
    for cell in book.cells:
        for expression in expressions(cell):
            try:
                ast.parse(_field(expression))
            except SyntaxError as error:
                raise ValueError(f"{{{{{expression}}}}} in {cell.id} is not valid: {error.msg}") from error


def fill(cell: nbformat.NotebookNode, values: dict[str, str]) -> None:
    """Put the values into the text of a Markdown cell, and keep those it uses in its metadata; leave code alone.

    Raises:
        KeyError: the cell has an expression without a value.
    """
    if used := expressions(cell):
        cell.metadata["values"] = {expression: values[expression] for expression in used}
        cell.source = VALUE.sub(lambda found: values[found[1]], cell.source)


def refill(fresh: list[nbformat.NotebookNode], built: list[nbformat.NotebookNode]) -> None:
    """Put the values of built cells into the Markdown of fresh ones, wherever the text has moved.

    Below the same code cell, an expression has its value of there; elsewhere, the one value that all cells have for it,
    unless a name in it is assigned in several cells.

    Raises:
        KeyError: no value is stored for an expression, or it can have several.
    """
    changing = _assigned_again(built)
    near, found = {}, {}
    for above, cell in _below_code(built):
        for expression, value in stored(cell).items():
            near[above, expression] = value
            found.setdefault(expression, set()).add(value)
    single = {
        expression: next(iter(values))
        for expression, values in found.items()
        if len(values) == 1 and not changing & set(re.findall(r"\w+", expression))
    }
    for above, cell in _below_code(fresh):
        fill(cell, single | {expression: value for (place, expression), value in near.items() if place == above})


def _assigned_again(cells: list[nbformat.NotebookNode]) -> set[str]:
    """The names that several code cells assign, at any level."""
    assigned = []
    for cell in cells:
        if cell.cell_type == "code":
            tree = ast.parse(re.sub(r"^\s*[%!].*", "", cell.source, flags=re.MULTILINE))
            names = (
                node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            )
            assigned.extend(set(names))
    return {name for name, times in Counter(assigned).items() if times > 1}


def _below_code(cells: list[nbformat.NotebookNode]) -> Iterator[tuple[str, nbformat.NotebookNode]]:
    """Each Markdown cell, with the source of the code cell above it ("" if there is none)."""
    above = ""
    for cell in cells:
        if cell.cell_type == "code":
            above = cell.source
        else:
            yield above, cell


class LessonClient(NotebookClient):
    """Executes the code cells of a notebook and fills its Markdown cells, from top to bottom, and then the first."""

    async def async_execute_cell(
        self, cell: nbformat.NotebookNode, cell_index: int, **options: object
    ) -> nbformat.NotebookNode:
        """Execute a code cell as nbclient does; evaluate and fill the values of a Markdown cell."""
        if cell.cell_type == "code":
            cell = await super().async_execute_cell(cell, cell_index, **options)
        elif cell_index > 0:
            fill(cell, await self._evaluate(expressions(cell)))
        if cell_index == len(self.nb.cells) - 1:
            first = self.nb.cells[0]
            fill(first, await self._evaluate(expressions(first)))
        return cell

    async def _evaluate(self, used: list[str]) -> dict[str, str]:
        """What the kernel's state makes of each expression."""
        fields = {expression: _field(expression) for expression in used}
        message = self.kc.execute("", silent=True, user_expressions=fields)
        reply = await self.async_wait_for_reply(message)
        return {name: _text(name, found) for name, found in reply["content"]["user_expressions"].items()}


def _field(expression: str) -> str:
    """The f-string that formats an expression."""
    return f'f"""{{{expression}}}"""'


def _text(expression: str, found: dict) -> str:
    """The value in a kernel's answer to one user expression."""
    if found["status"] == "error":
        raise ValueError(f"{{{{{expression}}}}} cannot be filled: {found['ename']}: {found['evalue']}")
    return ast.literal_eval(found["data"]["text/plain"])
