"""The plan of the stages, read and checked before a model is loaded."""

import difflib
import json
from collections.abc import Callable, Collection
from pathlib import Path

from grpo_run import start
from grpo_run.scoring import is_finite

#: Settings that a stage cannot change: the policy is loaded once, and every evaluation uses the same rows.
SHARED = {"model_name_or_path", "load_in_4bit", "use_peft", "use_unsloth", "lora_r", "lora_alpha", "fp16", "bf16"}
SHARED |= {"lora_target_modules", "output_dir", "seed", "max_completion_length", "max_prompt_tokens"}
SHARED |= {"lora_dropout", "use_cpu", "eval_rows", "eval_batch", "accept_changes"}


def read_stages(profile: str) -> list[dict]:
    """The plan: a list of stages, each with a name, optional rewards with weights, and settings that differ.

    ``profile`` is the name of the config: the plan for "config.cpu" is in stages.cpu.yaml.
    """
    if profile.partition(".")[0] != "config":
        raise SystemExit("Error: name the config config.yaml or config.NAME.yaml; the plan is in stages.NAME.yaml.")
    path = plan_of(profile)
    stages = start.read_yaml(path)
    valid = isinstance(stages, list) and all(isinstance(stage, dict) and stage.get("name") for stage in stages)
    if not valid or len({stage["name"] for stage in stages}) < len(stages) or not stages:
        raise SystemExit(f"Error: {path} must be a list of stages with different names.")
    for stage in stages:
        check_stage_rewards(stage)
        if shared := SHARED & {str(key).replace("-", "_") for key in stage}:
            names = ", ".join(sorted(shared))
            raise SystemExit(f"Error: stage {stage['name']!r} changes {names}, which all stages share.")
    return stages


def check_options(options: Collection[str], stages: list[dict], profile: str) -> None:
    """Reject an option that each stage replaces with its own, and note one that some stages replace.

    >>> check_options({"max_steps"}, [{"name": "form", "max_steps": 15}, {"name": "answers"}], "config.cpu")
    Note: --max_steps has no effect in stage 'form', because stages.cpu.yaml sets it there.
    """
    path = plan_of(profile)
    for option in options:
        own = [repr(stage["name"]) for stage in stages if option in {str(key).replace("-", "_") for key in stage}]
        where = f"stage{'s' * (len(own) > 1)} {', '.join(own)}"
        if len(own) == len(stages):
            raise SystemExit(f"Error: --{option} has no effect, because {path} sets it in {where}. Change it there.")
        if own:
            print(f"Note: --{option} has no effect in {where}, because {path} sets it there.")


def plan_of(profile: str) -> Path:
    """The file of the plan: stages.cpu.yaml for "config.cpu"."""
    return Path("stages" + profile.removeprefix("config") + ".yaml")


def check_stage_rewards(stage: dict) -> None:
    """Check that each reward of a stage has a weight."""
    rewards = stage.get("rewards", {"all": 1.0})
    if "reward_weights" in stage or not (
        isinstance(rewards, dict) and rewards and all(map(is_finite, rewards.values()))
    ):
        example = "rewards: {format_reward: 0.5, tag_reward: 0.5}"
        raise SystemExit(f"Error: stage {stage['name']!r} must give each of its rewards a weight: {example}.")


def rewards_of(stage: dict, known: dict[Callable, float]) -> dict[Callable, float]:
    """The rewards that a stage names, with its own weights, or all of REWARDS if it names none."""
    functions = {reward.__name__: reward for reward in known}
    weights = stage.get("rewards", {reward.__name__: weight for reward, weight in known.items()})
    for name in weights:
        if name not in functions:
            near = difflib.get_close_matches(name, functions, n=1) or [", ".join(functions)]
            raise SystemExit(f"Error: stage {stage['name']!r}: REWARDS has no {name!r}. Did you mean {near[0]!r}?")
    return {functions[name]: float(weight) for name, weight in weights.items()}


def options_of(stage: dict, number: int, folder: Path) -> list[str]:
    """A stage's settings as options, which take precedence over those of the run.

    >>> stage = {"name": "form", "max_steps": 15, "chat_template_kwargs": {"enable_thinking": False}}
    >>> options_of(stage | {"rewards": {"tag_reward": 1.0}}, 1, Path("outputs"))
    ['--max_steps', '15', '--chat_template_kwargs', '{"enable_thinking": false}', '--output_dir', 'outputs/1-form']
    """
    options = []
    for key, value in start.as_meant(stage).items():
        if key not in ("name", "rewards"):
            values = value if isinstance(value, list) else [value]
            options += [f"--{key}", *(json.dumps(v) if isinstance(v, dict) else str(v) for v in values)]
    return [*options, "--output_dir", str(folder / f"{number}-{stage['name']}")]
