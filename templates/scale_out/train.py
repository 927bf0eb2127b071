"""Train with GRPO in several processes: on the GPUs of one or more machines, or on a laptop for a trial.

python train.py --config config.cpu.yaml --check         checks settings, rows, rewards and lengths, and stops
torchrun --nproc_per_node 2 train.py --config config.cpu.yaml
accelerate launch --config_file accelerate/ddp.yaml train.py --config config.yaml
"""

import sys

from grpo_run import start

values = start.read(sys.argv[1:], alone=False)  # rejects invalid settings and sets the environment, within a second

import os

if int(os.environ.get("RANK", "0")) > 0:
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - only the first process prints

from data import load_rows
from engine import before_the_end, check, check_same_adapters, engine_name, load
from grpo_run import checking
from rewards import REWARDS, gold_text, is_in_form, is_right

check(values)
rows, held_out = checking.rows_and_rewards(values, load_rows, REWARDS, is_right, is_in_form, gold_text)
settings = start.parse(sys.argv[1:], alone=False)  # imports TRL, which takes ten seconds or more

import time
from pathlib import Path

from accelerate.utils import broadcast_object_list
from datasets import Dataset
from evaluate import Accuracy, KeepBefore, numbered
from grpo_run.finishing import finish
from grpo_run.folder import begin
from grpo_run.training import Lines, build_trainer, entries, outcome, save, train
from trl import get_peft_config


def main(settings: start.Settings, rows: Dataset, held_out: Dataset) -> None:
    """Evaluate, train, and evaluate again in every process; the first one prints and writes the files."""
    started = time.perf_counter()
    training, model = settings.training, settings.model
    folder, first = Path(training.output_dir), training.process_index == 0
    rows, held_out = checking.fitting(settings, rows, held_out, gold_text)
    checking.stop_if_only_checked(settings)
    found = [begin(settings) if first else None]  # locks the output folder
    [checkpoint] = broadcast_object_list(found)  # all processes resume from the same one
    checkpoint = before_the_end(checkpoint, training.max_steps)

    policy, tokenizer = load(training, model)
    accuracy = Accuracy()
    training.eval_on_start = checkpoint is None
    trainer = measuring_trainer(policy, tokenizer, rows, held_out, accuracy, settings)
    seconds = train(trainer, checkpoint)
    check_same_adapters(trainer)
    save(trainer, folder / "model")
    trainer.evaluate()
    after = accuracy.gathered()

    if first:  # without destroy_process_group() at the end: gloo's may wait forever for a thread that waits for Python
        finish(
            folder,
            held_out,
            KeepBefore.read(folder),
            after,
            **entries(settings, policy.config.model_type),
            engine=engine_name(),
            processes=training.world_size,
            **outcome(trainer, seconds),
            wall_seconds=time.perf_counter() - started,
        )


def measuring_trainer(
    policy: object, tokenizer: object, rows: object, held_out: object, accuracy: Accuracy, settings: start.Settings
) -> object:
    """The trainer, which also generates one answer to each held-out row, recorded by a reward with weight 0."""
    run, training, model = settings.run, settings.training, settings.model
    training.per_device_eval_batch_size, training.num_generations_eval = run.eval_batch, 1
    return build_trainer(
        policy,
        tokenizer,
        numbered(rows, held_out=False),
        {**REWARDS, accuracy: 0.0},
        settings,
        eval_dataset=numbered(held_out, held_out=True),
        peft_config=get_peft_config(model),
        callbacks=[Lines(), KeepBefore(accuracy, Path(training.output_dir))],
    )


if __name__ == "__main__":
    main(settings, rows, held_out)
