"""Lesson 09 as readers run it: the committed notebook, and the same with other parameters."""

import ast
import inspect
import re

import pytest
import yaml
from course import ROOT
from free import first, stages, whole_runs
from free.arms import sft_name
from lessons import alt_texts, briefly_and_in_full, run_other_family, run_with_nbval
from trl import GRPOConfig, GRPOTrainer

pytestmark = pytest.mark.slow
LESSON = ROOT / "notebooks" / "09_stages.ipynb"
PLAN = ROOT / "templates" / "multi_stage"
NUMBER = r"([+-]?\d\.\d{3})"


@briefly_and_in_full(STEPS=2)
def test_the_committed_lesson_runs_and_its_checked_outputs_are_the_same(tmp_path, parameters):
    run_with_nbval(LESSON, tmp_path, **parameters)


def test_correctness_gives_a_signal_before_training(printed):
    line = re.search(r"^correctness_reward +differs in (\d+) of (\d+) groups$", printed, re.MULTILINE)
    differs, groups = map(int, line.groups())
    assert groups >= differs > 0.5 * groups


def test_the_groups_of_the_first_stage_tie(printed):
    shares = ast.literal_eval(re.search(r"^tied groups, by step: (\[.+\])$", printed, re.MULTILINE)[1])
    assert len(shares) == 10 and shares[0] < 0.2 and shares[-1] > 0.5


def test_the_adapter_is_carried_and_the_optimizer_is_not(printed):
    assert re.search(r"is_trainable=False: 0 trainable.*\nis_trainable=True: [1-9]\d+ trainable", printed)
    assert re.search(r"both stages: +20\n.*counted: +10\n", printed)


def test_three_seeds_show_no_gain_from_two_stages(printed):
    seeds = re.search(rf"^seeds: {NUMBER}, {NUMBER}, {NUMBER}$", printed, re.MULTILINE)
    differences = [float(number) for number in seeds.groups()]
    verdict = printed[seeds.end() :].strip().splitlines()[0]
    change, low, high = (float(number) for number in re.findall(NUMBER, verdict)[:3])
    assert change == pytest.approx(sum(differences) / 3, abs=0.0015)
    assert verdict.startswith("No improvement shown") and low < 0 < high


def test_the_first_stage_teaches_the_format_and_not_to_add(printed):
    before, after = map(float, re.search(rf"^strict accuracy +{NUMBER} .*?{NUMBER} \(", printed, re.M).groups())
    by_form, by_answers = map(float, re.search(rf"gain from format {NUMBER}.*correctness {NUMBER}", printed).groups())
    assert after > before + 0.4 and by_form > 4 * abs(by_answers)


def test_both_plans_learn_format_and_answers(book):
    curves, changes = alt_texts(book)
    ends = [tuple(map(float, pair)) for pair in re.findall(r"stages? ([\d.]+) to (\d\.\d+)", curves)]
    assert len(ends) == 4 and all(last > first + 0.3 for first, last in ends)
    assert changes.startswith("Two stages minus one stage") and changes.count("seed ") == 3


def test_each_run_has_one_bar_that_is_full(printed):
    bars = [line for line in printed.splitlines() if line.startswith("GRPO")]
    assert bars and all(line.startswith("GRPO 100%") for line in bars)


@pytest.fixture(scope="module")
def on_a_gpu(book) -> ast.Module:
    """The code for a GPU that the lesson shows and does not run."""
    [text] = [cell.source for cell in book.cells if "from unsloth import" in cell.source]
    return ast.parse("\n".join(re.findall(r"```python\n(.+?)```", text, flags=re.DOTALL)))


def arguments(tree: ast.Module, name: str) -> dict[str, ast.expr]:
    """The arguments of the one call of ``name``."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    [call] = [call for call in calls if getattr(call.func, "id", "") == name]
    return {keyword.arg: keyword.value for keyword in call.keywords}


def test_the_code_for_a_gpu_names_arguments_that_trl_has(on_a_gpu):
    for called in (GRPOConfig, GRPOTrainer):
        assert arguments(on_a_gpu, called.__name__).keys() <= inspect.signature(called).parameters.keys()


def test_the_code_for_a_gpu_is_the_plan_of_the_template(on_a_gpu):
    shared = yaml.safe_load((PLAN / "config.yaml").read_text(encoding="utf-8"))
    given = arguments(on_a_gpu, "GRPOConfig").items()
    given = {name: value.value for name, value in given if isinstance(value, ast.Constant) and name in shared}
    assert len(given) > 8 and given == {name: shared[name] for name in given}
    stages = yaml.safe_load((PLAN / "stages.yaml").read_text(encoding="utf-8"))
    assigned = [node for node in on_a_gpu.body if isinstance(node, ast.Assign)]
    [plan] = [node.value for node in assigned if ast.unparse(node.targets[0]) == "STAGES"]
    assert [(key.value, value.elts[1].value) for key, value in zip(plan.keys, plan.values, strict=True)] == [
        (stage["name"], stage["max_steps"]) for stage in stages
    ]


@pytest.fixture(scope="module")
def other_family(tmp_path_factory) -> str:
    return run_other_family(LESSON, tmp_path_factory.mktemp("other"), STEPS=2)


def test_every_override_arrives(other_family):
    assert re.search(r"tiny-gemma3.*\b2$", other_family, re.MULTILINE)
    assert re.search(r"both stages: +4\n.*counted: +2\n", other_family)
    assert [int(seed) for seed in re.findall(r"seed (\d+), two stages:", other_family)] == [5, 6, 7]


def test_the_lesson_has_the_figures_of_the_real_model(book):
    [told] = [cell.source for cell in book.cells if "#the-form-first-or-everything-at-once" in cell.source]
    ones = whole_runs.greedy_of_runs()
    ended = [min(ones), max(ones), *(stages.greedy(two) for _, two in stages.pairs())]
    ended.append(first.mean(sft_name(200), "greedy"))
    assert re.findall(r"0\.\d\d", told) == [f"{rate + 1e-9:.2f}" for rate in ended]  # 0.945 is 0.95
