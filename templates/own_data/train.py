"""Train a model with GRPO, and show fairly whether it got better.

python train.py --config config.cpu.yaml                 a laptop: a minute, no network
python train.py --config config.yaml --max_steps 50      a T4; any setting can be given here too
"""

import sys

import judge
import settings

settings.prepare(sys.argv[1:], checks={"judge_reward": judge.check})  # what can be refused; then Unsloth, before TRL

import time
from pathlib import Path

from checkpoints import load_adapter
from data import load_rows, tell_cut_answers
from evaluate import evaluate
from folder import begin
from policy import keep_trainable_fp32, load_policy
from report import write_report
from trainer import build_trainer, short_enough, train


def main(argv: list[str]) -> None:
    """Settings, rows, policy; before, training, after; the report."""
    started = time.perf_counter()
    run, training, model = settings.parse(argv)
    folder = Path(training.output_dir)
    rows = load_rows(run.dataset_name, "train", run.train_rows, training.seed)
    held_out = load_rows(run.dataset_name, "test", run.eval_rows, training.seed)
    print(f"{len(rows)} rows to train on, {len(held_out)} held out.")

    policy, tokenizer = load_policy(run, training, model)
    rows = short_enough(rows, tokenizer, run.max_prompt_tokens)
    tell_cut_answers(rows, tokenizer, training.max_completion_length)
    checkpoint = begin(folder, settings.identity(argv), run.accept_changes)
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

    figures = dict(profile=settings.config_name(argv), steps=trainer.state.global_step, train_seconds=seconds)
    figures["wall_seconds"] = time.perf_counter() - started
    write_report(folder, (run, training, model), policy.config.model_type, before, after, **figures)


if __name__ == "__main__":
    main(sys.argv[1:])
