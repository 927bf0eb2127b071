"""Unsloth's own GPU trainer, executed on CPU tensors: the lesson as on a T4, and its figures against stock TRL's.

Simulated, not measured: nothing here is compiled by CUDA or Triton, and no memory or speed is a card's.
"""

import json
import os
import subprocess
import sys
from copy import deepcopy
from pathlib import Path

import pytest
from course import ROOT

sys.path.insert(0, str(ROOT / "scripts" / "gpu_path"))
from machine import machine

from grpo_utils.data.prompts import chat_prompt
from grpo_utils.export.merging import merge_adapter
from grpo_utils.profiles import CPU_ENVIRONMENT
from grpo_utils.project import new_project

GPU_PATH = ROOT / "scripts" / "gpu_path"
STEPS = GPU_PATH / "steps.py"
PROMPTS = [chat_prompt("What is 15 + 27?"), chat_prompt("What is 31 + 8?")]
#: What Unsloth's trainer logs otherwise than TRL's, and nothing else.
ONLY_UNSLOTH, ONLY_TRL = {"completion_length", "kl"}, {"entropy"}
#: What the tests' own process, prepared for the cpu profile, would hand on.
HIDES_THE_CARD = set(CPU_ENVIRONMENT) - {"TOKENIZERS_PARALLELISM"}
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="Unsloth's CUDA branches import Triton, which is for Linux"),
]


@pytest.fixture(scope="module")
def machines(tmp_path_factory):
    """The environment of a machine with a card; each card is set up once."""
    made = {}

    def of(card: str) -> dict:
        if card not in made:
            environment = machine(tmp_path_factory.mktemp(card), card)
            made[card] = {name: value for name, value in environment.items() if name not in HIDES_THE_CARD}
        return made[card]

    return of


@pytest.fixture(scope="module")
def steps(machines, tmp_path_factory):
    """What happened in a few steps of lesson 03's cells, on a card or (``""``) with stock TRL; each case runs once."""
    known = {}

    def of(card: str, **settings: object) -> dict:
        key = json.dumps([card, settings], sort_keys=True)
        if key not in known:
            out = tmp_path_factory.mktemp("steps") / "steps.json"
            ran([str(STEPS), str(out), json.dumps(settings)], out.parent, machines(card) if card else stock())
            known[key] = json.loads(out.read_text(encoding="utf-8")) | {"folder": out.with_suffix("")}
        return known[key]

    return of


def stock() -> dict:
    """The environment of this machine, which has no card."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(GPU_PATH), str(ROOT)])}


def ran(command: list[str], folder: Path, environment: dict, seconds: int = 900) -> str:
    """What a Python process said on both streams; it must end well."""
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, timeout=seconds
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout + done.stderr


def logged(result: dict) -> list[dict]:
    return [entry for entry in result["log"] if "grad_norm" in entry]


def compare(gpu: dict, trl: dict, tolerance: float, first: int = 0) -> None:
    """Same completions, rewards and lengths; gradients within ``tolerance`` of one another from step ``first`` on."""
    assert gpu["completions"] == trl["completions"]
    assert len(logged(gpu)) == len(logged(trl)) > first, "no step is compared"
    for step, (ours, theirs) in enumerate(zip(logged(gpu), logged(trl))):
        assert ours["reward_std"] > 0 and ours["grad_norm"] > 0, f"step {step} compares nothing: {ours}"
        same = [
            key for key in ours if key in theirs and (key.startswith("rewards/") or "length" in key or key == "reward")
        ]
        assert {key: ours[key] for key in same} == pytest.approx({key: theirs[key] for key in same})
        if step >= first:
            assert ours["grad_norm"] == pytest.approx(theirs["grad_norm"], rel=tolerance)


def sound(gpu: dict, four_bits: bool) -> None:
    """What must hold on every card: Unsloth's trainer, an fp32 adapter, checkpointing on after each sampling."""
    assert gpu["trainer"] == "UnslothGRPOTrainer"
    steps = len(logged(gpu))
    assert steps and gpu["adapter"] == [["torch.float32"]] * steps
    assert gpu["checkpointing"] == [True] * steps
    assert (gpu["linear_4bit"] > 0) == four_bits


def learned(checkpoints: Path) -> None:
    """Unsloth's trainer made three steps, each with something to learn from."""
    state = json.loads((checkpoints / "checkpoint-3" / "trainer_state.json").read_text(encoding="utf-8"))
    entries = logged({"log": state["log_history"]})
    assert len(entries) == 3 and all(ONLY_UNSLOTH <= entry.keys() for entry in entries)
    assert all(entry["grad_norm"] > 0 and entry["reward_std"] > 0 for entry in entries)


def test_three_steps_in_fp32_are_those_of_stock_trl(steps):
    gpu, trl = steps("t4"), steps("")
    sound(gpu, four_bits=False)
    compare(gpu, trl, tolerance=1e-4)


