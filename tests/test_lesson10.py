"""Lesson 10 as readers run it: the committed notebook, its prose against its outputs, and the other family."""

import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import trl
from conftest import ROOT
from lessons import run_with_nbval, said, text_of
from transformers import AutoTokenizer
from trl.rewards import think_format_reward

from grpo_utils import model_path
from grpo_utils.rewards import think_format_reward as tolerant_format

pytestmark = pytest.mark.slow
LESSON = ROOT / "notebooks" / "10_thinking.ipynb"
RATE = r"^{} +([\d.]+) tokens, correct: ([\d.]+) \(([\d.]+) to ([\d.]+)\)"
RUNS = ("untrained", "tolerant", "punished", "masked", "overlong")


@pytest.fixture(scope="module")
def book() -> nbformat.NotebookNode:
    return nbformat.read(LESSON, as_version=4)


@pytest.fixture(scope="module")
def printed(book) -> str:
    return said(book)


@pytest.fixture(scope="module")
def text(book) -> str:
    return text_of(book)


@pytest.fixture(scope="module")
def curves(book) -> list[str]:
    outputs = [o for cell in book.cells for o in cell.get("outputs", [])]
    return [o.data["text/plain"] for o in outputs if "image/png" in o.get("data", {})]


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
    result = run_with_nbval(LESSON, tmp_path, cell_seconds=900, seconds=1800)
    assert result.returncode == 0, result.stdout[-4000:]


def test_the_text_counts_the_templates_that_trl_ships(printed, text):
    files = Path(trl.__file__).parent.glob("chat_templates/*.jinja")
    count = sum("_training" not in file.stem for file in files)
    assert f"renders all {count} with our tokenizer" in text
    table = re.findall(r"^(\w+) +('.*?') +('.*?') +('.*?')$", printed, re.MULTILINE)
    assert f"prints the {len(table)} templates that add a tag" in text
    row = {name: ends for name, *ends in table}
    assert row["deepseek_r1_distill"] == row["deepseekv3"] == ["'<think>↵'"] * 3
    assert row["qwen3_6"][0] == row["nemotron_3_nano"][0] == "'<think>↵'"
    assert row["qwen3"][:2] == ["''", "''"] and row["qwen3"][2] == row["qwen3_5_nothink"][0] == "'<think>↵↵</think>↵↵'"


def test_trls_reward_scores_a_prefilled_thought_zero(printed, text):
    sampled, with_tag = (float(n) for n in re.findall(r"^mean score .*: +([\d.]+)$", printed, re.MULTILINE))
    assert sampled == 0 and f"{with_tag:.0%} of the completions are well-formed, and all of them score 0" in text
    closed = [{"role": "assistant", "content": "15 + 27 = 42</think><answer>42</answer>"}]
    assert think_format_reward([closed]) == [0.0], "TRL accepts it now: rewrite sections 3 and 5"


def test_only_our_format_reward_reads_a_thought_that_trl_has_parsed():
    message = {"role": "assistant", "reasoning_content": "15 + 27 = 42", "content": "<answer>42</answer>"}
    found = think_format_reward([[message]]), tolerant_format([[message]])
    assert found == ([0.0], [1.0]), "docs/rewards.md says so"


def test_the_preflight_finds_the_prefilled_tag(printed):
    assert "error   prefilled_think: the prompt ends with '<think>'" in printed


def test_only_the_tolerant_reward_pays_all_three_shapes(printed):
    lines = re.search(r"^strict  tolerant\n(.*?)\n\n", printed + "\n\n", re.MULTILINE | re.DOTALL)[1].splitlines()
    assert [line.split()[:2] for line in lines] == [["1.0", "1.0"]] + [["0.0", "1.0"]] * 2 + [["0.0", "0.0"]] * 3


def test_the_text_reads_the_first_figure(printed, text, curves):
    figure = curves[0]
    assert ends("rewards/tolerant_reward/mean", "tolerant", figure)[1] > 0.8
    assert max(ends("rewards/tolerant_reward/mean", "strict", figure)) < 0.7
    assert min(ends("frac_reward_zero_std", "strict", figure)) > 0.8
    assert (
        ends("rewards/tolerant_reward/mean", "tolerant", figure)[1]
        > 0.25 + ends("rewards/tolerant_reward/mean", "strict", figure)[1]
    )
    short, long = ends("completions/mean_length", "tolerant", figure)
    assert f"It grew from {short:.0f} to {long:.0f} tokens in the tolerant run" in text
    paid = re.search(r"paid anything: (\d+) of 20", printed)[1]
    assert f"In {paid} steps, the strict reward paid something" in text


