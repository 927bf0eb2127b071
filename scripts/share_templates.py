"""Write the lib/ of each template, what it shares with basic_grpo, and the T4 profile's sizes: `make templates`."""

import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))
from grpo_utils.profiles import T4  # noqa: E402
from grpo_utils.project import write_libs  # noqa: E402

TEMPLATES = ROOT / "templates"
TASK = ("rewards.py", "data.py", "test_rewards.py")
COMMON = (".gitignore", ".env.example", "lib.py", "requirements-unsloth.txt")

#: Each template, and the files that it shares with basic_grpo.
SHARED = {
    "basic_grpo": (),
    "minimal": (".gitignore", "requirements-unsloth.txt"),
    "multi_stage": (*COMMON, *TASK, "ask.py", "requirements.txt"),
    "structured_output": (*COMMON, "ask.py", "train.py"),
    "code_reward": (*COMMON, "ask.py", "train.py", "requirements.txt"),
    "own_data": (".gitignore", "ask.py", "lib.py", "requirements-unsloth.txt"),
    "tool_agent": (*COMMON, "requirements.txt"),
    "scale_out": (*TASK, "ask.py", ".gitignore", ".env.example", "lib.py"),
}

#: What a template's config.yaml takes from the T4 profile. (tool_agent's episodes need more tokens, and scale_out has
#: two processes.)
FOLLOWED = {
    "max_steps": T4.steps,
    "learning_rate": f"{T4.learning_rate:.1e}".replace("e-0", "e-"),
    "warmup_steps": T4.warmup_steps,
    "lora_r": T4.lora_rank,
    "lora_alpha": T4.lora_alpha,
    "eval_rows": T4.eval_rows,
    "eval_batch": T4.eval_batch_size,
    "per_device_train_batch_size": T4.per_device_train_batch_size,
    "gradient_accumulation_steps": T4.gradient_accumulation_steps,
    "num_generations": T4.num_generations,
    "max_completion_length": T4.max_completion_length,
}
NOT_FOLLOWED = {
    "tool_agent": ("max_completion_length",),
    "scale_out": ("gradient_accumulation_steps", "eval_batch"),
}


def followed(config: str, template: str) -> str:
    """The text of a template's config.yaml with the T4 profile's sizes; comments keep their column.

    >>> print(followed("max_steps: 7         # optimizer steps", "basic_grpo"))
    max_steps: 60        # optimizer steps
    """
    for name, value in FOLLOWED.items():
        if name not in NOT_FOLLOWED.get(template, ()):
            line = re.compile(rf"^({name}: )(\S+ *)(?=#|$)", re.MULTILINE)
            config = line.sub(lambda found, to=str(value): found[1] + to.ljust(len(found[2])), config)
    return config


def main() -> None:
    """Write all copies."""
    for path in TEMPLATES.glob("*/config.yaml"):
        path.write_text(followed(path.read_text(encoding="utf-8"), path.parent.name), encoding="utf-8")
    for name, files in SHARED.items():
        for file in files:
            shutil.copy(TEMPLATES / "basic_grpo" / file, TEMPLATES / name / file)
    write_libs()


if __name__ == "__main__":
    main()
