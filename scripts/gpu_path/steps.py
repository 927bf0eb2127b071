"""Run a few steps of lesson 03's cells, with Unsloth as on a GPU or with stock TRL, and write a JSON file.

    GPU_PATH_CARD=t4 python steps.py outputs/steps.json '{"dtype": "float32"}'      # Unsloth on a simulated card
    python steps.py outputs/stock.json '{"dtype": "float32"}'                       # stock transformers, PEFT and TRL
    GPU_PATH_BACKEND=unsloth python steps.py outputs/real.json '{}'                 # Unsloth on a real card

It runs the cells with the tag "gpu-path", so a rewritten lesson only needs to move its tags.
"""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

CARD = os.environ.get("GPU_PATH_CARD")
BACKEND = os.environ.get("GPU_PATH_BACKEND") or ("unsloth" if CARD else "transformers")
if CARD and BACKEND == "unsloth":
    import start  # noqa: F401  before anything imports transformers or TRL
elif BACKEND == "unsloth":
    import unsloth  # noqa: F401

import nbformat  # noqa: E402
import torch  # noqa: E402
from transformers import TrainerCallback  # noqa: E402

from grpo_check import HealthCallback  # noqa: E402
from grpo_utils.lesson import Setup  # noqa: E402
from grpo_utils.models import model_path  # noqa: E402
from grpo_utils.profiles import CPU, PROFILES, prepare_machine  # noqa: E402

LESSON = Path(__file__).parent.parent.parent / "notebooks" / "03_grpo_lora.ipynb"
SMALL = dict(max_completion_length=24, per_device_train_batch_size=8, gradient_accumulation_steps=2, num_generations=4)
SMALL |= dict(
    dataset="addition", learning_rate=1e-3, optim="adamw_torch", train_rows=64, eval_rows=8, eval_batch_size=8
)
SMALL |= dict(lr_scheduler_type="linear", warmup_steps=0)  # a warmup would hide the first updates


class Watch(TrainerCallback):
    """What must hold after every step."""

    def __init__(self):
        self.checkpointing, self.adapter = [], []

    def on_step_end(self, args, state, control, model=None, **kwargs):
        flags = [
            module.gradient_checkpointing for module in model.modules() if hasattr(module, "gradient_checkpointing")
        ]
        self.checkpointing.append(any(flags))
        self.adapter.append(sorted({str(p.dtype) for p in model.parameters() if p.requires_grad}))


def settings(family: str, dtype: str, load_in_4bit: bool, steps: int, model: str, folder: Path) -> dict:
    """The names that the lesson's tagged cells expect: sizes for a few seconds, or with a model the profile's own."""
    sizes = {} if model else SMALL | dict(models=CPU.models)
    profile = replace(PROFILES[CARD or "t4"], **sizes, dtype=dtype, load_in_4bit=load_in_4bit, steps=steps)
    if not torch.cuda.is_available():
        profile = replace(profile, name="cpu")
        prepare_machine(profile)
    model = model or profile.models[family]
    run = Setup(profile, "given", family, model, BACKEND, model_path(model), folder, None)
    return dict(run=run, profile=profile, BACKEND=BACKEND, SEED=0, REPORT_TO="none", ENABLE_THINKING=False)


def tagged_cells() -> list[str]:
    """The lesson's tagged cells."""
    cells = nbformat.read(LESSON, as_version=4).cells
    return [cell.source for cell in cells if "gpu-path" in cell.metadata.get("tags", [])]


def run(
    out: Path, family="qwen", dtype="float32", load_in_4bit=False, steps=3, model="", wrong_sign=False, replay=""
) -> None:
    """Run the tagged cells and a few steps, and write the results to ``out``."""
    names, said, watch = settings(family, dtype, load_in_4bit, steps, model, out.with_suffix("")), [], Watch()

    def heard(completions, **kwargs):
        said.append([completion[0]["content"] for completion in completions])
        return [0.0] * len(completions)

    for cell in tagged_cells():
        exec(cell, names)
        if "weights" in names and heard not in names["rewards"]:
            names["rewards"], names["weights"] = [*names["rewards"], heard], [*names["weights"], 0.0]
    trainer = names["trainer"]
    if not model:  # the policy samples between the steps, as it does for users
        trainer.add_callback(HealthCallback(names["test_rows"], every=1, stop=False))
    trainer.add_callback(watch)
    samples = keep_samples(trainer.model, json.loads(Path(replay).read_text())["samples"] if replay else None)
    if wrong_sign:
        turn_the_sign(trainer)
    trainer.train()
    names["policy"].save_pretrained(out.with_suffix("") / "adapter")
    layers = [type(module).__name__ for module in trainer.model.modules()]
    result = {
        "trainer": type(trainer).__name__,
        "linear_4bit": layers.count("Linear4bit"),
        "completions": said,
        "samples": samples,
        "log": trainer.state.log_history,
        "checkpointing": watch.checkpointing,
        "adapter": watch.adapter,
        "peak_gib": torch.cuda.max_memory_reserved() / 2**30 if torch.cuda.is_available() else None,
        "base": names["policy"].peft_config["default"].base_model_name_or_path,
    }
    out.write_text(json.dumps(result, indent=1), encoding="utf-8")


def turn_the_sign(trainer: object) -> None:
    """Break the loss on purpose by negating every advantage, so that a test can see the comparison fail."""
    compute = trainer.compute_loss
    trainer.compute_loss = lambda model, inputs, *args, **kwargs: compute(
        model, inputs | {"advantages": -inputs["advantages"]}, *args, **kwargs
    )


def keep_samples(policy: object, replayed: list | None) -> list:
    """The token ids that the policy samples from now on; with ``replayed``, it gets an earlier run's samples."""
    generate, kept = policy.generate, []

    def sample(*args, **kwargs):
        made = torch.tensor(replayed[len(kept)], device=policy.device) if replayed else generate(*args, **kwargs)
        kept.append(made.tolist())
        return made

    policy.generate = sample
    return kept


if __name__ == "__main__":
    run(Path(sys.argv[1]), **json.loads(sys.argv[2]))
