"""Every committed notebook is built from its source, executed, and has what every lesson has."""

import ast
import re

import nbformat
import pytest
from address import current
from build_notebooks import SOURCES, execute, retold
from course import ROOT
from values import check, refill

NAMES = sorted(path.stem for path in SOURCES.glob("*.py"))
#: A path of one machine: of a home, a root, a temporary or a site-packages folder.
FOLDERS = "home root tmp work Users opt usr var content mnt private Volumes kaggle data".replace(" ", "|")
MACHINE_PATH = re.compile(rf"(?<![\w.])/(?:{FOLDERS})/|site-packages|\b[A-Z]:\\")


@pytest.fixture(scope="module", params=NAMES)
def book(request):
    book = nbformat.read(ROOT / "notebooks" / f"{request.param}.ipynb", as_version=4)
    book.metadata["name"] = request.param
    return book


def code(book) -> list:
    return [cell for cell in book.cells if cell.cell_type == "code"]


def outputs_text(cell) -> str:
    parts = [output.get("text", "") for output in cell.outputs]
    parts += ["".join(v for v in o.get("data", {}).values() if isinstance(v, str)) for o in cell.outputs if "data" in o]
    return "\n".join(parts)


def machine_paths(text: str) -> list[str]:
    return MACHINE_PATH.findall(text)


def tagged(book, tag: str) -> list:
    return [cell for cell in code(book) if tag in cell.metadata.get("tags", [])]


def test_every_notebook_has_a_source_and_every_source_a_notebook():
    assert NAMES == sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))


def test_it_is_in_sync_with_its_source(book):
    fresh = retold(SOURCES / f"{book.metadata['name']}.py", book, current())
    here, there = ([(c.cell_type, c.source, c.metadata.get("tags", [])) for c in b.cells] for b in (book, fresh))
    assert here == there, "edit notebooks/source and run `make notebooks`"


def test_every_value_in_its_text_is_filled(book):
    assert not [cell.source for cell in book.cells if cell.cell_type == "markdown" and "{{" in cell.source]


def written(*cells) -> nbformat.NotebookNode:
    """A notebook that is executed in this environment; Markdown is given in a list, code as a string."""
    kinds = {list: lambda cell: nbformat.v4.new_markdown_cell(*cell), str: nbformat.v4.new_code_cell}
    return nbformat.v4.new_notebook(cells=[kinds[type(cell)](cell) for cell in cells])


def test_a_value_is_what_the_cells_above_computed():
    said = ["to {{rate:.2f}}, {{'high' if rate > 0.5 else \"low\"}}."]
    book = written("rate = 0.25", ["From {{rate:.2f}}"], "rate = 0.9612", said)
    execute(book)
    assert [book.cells[place].source for place in (1, 3)] == ["From 0.25", "to 0.96, high."]
    assert book.cells[3].metadata["values"]["rate:.2f"] == "0.96"
    assert [cell.execution_count for cell in code(book)] == [1, 2]


def test_a_value_moves_with_its_text_unless_its_name_is_assigned_again():
    built = written("rate = 0.25\nsteps = 3", ["From {{rate}} in {{steps}}"], "rate = 0.96")
    execute(built)
    moved = written(["{{steps}} steps"], "rate = 0.25\nsteps = 3", "rate = 0.96")
    refill(moved.cells, built.cells)
    assert moved.cells[0].source == "3 steps"
    with pytest.raises(KeyError):
        refill(written(["{{rate}}"]).cells, built.cells)


def test_a_misspelled_value_is_found_before_the_run():
    check(written("rate = 0.25", ["{{rate:.2f}}"]))
    with pytest.raises(ValueError, match="is not valid"):
        check(written("rate = 0.25", ["{{rate:.2f} of {{rate}}"]))


def test_a_value_that_cannot_be_computed_stops_the_build():
    with pytest.raises(ValueError, match=r"\{\{rat:.2f\}\} cannot be filled: NameError: name 'rat' is not defined"):
        execute(written("rate = 0.25", ["{{rat:.2f}}"]))


