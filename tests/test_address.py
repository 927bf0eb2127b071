"""A copy of the course on GitHub sets its own address, everywhere, and only lines with an address change."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
import yaml
from address import Place, current
from build_notebooks import SOURCES, retold
from course import ROOT

WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "address.yml").read_text(encoding="utf-8"))
COURSE = ["README.md", "CITATION.cff", "CONTRIBUTING.md", "pyproject.toml", "Makefile", ".gitignore"]
COURSE += ["scripts", "notebooks", "docs", "grpo_check", "templates", ".github"]
URL = "https://github.com/somebody/other-course"
#: git without the settings of this machine, and without a name: the workflow gives itself one.
ALONE = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
}


def command(line: str, folder: Path, **variables: str) -> subprocess.CompletedProcess:
    """A line of bash, as GitHub runs it."""
    bash = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", line]
    return subprocess.run(bash, cwd=folder, env=ALONE | variables, capture_output=True, text=True)


def succeed(line: str, folder: Path) -> str:
    run = command(line, folder)
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.fixture
def course(tmp_path):
    """A copy of what holds or makes the address, with none set."""
    target = tmp_path / "course"
    skipped = shutil.ignore_patterns("outputs", "__pycache__", "unsloth_compiled_cache")
    for path in (ROOT / name for name in COURSE):
        (target / path.name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(path, target / path.name, ignore=skipped) if path.is_dir() else shutil.copy(path, target)
    succeed("python3 scripts/address.py --unset --branch main", target)
    return target


@pytest.fixture
def hub(course, tmp_path):
    """The course on "GitHub": a bare repository whose default branch is not main."""
    name = "-c user.name=Ana -c user.email=ana@example.org"
    succeed(f"git init -qb trunk && git add -A && git {name} commit -qm 'The course'", course)
    succeed(f"git clone -q --bare {course} hub.git", tmp_path)
    return tmp_path / "hub.git"


def run_workflow(hub: Path, event: str = "push", repository: str = "somebody/other-course"):
    """What the runner does: a fresh clone, then the script of each step in turn; the last result."""
    clone = hub.parent / "runner"
    shutil.rmtree(clone, ignore_errors=True)
    succeed(f"git clone -q {hub} {clone}", hub.parent)
    for step in WORKFLOW["jobs"]["address"]["steps"]:
        if "run" in step:
            given = dict(GITHUB_EVENT_NAME=event, GITHUB_REPOSITORY=repository, BRANCH="trunk")
            result = command(step["run"], clone, **given)
    return result


def contents(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file() and not {".git", "__pycache__"} & set(path.parts)]
    return {path.relative_to(folder).as_posix(): path.read_text("utf-8", errors="replace") for path in files}


def test_the_first_push_writes_the_address_everywhere(hub, course):
    before = contents(course)
    assert run_workflow(hub).returncode == 0
    succeed(f"git pull -q {hub} trunk", course)
    after = contents(course)
    changed = {name for name in after if after[name] != before[name]}
    lessons = {f"notebooks/{path.stem}.ipynb" for path in SOURCES.glob("*.py")}
    assert changed == {"README.md", "CITATION.cff", "CONTRIBUTING.md", "pyproject.toml"} | lessons
    assert all(URL in after[name] for name in changed)
    assert f"[![CI]({URL}/actions/workflows/ci.yml/badge.svg)]" in after["README.md"]
    assert f'repository-code: "{URL}"\n' in after["CITATION.cff"]
    assert f"git clone {URL} && cd other-course\n" in after["CONTRIBUTING.md"]


def test_only_lines_with_the_address_change(hub, course):
    run_workflow(hub)
    lines = succeed("git show --unified=0 --format= HEAD", hub).splitlines()
    added = [line for line in lines if re.match(r"\+(?!\+\+)", line)]
    known = (
        "somebody/other-course",
        'branch = "trunk"',
        '+    "\\n",',
        "<!-- steps -->",
    )  # and an empty line between two
    assert len(added) > 80 and not [line for line in added if not any(part in line for part in known)]


def test_a_second_run_and_a_later_push_change_nothing(hub):
    run_workflow(hub)
    tip = succeed("git rev-parse trunk", hub)
    for event, repository in [
        ("push", "somebody/other-course"),
        ("push", "a/fork"),
        ("workflow_dispatch", "somebody/other-course"),
    ]:
        assert run_workflow(hub, event, repository).returncode == 0
        assert succeed("git rev-parse trunk", hub) == tip


def test_a_fork_or_a_renamed_repository_gets_its_own_address_by_hand(hub, course):
    run_workflow(hub)
    assert run_workflow(hub, "workflow_dispatch", "a-school/grpo").returncode == 0
    succeed(f"git pull -q {hub} trunk", course)
    assert not [name for name, text in contents(course).items() if "somebody/other-course" in text]
    assert "https://github.com/a-school/grpo/blob/trunk/" in (course / "notebooks/03_grpo_lora.ipynb").read_text(
        "utf-8"
    )


def test_where_pushing_is_refused_the_error_has_the_one_command(hub):
    hook = hub / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\necho 'protected branch' >&2\nexit 1\n")
    hook.chmod(0o755)
    run = run_workflow(hub)
    assert run.returncode == 1 and "protected branch" in run.stderr
    assert (
        run.stdout.startswith("::error::") and "run: make badges REPO=somebody/other-course BRANCH=trunk" in run.stdout
    )
    assert run_workflow(hub).returncode == 1  # still unset, so the next push tries again


def test_the_command_in_that_error_works_without_an_installation(course):
    said = succeed("make badges REPO=somebody/other-course BRANCH=trunk PYTHON='python3 -S'", course)  # no packages
    changed = 4 + len(list((ROOT / "notebooks").glob("*.ipynb")))
    assert f"address: {URL}, branch trunk; {changed} files changed" in said and not (course / ".venv").exists()
    said = succeed("make badges REPO=somebody/other-course", course)
    assert f"address: {URL}, branch trunk; 0 files changed" in said


def test_what_is_not_an_address_is_refused_and_nothing_changes(course):
    before = contents(course)
    for given in ("", "nonsense", "a/b/c", "a/b --branch 'with space'"):
        run = command(f"python3 scripts/address.py {given}", course)
        assert run.returncode == 2 and "make badges REPO=owner/name" in run.stderr, given
    assert contents(course) == before


def test_unset_is_as_before(course):
    before = contents(course)
    succeed("python3 scripts/address.py somebody/other-course --branch trunk", course)
    succeed("python3 scripts/address.py --unset --branch main", course)
    assert contents(course) == before


def test_a_merge_that_brought_in_another_address_is_fixed(course):
    succeed("python3 scripts/address.py somebody/other-course", course)
    right = contents(course)
    for name in ("README.md", "CITATION.cff", "CONTRIBUTING.md", "notebooks/03_grpo_lora.ipynb"):
        path = course / name
        path.write_bytes(path.read_bytes().replace(b"somebody/other-course", b"up/stream"))
    succeed("python3 scripts/address.py somebody/other-course", course)
    assert contents(course) == right


@pytest.mark.parametrize("repo", ["", "somebody/other-course"])
def test_lessons_with_an_address_are_in_sync_with_their_sources(course, repo):
    place = Place(repo, current().branch)
    succeed(f"python3 scripts/address.py {repo or '--unset'} --branch {place.branch}", course)
    for source in SOURCES.glob("*.py"):
        built = nbformat.read(course / "notebooks" / f"{source.stem}.ipynb", as_version=4)
        fresh = retold(source, built, place)
        assert [cell.source for cell in built.cells] == [cell.source for cell in fresh.cells]


@pytest.mark.parametrize(
    ("event", "ref", "fork", "server", "runs"),
    [
        ("push", "trunk", False, "https://github.com", True),
        ("push", "feature", False, "https://github.com", False),
        ("push", "trunk", True, "https://github.com", False),
        ("workflow_dispatch", "trunk", True, "https://github.com", True),
        ("workflow_dispatch", "trunk", False, "https://git.example.org", False),
    ],
)
def test_it_runs_on_pushes_to_the_default_branch_and_on_a_fork_by_hand_only(event, ref, fork, server, runs):
    repository = SimpleNamespace(fork=fork, default_branch="trunk")
    github = SimpleNamespace(
        event_name=event, ref_name=ref, server_url=server, event=SimpleNamespace(repository=repository)
    )
    condition = WORKFLOW["jobs"]["address"]["if"]
    for theirs, ours in (("&&", "and"), ("||", "or"), ("!", "not ")):
        condition = condition.replace(theirs, ours)
    assert eval(f"({condition})", {"github": github}) is runs


def test_no_workflow_holds_the_address_and_a_pull_request_starts_none_that_writes():
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        text = path.read_text(encoding="utf-8")
        assert "github.com/" not in text and yaml.safe_load(text)["jobs"]
    assert set(WORKFLOW[True]) == {"push", "workflow_dispatch"}  # YAML 1.1 reads the key "on" as true
    assert WORKFLOW["permissions"] == {} and WORKFLOW["jobs"]["address"]["permissions"] == {"contents": "write"}
