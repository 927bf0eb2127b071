"""Each template as its user has it: copied out of the course, tested there, and trained on a CPU."""

import json
import resource

import pytest
from template_projects import CONFIGURED, in_folder

from grpo_utils.project import new_project


@pytest.fixture(scope="module", params=CONFIGURED)
def project(request, tmp_path_factory):
    return new_project(request.param, tmp_path_factory.mktemp(request.param) / "project")


@pytest.mark.slow
def test_its_own_tests_pass(project):
    run = in_folder(project, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert run.returncode == 0, run.stdout


def processor_seconds() -> float:
    """What the processes started from here have used so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.slow
def test_it_trains_until_held_out_accuracy_has_risen(project):
    before = processor_seconds()
    run = in_folder(project, "train.py", "--config", "config.cpu.yaml")
    assert run.returncode == 0, run.stderr[-3000:]
    assert processor_seconds() - before < 180  # three minutes on a quiet machine; other work takes nothing from this
    [written] = (project / "outputs").glob("*/report.json")
    report = json.loads(written.read_text(encoding="utf-8"))
    assert report["before"]["accuracy_ci95"][1] < report["after"]["accuracy_ci95"][0]
    assert report["p_value"] < 1e-6 and "Strict accuracy rose" in run.stdout
    assert {"profile", "family", "model", "steps", "train_seconds", "seed", "before", "after", "p_value"} <= set(report)
    assert report["versions"].keys() >= {"unsloth", "trl", "transformers", "peft", "bitsandbytes", "torch"}
