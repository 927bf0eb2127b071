"""What the tests of the templates share: a copy outside the course, and a user's machine."""

import importlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from grpo_check.replay.page import run_of
from grpo_check.replay.read import read_run

from grpo_utils.project import template_names

#: The templates with a config; minimal is one file.
CONFIGURED = [name for name in template_names() if name != "minimal"]
#: Those with rewards, rows and tests of their own: the others have basic_grpo's byte for byte (test_templates.py).
OWN_REWARDS = [name for name in CONFIGURED if name not in ("multi_stage", "scale_out")]
#: What starts a template soonest: plain transformers, fp32, few held-out rows.
FAST = ["--config", "config.cpu.yaml", "--use_unsloth", "false", "--load_in_4bit", "false", "--eval_rows", "20"]
#: A user's machine: none of what these tests have set for themselves.
ALONE = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHONPATH", "OMP_", "HF_"))}


def in_folder(folder, *command: str, seconds: int = 600) -> subprocess.CompletedProcess:
    """Run Python there, as its user would."""
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=ALONE, capture_output=True, text=True, timeout=seconds
    )


@contextmanager
def imported(folder, *names: str) -> Iterator[list]:
    """These modules of a project, in this process; afterwards there is no trace of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        for name in names:
            patch.setitem(sys.modules, name, None)  # the end of the context removes it, or puts another one back
            del sys.modules[name]
        yield [importlib.import_module(name) for name in names]


def check_report(path) -> dict:
    """A report has all that a reader of it needs."""
    report = json.loads(path.read_text(encoding="utf-8"))
    assert {"profile", "family", "model", "steps", "train_seconds", "seed", "before", "after", "p_value"} <= set(report)
    assert report["machine"].keys() == {"python", "system", "cores", "gpu"}
    assert report["versions"].keys() >= {"unsloth", "trl", "transformers", "peft", "bitsandbytes", "torch"}
    check_replay(path.parent)
    answers = [json.loads(line) for line in (path.parent / "held_out.jsonl").read_text(encoding="utf-8").splitlines()]
    for when in ("before", "after"):
        right = sum(answer[f"right_{when}"] for answer in answers)
        assert right / len(answers) == report[when]["accuracy"] and all(isinstance(a[when], str) for a in answers)
    assert "[More Information Needed]" not in (path.parent / "model" / "README.md").read_text(encoding="utf-8")
    return report


def check_use(project, output: str, question: str) -> None:
    """The trained model answers a question, also merged, and the merge loads in any folder with plain transformers."""
    asked = in_folder(project, "ask.py", output, question)
    assert asked.returncode == 0 and asked.stdout.strip(), asked.stderr[-2000:]
    merged = in_folder(project, "-m", "grpo_run.merge", output)
    assert merged.returncode == 0, merged.stderr[-2000:]
    again = in_folder(project, "ask.py", f"{output}/merged", question)
    assert again.returncode == 0 and again.stdout.strip(), again.stderr[-2000:]
    dry = in_folder(project, "-m", "grpo_run.push", f"{output}/merged", "me/my-model")
    assert dry.returncode == 0 and "model.safetensors" in dry.stdout and "Nothing was uploaded" in dry.stdout, (
        dry.stderr
    )


def check_replay(folder) -> None:
    """A run, or each of its stages, has a page with the completions of all rewards."""
    places = [place.parent for place in folder.rglob("completions") if place.is_dir()]
    assert places
    for place in places:
        recording = read_run(place)
        if log := recording.log:  # a run of fewer steps than logging_steps leaves none
            assert set(recording.rewards) == log.rewards.keys() | log.unscored.keys()
        assert recording.rewards and run_of(recording)["steps"]
        assert not any("could not be read" in note for note in recording.notes)


def stopped_at(folder, line: str, *command: object) -> None:
    """Press Ctrl-C when the command prints this line; it has to end, and to say how it goes on."""
    process = subprocess.Popen(
        command, cwd=folder, env=ALONE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    for printed in process.stdout:
        if printed.startswith(line):
            process.send_signal(signal.SIGINT)
            break
    said, error = process.communicate(timeout=300)
    ended = 1 if "torchrun" in str(command[0]) else 130  # torchrun reports how it ended itself
    assert process.returncode == ended and "The same command continues from there." in error, said + error[-3000:]
