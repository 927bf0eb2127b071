"""Lesson 06 as readers run it: the committed notebook, and the same with other parameters."""

import re
import subprocess
import sys

import nbformat
import pytest
from conftest import ROOT
from lessons import run_with_nbval, said, text_of

from grpo_utils import show_changes
from grpo_utils.arguments import training_arguments
from grpo_utils.evaluation.statistics import Change, Estimate
from grpo_utils.models import lora_arguments
from grpo_utils.profiles import CPU

pytestmark = pytest.mark.slow
LESSON = ROOT / "notebooks" / "06_evaluation.ipynb"
RATE = r"(\d\.\d{3}) \(\d\.\d{3} to \d\.\d{3}\)"


@pytest.fixture(scope="module")
def book():
    return nbformat.read(LESSON, as_version=4)


@pytest.fixture(scope="module")
def committed(book) -> str:
    return said(book)


@pytest.fixture(scope="module")
def text(book) -> str:
    return text_of(book)


def numbers(pattern: str, text: str) -> list[float]:
    """The numbers in the parentheses of the only line that matches ``pattern``."""
    [found] = re.finditer(f"^{pattern}", text, re.MULTILINE)
    return [float(number) for number in found.groups()]


def alt_texts(book) -> list[str]:
    outputs = [output for cell in book.cells for output in cell.get("outputs", [])]
    return [o.metadata["image/png"]["alt"] for o in outputs if "image/png" in o.get("data", {})]


def test_the_committed_lesson_runs_and_its_checked_outputs_are_the_same(tmp_path):
    result = run_with_nbval(LESSON, tmp_path, cell_seconds=600, seconds=900)
    assert result.returncode == 0, result.stdout[-4000:]


def test_the_settings_written_out_in_the_lesson_are_those_of_the_profile(book):
    code = "\n".join(cell.source for cell in book.cells if cell.cell_type == "code")
    wanted, lora = training_arguments(CPU), lora_arguments(CPU)
    for name in ("learning_rate", "num_generations", "per_device_train_batch_size", "max_completion_length"):
        [written] = re.findall(rf"^    {name}=([\d.e-]+),", code, re.MULTILINE)
        assert float(written) == wanted[name]
    assert f'optim="{wanted["optim"]}"' in code
    assert f"r={lora['r']}, lora_alpha={lora['lora_alpha']}" in code


def test_every_held_out_question_counts_once_and_was_not_trained_on(committed):
    assert "different held-out questions: 200\nalso in the training rows: 0" in committed


def test_the_text_says_where_the_seeds_end(committed, text):
    ends = [numbers(rf"seed {seed}, strict accuracy, sampled: {RATE}", committed)[0] for seed in range(3)]
    assert f"All three policies reach at least {min(ends):.2f}" in text


def test_the_text_says_how_much_one_question_and_five_show(committed, text):
    [before] = numbers(rf"strict accuracy, sampled: {RATE}", committed)
    after = numbers(rf"seed 0, strict accuracy, sampled: {RATE}", committed)[0]
    [same] = numbers(r"no change: (\S+) of the questions", committed)
    assert f"Strict accuracy starts at {before:.0%}" in text
    assert f"Strict accuracy rose from {before:.2f} to {after:.2f}, but one question in four shows no change" in text
    assert same == pytest.approx(1 / 4, abs=0.02)
    second = committed.split("What is 16 + 15? correct answer: 31\n")[1].splitlines()[:2]
    assert "both sums are wrong" in text and not any("<answer>31</answer>" in line for line in second)
    low, high = numbers(r"five questions, 95 times of 100: (\S+) to (\S+)", committed)
    assert f"five questions show a gain between {low:.2f} and {high:.2f}" in text
    better, worse = (
        numbers(rf"five questions, {how}: (\S+) of the draws", committed)[0] for how in ("better", "worse")
    )
    assert f"most draws show no difference, {better:.0%} favor the second seed, and {worse:.0%} favor the first" in text
    assert 0 < better < worse < 0.25


def test_the_text_says_what_the_intervals_say(committed, text):
    ten, many, most = (numbers(rf"0\.800 \((\S+) to (\S+)\), \d+ of {n}", committed) for n in (10, 200, 800))
    assert f"With 10 prompts, the true rate may be as low as {ten[0]:.0%}" in text
    assert f"With 200 prompts, the interval is {100 * (many[1] - many[0]):.0f} percentage points wide" in text
    assert most[1] - most[0] == pytest.approx((many[1] - many[0]) / 2, abs=0.002)
    [never] = numbers(r"0\.000 \(0\.000 to (\S+)\), 0 of 20", committed)
    assert f"the true rate may be {never:.0%}" in text


def test_the_text_says_how_many_prompts_show_the_change(committed, text):
    table = {n: numbers(rf" *{n} +(\S+) +(\S+)$", committed) for n in (5, 10, 20, 50, 200)}
    assert table[5] == [0, 0] and table[20][0] == 1 and table[200] == [1, 0]
    assert "Twenty prompts nearly always show a gain as large as this one" in text
    assert "Even all 200 do not separate the two seeds" in text


def test_nothing_against_nothing_shows_nothing(committed, text):
    better, worse = numbers(r"better: (\d+)\nworse: (\d+)\nNo improvement shown", committed)
    assert f"{better + worse:.0f} of 200 results changed" in text
    [alarms] = numbers(r"false alarms: (\d+) of 1000", committed)
    assert alarms <= 50 and f"it raised {alarms:.0f} false alarms" in text


