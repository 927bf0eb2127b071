"""Write what templates share with basic_grpo, and the T4 profile's sizes: `make templates`.

With --lock, the versions of all packages that their requirements install are looked up first: `make lock`.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))
from grpo_utils.profiles import T4  # noqa: E402
from grpo_utils.project import write_wheel  # noqa: E402

TEMPLATES = ROOT / "templates"
TASK = ("rewards.py", "data.py", "test_rewards.py")
PINS = ("constraints.txt", "requirements-unsloth.txt", "requirements-gpu.txt", "requirements-colab.txt")
COMMON = (".gitignore", ".env.example", "colab.ipynb", *PINS)
#: multi_stage has a workflow of its own, because its stages set their steps.
WORKFLOW = ".github/workflows/test.yml"

#: Each template, and the files that it shares with basic_grpo.
SHARED = {
    "basic_grpo": (),
    "minimal": (".gitignore", *PINS),
    "multi_stage": (*COMMON, *TASK, "ask.py", "requirements.txt"),
    "structured_output": (*COMMON, WORKFLOW, "ask.py", "train.py", "sft.py"),
    "code_reward": (*COMMON, WORKFLOW, "ask.py", "train.py", "sft.py", "requirements.txt"),
    "own_data": (".gitignore", WORKFLOW, "colab.ipynb", "ask.py", "sft.py", *PINS),
    "tool_agent": (*COMMON, WORKFLOW, "requirements.txt"),
    "scale_out": (*TASK, "ask.py", ".gitignore", ".env.example", "constraints.txt"),
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


def write_constraints() -> None:
    """The packages that all requirements.txt together install, on any system, with the versions of today."""
    uv = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11"]
    with TemporaryDirectory() as folder:
        write_wheel(Path(folder, "vendor"))
        names = [str(path) for path in sorted(TEMPLATES.glob("*/requirements.txt"))]
        command = [*uv, "--no-annotate", "--no-header", "--no-emit-package", "grpo-check", *names]
        found = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout
    text = "# Written by `make lock` of the course: pip install -r requirements.txt -c constraints.txt\n"
    (TEMPLATES / "basic_grpo" / "constraints.txt").write_text(text + found, encoding="utf-8")


def main() -> None:
    """Write all copies."""
    if "--lock" in sys.argv[1:]:
        write_constraints()
    for path in TEMPLATES.glob("*/config.yaml"):
        path.write_text(followed(path.read_text(encoding="utf-8"), path.parent.name), encoding="utf-8")
    for name, files in SHARED.items():
        for file in files:
            (TEMPLATES / name / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(TEMPLATES / "basic_grpo" / file, TEMPLATES / name / file)


if __name__ == "__main__":
    main()
