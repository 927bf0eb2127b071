"""Train in stages that carry one adapter, each with rewards and steps of its own; resumable stage by stage.

python train.py --config config.cpu.yaml       with the plan of stages.cpu.yaml
python train.py --config config.yaml           with the plan of stages.yaml
"""

import sys

import settings

settings.prepare(sys.argv[1:])  # the environment, and Unsloth, before torch and TRL

import json
import time
from pathlib import Path

import yaml
from checkpoints import begin, load_adapter
from data import load_rows
from evaluate import evaluate
from policy import keep_trainable_fp32, load_policy
from rates import summary
from report import write_report
from trainer import build_trainer, short_enough, train

#: What the policy is loaded with, once for all stages.
SHARED = {"model_name_or_path", "load_in_4bit", "use_peft", "use_unsloth", "lora_r", "lora_alpha", "fp16", "bf16"}
SHARED |= {"lora_target_modules", "output_dir", "seed", "max_completion_length", "max_prompt_tokens"}


def read_stages(path: Path) -> list[dict]:
    """The plan: a list of stages, each with a name and what it changes of the config."""
    if not path.is_file():
        raise SystemExit(f"Error: there is no {path}, the plan of the stages.")
    stages = yaml.safe_load(path.read_text(encoding="utf-8"))
    sound = isinstance(stages, list) and all(isinstance(stage, dict) and stage.get("name") for stage in stages)
    if not sound or len({stage["name"] for stage in stages}) < len(stages) or not stages:
        raise SystemExit(f"Error: {path} should be a list of stages, each with a name of its own.")
    for stage in stages:
        if shared := SHARED & stage.keys():
            said = f"stage {stage['name']!r} changes {', '.join(sorted(shared))}"
            raise SystemExit(f"Error: {said}, which all stages share.")
    return stages


def with_stage(argv: list[str], number: int, stage: dict, folder: Path) -> list[str]:
    """The command line with what a stage changes; the later of two equal settings counts."""
    flags = []
    for key, value in stage.items():
        if key != "name":
            flags += [f"--{key}", *(map(str, value) if isinstance(value, list) else [str(value)])]
    return [*argv, *flags, "--output_dir", str(folder / f"{number}-{stage['name']}")]


def run_stage(parsed: tuple, stage: dict, policy: object, tokenizer: object) -> dict:
    """Train one stage, or load what it left; its steps and seconds."""
    run, training, model = parsed
    folder = Path(training.output_dir)
    done = folder / "finished.json"
    if done.exists():
        print(f"{folder} was finished before; its adapter is loaded.")
        load_adapter(policy, folder / "adapter")
        return json.loads(done.read_text(encoding="utf-8"))
    checkpoint = begin(folder, settings.identity(run, training, model) | {"stage": stage})
    rows = load_rows(run.dataset_name, "train", run.train_rows, training.seed)
    if "ref" in policy.peft_config:  # with beta above zero: the reference of the stage before
        policy.delete_adapter("ref")
    trainer = build_trainer(policy, tokenizer, short_enough(rows, tokenizer, run.max_prompt_tokens), run, training)
    keep_trainable_fp32(policy)
    if checkpoint:
        load_adapter(policy, checkpoint)
    print(f"Stage {folder.name}: {training.max_steps} steps.", flush=True)
    seconds = train(trainer, checkpoint)
    trainer.save_model(folder / "adapter")
    figures = {"steps": trainer.state.global_step, "seconds": seconds}
    done.write_text(json.dumps(figures), encoding="utf-8")  # written last: before it, the stage is not finished
    return figures


def main(argv: list[str]) -> None:
    """The plan is checked as a whole; then before, the stages, after, the report."""
    started = time.perf_counter()
    parsed = run, training, model = settings.parse(argv)
    if not model.use_peft:
        raise SystemExit("Error: the stages carry an adapter: use_peft has to be true.")
    folder = Path(training.output_dir)
    stages = read_stages(Path(settings.config_name(argv).replace("config", "stages") + ".yaml"))
    plans = [settings.parse(with_stage(argv, n, stage, folder)) for n, stage in enumerate(stages, start=1)]
    held_out = load_rows(run.dataset_name, "test", run.eval_rows, training.seed)

    policy, tokenizer = load_policy(run, training, model)
    begin(folder, settings.identity(run, training, model) | {"stages": stages})
    judging = dict(tokens=training.max_completion_length, batch=run.eval_batch, seed=training.seed)
    results, figures = [evaluate(policy, tokenizer, held_out, **judging)], []
    for stage, plan in zip(stages, plans, strict=True):
        figures.append(run_stage(plan, stage, policy, tokenizer) | {"stage": stage})
        results.append(evaluate(policy, tokenizer, held_out, **judging))
        figures[-1]["after"] = summary(results[-1])
    policy.save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")

    totals = dict(profile=settings.config_name(argv), stages=figures, wall_seconds=time.perf_counter() - started)
    totals |= {"steps": sum(f["steps"] for f in figures), "train_seconds": sum(f["seconds"] for f in figures)}
    write_report(folder, parsed, policy.config.model_type, results[0], results[-1], **totals)


if __name__ == "__main__":
    main(sys.argv[1:])