def test_the_parts_of_the_gain_sum_to_it_and_both_are_real(committed, text):
    [gain] = set(re.findall(r"Strict accuracy rose by (0\.74\d) \(95% interval [\d. to]+; exact", committed))
    form, answers = numbers(r"gain from format \+(\S+) \(.*?\), from correctness \+(\S+) ", committed)
    assert form + answers == pytest.approx(float(gain), abs=0.0011) and form > answers > 0.05
    assert f"gain of {float(gain):.2f}" in text and f"{form:.2f} came from the format" in text
    assert f"and {answers:.2f} from correct answers" in text


def test_the_text_says_which_sums_improved(book, committed, text):
    before, after = (numbers(rf"correct sums, carry, {side}: {RATE}", committed)[0] for side in ("before", "after"))
    assert f"Accuracy on sums with a carry rose from {before:.0%} to {after:.0%}" in text
    [alt] = [alt for alt in alt_texts(book) if alt.startswith("Gains in format and arithmetic")]
    verdicts = dict(re.findall(r"(?:: |; )([^+;]+) \+\S+ \(.*?\), ([a-z ]+)", alt))
    assert f"0.{re.search(r'format .0.(..)', alt)[1]} for the format" in text
    assert verdicts.pop("sums, no carry") == "no change shown" and set(verdicts.values()) == {"improved"}


def test_the_text_says_what_sampling_more_shows(book, committed, text):
    [alt] = [alt for alt in alt_texts(book) if alt.startswith("pass@k")]
    (once, often), (after, always) = re.findall(rf"from {RATE} at k = 1 to {RATE} at k = 16", alt)
    assert f"pass@1 rose from {float(once):.2f} to {float(after):.2f}, but pass@16 only" in text
    assert f"from {float(often):.2f} to {float(always):.2f}" in text
    [vote] = numbers(rf"majority of 16, before: {RATE}", committed)
    assert f"A vote lifts the base model to {vote:.2f}" in text and vote < float(after)
    assert numbers(rf"greedy accuracy, before: {RATE}", committed) == [0.0]
    assert "tagged greedy answers, before: 0\n" in committed


def test_the_text_says_what_changed_elsewhere(committed, text):
    rows = re.findall(r"^(.{17})(\d\.\d\d) to (\d\.\d\d)  .*, p [=<] (\S+): (.*)$", committed, re.MULTILINE)
    changes = {name.strip(): (before, after, p, verdict) for name, before, after, p, verdict in rows}
    assert len(changes) == 6
    assert all(float(p) < 0.05 for *_, p, verdict in changes.values() if verdict != "no change shown")
    before, after, _, verdict = changes["facts"]
    assert verdict == "got worse" and f"got worse, from {before} to {after}" in text
    before, after, *_ = changes["'the sum of'"]
    assert f'"What is the sum of" rose only from {before} to {after}' in text
    assert changes["three digits"][:2] == ("0.00", "0.00")
    assert f"improved with p = {changes['JSON'][2]}" in text and changes["JSON"][3] == "improved"
    assert "Got worse elsewhere: facts\n" in committed


def test_each_seed_has_a_before_of_its_own_and_no_seed_is_better(book, committed):
    gains = re.search(r"^seeds: (.*)$", committed, re.MULTILINE)[1].split(", ")
    assert gains[0] in committed and len(set(gains)) == 3
    assert re.search(r"^Strict accuracy rose by .* 3 seeds", committed, re.MULTILINE)
    [alt] = [alt for alt in alt_texts(book) if alt.startswith("Changes without a new idea")]
    assert alt.count("no change shown") == 4
    changes = [abs(float(change)) for change in re.findall(r"to seed \d ([+-]\S+)", alt)]
    assert len(changes) == 3 and f"seeds alone change accuracy by up to {max(changes):.2f}" in text_of(book)


def test_the_best_of_sixteen_equal_models_is_lucky(committed, text):
    [best] = numbers(r"the best: (\S+)$", committed)
    assert f"so the {best:.2f} is luck" in text and best > 0.04 + numbers(r"average: (\S+)$", committed)[0]


def test_it_imports_no_unsloth(book):
    assert not [cell for cell in book.cells if cell.cell_type == "code" and "import unsloth" in cell.source]


def test_the_figure_of_changes_carries_its_numbers_as_text(capsys):
    show_changes({"facts": Change(Estimate(-0.2, -0.3, -0.1), 0, 9, 0.004)}, "Changes")
    assert "Changes, with 95% intervals: facts -0.200 (-0.300 to -0.100), got worse." in capsys.readouterr().out


@pytest.fixture(scope="module")
def other_family(tmp_path_factory) -> str:
    """Every parameter set to something that is not its default."""
    folder = tmp_path_factory.mktemp("other")
    pairs = ["-p", "PROFILE", "cpu", "-p", "FAMILY", "gemma", "-p", "STEPS", "3", "-p", "SEED", "5"]
    command = [sys.executable, "-m", "grpo_utils", "run", str(LESSON), *pairs]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    return result.stdout


def test_every_override_arrives(other_family):
    assert "tiny-gemma3, GRPO, 3 steps, 200 held-out" in other_family
    assert [int(seed) for seed in re.findall(r"seed (\d+), strict accuracy", other_family)] == [5, 6, 7]


def test_three_steps_are_no_triumph(other_family):
    [gain] = numbers(r"before to after: (\S+) on all questions", other_family)
    assert gain < 0.4
