"""Lesson 04 as readers run it: the committed notebook, and the same with other parameters."""

import re
import subprocess
import sys
from types import SimpleNamespace

import nbformat
import pytest
from conftest import ROOT
from lessons import run_with_nbval, said, text_of

from grpo_utils.arguments import training_arguments
from grpo_utils.profiles import CPU

pytestmark = pytest.mark.slow
LESSON = ROOT / "notebooks" / "04_reading_a_run.ipynb"
#: What is printed about each run, in the order of the lesson.
VERDICTS = ["healthy", "dead_reward", "no_gradient", "mode_collapse", "all_truncated", "no_eos", "string_prompt"]


def verdicts(text: str) -> list[str]:
    return re.findall(r"^(?:error|warning|note) +(\w+): ", text, re.MULTILINE)


@pytest.fixture(scope="module")
def book():
    return nbformat.read(LESSON, as_version=4)


@pytest.fixture(scope="module")
def figures(book):
    """Per figure of runs, in the order of the lesson: the first and last value of each metric and run."""
    alts = [o.data["text/plain"] for c in book.cells for o in c.get("outputs", []) if "image/png" in o.get("data", {})]
    drawn = []
    for alt in (alt for alt in alts if alt.startswith("Curves over 20 steps. ")):
        panels = (panel.split(": ", 1) for panel in alt.removeprefix("Curves over 20 steps. ").rstrip(".").split("; "))
        ends = r"(?:^|, )([\w ]+?) (-?\d+\.\d\d) to (-?\d+\.\d\d)"
        drawn.append({key: {run: (a, b) for run, a, b in re.findall(ends, runs)} for key, runs in panels})
    return drawn


def test_the_committed_lesson_runs_and_its_checked_outputs_are_the_same(tmp_path):
    result = run_with_nbval(LESSON, tmp_path, cell_seconds=600, seconds=1200)
    assert result.returncode == 0, result.stdout[-4000:]


def test_every_failure_gets_its_verdict(book):
    assert verdicts(said(book)) == VERDICTS


def test_all_runs_of_a_figure_have_the_same_steps(figures):
    assert len(figures) == 8
    healthy = figures[0]["reward"]["healthy"]
    assert [f["reward"]["healthy"] for f in figures if "healthy" in f.get("reward", {})] == [healthy] * 5


def test_the_settings_written_out_in_the_lesson_are_those_of_the_profile(book):
    [cell] = [cell for cell in book.cells if cell.source.startswith("from trl import GRPOConfig")]
    names = dict(run=SimpleNamespace(steps=20, profile=CPU), weights=[2.0, 0.5, 0.5], SEED=0)
    exec(cell.source, names)
    changed = dict(max_steps=20, lr_scheduler_type="constant", reward_weights=[2.0, 0.5, 0.5])
    wanted = training_arguments(CPU, **changed)
    assert names["BASE"] == {name: wanted[name] for name in names["BASE"]}


def sentence(text: str, words: str, *values: str) -> None:
    assert words.format(*values) in text, words.format(*values)


def test_the_text_says_what_the_healthy_run_did(book, figures):
    text, [healthy, *_] = text_of(book), figures
    sentence(text, "rises from {} to {}. The maximum is 3.00,", *healthy["reward"]["healthy"])
    sentence(text, "rises to {}, because most groups now hold", healthy["frac_reward_zero_std"]["healthy"][1])
    sentence(text, "It falls slowly, from {} to {}.", *healthy["entropy"]["healthy"])
    first, last, *_ = re.search(r"^reward +first +(\S+) +last +(\S+)", said(book), re.MULTILINE).groups()
    assert float(last) > 3 * float(first) - 0.1 and "The reward tripled" in text
    low, high = re.search(r"^loss .* lowest +(\S+) +highest +(\S+)$", said(book), re.MULTILINE).groups()
    sentence(text, "the loss stayed between {} and {}.", low, high)


def test_the_text_says_what_the_rewards_did(book, figures):
    text, (_, dead, fixed, tied, *_) = text_of(book), figures
    assert dead["rewards/pattern_reward/mean"] == {"this run": ("0.00", "0.00")}
    ends = {run: last for run, (_, last) in fixed["reward"].items()}
    sentence(text, "answers rises to {}, and", fixed["rewards/format_reward/mean"]["after the fix"][1])
    sentence(text, "ends at {} instead of {}.", ends["after the fix"], ends["before the fix"])
    correct = [float(last) for _, last in fixed["rewards/correctness_reward/mean"].values()]
    assert abs(correct[0] - correct[1]) < 0.05
    assert tied["reward_std"]["this run"][1] == tied["reward_std"]["healthy"][1]
    sentence(text, "ends at {}, as in the healthy run", tied["reward_std"]["this run"][1])
    assert tied["frac_reward_zero_std"]["this run"] == ("1.00", "1.00")
    assert tied["grad_norm"]["this run"] == ("0.00", "0.00")
    sentence(text, "The healthy run also ends with {} of its groups tied", tied["frac_reward_zero_std"]["healthy"][1])


