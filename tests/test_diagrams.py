"""The course's diagrams: nothing is cut off or covered, and what they say is what the code and the results say."""

import re
import statistics
import sys
from itertools import combinations

import pytest
from conftest import ROOT
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.path import Path
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from PIL import Image

from grpo_check.health import CODES, limits
from grpo_utils.errors import CourseError
from grpo_utils.plots import diagram
from grpo_utils.plots.diagrams import PICTURES

sys.path.insert(0, str(ROOT / "scripts"))
from diagrams import PAGES, image, write, write_pictures
from drawings import DIAGRAMS
from drawings.guides import FAILURES, LESSONS, PACKAGES, SHORT
from drawings.method import GROUP, INPUTS
from drawings.sheet import Place, Sheet
from minutes import measured


def drawn_texts(figure) -> dict[Text, Bbox]:
    """Every text that is seen, with the pixels that it covers."""
    FigureCanvasAgg(figure).draw()
    texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
    return {text: text.get_window_extent() for text in texts}


def crossed(figure, box: Bbox) -> bool:
    """Whether an arrow or a line of a sheet runs through a text."""
    marks = [
        *figure.findobj(FancyArrowPatch),
        *(line for line in figure.axes[0].lines if line.get_linestyle() != "None"),
    ]
    paths = [mark.get_transform().transform_path(mark.get_path()) for mark in marks]
    strokes = [Path(stroke) for path in paths for stroke in path.to_polygons(closed_only=False)]
    return any(stroke.intersects_bbox(box, filled=False) for stroke in strokes)


def faults(figure) -> list[str]:
    """Each text that is too small, cut off, out of its box, or under another text or a line."""
    texts, found = drawn_texts(figure), []
    boxes = [patch.get_window_extent().padded(-4) for patch in figure.findobj(FancyBboxPatch)]
    for text, box in texts.items():
        x, y = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
        around = [outer for outer in [figure.bbox, *boxes] if outer.contains(x, y)]
        inside = all(
            outer.x0 <= box.x0 and box.x1 <= outer.x1 and outer.y0 <= box.y0 and box.y1 <= outer.y1 for outer in around
        )
        found += [] if inside else [f"cut off: {text.get_text()}"]
        found += [] if text.get_fontsize() >= 11 else [f"small: {text.get_text()}"]
        found += [f"crossed: {text.get_text()}"] if not figure.axes[0].axison and crossed(figure, box) else []
    pairs = combinations(texts.items(), 2)
    return found + [
        f"covered: {a.get_text()} / {b.get_text()}" for (a, one), (b, other) in pairs if one.overlaps(other)
    ]


@pytest.mark.parametrize("name", DIAGRAMS)
def test_all_text_of_a_diagram_can_be_read(name):
    figure, _ = DIAGRAMS[name]()
    assert not faults(figure)
    assert figure.get_figwidth() <= 7 and drawn_texts(figure)


@pytest.mark.parametrize(
    ("words", "place", "fault"),
    [
        ("far too long for a box of an inch", (1.0, 1.0), "cut off"),
        ("near", (1.0, 0.05), "cut off"),
        ("crossed", (2.0, 1.0), "crossed"),
        ("one", (1.0, 1.5), "covered"),
    ],
)
def test_a_text_that_cannot_be_read_is_found(words, place, fault):
    sheet = Sheet(3, 2)
    sheet.box(Place(0.5, 0.8, 1.0, 0.4))
    sheet.arrow((2.0, 0.2), (2.0, 1.8))
    sheet.text(1.1, 1.55, "other")
    assert not faults(sheet.figure)
    sheet.text(*place, words)
    assert fault in " ".join(faults(sheet.figure))