def test_the_text_says_how_much_the_tolerant_run_learned(printed, text):
    before, after = rates("untrained", printed), rates("tolerant", printed)
    assert f"rose from {before[1] + 1e-9:.2f} to {after[1]:.2f}, and the 95% intervals are far apart" in text
    assert before[3] + 0.2 < after[2]
    wrong, right = re.search(r"before and after:\n(.*)\n(.*)\n", printed).groups()
    digits, paid = by_digit("untrained", printed)
    assert f"did so in {digits} completions, and all {paid} earned the reward" in text
    all_paid = int(re.search(r"^untrained .*, (\d+) of 200$", printed, re.MULTILINE)[1])
    assert f"Of its {200 - digits} other completions, only {all_paid - paid} did" in text
    assert f"The trained model does it in {by_digit('tolerant', printed)[0]} completions" in text
    assert wrong.startswith("67 + 86 = ") and right == "7+6=13, 6+8+1=15</think><answer>153</answer>"


def test_the_text_reads_the_table_of_limits(printed, text):
    untrained, tolerant = re.search(r"^18 +(\d+%) +(\d+%)$", printed, re.MULTILINE).groups()
    sentence = f"A limit of 18 tokens truncates {untrained} of the untrained model's completions, but {tolerant}"
    assert sentence in text


def test_adding_with_a_carry_does_not_fit_the_tight_limit(text):
    tokenizer = AutoTokenizer.from_pretrained(model_path("tiny-qwen3"))
    carried = ["7+6=13, 6+8+1=15</reasoning><answer>153</answer>", "1+6=7, 6+8=14</reasoning><answer>147</answer>"]
    found = [len(tokenizer(one, add_special_tokens=False)["input_ids"]) + 1 for one in carried]
    assert f"with a carry needs {min(found)} tokens or more: the limit of 18 truncates it" in text


def test_each_tight_run_is_worse_than_the_generous_one_and_their_intervals_overlap(printed, text):
    found = {name: rates(name, printed) for name in RUNS}
    tight = [found[name] for name in RUNS[2:]]
    assert f"below the {found['tolerant'][1]:.2f} of the tolerant run" in text
    assert all(high < found["tolerant"][2] for *_, high in tight)
    assert max(low for *_, low, _ in tight) < min(high for *_, high in tight)
    few, some, more = (by_digit(name, printed)[0] for name in RUNS[2:])
    assert f"only {few}, {some} and {more} completions" in text
    shorter = f"from {found['untrained'][0]} to {found['punished'][0]} tokens"
    assert f"the mean length on the held-out prompts {shorter}" in text


def test_masking_keeps_the_truncated_completions_and_punishing_does_not(text, curves):
    first, last = ends("completions/clipped_ratio", "punished", curves[1])
    assert f"`clipped_ratio` fell from {first:.2f} to {last:.2f}" in text
    assert f"`clipped_ratio` ended at {ends('completions/clipped_ratio', 'masked', curves[1])[1]:.2f}" in text
    assert ends("completions/clipped_ratio", "tolerant", curves[1])[0] == 0


def test_the_last_number_pays_for_thoughts_that_never_close(printed, text):
    rows = re.findall(r"^(\w+) +(\d+)% +(\d+)%$", printed.split("last number correct")[1], re.MULTILINE)
    found = {name: (int(closed), int(last)) for name, closed, last in rows}
    assert found["untrained"][0] == 67 and "A third of the untrained completions ended without" in text
    paid = rates("untrained", printed)[1] + 1e-9
    assert f"correct in {found['untrained'][1]}% of all completions, but `tolerant_reward` paid only {paid:.0%}" in text
    lowest = min(found[name][0] for name in RUNS[1:])
    assert f"each run closed at least {lowest}% of its thoughts" in text


@pytest.fixture(scope="module")
def other_family(tmp_path_factory) -> str:
    """Every parameter set to something that is not its default."""
    folder: Path = tmp_path_factory.mktemp("other")
    pairs = ["-p", "PROFILE", "cpu", "-p", "FAMILY", "gemma", "-p", "STEPS", "2", "-p", "SEED", "5"]
    command = [sys.executable, "-m", "grpo_utils", "run", str(LESSON), *pairs]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    return result.stdout


@pytest.mark.upgrade
def test_every_override_arrives(other_family):
    assert "Model: tiny-gemma3, on the CPU. Steps of a training run: 2" in other_family
    assert "<start_of_turn>model\\n<think>" in other_family
    assert re.search(r"paid anything: \d of 2", other_family)


@pytest.mark.upgrade
def test_the_other_family_meets_the_same_fault(other_family):
    assert re.search(r"what was sampled: +0\.00", other_family) and "error   prefilled_think" in other_family
