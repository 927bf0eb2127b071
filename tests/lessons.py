"""What the tests of the lessons share: what a notebook contains and printed, and runs of a notebook."""

import json
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

#: Arguments that a lesson may leave at TRL's values, because they change no result of a short run on a CPU: where and
#: when files are written, evaluation by the trainer, and experts. TRL's ``epsilon_high`` of None is ``epsilon``.
NO_EFFECT = {"output_dir", "save_steps", "save_total_limit", "per_device_eval_batch_size", "logging_nan_inf_filter"}
NO_EFFECT |= {"report_to", "router_aux_loss_coef", "epsilon_high"}


def said(book: NotebookNode) -> str:
    """All that the cells of a notebook printed."""
    texts = [o.get("text", "") for cell in book.cells if cell.cell_type == "code" for o in cell.outputs]
    return "\n".join(texts)


def alt_texts(book: NotebookNode) -> list[str]:
    """What the figures of a notebook show, in words."""
    outputs = [output for cell in book.cells for output in cell.get("outputs", [])]
    return [output.data["text/plain"] for output in outputs if "image/png" in output.get("data", {})]


def code_of(book: NotebookNode) -> list[str]:
    """The code cells without the solutions; magics, which are not Python, are left out."""
    cells = [
        cell for cell in book.cells if cell.cell_type == "code" and "solution" not in cell.metadata.get("tags", [])
    ]
    return [re.sub(r"^(\s*)%.*", r"\1pass", cell.source, flags=re.MULTILINE) for cell in cells]


def defined_by(book: NotebookNode, words: str, **given: object) -> dict:
    """The names that the one code cell with these words defines before it prints."""
    [cell] = [cell for cell in code_of(book) if words in cell]
    exec(cell.partition("\nprint(")[0], given)
    return given


def formulas_of(book: NotebookNode) -> str:
    """The code of the cells with the tag ``formulas``."""
    return "\n\n\n".join(cell.source for cell in book.cells if "formulas" in cell.metadata.get("tags", []))


def assigning(source: str, name: str, value: int) -> str:
    """The cell of parameters with another value for one of them.

    >>> assigning("LEAK_STEPS: int = 1_000  # a comment", "LEAK_STEPS", 2)
    'LEAK_STEPS: int = 2  # a comment'
    """
    changed, times = re.subn(rf"^{name}: int = [\d_]+", f"{name}: int = {value}", source, flags=re.MULTILINE)
    assert times == 1, name
    return changed


def run_with_nbval(lesson: Path, folder: Path, **parameters: int) -> None:
    """Run a copy of a notebook from its first cell to its last; its checked outputs must be the stored ones.

    With fewer steps, this proves as much of a long lesson: what training reached is asked of the stored outputs.
    """
    book = nbformat.read(lesson, as_version=4)
    for name, value in parameters.items():
        [cell] = [cell for cell in book.cells if "parameters" in cell.metadata.get("tags", [])]
        cell.source = assigning(cell.source, name, value)
    nbformat.write(book, folder / lesson.name)
    flags = ["--nbval-lax", "--nbval-current-env", "--nbval-cell-timeout=900", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", "-q", *flags, lesson.name]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=1800)
    assert result.returncode == 0, result.stdout[-4000:]


def briefly_and_in_full(**parameters: int) -> pytest.MarkDecorator:
    """Give a test the parameters of a short run of a long lesson and, weekly, those of the whole one."""
    runs = [pytest.param(parameters, id="briefly"), pytest.param({}, id="in full", marks=pytest.mark.upgrade)]
    return pytest.mark.parametrize("parameters", runs)


def report_in(folder: Path) -> dict:
    """The report that a run left in its output folder."""
    return json.loads((folder / "report.json").read_text(encoding="utf-8"))


def command_of(lesson: Path, **parameters: object) -> list[str]:
    """The command line that runs a lesson with these parameters."""
    pairs = [part for name, value in parameters.items() for part in ("-p", name, str(value))]
    return [sys.executable, "-m", "grpo_utils", "run", str(lesson), "--solutions", *pairs]


def run_lesson(lesson: Path, folder: Path, **parameters: object) -> subprocess.CompletedProcess:
    """Run a lesson through the course's own command, in ``folder``."""
    return subprocess.run(command_of(lesson, **parameters), cwd=folder, capture_output=True, text=True, timeout=1200)


def run_other_family(lesson: Path, folder: Path, **parameters: object) -> str:
    """What a lesson prints when it runs with the other family and seed: no parameter has its default."""
    result = run_lesson(lesson, folder, PROFILE="cpu", FAMILY="gemma", SEED=5, **parameters)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    return result.stdout
