"""`make gpu-day` goes on after a step that failed, keeps what it measured, and leaves no process behind."""

import json
import os
import subprocess
import sys

import psutil
import pytest
from course import ROOT
from grpo_core.errors import CourseError


@pytest.fixture
def day(monkeypatch, tmp_path):
    """scripts/gpu_day.py, with its results in ``tmp_path``."""
    import gpu_day

    monkeypatch.setattr(gpu_day, "OUTPUTS", tmp_path / "gpu-day")
    monkeypatch.setattr(gpu_day, "OVERLAY", tmp_path)  # as if the simulated card were installed
    return gpu_day


def run(day, monkeypatch, steps: dict, *arguments: str) -> int:
    """The exit status of the command with these steps in place of its own."""
    for name in ("without_network", "machine"):  # they build datasets, which these steps do not need
        monkeypatch.setattr(day, name, lambda *given: dict(os.environ))
    monkeypatch.setattr(day, "STEPS", steps)
    monkeypatch.setattr(sys, "argv", ["gpu_day.py", "--card", "t4", *arguments])
    with pytest.raises(SystemExit) as stopped:
        day.main()
    return stopped.value.code


def failing(step):
    """Fails."""
    step.python("-c", "raise SystemExit('no kernel image is available')")


def test_a_step_that_fails_stops_no_other(day, monkeypatch, tmp_path, capsys):
    def passing(step):
        """Passes."""
        return {"peak GiB": 3.25}

    def lacking(step):
        """Finds no figures."""
        return {"seconds": day.pace([])}

    assert run(day, monkeypatch, {"first": failing, "third": lacking, "second": passing}) == 1
    assert "  failed: " in capsys.readouterr().out
    folder = tmp_path / "gpu-day" / "simulated-t4"
    assert "no kernel image is available" in (folder / "first" / "log.txt").read_text()
    results = (folder / "results.md").read_text()
    assert "| `second` | peak GiB: 3.25, " in results and "`first`" not in results
    assert json.loads((folder / "second" / "result.json").read_text())["figures"]["peak GiB"] == 3.25


def test_only_steps_without_a_result_run_again(day, monkeypatch, capsys):
    ran = []

    def counted(step):
        """Counts."""
        ran.append(step.folder.name)
        return {}

    assert run(day, monkeypatch, {"first": counted, "second": counted}, "second") == 0
    assert run(day, monkeypatch, {"first": counted, "second": counted}) == 0
    assert ran == ["second", "first"]


def test_a_step_that_takes_too_long_ends_with_all_its_processes(day, monkeypatch, tmp_path):
    monkeypatch.setattr(day, "LONGEST_STEP", 2)
    wait = "[sys.executable, '-c', 'import time; time.sleep(600)']"
    start = f"import subprocess, sys; p = subprocess.Popen({wait}); print(p.pid, flush=True); p.wait()"

    def endless(step):
        """Never ends."""
        step.python("-c", start)

    assert run(day, monkeypatch, {"endless": endless}) == 1
    child = int((tmp_path / "gpu-day/simulated-t4/endless/log.txt").read_text())
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE


def test_without_a_gpu_it_names_the_simulated_card(day, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["gpu_day.py"])
    monkeypatch.setattr(day.torch.cuda, "is_available", lambda: False)
    with pytest.raises(CourseError, match="--card t4"):
        day.main()


def test_a_card_finds_the_models_that_unsloth_asks_for(day, tmp_path):
    day.without_network(tmp_path)
    found = {path.name for path in (tmp_path / "hub").iterdir()}
    assert {
        "models--unsloth--Qwen2.5-1.5B-Instruct",
        "models--unsloth--qwen2.5-1.5b-instruct-unsloth-bnb-4bit",
    } <= found


def test_its_random_models_have_the_sizes_of_the_t4_profile(day):
    from transformers import AutoModelForCausalLM, Gemma3TextConfig, Qwen2Config

    for sizes, config, billions in ((day.QWEN, Qwen2Config, 1.54), (day.GEMMA, Gemma3TextConfig, 1.0)):
        with day.torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config(**sizes))
        assert sum(weight.numel() for weight in model.parameters()) / 1e9 == pytest.approx(billions, abs=0.01)


@pytest.mark.upgrade
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="Unsloth's CUDA branches import Triton, which is for Linux")
def test_every_step_ends_on_a_simulated_card(tmp_path):
    command = [sys.executable, str(ROOT / "scripts" / "gpu_day.py"), "--card", "t4"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    kept = {path.parent.name: json.loads(path.read_text()) for path in tmp_path.rglob("result.json")}
    assert len(kept) == 7 and "seconds per step" in kept["hour"]["figures"]
    ratios = kept["stock"]["figures"]["gradient norm of Unsloth by that of TRL, Qwen fp32"]
    assert ratios == pytest.approx([1.0] * 3, abs=0.01)