def test_the_known_log_keys_differ_and_no_other(steps):
    gpu, trl = (set(logged(steps(card))[0]) for card in ("t4", ""))
    assert (gpu - trl, trl - gpu) == (ONLY_UNSLOTH, ONLY_TRL)


def test_a_gradient_that_is_1_percent_off_makes_the_comparison_fail(steps):
    gpu, trl = deepcopy(steps("t4")), steps("")
    logged(gpu)[0]["grad_norm"] *= 1.01
    with pytest.raises(AssertionError):
        compare(gpu, trl, tolerance=1e-4)


@pytest.mark.upgrade
def test_a_wrong_sign_makes_the_comparison_fail(steps):
    wrong, trl = steps("t4", wrong_sign=True), steps("")  # a process that fails proves nothing, so it is outside
    assert wrong["completions"][0] == trl["completions"][0], "before the first update nothing differs"
    with pytest.raises(AssertionError):
        compare(wrong, trl, tolerance=1e-4)


def test_lesson_03_runs_on_a_t4_to_its_merged_model(machines, tmp_path):
    overrides = ["-p", "STEPS", "3", "-p", "EVAL_ROWS", "16"]
    lesson = str(ROOT / "notebooks" / "03_grpo_lora.ipynb")
    said = ran(["-m", "grpo_utils", "run", lesson, "--solutions", *overrides], tmp_path, machines("t4"))
    assert "Profile t4: Tesla T4 has 15 GiB and no bf16 units" in said
    assert "max_length` (=" not in said and "`max_new_tokens`" not in said  # two limits at once
    run = tmp_path / "outputs" / "run"
    report = json.loads((run / "report.json").read_text(encoding="utf-8"))
    assert (report["profile"], report["backend"], report["load_in_4bit"], report["steps"]) == ("t4", "unsloth", True, 3)
    assert report["config"]["training_arguments"]["fp16"] and report["merge_difference"] < 1e-4
    adapter = json.loads((run / "adapter" / "adapter_config.json").read_text(encoding="utf-8"))
    assert adapter["base_model_name_or_path"] == "unsloth/Qwen2.5-1.5B-Instruct"
    learned(run / "checkpoints")


@pytest.mark.upgrade
def test_lesson_03_goes_on_from_the_checkpoint_of_a_run_that_was_cut_off(machines, tmp_path):
    lesson, few = str(ROOT / "notebooks" / "03_grpo_lora.ipynb"), ["-p", "EVAL_ROWS", "16"]
    ran(["-m", "grpo_utils", "run", lesson, "--solutions", *few, "-p", "STEPS", "2"], tmp_path, machines("t4"))
    (tmp_path / "outputs/run/report.json").unlink()  # as if the machine had ended in the last evaluation
    more = [*few, "-p", "STEPS", "3", "-p", "RESUME", "True"]
    said = ran(["-m", "grpo_utils", "run", lesson, "--solutions", *more], tmp_path, machines("t4"))
    assert "continues from checkpoint-2" in said
    learned(tmp_path / "outputs" / "run" / "checkpoints")


#: Small enough for a CPU that pretends to be a card; what training reaches is measured elsewhere.
SMALL_LESSON = {"STEPS": 2, "PROMPTS": 2, "TOKENS": 8, "EVAL_ROWS": 2}
SMALL_RUN = ["--rows", "8", "--max_steps", "2", "--gradient_accumulation_steps", "1", "--max_completion_length", "8"]
SMALL_RUN += ["--eval_rows", "10", "--eval_batch", "10"]


def test_lesson_05_trains_the_real_model_on_a_t4(real_model, machines, tmp_path):
    few = [part for name, value in SMALL_LESSON.items() for part in ("-p", name, str(value))]
    lesson = str(ROOT / "notebooks" / "05_real_model.ipynb")
    said = ran(["-m", "grpo_utils", "run", lesson, "--solutions", *few], tmp_path, machines("t4"), 1800)
    assert "smollm2-135m-instruct, on Tesla T4, in float32" in said
    assert "this GPU has no bfloat16 support, so training stays in float32" in said  # of Unsloth's own trainer
    assert "entropy, first and last five steps: not logged" in said
    assert (tmp_path / "outputs/lesson05/merged/model.safetensors").stat().st_size > 500e6  # fp32