def test_it_was_executed_in_order_from_a_fresh_kernel(book):
    assert [cell.execution_count for cell in code(book)] == list(range(1, len(code(book)) + 1))


def test_its_outputs_are_kept_and_none_is_an_error(book):
    kinds = [output.output_type for cell in code(book) for output in cell.outputs]
    assert len(kinds) > 10 and "error" not in kinds


def test_no_output_carries_a_path_of_a_machine(book):
    found = {match for cell in code(book) for match in machine_paths(outputs_text(cell))}
    assert not found


def test_the_path_rule_finds_paths():
    assert machine_paths("saved to /" + "home/ana/x") and machine_paths("lib/site-packages/tqdm/auto.py:21")
    assert machine_paths("C:" + chr(92) + "Users" + chr(92) + "Ana")
    assert not machine_paths("outputs/run/merged") and not machine_paths("and/or, 1/2")


def test_one_parameters_cell_of_typed_literals_with_comments(book):
    cells = tagged(book, "parameters")
    assert len(cells) == 1
    lines = cells[0].source.splitlines()
    for statement, line in zip(ast.parse(cells[0].source).body, lines, strict=True):
        assert isinstance(statement, ast.AnnAssign) and statement.target.id.isupper()
        value = ast.literal_eval(statement.value)
        assert type(value).__name__ == statement.annotation.id
        assert re.search(r"  # [^=]+$", line), "papermill does not parse a comment with an equals sign"
    assert {"PROFILE", "SEED"} <= {s.target.id for s in ast.parse(cells[0].source).body}


def test_a_parameter_is_never_bound_again(book):
    names = {s.target.id for s in ast.parse(tagged(book, "parameters")[0].source).body}
    assigned = [
        node.id
        for cell in code(book)
        if cell not in tagged(book, "parameters")
        for node in ast.walk(ast.parse(re.sub(r"^\s*%.*", "", cell.source, flags=re.MULTILINE)))  # no magics
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]
    assert not names & set(assigned)


def test_one_cell_installs_and_the_setup_is_one_call(book):
    cells = code(book)
    place = cells.index(tagged(book, "parameters")[0])
    assert re.search(r"^run = setup(_tiny|_real)?\(", cells[place + 1].source, re.MULTILINE)
    assert sum("%pip" in cell.source for cell in cells) == 1


def test_only_the_lessons_that_train_with_unsloth_name_it(book):
    named = any("unsloth" in cell.source for cell in code(book))
    assert named == (book.metadata["name"] in ("03_grpo_lora", "05_real_model"))


def test_each_folded_text_ends(book):
    assert all(cell.source.count("<details>") == cell.source.count("</details>") for cell in book.cells)


def test_some_cells_are_compared_by_nbval(book):
    assert tagged(book, "nbval-check-output")


def test_figures_carry_alt_text(book):
    figures = [o for cell in code(book) for o in cell.outputs if "image/png" in o.get("data", {})]
    assert figures
    assert all(len(figure.metadata["image/png"]["alt"]) > 30 for figure in figures)


def test_no_progress_bar_is_left_half_way(book):
    outputs = [output for cell in code(book) for output in cell.outputs]
    assert not [o for o in outputs if "application/vnd.jupyter.widget-view+json" in o.get("data", {})]


def test_it_names_a_kernel_that_papermill_finds(book):
    assert book.metadata.kernelspec == {"display_name": "Python 3", "language": "python", "name": "python3"}


def test_solutions_are_folded_and_stubs_answer_kindly(book):
    assert all(cell.metadata.jupyter.source_hidden for cell in tagged(book, "solution"))
    assert len(tagged(book, "solution")) >= 2
    text = "\n".join(outputs_text(cell) for cell in code(book))
    assert text.count("not attempted yet") == len(tagged(book, "solution")) == text.count(": correct.")
