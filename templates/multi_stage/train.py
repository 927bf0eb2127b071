"""Train one adapter in stages, each with its own rewards and steps; the run can resume within any stage.

python train.py --config config.cpu.yaml       with the plan in stages.cpu.yaml
python train.py --config config.yaml           with the plan in stages.yaml
"""

import sys

from lib import start

settings = start.parse(sys.argv[1:])  # rejects invalid settings, sets the environment, imports Unsloth before TRL

import json
import time
from functools import partial
from pathlib import Path

from data import load_rows
from lib.evaluating import evaluate
from lib.finishing import finish
from lib.folder import begin, resume_point
from lib.generating import generate
from lib.loading import load_policy
from lib.measuring import summary
from lib.resuming import load_adapter
from lib.scoring import rehearse
from lib.training import build_trainer, entries, outcome, save, short_enough, train
from plan import options_of, read_stages, rewards_of
from rewards import REWARDS, is_in_form, is_right


def run_stage(
    settings: start.Settings, stage: dict, rewards: dict, rows: object, policy: object, tokenizer: object
) -> dict:
    """Train one stage, or load its adapter if it is finished; return its steps and seconds."""
    training, folder = settings.training, Path(settings.training.output_dir)
    done = folder / "finished.json"
    if done.exists():
        print(f"{folder} was finished before; loading its adapter.")
        load_adapter(policy, folder / "adapter")
        return json.loads(done.read_text(encoding="utf-8"))
    checkpoint = resume_point(settings, stage=stage)
    if "ref" in policy.peft_config:  # with beta above zero: the previous stage's reference
        policy.delete_adapter("ref")
    rows = short_enough(rows, tokenizer, settings)
    trainer = build_trainer(policy, tokenizer, rows, rewards, settings)
    print(f"Stage {folder.name}: {training.max_steps} steps.", flush=True)
    seconds = train(trainer, checkpoint)
    save(trainer, folder / "adapter")
    figures = outcome(trainer, seconds)
    done.write_text(json.dumps(figures), encoding="utf-8")  # written last, because it marks the stage as finished
    return figures


def main(settings: start.Settings) -> None:
    """Evaluate, train the stages and evaluate after each, and write the report."""
    started = time.perf_counter()
    run, training = settings.run, settings.training
    if not settings.model.use_peft:
        raise SystemExit("Error: use_peft must be true, because the stages share an adapter.")
    folder, stages = Path(training.output_dir), read_stages(settings.profile)
    rewards = [rewards_of(stage, REWARDS) for stage in stages]
    planned = [start.parse(sys.argv[1:], options_of(stage, n, folder)) for n, stage in enumerate(stages, start=1)]
    held_out = load_rows(run.dataset_name, "test", run.eval_rows, training.seed)
    rows = [load_rows(each.run.dataset_name, "train", each.run.train_rows, training.seed) for each in planned]
    for each, of_stage in zip(planned, rows, strict=True):
        start.check_rows(each, of_stage, held_out)
    rehearse(REWARDS, rows[0][0])  # tries each reward
    begin(settings, stages=stages)  # locks the output folder

    policy, tokenizer = load_policy(run, training, settings.model)
    sampling = dict(
        max_new_tokens=training.max_completion_length,
        temperature=training.temperature,
        batch_size=run.eval_batch,
        chat_template_kwargs=training.chat_template_kwargs,
        seed=training.seed,
    )
    answer = partial(generate, policy, tokenizer, held_out["prompt"], **sampling)
    results, reports = [evaluate(answer, held_out, is_right, is_in_form)], []
    for each, stage, paid, of_stage in zip(planned, stages, rewards, rows, strict=True):
        reports.append(run_stage(each, stage, paid, of_stage, policy, tokenizer) | {"stage": stage})
        results.append(evaluate(answer, held_out, is_right, is_in_form))
        reports[-1]["after"] = summary(results[-1])
    policy.save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")

    finish(
        folder,
        held_out,
        results[0],
        results[-1],
        **entries(settings, policy.config.model_type),
        stages=reports,
        steps=sum(report["steps"] for report in reports),
        train_seconds=sum(report["train_seconds"] for report in reports),
        stopped=" ".join(filter(None, (report["stopped"] for report in reports))),
        wall_seconds=time.perf_counter() - started,
    )


if __name__ == "__main__":
    main(settings)
