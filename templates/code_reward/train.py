"""Train a model with GRPO, and evaluate it on held-out prompts before and after.

python train.py --config config.cpu.yaml                 on a laptop: one minute, no network
python train.py --config config.yaml --max_steps 50      on a T4; any setting can be an option
"""

import sys

from lib import start

settings = start.parse(sys.argv[1:])  # rejects invalid settings, sets the environment, imports Unsloth before TRL

import time
from functools import partial
from pathlib import Path

from data import load_rows
from lib.evaluating import evaluate, show_groups
from lib.finishing import finish
from lib.folder import begin
from lib.generating import generate
from lib.loading import load_policy
from lib.scoring import rehearse
from lib.training import build_trainer, entries, outcome, save, short_enough, train
from rewards import REWARDS, is_in_form, is_right


def main(settings: start.Settings) -> None:
    """Load rows and policy; evaluate, train, evaluate again; write the report."""
    started = time.perf_counter()
    run, training = settings.run, settings.training
    folder = Path(training.output_dir)
    rows = load_rows(run.dataset_name, "train", run.train_rows, training.seed)
    held_out = load_rows(run.dataset_name, "test", run.eval_rows, training.seed)
    start.check_rows(settings, rows, held_out)
    rehearse(REWARDS, rows[0])  # tries each reward
    checkpoint = begin(settings)  # locks the output folder
    print(f"{len(rows)} rows to train on, {len(held_out)} held out.")

    policy, tokenizer = load_policy(run, training, settings.model)
    rows = short_enough(rows, tokenizer, settings)
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
    main(settings)
