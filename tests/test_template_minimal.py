"""The template in one file: short, self-contained, fair, and its GPU branch as far as a CPU can check it."""

import ast
import dataclasses
import os
import re
import runpy
import sys
import types
from pathlib import Path

import datasets
import pytest
from course import ROOT
from reward_lists import TABLE
from template_projects import in_folder

from grpo_utils.__main__ import start_project
from grpo_utils.profiles import T4
from grpo_utils.project import new_project

FOLDER = ROOT / "templates" / "minimal"
SOURCE = (FOLDER / "train.py").read_text(encoding="utf-8")
#: The blocks of Python in the README: how to ask the trained model, and what to paste for SmolLM2.
ASKING, PASTED = re.findall(r"```python\n(.*?)```", (FOLDER / "README.md").read_text(encoding="utf-8"), re.DOTALL)


def test_it_is_one_file_without_a_package_of_ours():
    assert [path.name for path in FOLDER.rglob("*.py")] == ["train.py"]
    imported = set(re.findall(r"^(?:from|import) (\w+)", SOURCE, re.MULTILINE))
    assert imported == {"os", "torch", "unsloth", "re", "pathlib", "datasets", "scipy", "trl"}


def run_file(device: str, name: str, file: Path = FOLDER / "train.py") -> dict:
    """Run the file as this module, on a CPU or on a GPU. Rows and rewards need no torch, Unsloth, TRL or scipy."""
    stubs = {
        "torch": {"cuda": types.SimpleNamespace(is_available=lambda: device == "gpu")},
        "unsloth": {"FastLanguageModel": None, "is_bfloat16_supported": None},
        "trl": {"GRPOConfig": None, "GRPOTrainer": None},
        "scipy.stats": {"binomtest": None},
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "environ", dict(os.environ))
        for module, defined in stubs.items():
            patch.setitem(sys.modules, module, types.SimpleNamespace(**defined))
        return runpy.run_path(str(file), run_name=name)


def test_its_gpu_branch_has_the_sizes_of_the_t4_profile():
    gpu = run_file("gpu", "minimal")
    sizes = T4.models["qwen"], T4.steps, T4.max_completion_length, T4.eval_rows
    assert tuple(gpu[name] for name in ("MODEL", "STEPS", "TOKENS", "HELD_OUT")) == sizes
    written = {name: float(value) for name, value in re.findall(r"(\w+)=([\d.e-]+) if GPU", SOURCE)}
    assert len(written) == 4 and written == {name: getattr(T4, name) for name in written}
    assert (
        f"r={T4.lora_rank}, lora_alpha={T4.lora_alpha}" in SOURCE and f"num_generations={T4.num_generations}" in SOURCE
    )


@pytest.fixture
def functions(request):
    """What the file defines on a CPU, or on a GPU."""
    return run_file(request.param, "minimal")


@pytest.mark.parametrize("functions", ["cpu"], indirect=True)
@pytest.mark.parametrize(
    "said, scores",
    [
        ("<reasoning>1000 + 250</reasoning><answer>1250</answer>", (1.0, 1.0)),
        ("<reasoning>1000 + 250</reasoning>\n<answer> $1,250.00 </answer>\n", (1.0, 1.0)),
        ("<reasoning>1000 + 25</reasoning><answer>1025</answer>", (0.0, 1.0)),
        ("<reasoning>1000 + 250</reasoning><answer>-1250</answer>", (0.0, 1.0)),
        ("<reasoning>1000 + 250</reasoning><answer>12,50</answer>", (0.0, 1.0)),
        ("1000 + 250 is <answer>1250</answer>", (1.0, 0.5)),
        ("1000 + 250 is <answer>1250", (0.0, 0.25)),
        ("<reasoning>1000 + 250</reasoning><answer>1250", (0.0, 0.75)),
        ("So: <reasoning>1000 + 250</reasoning><answer>1250</answer>", (1.0, 0.75)),
        ("<reasoning>1000 + 250</reasoning><answer>1250</answer> or 1251", (0.0, 0.75)),
        ("<answer>1250</answer><reasoning>1000 + 250</reasoning>", (0.0, 0.0)),
        ("<reasoning> </reasoning><answer> </answer>", (0.0, 0.0)),
        ("It is 1250.</answer>", (0.0, 0.0)),
        ("<reasoning>x</reasoning><answer>1250</answer><answer>1251</answer>", (0.0, 0.0)),
        ("The answer is 1250.", (0.0, 0.0)),
        ("", (0.0, 0.0)),
        (None, (0.0, 0.0)),
    ],
)
def test_an_answer_is_paid_in_its_tags_and_each_tag_in_its_place(functions, said, scores):
    completions = [[{"role": "assistant", "content": said}]]
    assert tuple(reward(completions, answer=["1250"])[0] for reward in functions["REWARDS"]) == scores


