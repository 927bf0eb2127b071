"""Lesson 11 as readers run it: the committed notebook, what its outputs show, and the other family."""

import re

import pytest
from course import ROOT
from lessons import alt_texts, defined_by, run_other_family, run_with_nbval

from grpo_utils import check_exercise
from grpo_utils.models import model_path
from grpo_utils.thinking import thinking_tokenizer

pytestmark = pytest.mark.slow
LESSON = ROOT / "notebooks" / "11_thinking.ipynb"
RATE = r"^{} +([\d.]+) tokens, correct: ([\d.]+) \(([\d.]+) to ([\d.]+)\)"
RUNS = ("untrained", "tolerant", "punished", "masked")


@pytest.fixture(scope="module")
def curves(book) -> list[str]:
    return [alt for alt in alt_texts(book) if alt.startswith("Curves over")]


def rates(name: str, printed: str) -> list[float]:
    """The mean tokens of a run, its share of correct answers, and the interval; as printed last."""
    return [float(number) for number in re.findall(RATE.format(name), printed, re.MULTILINE)[-1]]


def ends(key: str, run: str, alt: str) -> list[float]:
    """The first and the last value of a curve, from the alt text of a figure."""
    curves = re.search(rf"{key}: (.*?)(?:; |\.$)", alt)[1]
    return [float(number) for number in re.search(rf"{run} ([\d.]+) to ([\d.]+)", curves).groups()]


def by_digit(name: str, printed: str) -> list[int]:
    """How many completions of a run add digit by digit, and how many of these are correct; as printed last."""
    pattern = rf"^{name} .*\n +(\d+) digit by digit, (\d+) correct$"
    return [int(number) for number in re.findall(pattern, printed, re.MULTILINE)[-1]]


def test_the_committed_lesson_runs_and_its_checked_outputs_are_the_same(tmp_path):
    run_with_nbval(LESSON, tmp_path)


def test_a_completion_that_is_cut_off_in_its_thought_has_no_answer(printed):
    assert "whole: ('15 + 27 = 42', '<answer>42</answer>')\ncut off: None\n" in printed


def kind(prompt: str) -> str:
    """What a template wrote after the question, in the words of the lesson."""
    if prompt.endswith("<think>\n\n</think>\n\n"):
        return "closed"
    return "open" if prompt.endswith("<think>\n") else "nothing" if "think" not in prompt else prompt


def test_each_template_prefills_what_the_table_says_of_it(book, printed):
    given = dict(tokenizer=thinking_tokenizer(model_path("tiny-qwen3")))
    given["CHAT"] = [{"role": "user", "content": "What is 15 + 27?"}]
    end_of_prompt = defined_by(book, "def end_of_prompt", **given)["end_of_prompt"]
    text = "\n".join(cell.source for cell in book.cells)
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| (\w+) \| (\w+) \| (\w+) \|$", text, re.MULTILINE)
    assert [name for name, *_ in rows] == re.findall(r"^(qwen3\w*|deepseek\w+) +'", printed, re.MULTILINE)
    for name, *said in rows:
        prompts = (end_of_prompt(name, **switch) for switch in ({}, *({"enable_thinking": on} for on in (True, False))))
        assert [kind(prompt) for prompt in prompts] == said


def test_trls_reward_scores_a_prefilled_thought_zero(printed):
    sampled, with_tag = (float(n) for n in re.findall(r"^mean score .*: +([\d.]+)$", printed, re.MULTILINE))
    assert sampled == 0 and with_tag > 0.5


def test_the_preflight_finds_the_prefilled_tag(printed):
    assert "error   prefilled_think: " in printed


def test_only_the_tolerant_reward_pays_all_three_shapes(printed):
    lines = re.search(r"^strict  tolerant\n(.*?)\n\n", printed + "\n\n", re.MULTILINE | re.DOTALL)[1].splitlines()
    assert [line.split()[:2] for line in lines] == [["1.0", "1.0"]] + [["0.0", "1.0"]] * 2 + [["0.0", "0.0"]] * 3


def test_only_the_tolerant_run_learns_and_its_completions_grow(printed, curves):
    figure = curves[0]
    learned, logged = (ends("rewards/tolerant_reward/mean", run, figure) for run in ("tolerant", "strict"))
    assert learned[1] > 0.8 and max(logged) < 0.7
    short, long = ends("completions/mean_length", "tolerant", figure)
    assert long > short + 1
    assert int(re.search(r"paid anything: (\d+) of 20", printed)[1]) < 10