def test_the_text_says_what_the_policies_did(book, figures):
    text, (wild, cut, strings) = text_of(book), figures[4:7]
    assert wild["reward"]["this run"][1] == "0.00"
    sentence(text, "Entropy climbs from {} to {} nats.", *wild["entropy"]["this run"])
    assert min(float(share) for run in "AB" for share in cut["completions/clipped_ratio"][run]) > 0.95
    sentence(text, "The reward of A ends at {}", cut["reward"]["A"][1])
    sentence(text, "The reward of B ends at {}", cut["reward"]["B"][1])
    starts = [strings[key][run][0] for key in ("reward", "entropy") for run in ("this run", "healthy")]
    sentence(text, "The reward is {} instead of {}, and entropy is {} instead of {}.", *starts)


def test_the_text_says_what_the_pass_rates_are(book):
    text, printed = text_of(book), said(book)
    [alt] = [o.data["text/plain"] for c in book.cells for o in c.get("outputs", []) if "two digits" in str(o)]
    never, always = re.search(r"two digits: (\d+) never correct, (\d+) always", alt).groups()
    solved = str(100 - int(never) - int(always))
    sentence(text, "solves {} of the two-digit problems at least once, but no three-digit one", solved)
    assert "three digits: 100 never correct" in alt
    before, after = (re.search(rf"^tied {when}: +(.+)$", printed, re.MULTILINE)[1] for when in ("before", "after"))
    sentence(text, "Tied groups fell from {} to {}.", before, after)
    solvable, lost = re.search(r"^dropped, but solvable: (\d+) of (\d+)$", printed, re.MULTILINE).groups()
    sentence(text, "dropped {} solvable problems", solvable)
    assert lost == never and round(7473 * 8 / 64) == 934 and round(0.8**8, 2) == 0.17


def test_the_page_of_metrics_has_every_name_in_the_log(book):
    [cell] = [cell for cell in book.cells if cell.source.startswith("import textwrap")]
    listed = cell.outputs[0].text.split("\n\n")[0].replace("\n", " ").split(", ")
    names = {re.sub(r"^rewards/\w+/", "rewards/NAME/", name.strip()) for name in listed}
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE))
    assert len(names) > 20 and names <= rows
    assert rows - names <= {"kl"} | {name for name in rows if name.startswith("health/")}


def test_the_exercise_does_not_give_its_answer_away(book):
    cells = [cell for cell in book.cells if 'logs["dead_reward"]' in cell.source]
    assert len(cells) == 1 and not cells[0].outputs


def test_the_solution_names_the_runs_in_the_order_of_the_figure(book, figures):
    three, text = figures[-1], text_of(book)
    assert "Run c is `length_hacking`: correct answers vanish" in text
    assert three["rewards/correctness_reward/mean"]["c"][1] == "0.00" and three["reward"]["c"][1] == "3.00"
    low, high = map(float, three["reward"]["b"])
    assert "Run b is `no_learning`" in text and high - low < 0.2
    assert "run a is `dead_reward`, because `tone_reward` stays at 0.5" in text and "a {'correctness_reward'" in said(
        book
    )


@pytest.fixture(scope="module")
def other_family(tmp_path_factory):
    """Every parameter set to something that is not its default."""
    folder = tmp_path_factory.mktemp("other")
    pairs = ["-p", "PROFILE", "cpu", "-p", "FAMILY", "gemma", "-p", "STEPS", "22", "-p", "SEED", "5"]
    command = [sys.executable, "-m", "grpo_utils", "run", str(LESSON), *pairs]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=1200)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    return folder, result.stdout


def test_every_override_arrives(other_family, book):
    _, text = other_family
    assert "tiny-gemma3" in text and "22" in text.split("tiny-gemma3")[1].splitlines()[0]
    tied = re.compile(r"^tied after: .+$", re.MULTILINE)
    assert tied.findall(text) != tied.findall(said(book))  # another model and seed, other samples


def test_the_other_family_with_another_seed_fails_alike(other_family):
    _, text = other_family
    assert verdicts(text) == VERDICTS
    assert text.count(": correct.") + text.count(": right.") == 2


def test_it_leaves_its_runs_where_the_reader_can_look(other_family):
    folder, _ = other_family
    runs = folder / "outputs" / "reading"
    assert "=== step 10" in (runs / "healthy" / "health" / "samples.txt").read_text()
    assert "mode_collapse" in (runs / "wild" / "health" / "verdicts.txt").read_text()


def test_an_unknown_family_is_an_error(tmp_path):
    command = [sys.executable, "-m", "grpo_utils", "run", str(LESSON), "-p", "FAMILY", "quen"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 1 and "Error: FAMILY='quen' is unknown." in result.stderr
