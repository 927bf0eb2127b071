"""What a push runs on GitHub: the part that it changes, and every part weekly."""

import os
import re
import subprocess
import tomllib

import pytest
import yaml
from course import ROOT

RUN = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
WORKFLOWS = {
    path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in ROOT.glob(".github/workflows/*.yml")
}
CI, CHECKS = WORKFLOWS["ci"], WORKFLOWS["checks"]
ON = True  # YAML 1.1 reads the key "on" as true


def paths_of(part: str) -> list[str]:
    return re.search(rf'^{part}="(.+)"$', RUN, re.MULTILINE)[1].split()


def test_the_two_parts_are_everything():
    options = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"]["ini_options"]
    assert {*paths_of("course"), *paths_of("checks")} >= {*options["testpaths"]}
    assert all((ROOT / path).exists() for part in ("course", "checks") for path in paths_of(part))


def matches(path: str, patterns: list[str]) -> bool:
    """As GitHub does: one star stays in a folder, two do not."""
    parts = [re.escape(one).replace(r"\*\*", ".*").replace(r"\*", "[^/]*") for one in patterns]
    return any(re.fullmatch(one, path) for one in parts)


def starts(path: str) -> set[str]:
    """The workflows that a push of one file starts."""
    ignored, wanted = CI[ON]["push"]["paths-ignore"], CHECKS[ON]["push"]["paths"]
    started = {"ci"} - ({"ci"} if matches(path, ignored) else set())
    return started | ({"checks"} if matches(path, wanted) else set())


@pytest.mark.parametrize(
    ("path", "workflows"),
    [
        ("grpo_check/src/grpo_check/findings.py", {"checks"}),
        ("grpo_check/tests/test_health.py", {"checks"}),
        ("grpo_check/src/grpo_core/errors.py", {"ci", "checks"}),
        ("requirements.txt", {"ci", "checks"}),
        ("notebooks/source/02_rewards.py", {"ci"}),
        ("templates/basic_grpo/train.py", {"ci"}),
    ],
)
def test_a_change_starts_the_tests_of_its_part_and_no_others(path, workflows):
    assert starts(path) == workflows


def test_no_file_is_pushed_without_a_test_and_a_pull_request_starts_what_a_push_does():
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert not [path for path in files.splitlines() if not starts(path)]
    assert CI[ON]["pull_request"]["paths-ignore"] == CI[ON]["push"]["paths-ignore"]
    assert CHECKS[ON]["pull_request"]["paths"] == CHECKS[ON]["push"]["paths"]


def test_weekly_everything_runs_on_every_python():
    job = CI["jobs"]["test"]
    assert job["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13"]
    weekly = [step["run"] for step in job["steps"] if step.get("if") == "github.event_name == 'schedule'"]
    assert weekly == ["bash .ci/run", "make test-upgrade"]


@pytest.mark.parametrize("name", WORKFLOWS)
def test_no_code_of_a_workflow_gets_a_token_that_it_does_not_need(name):
    """Tests run packages of other people, with the token of the workflow, which checkout leaves in .git/config."""
    workflow = WORKFLOWS[name]
    for job in workflow["jobs"].values():
        powers = job.get("permissions", workflow.get("permissions"))
        assert powers is not None, "without permissions, a repository's default applies, which may be to write"
        for step in job["steps"]:
            if step.get("uses", "").startswith("actions/checkout@") and powers.get("contents") != "write":
                assert step["with"]["persist-credentials"] is False


def test_make_keeps_compiled_modules_also_where_an_image_forbids_it():
    """Each of a hundred processes compiled torch and TRL again, in two thirds of its time."""
    command = ["make", "--silent", "--eval", "shown:; @echo $${PYTHONDONTWRITEBYTECODE-kept}", "shown"]
    variables = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    assert subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True).stdout == "kept\n"
