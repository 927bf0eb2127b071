"""The course's diagrams: they are current, and their data is that of the code and the results."""

import re

import pytest
from course import ROOT
from diagrams import PAGES, image, write, write_pictures
from drawings import DIAGRAMS
from drawings.guides import FAILURES, LESSONS, PACKAGES
from drawings.method import INPUTS
from grpo_check.health.rules import RULES
from grpo_core.errors import CourseError
from minutes import needed
from PIL import Image

from grpo_utils.plots import diagram
from grpo_utils.plots.diagrams import PICTURES


@pytest.mark.parametrize("name", DIAGRAMS)
def test_a_diagram_is_shown_on_white_with_its_text(name, monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda data, raw, metadata: shown.append((data, metadata)))
    diagram(name)
    [(data, metadata)] = shown
    alt = metadata["image/png"]["alt"]
    assert alt and data["text/plain"] == alt == DIAGRAMS[name]()[1] and "\n" not in alt
    assert data["image/png"].startswith(b"\x89PNG")
    assert DIAGRAMS[name]()[0].get_facecolor() == (1.0, 1.0, 1.0, 1.0)


def test_an_unknown_name_lists_the_diagrams():
    with pytest.raises(CourseError, match=r"no diagram 'lop'\. Did you mean 'loop'\?.* advantages, failures, loop,"):
        diagram("lop")


def test_the_lessons_and_their_minutes_are_those_of_readme_and_guide():
    sources = sorted((ROOT / "notebooks" / "source").glob("*.py"))
    assert list(LESSONS.values()) == [needed(source.stem) for source in sources]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert sorted(f"{number} {title}" for number, title in re.findall(r"\| \[(\d\d) · ([^]]+)\]", readme)) == list(
        LESSONS
    )


def test_the_flow_chart_leads_to_verdicts_of_the_health_check():
    assert {code for _, codes, _ in FAILURES for code in re.findall(r"\w+", codes)} <= {rule.code for rule in RULES}


def test_the_flow_chart_asks_for_causes_before_consequences():
    last = [re.findall(r"\w+", codes)[-1] for _, codes, _ in FAILURES]
    order = [rule.code for rule in RULES]
    assert last == sorted(last, key=order.index)


def test_a_reward_gets_what_the_diagram_says():
    import inspect

    from trl import GRPOTrainer

    source = inspect.getsource(GRPOTrainer._calculate_rewards)
    given = {*re.findall(r"(\w+)=\w+, ", source), *re.findall(r'reward_kwargs\["(\w+)"\]', source)}
    assert set(INPUTS) - {"answer, …"} <= given


def test_the_packages_are_those_that_are_installed():
    pins = "\n".join(path.read_text(encoding="utf-8") for path in ROOT.glob("requirements*.txt")).lower()
    assert all(re.search(rf"^{name.lower()}\b", pins, re.MULTILINE) for name in PACKAGES)


def test_the_pictures_of_the_lessons_are_current(tmp_path):
    write_pictures(tmp_path)
    assert {path.stem for path in PICTURES.iterdir()} == set(DIAGRAMS)
    for path in tmp_path.iterdir():
        drawn, kept = Image.open(path), Image.open(PICTURES / path.name)
        assert kept.text == drawn.text and kept.tobytes() == drawn.tobytes(), f"{path.name}: make figures"


def test_the_files_and_their_texts_on_the_pages_are_current(tmp_path):
    write(tmp_path)
    for name, page in PAGES.items():
        kept = (ROOT / "docs" / "figures" / f"{name}.svg").read_text(encoding="utf-8")
        assert kept == (tmp_path / f"{name}.svg").read_text(encoding="utf-8"), f"{name}.svg: make figures"
        assert image(name) in (ROOT / page).read_text(encoding="utf-8"), page
