"""Train a model with GRPO, and show fairly whether it got better.

python train.py --config config.cpu.yaml                 a laptop: two minutes, no network
python train.py --config config.yaml --max_steps 50      a T4; any setting can be given here too
"""

import sys

import settings

settings.prepare(sys.argv[1:])  # the environment, and Unsloth, before torch and TRL

import json
import time
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from checkpoints import StopOnce, begin, load_adapter
from data import load_rows, short_enough
from evaluate import evaluate, paired_p_value, summary, table
from guard import RewardError, guarded
from policy import keep_trainable_fp32, load_policy
from transformers import TrainerCallback
from transformers.trainer_callback import PrinterCallback, ProgressCallback
from trl import GRPOTrainer

PACKAGES = ("unsloth", "trl", "transformers", "peft", "bitsandbytes", "torch")


class Lines(TrainerCallback):
    """One line a log entry: the rewards, and the share of groups that taught nothing."""

    def on_log(self, args, state, control, logs=None, **kwargs):
        if logs and "reward" in logs:
            found = {k.split("/")[1]: v for k, v in logs.items() if k.startswith("rewards/") and k.endswith("/mean")}
            means = "  ".join(f"{name} {value:.2f}" for name, value in found.items())
            tied = logs["frac_reward_zero_std"]
            print(f"step {state.global_step:4}  reward {logs['reward']:.2f}  {means}  tied {tied:.2f}", flush=True)


def main(argv: list[str]) -> None:
    """Settings, rows, policy; before, training, after; the report."""
    started = time.perf_counter()
    run, training, model = settings.parse(argv)
    folder = Path(training.output_dir)
    checkpoint = begin(folder, settings.identity(run, model))
    rows = load_rows(run.dataset_name, "train", run.train_rows, training.seed)
    held_out = load_rows(run.dataset_name, "test", run.eval_rows, training.seed)

    policy, tokenizer = load_policy(run, training, model)
    rows = short_enough(rows, tokenizer, run.max_prompt_tokens)
    judging = dict(tokens=training.max_completion_length, batch=run.eval_batch, seed=training.seed)
    before = evaluate(policy, tokenizer, held_out, **judging)
    trainer = build_trainer(policy, tokenizer, rows, run, training)
    if model.use_peft:
        keep_trainable_fp32(policy)
        if checkpoint:
            load_adapter(policy, checkpoint)
    seconds = train(trainer, checkpoint)
    trainer.save_model(folder / "model")
    after = evaluate(policy, tokenizer, held_out, **judging)

    report = {
        "profile": argv[argv.index("--config") + 1] if "--config" in argv else "",
        "family": policy.config.model_type,
        "model": model.model_name_or_path,
        "backend": "unsloth" if run.use_unsloth else "transformers",
        "load_in_4bit": model.load_in_4bit,
        "steps": trainer.state.global_step,
        "train_seconds": seconds,
        "wall_seconds": time.perf_counter() - started,
        "seed": training.seed,
        "before": summary(before),
        "after": summary(after),
        "p_value": paired_p_value(before["right"], after["right"]),
        "versions": {name: version(name) for name in PACKAGES if find_spec(name)},
        "config": settings.as_written(run, training, model),
    }
    (folder / "report.json").write_text(json.dumps(report, indent=2), encoding="utf-8")
    print(table(report))
    print(f"Model: {folder / 'model'}. Report: {folder / 'report.json'}.")


def build_trainer(policy: object, tokenizer: object, rows: object, run: object, training: object) -> GRPOTrainer:
    """TRL's trainer, with one line a step for a log."""
    trainer = GRPOTrainer(
        model=policy,
        processing_class=tokenizer,
        args=training,
        train_dataset=rows,
        reward_funcs=[*map(guarded, settings.chosen_rewards(run)), *([run.reward_model] if run.reward_model else [])],
        callbacks=[Lines()],
    )
    for callback in (PrinterCallback, ProgressCallback):
        trainer.remove_callback(callback)
    return trainer


def train(trainer: GRPOTrainer, checkpoint: Path | None) -> float:
    """Train to the end, from a checkpoint if there is one; the seconds. Ctrl-C and a reward that raises end the run."""
    stop = StopOnce()
    trainer.add_callback(stop)
    try:
        trained = trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    except RewardError as error:
        raise SystemExit(f"Error: {error}\nMend rewards.py and run again; checkpoints stay.") from None
    except OSError as error:
        raise SystemExit(f"Error: {error}. If the disk is full, make room; the same command goes on.") from error
    if stop.asked:
        raise SystemExit(f"Stopped after step {trainer.state.global_step}. The same command goes on from there.")
    return trained.metrics["train_runtime"]


if __name__ == "__main__":
    main(sys.argv[1:])
