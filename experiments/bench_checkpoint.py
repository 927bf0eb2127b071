"""Measure which checkpoint `load_best_model_at_end` keeps, and write the last section of docs/evaluation.md.

    python experiments/bench_checkpoint.py           train all runs
    python experiments/bench_checkpoint.py --write   only write, from experiments/bench_checkpoint.json

Each run trains the tiny model on addition problems and evaluates it every few steps on validation prompts. The test
prompts are used once per run, for all saved checkpoints, to see which choice was good.
"""

import json
import tempfile
import time
from pathlib import Path

from benches import ROOT, filled, measured_on, only_write, read_stored, write_below
from datasets import Dataset
from grpo_core.training.checkpoints import checkpoint_step
from lesson_functions import of_lesson
from peft import PeftModel
from tiny_runs import untrained
from transformers import AutoModelForCausalLM, EarlyStoppingCallback
from trl import GRPOConfig, GRPOTrainer

from grpo_utils import evaluate, load_rows, model_path
from grpo_utils.profiles import CPU, prepare_machine

PAGE, STORED = ROOT / "docs" / "evaluation.md", Path(__file__).with_suffix(".json")
MARK = "<!-- measured: written by `make bench-checkpoint`, do not edit below -->"
STEPS, EVERY, VALIDATION, TEST = 30, 3, 64, 200
TRUTH = "eval_rewards/truth/mean"
#: A reward without an upper limit, a quarter for each tag; and whether an answer is correct, which is never trained on.
count_tags, truth = (of_lesson("02_rewards", name) for name in ("count_tags", "truth"))


def capped_tags(completions, **kwargs) -> list[float]:
    """`count_tags`, but at most 1.0, so that it saturates."""
    return [min(1.0, score) for score in count_tags(completions)]


def held_out() -> Dataset:
    """Addition problems that share no question with the training rows: validation rows first, then test rows."""
    return load_rows("addition", "test", VALIDATION + TEST, 0)


def settings(folder: str, metric: str) -> GRPOConfig:
    """The settings of the page's example."""
    return GRPOConfig(
        output_dir=folder, max_steps=STEPS, reward_weights=[1.0, 0.0], seed=0,
        eval_strategy="steps", eval_steps=EVERY, num_generations_eval=1, per_device_eval_batch_size=VALIDATION,
        save_strategy="steps", save_steps=EVERY, load_best_model_at_end=True,
        metric_for_best_model=metric, greater_is_better=True,
        learning_rate=CPU.learning_rate, num_generations=8, per_device_train_batch_size=64, max_completion_length=32,
        use_cpu=True, bf16=False, gradient_checkpointing=False, optim="adamw_torch", logging_steps=1,
        report_to="none", disable_tqdm=True,
    )  # fmt: skip


def train(reward, metric: str, folder: str, *callbacks) -> GRPOTrainer:
    """Train a new policy on one reward, with `truth` logged, and let the trainer choose by ``metric``."""
    policy, tokenizer = untrained(seed=0)
    trainer = GRPOTrainer(
        model=policy,
        processing_class=tokenizer,
        args=settings(folder, metric),
        train_dataset=load_rows("addition", "train", 1000, 0),
        eval_dataset=held_out().select(range(VALIDATION)),
        reward_funcs=[reward, truth],
        callbacks=list(callbacks),
    )
    trainer.train()
    return trainer


def test_accuracy(folder: str, tokenizer) -> dict[int, float]:
    """Strict accuracy of every saved checkpoint on the test prompts."""
    rows = held_out().select(range(VALIDATION, VALIDATION + TEST))
    found = {}
    for checkpoint in sorted(Path(folder).glob("checkpoint-*"), key=checkpoint_step):
        base = AutoModelForCausalLM.from_pretrained(model_path("tiny-qwen3"))
        policy = PeftModel.from_pretrained(base, checkpoint)
        after = evaluate(policy, tokenizer, rows, max_new_tokens=32, temperature=1.0, seed=0)
        found[checkpoint_step(checkpoint)] = after.accuracy.value
    return found


def measure(reward) -> dict:
    """One run, chosen by its reward; the choice by truth is read from the same log."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        trainer = train(reward, "eval_reward", folder)
        seconds = time.perf_counter() - began
        tests = test_accuracy(folder, trainer.processing_class)
    evaluated = [entry for entry in trainer.state.log_history if "eval_reward" in entry]
    columns = {"step": "step", "reward": "eval_reward", "truth": TRUTH, "seconds": "eval_runtime"}
    table = [{name: entry[key] for name, key in columns.items()} for entry in evaluated]
    for row in table:
        row["test"] = tests[row["step"]]
    return {"chosen": trainer.state.best_global_step, "seconds": seconds, "evaluations": table}


def stop_early() -> dict:
    """A run that is chosen by `truth` and stops after two evaluations without a new best one."""
    with tempfile.TemporaryDirectory() as folder:
        trainer = train(count_tags, TRUTH, folder, EarlyStoppingCallback(early_stopping_patience=2))
    return {"chosen": trainer.state.best_global_step, "stopped": trainer.state.global_step}


def of_run(name: str, run: dict) -> str:
    """A heading, the table of the evaluations, and what was chosen."""
    lines = [
        f"### {name}\n",
        "| step | `eval_reward` | `eval_rewards/truth/mean` | test accuracy |",
        "|---|---|---|---|",
    ]
    for row in run["evaluations"]:
        lines += [f"| {row['step']} | {row['reward']:.3f} | {row['truth']:.3f} | {row['test']:.3f} |"]
    by_truth = max(run["evaluations"], key=lambda row: row["truth"])  # the first of equal ones, as transformers does
    by_reward = next(row for row in run["evaluations"] if row["step"] == run["chosen"])
    chosen = (
        f'\n`metric_for_best_model="eval_reward"` chose step {run["chosen"]}, with a test accuracy of '
        f"{by_reward['test']:.3f}. The best validation `truth` is at step {by_truth['step']}, with a test accuracy of "
        f"{by_truth['test']:.3f}."
    )
    return "\n".join([*lines, chosen])


def write(stored: dict) -> None:
    """Replace the measured section of the page."""
    runs = stored["runs"]
    took = sum(run["seconds"] for run in runs.values())
    text = filled(
        "checkpoint",
        steps=STEPS,
        every=EVERY,
        validation=VALIDATION,
        test=TEST,
        processor=stored["processor"],
        date=stored["date"],
        identical=identical(*runs.values()),
        runs="\n\n".join(of_run(name, run) for name, run in runs.items()),
        truth=TRUTH,
        stopped=stored["early"]["stopped"],
        kept=stored["early"]["chosen"],
        share=sum(row["seconds"] for run in runs.values() for row in run["evaluations"]) / took,
    )
    write_below(PAGE, MARK, f"{MARK}\n\n{text}")


def identical(first: dict, second: dict) -> int:
    """How many evaluations two runs have in common, from the start."""
    pairs = zip(first["evaluations"], second["evaluations"], strict=True)
    same = [all(a[key] == b[key] for key in ("reward", "truth", "test")) for a, b in pairs]
    return same.index(False)


def main() -> None:
    """Measure, or only write."""
    prepare_machine(CPU, offline=True)
    if not only_write(__doc__):
        runs = {"A reward without a limit": measure(count_tags), "A reward that saturates": measure(capped_tags)}
        stored = measured_on() | dict(runs=runs, early=stop_early())
        STORED.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    write(read_stored(STORED))


if __name__ == "__main__":
    main()
