"""The page of the checks says what was measured, and has each metric that a run logs."""

import re

import bench_attack
import nbformat
from benches import CHECKS, read_stored
from course import ROOT

PAGE = CHECKS.read_text(encoding="utf-8")


def test_the_pages_have_the_stored_attacks():
    stored = read_stored(bench_attack.STORED)
    results = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert f"\n## {bench_attack.TITLE}\n{bench_attack.section(stored)}" in results
    assert f"\n\n{bench_attack.in_short(*bench_attack.attacked(stored))}\n\n<!-- end of attack -->" in PAGE


def test_the_metrics_of_the_page_are_those_in_the_log_of_lesson_04():
    book = nbformat.read(ROOT / "notebooks" / "04_reading_a_run.ipynb", as_version=4)
    [cell] = [cell for cell in book.cells if cell.source.startswith("import textwrap")]
    listed = cell.outputs[0].text.split("\n\n")[0].replace("\n", " ").split(", ")
    names = {re.sub(r"^rewards/\w+/", "rewards/NAME/", name.strip()) for name in listed}
    rows = set(re.findall(r"^\| `([^`]+)` \|", PAGE.split("### Metrics of the log\n")[1], re.MULTILINE))
    assert len(names) > 20 and names <= rows
    elsewhere = {name for name in rows if name.startswith(("health/", "tools/", "sampling/"))}
    assert rows - names <= {"kl"} | elsewhere
