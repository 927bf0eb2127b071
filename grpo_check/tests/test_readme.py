"""The examples of the README and of the page of the checks do what they say, in a folder that holds nothing else."""

import json
import re
import subprocess
import sys
import tomllib
from argparse import Namespace
from pathlib import Path

import pytest
import yaml
from grpo_check.settings import read_settings
from places import HERE, ROOT
from preflight_runs import TINY

README = (HERE / "README.md").read_text(encoding="utf-8")
CHECKS = (HERE / "docs" / "checks.md").read_text(encoding="utf-8")
HUB_ID = "Qwen/Qwen3-0.6B"  # no test has a network, so a tiny model takes its place


def blocks(heading: str) -> list[str]:
    """The blocks of code in a section of the README or of the page."""
    [section] = re.findall(rf"^###? {heading}\n(.*?)(?=^#+ |\Z)", f"{README}\n{CHECKS}", re.DOTALL | re.MULTILINE)
    return re.findall(r"^```\w*\n(.*?)^```", section, re.DOTALL | re.MULTILINE)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A folder with the README's reward, and with the rows, config and script of the page."""
    monkeypatch.chdir(tmp_path)
    script = blocks("Health")[0].replace(HUB_ID, TINY)
    write_rows, config, *_ = blocks("Preflight")
    files = {
        "my_rewards.py": blocks("Probe a reward")[0],
        "config.yaml": config.replace(HUB_ID, TINY),
        "train.py": script.replace('"outputs",', '"outputs", use_cpu=True, bf16=False,'),
    }
    for name, text in files.items():
        Path(name).write_text(text, encoding="utf-8")
    exec(write_rows, {})
    return tmp_path


def arguments(command: str) -> list[str]:
    """What is typed after ``grpo-check``."""
    name, *rest = command.split()
    assert name == "grpo-check"
    return rest


def test_probe_says_what_the_readme_shows(folder, grpo_check):
    _, command, said = blocks("Probe a reward")
    code, out, _ = grpo_check(*arguments(command))
    assert code == 1 and out == said
    again, begin, _ = blocks("Probe")
    assert again == command and said.startswith(begin)


def test_the_readmes_fix_of_the_reward_leaves_no_error(folder, grpo_check):
    fixed = re.search(r'Replace it by `(r".+")`', README)[1]
    Path("my_rewards.py").write_text(re.sub(r'r".+"', lambda _: fixed, blocks("Probe a reward")[0]))
    code, out, _ = grpo_check(*arguments(blocks("Probe a reward")[1]))
    assert fixed in Path("my_rewards.py").read_text()
    assert code == 0 and out == blocks("Probe")[2]


def test_preflight_says_what_the_page_shows(folder, grpo_check):
    *_, command, said = blocks("Preflight")
    code, out, _ = grpo_check(*arguments(command))
    assert code == 1 and out.startswith(said), out


def test_the_config_is_fixed_as_the_page_says(folder, grpo_check):
    text = Path("config.yaml").read_text()
    [said] = re.findall(r"^Set `per_device.*", CHECKS, re.MULTILINE)
    for change in re.findall(r"`(\w+: [^`]+)`", said):
        text = re.sub(rf"^{change.split(':')[0]}:.*", change, text, flags=re.MULTILINE)
    Path("config.yaml").write_text(text)
    code, out, _ = grpo_check("preflight", "config.yaml", "--gpu", "a100", "--ignore", "reward_broken")
    assert code == 0, out  # the reward keeps its fault here


#: The rewards at each step of the run that the page shows, of which one or two of eight completions were correct.
PAID = (0.125, 0, 0, 0.25, 0, 0.125, 0, 0, 0, 0, 0.25, 0, 0, 0, 0, 0, 0, 0.25, 0.125, 0)


def test_health_says_what_the_page_shows(folder, grpo_check):
    steps = [{"step": n, "loss": 0.0, "reward": paid, "rewards/my_reward/mean": paid} for n, paid in enumerate(PAID, 1)]
    tied = [{"frac_reward_zero_std": float(not paid), "reward_std": paid and 0.4} for paid in PAID]
    log = [{**one, **other} for one, other in zip(steps, tied)]
    Path("outputs").mkdir()
    Path("outputs/trainer_state.json").write_text(json.dumps({"log_history": log}))
    _, command, said = blocks("Health")
    code, out, _ = grpo_check(*arguments(command))
    assert code == 0 and out.startswith(said), out


@pytest.mark.slow
def test_the_pages_script_trains_and_leaves_what_health_and_replay_read(folder, grpo_check):
    run = subprocess.run([sys.executable, "train.py"], capture_output=True, text=True, check=False)
    assert run.returncode == 0 and "health: after 20 steps: " in run.stdout, run.stdout + run.stderr
    code, out, _ = grpo_check(*arguments(blocks("Health")[1]))
    assert code in (0, 1) and "(step 20)" in out, out
    assert grpo_check(*arguments(blocks("Replay")[0]))[0] == 0


def test_explain_says_what_the_page_shows(grpo_check):
    commands, said = blocks("Explain")
    code, out, _ = grpo_check(*arguments(commands.partition("#")[0]))
    assert code == 0 and out.startswith("missing_column: ")
    [error] = re.findall(r"traceback that ends with `(.*?)`", CHECKS)
    code, out, _ = grpo_check("explain", error)
    assert code == 0 and re.sub(r"TRL [\d.]+", "", out) == re.sub(r"TRL [\d.]+", "", said)


def test_the_pages_settings_are_valid(folder):
    [table] = blocks("What all commands share")
    Path("pyproject.toml").write_text(table)
    given = Namespace(select=None, ignore=None, strict=None, format=None)
    settings = read_settings(folder, given)
    assert vars(settings) == {"select": (), "format": "text"} | {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in tomllib.loads(table)["tool"]["grpo_check"].items()
    }


def test_ci_and_the_hook_run_the_readmes_probe():
    step, hook = map(yaml.safe_load, blocks("In CI and before a commit"))
    command = blocks("Probe a reward")[1].strip()
    assert f"grpo-check {step[0]['with']['args']}" == command
    [used] = hook["repos"][0]["hooks"]
    offered = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    [entry] = [one["entry"] for one in offered if one["id"] == used["id"]]
    assert " ".join([entry, *used["args"]]) == command
