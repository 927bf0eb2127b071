"""What README, guide and lessons say of minutes, memory and accuracy is what was measured."""

import re

import nbformat
import pytest
from bench import row
from bench_real import STORED, in_readme, read_stored
from course import ROOT, judged
from figures import BLOCK, FIGURE, RUN_LESSON, alt_text, block, read_runs, run_block, stored_text
from minutes import measured, needed

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
    assert f"takes about {minutes} on a CPU" in opening and f"{memory}" in opening
    assert row_of(README, path.stem).endswith(f" | {needed(path.stem)} |")
    assert f"| {minutes} (" in row_of(GUIDE, path.stem)


def test_the_readme_says_how_long_run_all_takes_at_most():
    longest = {path.stem[:2]: int(re.findall(r"\d+", measured(path.stem)[0])[-1]) for path in LESSONS}
    assert 60 < longest.pop("05") <= 120 and f"takes up to {max(longest.values())} minutes" in README


def test_what_the_readme_shows_is_what_the_lessons_printed():
    text = stored_text()
    runs, steps = read_runs(text)
    assert BLOCK.findall(README) == [run_block(stored_text(RUN_LESSON))]
    assert BLOCK.findall((ROOT / "docs" / "rewards.md").read_text(encoding="utf-8")) == [block(runs, steps)]
    assert README.count(in_readme(read_stored(STORED))) == 1
    assert alt_text(runs, steps) in FIGURE.read_text(encoding="utf-8")


def test_the_readme_links_every_lesson_and_template():
    folders = [path.parent for path in (ROOT / "templates").glob("*/train.py")]
    assert len(folders) >= 8 and all(f"](templates/{folder.name})" in README for folder in folders)
    assert all(f"](notebooks/{path.name}) |" in README for path in LESSONS)


def test_the_readmes_run_is_seed_0_of_the_results():
    rows = seeds_of("tiny-qwen3")
    shown = re.findall(r"^(before|after) +\d+ +(\S+) +(\S+) .* (\S+)$", README, re.MULTILINE)
    assert [what for what, *_ in shown] == ["before", "after"]
    for what, form, accuracy, greedy in shown:
        assert rows[0, what][:3] == [float(form), float(accuracy), float(greedy)]


def seeds_of(model: str) -> dict[tuple[int, str], list[float]]:
    """The rows of one model: (seed, what) to format, strict, greedy and correct, if formatted."""
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
    found = re.search(r"correctly formatted: (\S+) \(\S+ to (\S+)\), \d+ of \d+ before, and (\S+) \((\S+) to", said)
    before, before_high, after, after_low = map(float, found.groups())
    assert after - before >= 0.15 and before_high < after_low