@pytest.mark.parametrize("functions", ["cpu"], indirect=True)
def test_what_counts_here_counts_in_the_lessons_too(functions):
    whole = [row for row in TABLE if row[1].removeprefix("-").isdigit()]
    for said, gold, counts in [*whole, ("1250", "1250", True), ("$1,250.00", "1250", True)]:
        text = f"<reasoning>a</reasoning><answer>{said}</answer>"
        assert counts or not functions["is_correct"](text, gold), (said, gold)


@pytest.mark.parametrize("functions", ["cpu"], indirect=True)
def test_no_held_out_sum_is_trained_on_in_either_order(functions):
    train, held_out = (
        [frozenset(re.findall(r"\d+", row["prompt"][1]["content"])) for row in rows]
        for rows in functions["load_rows"]()
    )
    assert len(held_out) == len(set(held_out)) == 200 and len(train) == 3895 and not set(train) & set(held_out)


@pytest.mark.parametrize("functions", ["gpu"], indirect=True)
def test_the_gpu_trains_on_gsm8k_with_whole_numbers_as_gold(functions, gsm8k_records):
    rows = datasets.Dataset.from_list(gsm8k_records)
    found = datasets.DatasetDict(train=rows, test=rows)
    functions["load_rows"].__globals__["load_dataset"] = lambda *name: found if name == ("openai/gsm8k", "main") else 0
    train, held_out = functions["load_rows"]()
    assert len(held_out) == functions["HELD_OUT"] and all(answer.lstrip("-").isdigit() for answer in train["answer"])
    text = "<reasoning>Think.</reasoning><answer>{}</answer>"
    assert all(functions["is_correct"](text.format(answer), answer) for answer in train["answer"])


def arguments(gpu: bool) -> dict:
    """What `GRPOConfig` gets on a GPU or on a CPU: the keywords of its call."""
    names = {
        "GPU": gpu,
        "STEPS": 1,
        "TOKENS": 1,
        "OUTPUT": "",
        "REWARDS": {},
        "TEMPLATE": {},
        "is_bfloat16_supported": lambda: False,
    }
    calls = [node for node in ast.walk(ast.parse(SOURCE)) if isinstance(node, ast.Call)]
    [config] = [call for call in calls if ast.unparse(call.func) == "GRPOConfig"]
    return {each.arg: eval(ast.unparse(each.value), names) for each in config.keywords}


@pytest.mark.parametrize("gpu", [False, True])
def test_trl_knows_every_argument_and_whole_groups_fit_a_batch(gpu):
    from trl import GRPOConfig

    found = arguments(gpu)
    assert set(found) <= {field.name for field in dataclasses.fields(GRPOConfig)}
    completions = found["per_device_train_batch_size"] * found["gradient_accumulation_steps"]
    assert completions % found["num_generations"] == 0 and (found["fp16"], found["bf16"]) == (gpu, False)


#: What Unsloth's GPU patch of GRPOConfig would replace in this run, read in unsloth/models/rl.py.
REPLACED = {"optim", "learning_rate", "per_device_train_batch_size", "gradient_accumulation_steps", "num_generations"}
REPLACED |= {"loss_type", "beta", "epsilon_high", "mask_truncated_completions", "weight_decay", "warmup_steps", "seed"}
REPLACED |= {"logging_steps", "report_to", "bf16", "fp16"}


