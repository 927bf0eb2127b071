"""Train one adapter in stages, each with its own rewards and steps; the run can resume within any stage.

python train.py --config config.cpu.yaml       with the plan in stages.cpu.yaml
python train.py --config config.yaml           with the plan in stages.yaml
"""

import sys

from lib import start
from plan import commands, read_stages

start.help_if_asked(sys.argv[1:])
STAGES = read_stages(sys.argv[1:])
COMMANDS = commands(sys.argv[1:], STAGES)
for command in [*COMMANDS, sys.argv[1:]]:
    start.prepare(command)  # rejects invalid settings and sets the environment, before imports

from data import load_rows
from plan import rewards_of
from rewards import REWARDS, is_in_form, is_right

REWARDS_OF = [rewards_of(stage, REWARDS) for stage in STAGES]
start.rehearse(sys.argv[1:], REWARDS, load_rows, stages=STAGES)  # tries the rewards, then imports Unsloth

import json
import time
from functools import partial
from pathlib import Path

from lib.folder import begin
from lib.measuring import evaluate, finish, generate, summary
from lib.policy import load_policy
from lib.resuming import load_adapter
from lib.training import build_trainer, save, short_enough, train


def run_stage(command: list[str], stage: dict, rewards: dict, policy: object, tokenizer: object) -> dict:
    """Train one stage, or load its adapter if it is finished; return its steps and seconds."""
    parsed = run, training, _ = start.parse(command)
    folder = Path(training.output_dir)
    done = folder / "finished.json"
    if done.exists():
        print(f"{folder} was finished before; loading its adapter.")
        load_adapter(policy, folder / "adapter")
        return json.loads(done.read_text(encoding="utf-8"))
    checkpoint = begin(folder, start.identity(command) | {"stage": stage}, run.accept_changes)
    rows = load_rows(run.dataset_name, "train", run.train_rows, training.seed)
    if "ref" in policy.peft_config:  # with beta above zero: the previous stage's reference
        policy.delete_adapter("ref")
    rows = short_enough(rows, tokenizer, run.max_prompt_tokens, **training.chat_template_kwargs or {})
    trainer = build_trainer(policy, tokenizer, rows, rewards, parsed)
    print(f"Stage {folder.name}: {training.max_steps} steps.", flush=True)
    seconds = train(trainer, checkpoint)
    save(trainer, folder / "adapter")
    figures = {"steps": trainer.state.global_step, "seconds": seconds}
    done.write_text(json.dumps(figures), encoding="utf-8")  # written last, because it marks the stage as finished
    return figures


def main(argv: list[str]) -> None:
    """Evaluate, train the stages and evaluate after each, and write the report."""
    started = time.perf_counter()
    parsed = run, training, model = start.parse(argv)
    if not model.use_peft:
        raise SystemExit("Error: use_peft must be true, because the stages share an adapter.")
    folder = Path(training.output_dir)
    held_out = load_rows(run.dataset_name, "test", run.eval_rows, training.seed)

    policy, tokenizer = load_policy(*parsed)
    begin(folder, start.identity(argv) | {"stages": STAGES}, run.accept_changes)
    sampling = dict(max_new_tokens=training.max_completion_length, batch_size=run.eval_batch, seed=training.seed)
    sampling |= dict(temperature=training.temperature, chat_template_kwargs=training.chat_template_kwargs)
    answer = partial(generate, policy, tokenizer, held_out["prompt"], **sampling)
    results, stages = [evaluate(answer, held_out, is_right, is_in_form)], []
    for stage, command, rewards in zip(STAGES, COMMANDS, REWARDS_OF, strict=True):
        stages.append(run_stage(command, stage, rewards, policy, tokenizer) | {"stage": stage})
        results.append(evaluate(answer, held_out, is_right, is_in_form))
        stages[-1]["after"] = summary(results[-1])
    policy.save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")

    figures = start.figures(argv, parsed, policy.config.model_type) | dict(stages=stages)
    figures |= dict(steps=sum(f["steps"] for f in stages), train_seconds=sum(f["seconds"] for f in stages))
    finish(folder, results[0], results[-1], **figures, wall_seconds=time.perf_counter() - started)


if __name__ == "__main__":
    main(sys.argv[1:])