@pytest.mark.upgrade  # lesson 05 above trains the same model in the same way on every commit
def test_make_real_trains_on_a_t4(real_model, machines, tmp_path):
    """The command starts train.py in a process of its own, so each Python process of the command has the card."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\nif {'train.py', 'real'} & set(sys.orig_argv): import start\n"
    )
    card = machines("t4")
    environment = card | {"PYTHONPATH": os.pathsep.join([str(tmp_path), card["PYTHONPATH"]])}
    said = ran(["-m", "grpo_utils", "real", *SMALL_RUN], tmp_path, environment, 1800)
    assert "On Tesla T4" in said and "in float32" in said and "10 to 20 minutes on a T4" in said
    assert "3 examples in the prompt, untrained: greedy" in said
    report = json.loads((tmp_path / "outputs/real/report.json").read_text(encoding="utf-8"))
    arguments = report["config"]["training"]
    assert report["steps"] == 2 and not (arguments["use_cpu"] or arguments["bf16"] or arguments["fp16"])
    assert "this GPU has no bfloat16 support, so training stays in float32" in said


@pytest.mark.upgrade
def test_minimal_runs_on_a_t4(machines, tmp_path):
    source = (ROOT / "templates" / "minimal" / "train.py").read_text(encoding="utf-8")
    shorter = {"(60, 256) if GPU": "(3, 32) if GPU", "(True, 100) if GPU": "(True, 16) if GPU"}
    shorter |= {"logging_steps=10": "logging_steps=1"}
    for long, short in shorter.items():
        assert source.count(long) == 1
        source = source.replace(long, short)
    (tmp_path / "train.py").write_text(source, encoding="utf-8")
    said = ran([str(GPU_PATH / "start.py"), "train.py"], tmp_path, machines("t4"))
    assert "exact McNemar test" in said and "`max_new_tokens`" not in said
    learned(tmp_path / "outputs" / "minimal")
    config = json.loads((tmp_path / "outputs/minimal/model/adapter_config.json").read_text(encoding="utf-8"))
    assert config["base_model_name_or_path"].lower().startswith("unsloth/qwen2.5-1.5b-instruct")


@pytest.mark.parametrize("four_bits", [True, pytest.param(False, marks=pytest.mark.upgrade)])
def test_fp16_stays_near_stock_trl(steps, four_bits):
    gpu, trl = steps("t4", dtype="float16", load_in_4bit=four_bits), steps("", load_in_4bit=four_bits)
    sound(gpu, four_bits)
    compare(gpu, trl, tolerance=0.02, first=1)


@pytest.mark.upgrade
@pytest.mark.parametrize(("card", "four_bits"), [("l4", True), ("a100", False)])
def test_bf16_stays_near_stock_trl_on_the_same_completions(steps, card, four_bits):
    """bf16 rounds coarsely: samples differ, and in 4 bits the gradients by 5 %. So stock TRL computes in bf16 too, and
    both are given the completions of a run in fp32."""
    sound(steps(card, dtype="bfloat16", load_in_4bit=four_bits), four_bits)
    replayed = steps("", load_in_4bit=four_bits)["folder"].with_suffix(".json")
    same = dict(dtype="bfloat16", load_in_4bit=four_bits, replay=str(replayed))
    compare(steps(card, **same), steps("", **same), tolerance=0.02, first=1)


@pytest.mark.upgrade
def test_gemma_in_fp32_stays_near_stock_trl(steps):
    gpu, trl = steps("t4", family="gemma"), steps("", family="gemma")
    sound(gpu, four_bits=False)
    compare(gpu, trl, tolerance=0.01)


def test_unsloths_config_keeps_what_profiles_and_templates_ask_for(machines, tmp_path):
    said = ran([str(GPU_PATH / "configs.py")], tmp_path, machines("a100"))
    assert said.count(": as asked") == 17


@pytest.mark.upgrade
def test_basic_grpo_runs_on_a_t4(machines, tmp_path):
    project = new_project("basic_grpo", tmp_path / "project")
    few = ["--max_steps", "3", "--train_rows", "64", "--eval_rows", "16", "--max_completion_length", "32"]
    ran([str(GPU_PATH / "start.py"), "train.py", "--config", "config.yaml", *few], project, machines("t4"))
    report = json.loads((project / "outputs/basic/report.json").read_text(encoding="utf-8"))
    assert (report["backend"], report["load_in_4bit"], report["steps"]) == ("unsloth", True, 3)
    learned(project / "outputs" / "basic")


@pytest.mark.upgrade
def test_stages_that_were_stopped_resume_to_the_same_end(machines, tmp_path):
    ran([str(GPU_PATH / "resume.py"), str(tmp_path)], tmp_path, machines("t4"))
    difference = json.loads((tmp_path / "difference.json").read_text(encoding="utf-8"))
    whole, resumed = difference["rewards"]
    assert len(whole) == 6 and whole == resumed
    assert difference["weights"] == 0 and difference["least_grad_norm"] > 0


@pytest.mark.upgrade
def test_what_the_gpu_trainer_saved_merges_exactly(steps):
    adapter = steps("t4", dtype="float16", load_in_4bit=True)["folder"] / "adapter"
    assert merge_adapter(adapter, "tiny-qwen3", PROMPTS)[1] < 1e-4
