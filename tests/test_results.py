"""What README, guide and lessons say of minutes and memory is what `make bench` measured."""

import re
import sys

import nbformat
import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
from bench import row
from minutes import measured

from grpo_utils.evaluation import judge

README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDE = (ROOT / "docs" / "instructor-guide.md").read_text(encoding="utf-8")
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def row_of(page: str, name: str) -> str:
    return re.search(rf"^\| \[\d\d .*{name}\.ipynb.*$", page, flags=re.MULTILINE)[0]


def test_the_row_of_a_run_has_ability_apart_from_form():
    form = "<reasoning>15 + 27 = 42</reasoning><answer>42</answer>"
    summary = judge([form, "42"], [form] * 2, ["42"] * 2, kinds=["carry", "no carry"]).summary()
    given = "1.000 (0.207 to 1.000) of 1"
    assert row("after", summary) == f"| after | 0.500 | 0.500 (0.095 to 0.905) | 1.000 | {given} | {given} | - |"


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_each_page_tells_what_was_measured(path):
    minutes, memory = measured(path.stem)
    opening = nbformat.read(path, as_version=4).cells[0].source
    assert re.search(rf"time for Run All \| about {minutes} \(\[measured\]", opening)
    assert re.search(rf"memory \| {memory} \(\[measured\]", opening)
    assert f"| {minutes}, {memory} (measured) |" in row_of(README, path.stem)
    assert f"| {minutes} (measured) |" in row_of(GUIDE, path.stem)