def test_the_tolerant_run_adds_digit_by_digit_because_that_earns_more(printed):
    assert re.search(r"^change: .*: improved$", printed, re.MULTILINE)
    digits, paid = by_digit("untrained", printed)
    all_paid = int(re.search(r"^untrained .*, (\d+) of 200$", printed, re.MULTILINE)[1])
    assert paid > 0.9 * digits and all_paid - paid < 0.5 * (200 - digits)
    assert by_digit("tolerant", printed)[0] > digits + 100
    _, after = re.search(r"before and after:\n(.*)\n(.*)\n", printed).groups()
    assert "," in after


def test_a_limit_that_suits_the_untrained_model_truncates_the_trained_one(printed):
    untrained, tolerant = re.search(r"^18 +(\d+)% +(\d+)%$", printed, re.MULTILINE).groups()
    assert int(tolerant) > int(untrained) + 30


def test_adding_with_a_carry_does_not_fit_the_tight_limit(printed):
    shortest = re.findall(r"^shortest correct completion .*: (\d+) tokens$", printed, re.MULTILINE)
    plain, carried = (int(count) for count in shortest)
    assert plain <= 18 < carried


def test_each_tight_run_is_worse_than_the_generous_one(printed):
    for name in RUNS[2:]:
        assert re.search(rf"^tolerant to {name}: .*: got worse$", printed, re.MULTILINE)
        assert by_digit(name, printed)[0] < by_digit("tolerant", printed)[0] - 50


def test_the_paired_test_tells_runs_apart_whose_intervals_overlap(printed):
    (*_, high), (*_, low, _) = rates("punished", printed), rates("masked", printed)
    assert low < high
    verdicts = re.findall(r"^(\w+ to \w+): .*: ([a-z ]+)$", printed, re.MULTILINE)
    assert verdicts[-1] == ("punished to masked", "improved")


def test_masking_keeps_the_truncated_completions_and_punishing_does_not(curves):
    first, last = ends("completions/clipped_ratio", "punished", curves[1])
    assert last < 0.1 < first
    assert ends("completions/clipped_ratio", "masked", curves[1])[1] > 0.15
    assert ends("completions/clipped_ratio", "tolerant", curves[1])[0] == 0


def by_count(prompt: str) -> bool:
    return prompt.count("<think>") > prompt.count("</think>")


def by_place(prompt: str) -> bool:
    return prompt.rfind("<think>") > prompt.rfind("</think>")


def by_pattern(prompt: str) -> bool:
    return bool(re.search(r"<think>\s*$", prompt))


def by_the_end(prompt: str) -> bool:
    return prompt.strip().endswith("<think>")


@pytest.mark.parametrize("answer", [by_pattern, by_the_end])
def test_exercise_1_accepts_every_correct_answer(answer, book):
    given = defined_by(book, "ENDS = [")
    assert check_exercise("Exercise 1", answer, given["ENDS"], given["HINTS"]) == "Exercise 1: correct."


@pytest.mark.parametrize(
    "wrong",
    [
        lambda prompt: "<think>" in prompt,
        lambda prompt: prompt.endswith("<think>"),
        lambda prompt: "<think>" in prompt and "</think>" not in prompt,
        by_count,
        by_place,
    ],
)
def test_exercise_1_answers_a_wrong_solution_with_a_hint(wrong, book):
    given = defined_by(book, "ENDS = [")
    assert "Hint: " in check_exercise("Exercise 1", wrong, given["ENDS"], given["HINTS"])


def test_a_warning_shortens_thoughts(printed):
    mean, digits = re.search(r"^([\d.]+) tokens, (\d+) digit by digit$", printed, re.MULTILINE).groups()
    assert float(mean) < rates("tolerant", printed)[0] and int(digits) < by_digit("tolerant", printed)[0] - 50


@pytest.fixture(scope="module")
def other_family(tmp_path_factory) -> str:
    return run_other_family(LESSON, tmp_path_factory.mktemp("other"), STEPS=2)


def test_every_override_arrives(other_family):
    assert re.search(r"tiny-gemma3.*\b2$", other_family, re.MULTILINE)
    assert "<start_of_turn>model\\n<think>" in other_family
    assert re.search(r"paid anything: \d of 2", other_family)


def test_the_other_family_meets_the_same_fault(other_family):
    assert re.search(r"what was sampled: +0\.00", other_family) and "error   prefilled_think" in other_family
