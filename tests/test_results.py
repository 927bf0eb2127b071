"""What README, guide and lessons say of minutes and memory is what `make bench` measured."""

import re
import sys

import nbformat
import pytest
from conftest import ROOT, judged

sys.path.insert(0, str(ROOT / "scripts"))
from bench import row
from minutes import measured

README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDE = (ROOT / "docs" / "instructor-guide.md").read_text(encoding="utf-8")
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def row_of(page: str, name: str) -> str:
    return re.search(rf"^\| \[\d\d .*{name}\.ipynb.*$", page, flags=re.MULTILINE)[0]


def test_the_row_of_a_run_has_ability_apart_from_form():
    form = "<reasoning>15 + 27 = 42</reasoning><answer>42</answer>"
    summary = judged([form, "42"], [form] * 2, ["42"] * 2, kind=["carry", "no carry"]).summary()
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


def seeds_of(model: str) -> dict[tuple[int, str], list[float]]:
    """The rows of one model: (seed, what) to format, strict, greedy and right if in form."""
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    table = page.split("## How many steps")[0].split(f"### `{model}`")[1].split("###")[0]
    rows = re.findall(r"^\| seed (\d), (\w+) \| (\S+) \| (\S+) \(.*?\) \| (\S+) \| (\S+) ", table, flags=re.MULTILINE)
    return {(int(seed), what): [float(rate) for rate in rates] for seed, what, *rates in rows}


@pytest.mark.parametrize(("model", "least"), [("tiny-qwen3", 0.90), ("tiny-gemma3", 0.85)])
def test_it_learned_with_every_seed(model, least):
    rows = seeds_of(model)
    assert len(rows) == 15
    for seed in range(5):
        before, after = rows[seed, "before"], rows[seed, "after"]
        assert before[1] < 0.4 and before[2] <= 0.1
        assert after[1] >= least and after[2] >= 0.95


@pytest.mark.parametrize("model", ["tiny-qwen3", "tiny-gemma3"])
def test_over_all_seeds_ability_rose_by_at_least_0_15(model):
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    said = page.split("## How many steps")[0].split(f"### `{model}`")[1]
    found = re.search(r"in form: (\S+) \(\S+ to (\S+)\), \d+ of \d+ before, and (\S+) \((\S+) to", said)
    before, before_high, after, after_low = map(float, found.groups())
    assert after - before >= 0.15 and before_high < after_low
