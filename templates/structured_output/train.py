"""Train a model with GRPO, and evaluate it on held-out prompts before and after.

python train.py --config config.cpu.yaml --check         checks settings, rows, rewards and lengths, and stops
python train.py --config config.cpu.yaml                 on a laptop: one minute, no network
python train.py --config config.yaml --max_steps 50      on a T4; any setting can be an option
"""

import sys

from grpo_run import start

values = start.read(sys.argv[1:])  # rejects invalid settings and sets the environment, within a second

from data import load_rows
from grpo_run import checking
from rewards import REWARDS, gold_text, is_in_form, is_right

rows, held_out = checking.rows_and_rewards(values, load_rows, REWARDS, is_right, is_in_form, gold_text)
settings = start.parse(sys.argv[1:])  # imports Unsloth before TRL, which takes ten seconds or more

import time
from functools import partial
from pathlib import Path

from datasets import Dataset
from grpo_core.training.generating import generate
from grpo_run.evaluating import evaluate, show_groups
from grpo_run.finishing import finish
from grpo_run.folder import begin
from grpo_run.loading import load_policy
from grpo_run.training import build_trainer, entries, outcome, save, train


def main(settings: start.Settings, rows: Dataset, held_out: Dataset) -> None:
    """Load the policy; evaluate, train, evaluate again; write the report."""
    started = time.perf_counter()
    run, training = settings.run, settings.training
    folder = Path(training.output_dir)
    rows, held_out = checking.fitting(settings, rows, held_out, gold_text)
    checking.stop_if_only_checked(settings)
    checkpoint = begin(settings)  # locks the output folder
    print(f"{len(rows)} rows to train on, {len(held_out)} held out.")

    policy, tokenizer = load_policy(run, training, settings.model)
    sampling = dict(
        max_new_tokens=training.max_completion_length,
        temperature=training.temperature,
        batch_size=run.eval_batch,
        chat_template_kwargs=training.chat_template_kwargs,
        seed=training.seed,
    )
    if checkpoint is None:
        show_groups(partial(generate, policy, tokenizer, **sampling), rows, is_right, training.num_generations)
    answer = partial(generate, policy, tokenizer, held_out["prompt"], **sampling)
    before = evaluate(answer, held_out, is_right, is_in_form)
    trainer = build_trainer(policy, tokenizer, rows, REWARDS, settings)
    seconds = train(trainer, checkpoint)
    save(trainer, folder / "model")
    after = evaluate(answer, held_out, is_right, is_in_form)

    finish(
        folder,
        held_out,
        before,
        after,
        **entries(settings, policy.config.model_type),
        **outcome(trainer, seconds),
        wall_seconds=time.perf_counter() - started,
    )


if __name__ == "__main__":
    main(settings, rows, held_out)
