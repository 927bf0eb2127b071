"""Lesson 04 as readers run it: the committed notebook, and the same with other parameters."""

import re

import pytest
from course import ROOT
from lessons import alt_texts, briefly_and_in_full, run_other_family, run_with_nbval

pytestmark = pytest.mark.slow
LESSON = ROOT / "notebooks" / "04_reading_a_run.ipynb"
#: What is printed about each run, in the order of the lesson.
VERDICTS = ["healthy", "dead_reward", "no_gradient", "mode_collapse", "all_truncated", "no_eos", "string_prompt"]


def verdicts(text: str) -> list[str]:
    return re.findall(r"^(?:error|warning|note) +(\w+): ", text, re.MULTILINE)


@pytest.fixture(scope="module")
def figures(book):
    """Per figure of runs, in the order of the lesson: the first and last value of each metric and run."""
    drawn = []
    for alt in (alt for alt in alt_texts(book) if alt.startswith("Curves over 20 steps. ")):
        panels = (panel.split(": ", 1) for panel in alt.removeprefix("Curves over 20 steps. ").rstrip(".").split("; "))
        ends = r"(?:^|, )([\w ]+?) (-?\d+\.\d\d) to (-?\d+\.\d\d)"
        drawn.append({key: {run: (float(a), float(b)) for run, a, b in re.findall(ends, runs)} for key, runs in panels})
    return drawn


@briefly_and_in_full(STEPS=3)
def test_the_committed_lesson_runs_and_its_checked_outputs_are_the_same(tmp_path, parameters):
    run_with_nbval(LESSON, tmp_path, **parameters)


def test_every_failure_gets_its_verdict(printed):
    assert verdicts(printed) == VERDICTS


def test_the_healthy_run_is_the_same_in_every_figure(figures):
    healthy = [figure["reward"]["healthy"] for figure in figures if "healthy" in figure.get("reward", {})]
    assert len(healthy) > 1 and len(set(healthy)) == 1


def test_the_healthy_run_learns_and_its_loss_does_not_show_it(printed, figures):
    [healthy, *_] = figures
    first, last = healthy["reward"]["healthy"]
    assert last > first + 1
    assert healthy["entropy"]["healthy"][1] < healthy["entropy"]["healthy"][0]
    assert healthy["frac_reward_zero_std"]["healthy"][1] > healthy["frac_reward_zero_std"]["healthy"][0]
    low, high = re.search(r"^loss .* lowest +(\S+) +highest +(\S+)$", printed, re.MULTILINE).groups()
    assert -0.5 < float(low) < float(high) < 0.5


def test_only_its_own_curve_shows_a_dead_reward(figures):
    _, dead, fixed, *_ = figures
    assert dead["rewards/pattern_reward/mean"]["this run"] == (0, 0)
    correct = fixed["rewards/correctness_reward/mean"]
    assert correct["before the fix"][1] == pytest.approx(correct["after the fix"][1], abs=0.05)
    assert fixed["rewards/format_reward/mean"]["after the fix"][1] > 0.9
    assert fixed["reward"]["after the fix"][1] > fixed["reward"]["before the fix"][1] + 0.5


def test_all_groups_tie_although_scores_differ_between_prompts(figures):
    tied = figures[3]
    assert tied["reward_std"]["this run"][1] > 0.3
    assert tied["frac_reward_zero_std"]["this run"] == (1, 1) and tied["grad_norm"]["this run"] == (0, 0)


def test_a_policy_collapses_to_noise(figures):
    wild = figures[4]
    assert wild["reward"]["this run"][1] < 0.1 < wild["reward"]["this run"][0]
    assert wild["entropy"]["this run"][1] > 10 * wild["entropy"]["this run"][0]


def test_only_one_of_two_truncated_runs_writes_its_answers(figures):
    cut = figures[5]
    assert min(share for run in "AB" for share in cut["completions/clipped_ratio"][run]) > 0.95
    assert cut["reward"]["A"][1] < 0.5 < 2 < cut["reward"]["B"][1]


def test_plain_strings_differ_from_messages_at_the_first_step(figures):
    strings = figures[6]
    assert strings["reward"]["this run"][0] < strings["reward"]["healthy"][0]
    assert strings["entropy"]["this run"][0] > 2 * strings["entropy"]["healthy"][0]


def test_dropping_tied_prompts_leaves_few_tied_groups_and_loses_solvable_prompts(printed):
    lines = r"^tied before: (\d+) of (\d+)\ntied after:  (\d+) of (\d+)\ndropped, but solvable: (\d+) of \d+$"
    before, rows, after, kept, solvable = map(int, re.search(lines, printed, re.MULTILINE).groups())
    assert before / rows > 0.5 and after / kept < 0.25 and solvable > 0


def test_the_exercise_does_not_give_its_answer_away(book):
    cells = [cell for cell in book.cells if 'logs["dead_reward"]' in cell.source]
    assert len(cells) == 1 and not cells[0].outputs


def test_the_hidden_runs_have_the_faults_that_they_are_built_with(printed, figures):
    """Each run is known by its own reward; the run that does not learn has the lesson's three."""
    [drawn] = [figure for figure in figures if "a" in figure.get("reward", {})]
    shown = dict(re.findall(r"^([abc]) (\{'\w+_reward'.*\})$", printed, re.MULTILINE))
    [hacked] = [label for label, means in shown.items() if "length_reward" in means]
    [dead] = [label for label, means in shown.items() if "tone_reward" in means]
    [flat] = set(shown) - {hacked, dead}
    correct, total = drawn["rewards/correctness_reward/mean"], drawn["reward"]
    assert correct[hacked][1] < 0.1 < 2.5 < total[hacked][1]
    assert total[flat][1] - total[flat][0] < 0.2
    assert "'tone_reward': 0.5" in shown[dead] and correct[dead][1] > 0.8


def test_a_run_at_a_low_temperature_ties_its_groups(printed):
    seen = dict(re.findall(r"^(\w+) +predicted \w+ +seen (\w+)$", printed, re.MULTILINE))
    assert (seen["reward"], seen["frac_reward_zero_std"]) == ("lower", "higher")


@pytest.fixture(scope="module")
def other_family(tmp_path_factory):
    folder = tmp_path_factory.mktemp("other")
    return folder, run_other_family(LESSON, folder, STEPS=22)


def test_every_override_arrives(other_family, printed):
    _, text = other_family
    assert re.search(r"tiny-gemma3.*\b22$", text, re.MULTILINE)
    tied = re.compile(r"^tied after: .+$", re.MULTILINE)
    assert tied.findall(text) != tied.findall(printed)  # another model and seed, other samples


def test_the_other_family_with_another_seed_fails_alike(other_family):
    _, text = other_family
    assert verdicts(text) == VERDICTS
    assert text.count(": correct.") == 2


def test_it_leaves_its_runs_where_the_reader_can_look(other_family):
    folder, _ = other_family
    runs = folder / "outputs" / "reading"
    assert "=== step 10" in (runs / "healthy" / "health" / "samples.txt").read_text()
    assert "mode_collapse" in (runs / "wild" / "health" / "verdicts.txt").read_text()
