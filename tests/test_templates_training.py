"""Each template as its user has it: copied out of the course, tested there, and trained on a CPU."""

import resource

import pytest
from template_projects import CONFIGURED, OWN_REWARDS, check_report, check_use, in_folder

from grpo_utils.project import new_project

pytestmark = pytest.mark.slow

#: Trained until accuracy has risen on every commit: the shared parts alone (as SKILL.md says, in test_skill.py), with a
#: sandbox, with episodes. The others train a few steps there, and in full by `make test-upgrade`.
IN_FULL = ("basic_grpo", "code_reward", "tool_agent")
OTHERS = [name for name in CONFIGURED if name not in IN_FULL]


@pytest.fixture(scope="module")
def project(request, tmp_path_factory):
    return new_project(request.param, tmp_path_factory.mktemp(request.param) / "project")


@pytest.mark.parametrize("project", OWN_REWARDS, indirect=True)
def test_its_own_tests_pass(project):
    run = in_folder(project, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert run.returncode == 0, run.stdout


@pytest.mark.parametrize("project", [name for name in OTHERS if name in OWN_REWARDS], indirect=True)
def test_a_few_steps_end_in_a_model_and_a_report(project):
    """multi_stage and scale_out have tests of what makes them differ, which train them."""
    few = ["--eval_rows", "20", "--max_steps", "3", "--output_dir", "outputs/few"]
    run = in_folder(project, "train.py", "--config", "config.cpu.yaml", *few)
    assert run.returncode == 0 and (project / "outputs" / "few" / "model").is_dir(), run.stderr[-3000:]
    check_report(project / "outputs" / "few" / "report.json")
    check_use(project, "outputs/few", "Ana is 22 years old.")


IN_TURN = [*IN_FULL[1:], *(pytest.param(name, marks=pytest.mark.upgrade) for name in OTHERS)]


@pytest.mark.parametrize("project", IN_TURN, indirect=True)
def test_it_trains_until_held_out_accuracy_has_risen(project):
    before = processor_seconds()
    run = in_folder(project, "train.py", "--config", "config.cpu.yaml", "--output_dir", "outputs/full")
    assert run.returncode == 0, run.stderr[-3000:]
    assert processor_seconds() - before < 180  # three minutes on a quiet machine; other work takes nothing from this
    report = check_report(project / "outputs" / "full" / "report.json")
    assert report["before"]["accuracy_ci95"][1] < report["after"]["accuracy_ci95"][0]
    assert report["p_value"] < 1e-6 and "Strict accuracy rose" in run.stdout
    check_use(project, "outputs/full", "What is 15 + 27?")
    # The weights are of the rewards, so the settings are reported as they were given.
    assert report["rewards"]["correctness_reward"] > 0 and report["config"]["training"]["reward_weights"] is None


def processor_seconds() -> float:
    """What the processes started from here have used so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
