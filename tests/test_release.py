"""What is published, and how grpo-check is used on GitHub and by pre-commit; nothing here is published."""

import os
import re
import shutil
import subprocess
import sys
import tomllib

import pytest
import release_tag
import yaml
from course import ROOT

import grpo_check

ACTION = yaml.safe_load((ROOT / "grpo_check" / "action.yml").read_text(encoding="utf-8"))
HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
REWARDS = """
def right(completions, answer, **kwargs):
    return [float(completion[0]["content"] == gold) for completion, gold in zip(completions, answer)]

def longer(completions, **kwargs):
    return [float(len(completion[0]["content"])) for completion in completions]
"""


def project(folder: str) -> dict:
    return tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_one_version_of_grpo_check_is_named_everywhere():
    """The course takes exactly the grpo-check next to it, so a new version of one is written in three places."""
    version = project("grpo_check")["version"]
    assert grpo_check.__version__ == version
    assert f"grpo-check=={version}" in project("")["dependencies"]


def test_what_is_built_has_its_license_and_its_page():
    for folder in ("", "grpo_check"):
        assert (ROOT / folder / "LICENSE").is_file() and (ROOT / folder / project(folder)["readme"]).is_file()


def test_a_tag_names_a_distribution_and_its_version():
    for folder, name in (("grpo_check", "grpo-check"), ("", "grpo-utils")):
        version = project(folder)["version"]
        assert release_tag.files_of(f"{name}-v{version}") == f"{name.replace('-', '_')}-{version}"
    with pytest.raises(SystemExit, match=r"says 9\.9, but grpo-check's pyproject.toml says"):
        release_tag.files_of("grpo-check-v9.9")
    for tag in ("v0.1.0", "grpo-check-0.1.0", ""):
        with pytest.raises(SystemExit, match="should be grpo-check-vVERSION or grpo-utils-vVERSION"):
            release_tag.files_of(tag)


def test_only_a_tag_publishes_and_only_the_last_job_may():
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))
    assert workflow[True] == {"push": {"tags": ["grpo-check-v*", "grpo-utils-v*"]}}  # YAML 1.1 reads "on" as true
    assert workflow["permissions"] == {} and workflow["jobs"]["build"]["permissions"] == {"contents": "read"}
    publish = workflow["jobs"]["publish"]
    assert publish["permissions"] == {"id-token": "write"} and publish["environment"] and publish["needs"] == "build"


def run_action(args: str, folder, python=sys.executable) -> subprocess.CompletedProcess:
    """The last step of the action, as GitHub runs it."""
    step = ACTION["runs"]["steps"][-1]
    values = {"${{ inputs.python }}": str(python), "${{ inputs.args }}": args}
    env = {name: values[value] for name, value in step["env"].items()}
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    return subprocess.run(shell, cwd=folder, env=os.environ | env, capture_output=True, text=True)


@pytest.fixture
def rewards(tmp_path):
    (tmp_path / "my rewards.py").write_text(REWARDS, encoding="utf-8")
    return tmp_path


def test_the_action_writes_annotations_and_fails_on_an_error(rewards):
    bad = run_action("probe 'my rewards.py:longer' --answers 42 '7 $(touch here)'", rewards)
    assert bad.returncode == 1 and "::error" in bad.stdout, bad.stdout + bad.stderr
    assert not (rewards / "here").exists()  # nothing in the arguments is run
    good = run_action("probe 'my rewards.py:right' --answers 42", rewards)
    assert good.returncode == 0 and "::error" not in good.stdout, good.stdout + good.stderr


@pytest.mark.slow
def test_the_action_installs_grpo_check_from_its_own_folder(rewards, tmp_path_factory):
    """Into an environment that has its dependencies, pip and setuptools, as that of a job: those of this one."""
    place = tmp_path_factory.mktemp("job")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    python, install = place / "bin" / "python", ACTION["runs"]["steps"][0]
    paths = subprocess.run([python, "-c", "import site; print(site.getsitepackages()[0])"], capture_output=True)
    there, here = paths.stdout.decode().strip(), next(path for path in sys.path if path.endswith("site-packages"))
    with open(f"{there}/job.pth", "w", encoding="utf-8") as file:
        file.write(f"{here}\n")
    copied = shutil.copytree(ROOT / "grpo_check", place / "action" / "grpo_check")  # pip builds in the folder
    shutil.copytree(ROOT / "docs", place / "action" / "docs", ignore=shutil.ignore_patterns("_build", "*.png"))
    values = {"${{ inputs.python }}": str(python), "${{ github.action_path }}": str(copied)}
    env = {name: values[value] for name, value in install["env"].items()}
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", install["run"]],
        env=os.environ | env | {"PIP_NO_DEPS": "1", "PIP_IGNORE_INSTALLED": "1", "PIP_NO_BUILD_ISOLATION": "0"},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert os.path.exists(f"{there}/grpo_check/__init__.py")
    assert run_action("probe 'my rewards.py:right' --answers 42", rewards, python).returncode == 0


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["id"])
def test_a_hook_runs_a_command_in_the_environment_of_the_commit(hook):
    assert hook["language"] == "system" and hook["pass_filenames"] is False
    command = hook["entry"].split()
    assert command[0] in project("grpo_check")["scripts"] and hook["id"] == "-".join(command)
    assert re.search(hook["files"], "rewards/my_rewards.py") and not re.search(hook["files"], "notes.md")