def test_no_value_is_left_to_unsloths_other_defaults():
    assert REPLACED <= set(arguments(gpu=True))


def test_the_command_that_copies_it_says_what_to_type(tmp_path, capsys):
    start_project("minimal", tmp_path / "mine")
    steps = [line.strip() for line in capsys.readouterr().out.splitlines() if line.startswith("    ")]
    assert steps[0] == f"cd {tmp_path / 'mine'}" and steps[-1] == "python train.py" and "pytest" not in steps
    assert (tmp_path / "mine" / "tiny-model" / "config.json").exists()


def test_a_folder_with_a_space_is_quoted_in_what_to_type(tmp_path, capsys):
    start_project("minimal", tmp_path / "my project")
    assert f"    cd '{tmp_path}/my project'\n" in capsys.readouterr().out


def changed(folder, **constants: str):
    """A copy of the template with other numbers in train.py."""
    path = new_project("minimal", folder) / "train.py"
    text = path.read_text(encoding="utf-8")
    for old, new in constants.items():
        text = text.replace(*new) if new[0] in text else pytest.fail(f"{old} is not in train.py")
    path.write_text(text, encoding="utf-8")
    return folder


def test_what_the_readme_pastes_for_a_real_model_pays_for_a_number_alone(tmp_path):
    file = tmp_path / "train.py"
    file.write_text(SOURCE.replace("\nREWARDS = ", f"\n{PASTED}\n\nREWARDS = "), encoding="utf-8")
    defined = run_file("cpu", "minimal", file)
    completions = [[{"content": text}] for text in ("42", " 42\n", "42 is right", "It is 42", "43")]
    scores = {reward.__name__: reward(completions=completions, answer=["42"] * 5) for reward in defined["REWARDS"]}
    assert scores == {"correctness_reward": [1, 1, 0, 0, 0], "format_reward": [1, 1, 0.5, 0, 1]}
    assert defined["row"]("?", "1")["prompt"][0]["content"] == "Answer with the number alone."


@pytest.mark.slow
def test_it_trains_until_held_out_accuracy_has_risen_and_keeps_what_it_made(tmp_path):
    project = changed(tmp_path / "project", steps=("else (50, 32)", "else (25, 32)"))
    run = in_folder(project, "train.py")
    assert run.returncode == 0 and "Accuracy rose: " in run.stdout, run.stderr[-3000:]
    rates = re.findall(r"^(?:before|after) +([.\d]+) \(([.\d]+) to ([.\d]+)\) +([.\d]+)$", run.stdout, re.MULTILINE)
    (_, _, before_high, before_greedy), (_, after_low, _, after_greedy) = rates
    assert float(before_high) < float(after_low) and float(before_greedy) < float(after_greedy)
    model = project / "outputs" / "minimal" / "model"
    assert {"adapter_model.safetensors", "tokenizer.json"} <= {path.name for path in model.iterdir()}
    (project / "ask.py").write_text(ASKING, encoding="utf-8")
    asked = in_folder(project, "ask.py")
    assert "</answer>" in asked.stdout, asked.stderr[-3000:]


def test_the_folder_of_an_earlier_run_is_left_alone(tmp_path, monkeypatch):
    (tmp_path / "outputs" / "minimal").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="Error: outputs/minimal already exists"):
        run_file("cpu", "__main__")


@pytest.mark.upgrade
@pytest.mark.slow
def test_a_run_that_changes_nothing_is_not_said_to_have_risen(tmp_path):
    project = changed(tmp_path / "project", steps=("else (50, 32)", "else (1, 32)"), rate=("else 2e-3", "else 0.0"))
    run = in_folder(project, "train.py")
    assert "No significant change: 0 prompts got better, 0 got worse (exact McNemar test, p = 1)." in run.stdout, (
        run.stderr
    )
