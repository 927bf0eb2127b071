"""Train a model to use tools with GRPO, and evaluate it on held-out prompts before and after.

python train.py --config config.cpu.yaml                 on a laptop, no network
python train.py --config config.yaml --max_steps 50      on a T4; any setting can be an option
"""

import sys

from lib import start

settings = start.parse(sys.argv[1:])  # rejects invalid settings, sets the environment, imports Unsloth before TRL

import time
from functools import partial
from pathlib import Path

from data import load_rows
from environment import TOOLS
from generation import generate
from lib.evaluating import evaluate
from lib.finishing import finish
from lib.folder import begin
from lib.loading import load_policy
from lib.scoring import rehearse
from lib.training import build_trainer, entries, outcome, save, short_enough, train
from rewards import REWARDS, is_in_form, is_right
from tools import check_tools, new_environment, template_of, toolbox


def main(settings: start.Settings) -> None:
    """Load rows and policy; evaluate, train, evaluate again; write the report."""
    started = time.perf_counter()
    run, training, model = settings.run, settings.training, settings.model
    if training.max_tool_calling_iterations is None:
        raise SystemExit(
            "Error: max_tool_calling_iterations is missing; set how many turns of an episode may call tools."
        )
    folder = Path(training.output_dir)
    rows = load_rows(run.dataset_name, "train", run.train_rows, training.seed)
    held_out = load_rows(run.dataset_name, "test", run.eval_rows, training.seed)
    start.check_rows(settings, rows, held_out)
    rehearse(REWARDS, rows[0], factory=TOOLS.get("environment_factory"))  # tries each reward
    checkpoint = begin(settings)  # locks the output folder
    print(f"{len(rows)} rows to train on, {len(held_out)} held out.")

    policy, tokenizer = load_policy(run, training, model)
    check_tools(tokenizer, model.model_name_or_path)
    template = template_of(tokenizer, training)
    tools = list(toolbox(new_environment()).values())
    rows = short_enough(rows, tokenizer, settings, tools=tools, **template)
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
    main(settings)