@pytest.mark.parametrize("name", DIAGRAMS)
def test_a_diagram_is_shown_on_white_with_a_text_of_some_sentences(name, monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda data, raw, metadata: shown.append((data, metadata)))
    diagram(name)
    [(data, metadata)] = shown
    alt = metadata["image/png"]["alt"]
    assert data["text/plain"] == alt == DIAGRAMS[name]()[1] and "\n" not in alt and alt.endswith(".")
    assert 2 <= len(re.findall(r"\.(?= |$)", alt)) <= 5 and 150 < len(alt) < 1000
    assert data["image/png"].startswith(b"\x89PNG")
    assert DIAGRAMS[name]()[0].get_facecolor() == (1.0, 1.0, 1.0, 1.0)


def test_an_unknown_name_lists_the_diagrams():
    with pytest.raises(
        CourseError, match=r"no diagram 'lop'\. Did you mean 'loop'\? The diagrams are advantages, failures, loop,"
    ):
        diagram("lop")


def test_the_lessons_and_their_minutes_are_those_of_readme_and_results():
    sources = sorted((ROOT / "notebooks" / "source").glob("*.py"))
    assert [f"{minutes}" for minutes in LESSONS.values()] == [measured(source.stem)[0].split()[0] for source in sources]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [f"{number} {title}" for number, title in re.findall(r"\| \[(\d\d) · ([^]]+)\]", readme)] == list(LESSONS)
    assert f"in a hurry, {', '.join(SHORT[:-1])} and {SHORT[-1]}." in readme


def test_the_advantages_are_those_of_the_formula():
    mean, spread = statistics.mean(GROUP), statistics.stdev(GROUP)
    advantages = [f"{(reward - mean) / (spread + 1e-4):+.2f}".replace("-", "−") for reward in GROUP]
    assert f"its advantages are {', '.join(advantages)}." in DIAGRAMS["advantages"]()[1]


#: What each verdict of the flow chart has in common with the fixes of the health check.
FIXES = {
    "nan": ("go back to", "learning_rate by 10"),
    "mode_collapse": ("go back to", "learning_rate by 10"),
    "all_truncated": ("raise max_completion_length",),
    "no_eos": ("EOS token",),
    "dead_reward": ("probe it", "a wrong completion"),
    "no_gradient": ("easier", "prompts, or a reward with steps in between"),
    "saturated": ("stop", "evaluate", "harder prompts"),
    "length_hacking": ("give correctness more weight than all the rest together",),
    "reward_hacking_suspected": ("give correctness more weight than all the rest together",),
}


def test_the_flow_chart_gives_the_fixes_of_the_health_check():
    chart = {code: " ".join(fix.split()) for _, codes, fix in FAILURES for code in re.findall(r"\w+", codes)}
    assert list(chart) == list(FIXES)
    for code, words in FIXES.items():
        fixes = "; ".join(CODES[code][2:])
        assert all(word in chart[code] and word in fixes for word in words), code


def test_the_flow_chart_asks_for_causes_before_consequences():
    last = [re.findall(r"\w+", codes)[-1] for _, codes, _ in FAILURES]
    order = list(CODES)
    assert last == sorted(last, key=order.index)


def test_the_flow_charts_numbers_are_the_limits_of_the_health_check():
    questions = " ".join(question for question, _, _ in FAILURES)
    assert f"{limits.CLIPPED * 5:g} of 5 completions" in questions
    assert f"{limits.TREND_STEPS} steps" in DIAGRAMS["failures"]()[1]
    page = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    assert "9 of 10 groups tied" in questions and "nine of ten groups" in page


def test_a_reward_gets_what_the_diagram_says():
    import inspect

    from trl import GRPOTrainer

    source = inspect.getsource(GRPOTrainer._calculate_rewards)
    assert "prompts=prompts, completions=completions, completion_ids=completion_ids_list, **reward_kwargs" in source
    assert 'reward_kwargs["trainer_state"]' in source and "inputs[0]" in source
    assert list(INPUTS) == ["prompts", "completions", "completion_ids", "answer, …", "trainer_state"]


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
        assert page is None or image(name) in (ROOT / "docs" / page).read_text(encoding="utf-8"), page
