"""The plan of the stages, read and checked before slow imports."""

import difflib
from collections.abc import Callable
from pathlib import Path

from lib import start
from lib.scoring import is_finite

#: Settings for loading the policy, which is loaded once for all stages.
SHARED = {"model_name_or_path", "load_in_4bit", "use_peft", "use_unsloth", "lora_r", "lora_alpha", "fp16", "bf16"}
SHARED |= {"lora_target_modules", "output_dir", "seed", "max_completion_length", "max_prompt_tokens"}


def read_stages(argv: list[str]) -> list[dict]:
    """The plan: a list of stages, each with a name, optional rewards with weights, and settings that differ."""
    path = Path(start.config_name(argv).replace("config", "stages") + ".yaml")
    stages = start.read_yaml(path)
    valid = isinstance(stages, list) and all(isinstance(stage, dict) and stage.get("name") for stage in stages)
    if not valid or len({stage["name"] for stage in stages}) < len(stages) or not stages:
        raise SystemExit(f"Error: {path} must be a list of stages with different names.")
    for stage in stages:
        check_rewards(stage)
        if shared := SHARED & stage.keys():
            names = ", ".join(sorted(shared))
            raise SystemExit(f"Error: stage {stage['name']!r} changes {names}, which all stages share.")
    return stages


def check_rewards(stage: dict) -> None:
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


def commands(argv: list[str], stages: list[dict]) -> list[list[str]]:
    """The command line of each stage."""
    folder = Path(start.given(argv).get("output_dir", "trainer_output"))
    return [with_stage(argv, number, stage, folder) for number, stage in enumerate(stages, start=1)]


def with_stage(argv: list[str], number: int, stage: dict, folder: Path) -> list[str]:
    """The command line plus a stage's settings; if a setting appears twice, the last one counts."""
    flags = []
    for key, value in stage.items():
        if key not in ("name", "rewards"):
            flags += [f"--{key}", *(map(str, value) if isinstance(value, list) else [str(value)])]
    return [*argv, *flags, "--output_dir", str(folder / f"{number}-{stage['name']}")]
