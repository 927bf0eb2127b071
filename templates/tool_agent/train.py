"""Train a model to use tools with GRPO, and evaluate it on held-out prompts before and after.

python train.py --config config.cpu.yaml --check         checks settings, rows, rewards and lengths, and stops
python train.py --config config.cpu.yaml                 on a laptop, no network
python train.py --config config.yaml --max_steps 50      on a T4; any setting can be an option
"""

import sys

from grpo_run import start

values = start.read(sys.argv[1:])  # rejects invalid settings and sets the environment, within a second

from data import load_rows
from environment import TOOLS
from generation import Episode, generate
from grpo_run import checking
from rewards import REWARDS, is_in_form, is_right
from tools import check_tools, new_environment, template_of, toolbox

if values["max_tool_calling_iterations"] is None:
    raise SystemExit("Error: max_tool_calling_iterations is missing; set how many turns of an episode may call tools.")
rows, held_out = checking.rows_and_rewards(
    values, load_rows, REWARDS, is_right, is_in_form,
    factory=TOOLS.get("environment_factory"), as_answer=Episode.of_text,
)  # fmt: skip
settings = start.parse(sys.argv[1:])  # imports Unsloth before TRL, which takes ten seconds or more

import time
from functools import partial
from pathlib import Path

from datasets import Dataset
from grpo_run.evaluating import evaluate
from grpo_run.finishing import finish
from grpo_run.folder import begin
from grpo_run.loading import load_policy
from grpo_run.training import build_trainer, entries, outcome, save, train


def main(settings: start.Settings, rows: Dataset, held_out: Dataset) -> None:
    """Load the policy; evaluate, train, evaluate again; write the report."""
    started = time.perf_counter()
    run, training, model = settings.run, settings.training, settings.model
    folder = Path(training.output_dir)
    tokenizer = checking.tokenizer_of(model.model_name_or_path)
    check_tools(tokenizer, model.model_name_or_path)
    tools, template = list(toolbox(new_environment()).values()), template_of(tokenizer, training)
    rows, held_out = checking.fitting(settings, rows, held_out, tools=tools, **template)
    checking.stop_if_only_checked(settings)
    checkpoint = begin(settings)  # locks the output folder
    print(f"{len(rows)} rows to train on, {len(held_out)} held out.")

    policy, tokenizer = load_policy(run, training, model)
    check_tools(tokenizer, model.model_name_or_path)  # again, as it prepares this tokenizer too
    answer = partial(
        generate,
        policy,
        tokenizer,
        held_out,
        tokens=training.max_completion_length,
        turns=training.max_tool_calling_iterations,
        temperature=training.temperature,
        template=template,
        batch=run.eval_batch,
        seed=training.seed,
    )
    before = evaluate(answer, held_out, is_right, is_in_form)
    trainer = build_trainer(policy, tokenizer, rows, REWARDS, settings, **TOOLS)
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
