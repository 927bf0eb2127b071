"""Train one adapter in stages, each with its own rewards and steps; the run can resume within any stage.

python train.py --config config.cpu.yaml --check       checks everything first, and stops
python train.py --config config.cpu.yaml       with the plan in stages.cpu.yaml
python train.py --config config.yaml           with the plan in stages.yaml
"""

import sys

from grpo_run import start

values = start.read(sys.argv[1:])  # rejects invalid settings and sets the environment, within a second

from pathlib import Path

from data import load_rows
from grpo_run import checking
from plan import check_options, options_of, read_stages, rewards_of
from rewards import REWARDS, gold_text, is_in_form, is_right

if not values["use_peft"]:
    raise SystemExit("Error: use_peft must be true, because the stages share an adapter.")
config, _, options = start.given(sys.argv[1:])
stages = read_stages(config.stem)
check_options(start.read_options(options, start.known_settings())[0], stages, config.stem)
stage_rewards = [rewards_of(stage, REWARDS) for stage in stages]
stage_options = [options_of(stage, n, Path(values["output_dir"])) for n, stage in enumerate(stages, start=1)]
_, held_out = checking.rows_and_rewards(values, load_rows, REWARDS, is_right, is_in_form, gold_text)
stage_rows = [checking.both_splits(start.read(sys.argv[1:], each), load_rows)[0] for each in stage_options]
settings = start.parse(sys.argv[1:])  # imports Unsloth before TRL, which takes ten seconds or more
planned = [start.parse(sys.argv[1:], each) for each in stage_options]

import json
import time
from functools import partial

from grpo_core.training.generating import generate
from grpo_core.training.measuring import summary
from grpo_core.training.resuming import load_adapter
from grpo_run.evaluating import evaluate
from grpo_run.finishing import finish
from grpo_run.folder import begin, resume_point
from grpo_run.loading import load_policy
from grpo_run.training import build_trainer, entries, outcome, save, train


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
    trainer = build_trainer(policy, tokenizer, rows, rewards, settings)
    print(f"Stage {folder.name}: {training.max_steps} steps.", flush=True)
    seconds = train(trainer, checkpoint)
    save(trainer, folder / "adapter")
    figures = outcome(trainer, seconds)
    done.write_text(json.dumps(figures), encoding="utf-8")  # written last, because it marks the stage as finished
    return figures


def main() -> None:
    """Evaluate, train the stages and evaluate after each, and write the report."""
    started = time.perf_counter()
    run, training = settings.run, settings.training
    folder = Path(training.output_dir)
    fitted = [checking.fitting(each, rows, held_out, gold_text) for each, rows in zip(planned, stage_rows, strict=True)]
    checking.stop_if_only_checked(settings, stages=stages)
    begin(settings, stages=stages)  # locks the output folder
    rows, tested = [rows for rows, _ in fitted], fitted[0][1]  # all stages share max_prompt_tokens

    policy, tokenizer = load_policy(run, training, settings.model)
    sampling = dict(
        max_new_tokens=training.max_completion_length,
        temperature=training.temperature,
        batch_size=run.eval_batch,
        chat_template_kwargs=training.chat_template_kwargs,
        seed=training.seed,
    )
    answer = partial(generate, policy, tokenizer, tested["prompt"], **sampling)
    results, reports = [evaluate(answer, tested, is_right, is_in_form)], []
    for each, stage, paid, of_stage in zip(planned, stages, stage_rewards, rows, strict=True):
        reports.append(run_stage(each, stage, paid, of_stage, policy, tokenizer) | {"stage": stage})
        results.append(evaluate(answer, tested, is_right, is_in_form))
        reports[-1]["after"] = summary(results[-1])
    policy.save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")

    finish(
        folder,
        tested,
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
    main()
