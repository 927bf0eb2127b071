"""Train the adapters of the arms: SFT with TRL, and GRPO with the template of `make real`.

Both save a checkpoint every few minutes and continue from it. A finished adapter is not trained again.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benches import ROOT, curves
from grpo_check.replay.read import read_run
from grpo_core.rewards.structured import parse_json

from grpo_utils import smollm2
from grpo_utils.profiles import THREADS
from grpo_utils.real.training import write_project

from .clock import free_cores
from .measuring import number_format, set_threads
from .prompts import TASK

STEPS, PROMPTS_PER_STEP = 70, 8  # of GRPO, as in `make real`
BATCH = 8  # answers per step of SFT
LORA = dict(r=16, lora_alpha=32, lora_dropout=0.0, target_modules="all-linear")


def sft(rows: Sequence[dict], rate: float, passes: int, seed: int, folder: Path) -> Path:
    """Train an adapter on the answers of ``rows``; the folder that has it.

    Its adapter, rate of warm-up and number format are those of GRPO. Only the answers' tokens count in the loss.
    """
    adapter = folder / "model"
    if (adapter / "adapter_config.json").exists():
        return adapter
    import torch
    from datasets import Dataset
    from peft import LoraConfig
    from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback, set_seed
    from transformers.trainer_callback import PrinterCallback
    from transformers.trainer_utils import get_last_checkpoint
    from trl import SFTConfig, SFTTrainer

    class FreeCores(TrainerCallback):
        def on_step_begin(self, *args: object, **kwargs: object) -> None:
            set_threads(0.2)

    set_seed(seed)
    config = SFTConfig(
        str(folder / "checkpoints"),
        learning_rate=rate,
        lr_scheduler_type="constant_with_warmup",
        warmup_steps=2,
        per_device_train_batch_size=BATCH,
        max_steps=steps_of_sft(len(rows), passes),
        max_length=256,
        completion_only_loss=True,
        optim="adamw_torch",
        use_cpu=True,
        bf16=number_format() == "bfloat16",
        gradient_checkpointing=False,
        save_strategy="steps",
        save_steps=5,
        save_total_limit=1,
        logging_steps=1,
        report_to="none",
        disable_tqdm=True,
        seed=seed,
    )
    model = AutoModelForCausalLM.from_pretrained(smollm2.fetch(), dtype=getattr(torch, number_format()))
    tokenizer = AutoTokenizer.from_pretrained(smollm2.fetch())
    shown = [dict(prompt=row["prompt"], completion=[dict(role="assistant", content=row["answer"])]) for row in rows]
    peft = LoraConfig(task_type="CAUSAL_LM", **LORA)
    options = dict(processing_class=tokenizer, peft_config=peft)
    trainer = SFTTrainer(model, config, train_dataset=Dataset.from_list(shown), **options)
    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(FreeCores())
    begun = Path(config.output_dir).is_dir() and get_last_checkpoint(config.output_dir)
    trainer.train(resume_from_checkpoint=begun or None)
    trainer.model.save_pretrained(folder / "saving")
    (folder / "saving").rename(adapter)  # a folder of this name is complete
    shutil.rmtree(config.output_dir)
    return adapter


def steps_of_sft(answers: int, passes: int) -> int:
    """The number of steps in which SFT goes through its answers so often.

    >>> steps_of_sft(200, passes=3), steps_of_sft(12, passes=3)
    (75, 5)
    """
    return -(-answers * passes // BATCH)


def grpo(
    seed: int,
    folder: Path,
    *options: str,
    start: Path | None = None,
    rewards: Path | None = None,
    data: Path | None = None,
    steps: int = STEPS,
) -> tuple[Path, dict]:
    """Train an adapter as `make real` does, and return its folder and the curves of the run.

    ``options`` are for train.py, names and values by turns. ``start`` is an adapter that is trained further.
    ``rewards`` and ``data`` are files in place of the project's rewards.py and data.py; the project's own rewards are
    then in true_rewards.py.
    """
    run, project = (folder / "run").resolve(), folder / "project"
    if not (run / "report.json").exists():
        if not project.exists():  # a run continues only with the files that it began with
            shutil.rmtree(folder / "new project", ignore_errors=True)
            replace_files(write_project(folder / "new project"), rewards, data)
            (folder / "new project").rename(project)
        given = dict(
            model_name_or_path=(start or smollm2.fetch()).resolve(), output_dir=run, dataset_name=TASK, seed=seed
        )
        given |= dict(
            bf16=str(number_format() == "bfloat16").lower(),
            max_steps=steps,
            save_steps=2,
            save_total_limit=1,
            eval_rows=8,
        )
        given |= dict(zip((name.removeprefix("--") for name in options[::2]), options[1::2], strict=True))
        words = [word for name, value in given.items() for word in (f"--{name}", str(value))]
        paths = [ROOT, ROOT / "experiments", *filter(None, [os.environ.get("PYTHONPATH")])]
        variables = dict(PYTHONPATH=os.pathsep.join(map(str, paths)), HF_HUB_OFFLINE="1")
        variables |= dict(UNSLOTH_COMPILE_LOCATION=str(run.with_name("compiled")))
        variables |= dict.fromkeys(THREADS, str(free_cores()))
        command = [sys.executable, "train.py", "--config", "config.yaml", *words]
        subprocess.run(command, cwd=project, env=os.environ | variables, check=True)
    return run / "model", curves(run / f"checkpoint-{steps}")


def quantities(run: Path) -> dict[str, list[int]]:
    """Of the samples of each training step, how many give the quantity as a number, and how many as a text."""
    given = [[quantity(each.text) for each in step.completions] for step in read_run(run).steps]
    kinds = dict(number=int | float, text=str)
    return {name: [sum(isinstance(one, kind) for one in step) for step in given] for name, kind in kinds.items()}


def quantity(completion: str) -> object:
    """The quantity in an answer to an order; None if there is none.

    >>> quantity('{"quantity": "12"}'), quantity('{"quantity": 12}'), quantity("12 loaves")
    ('12', 12, None)
    """
    try:
        found = parse_json(completion)
    except ValueError:
        return None
    return found.get("quantity") if isinstance(found, dict) else None


def replace_files(project: Path, rewards: Path | None, data: Path | None) -> None:
    """Put a control's rewards, or other rows, into a project."""
    if rewards:
        (project / "rewards.py").replace(project / "true_rewards.py")
        shutil.copy(rewards, project / "rewards.py")
    if data:
        shutil.copy(data, project / "data.py")
