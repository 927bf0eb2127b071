"""Train on demonstrations (SFT), from which GRPO goes on: what ``sft.py`` does."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from .checking import both_splits, fitting
from .folder import check_writable, hold
from .limits import require
from .rows import read_rows
from .start import Settings
from .table import Columns

if TYPE_CHECKING:
    from datasets import Dataset

BATCH = 8  # demonstrations per step
#: Settings of the config that SFT uses too. It takes num_train_epochs (3 unless you set it), and not max_steps.
SAME = ("num_train_epochs", "learning_rate", "optim", "seed", "use_cpu", "fp16", "bf16", "gradient_checkpointing")


def demonstrate(
    file: str, settings: Settings, load_rows: Callable, chat: Callable, is_in_form: Callable, gold_text: Callable
) -> None:
    """Train an adapter, or all weights, on demonstrations, and save it where train.py can start from it.

    They are the completions in ``file``, or without one (""), the gold answers of the training rows in their form.
    The functions are those of a project's data.py and rewards.py.
    """
    training = settings.training
    folder = Path(f"{training.output_dir}-sft")
    if any(folder.glob("*.safetensors")):  # an interrupted run leaves the folder without a model
        raise SystemExit(f"Error: {folder} already has a model. Rename it, or choose another output_dir.")
    require(settings.values, ["num_train_epochs"], lambda n: n > 0, "above 0")
    check_writable(folder)
    rows, held_out = both_splits(settings.values, load_rows, gold_text)
    if file:
        pairs = of_file(file, held_out, chat, is_in_form)
    else:
        rows, _ = fitting(settings, rows, held_out, gold_text)
        pairs = of_gold_answers(rows, gold_text, is_in_form)
    hold(folder)
    train_on(pairs, settings, folder)
    print(f"Next: python train.py, with the same settings and --model_name_or_path {folder}")


def of_file(name: str, held_out: "Dataset", chat: Callable, is_in_form: Callable) -> list[tuple[list, str]]:
    """Prompts and completions in a file, without the prompts that train.py evaluates."""

    def problem(row: dict) -> str:
        if is_in_form(row["completion"]):
            return ""
        return f"the completion {row['completion']!r} does not have the format that rewards.py accepts"

    rows = read_rows(name, Columns(("question", "completion")), problem)
    pairs = [(chat(row["question"]), row["completion"]) for row in rows]
    evaluated = list(held_out["prompt"])
    kept = [pair for pair in pairs if pair[0] not in evaluated]
    left_out = len(pairs) - len(kept)
    print(f"{len(kept)} demonstrations; {left_out} are left out, because train.py evaluates their prompts.")
    if not kept:
        raise SystemExit(f"Error: {name} has no demonstrations to train on; add some whose prompts are not held out.")
    return kept


def of_gold_answers(rows: "Dataset", gold_text: Callable, is_in_form: Callable) -> list[tuple[list, str]]:
    """The prompts of rows and their gold answers, as ``gold_text`` writes them."""
    pairs = [(row["prompt"], text) for row in rows if (text := gold_text(row)) is not None]
    if wrong := [text for _, text in pairs if not is_in_form(text)]:
        raise SystemExit(
            f"Error: gold_text in rewards.py writes {wrong[0]!r}, for which is_in_form is False. Correct one."
        )
    if not pairs:
        raise SystemExit(
            "Error: no training row has a gold answer to imitate: gold_text in rewards.py returns None for each. Write "
            "completions into a file, and name it: python sft.py demonstrations.jsonl"
        )
    print(f"{len(pairs)} demonstrations: the gold answers of training rows, as gold_text in rewards.py writes them.")
    return pairs


def train_on(pairs: list[tuple[list, str]], settings: Settings, folder: Path) -> None:
    """Train the model of the settings on prompts (messages) and completions, and save it to ``folder``."""
    from datasets import Dataset
    from grpo_core.training.policy import keep_trainable_fp32
    from trl import SFTConfig, SFTTrainer

    from .loading import load_policy

    training = settings.training
    template = training.chat_template_kwargs or {}
    rows = [
        {"prompt": prompt, "completion": [{"role": "assistant", "content": text}], "chat_template_kwargs": template}
        for prompt, text in pairs
    ]
    updates = -(-len(rows) // BATCH) * training.num_train_epochs
    print(f"{updates:.0f} updates of {BATCH} demonstrations: {training.num_train_epochs:g} passes.", flush=True)
    policy, tokenizer = load_policy(settings.run, training, settings.model)
    shared = {setting: getattr(training, setting) for setting in SAME}
    fixed = dict(max_length=None, save_strategy="no", report_to="none", logging_steps=10)
    config = SFTConfig(str(folder), per_device_train_batch_size=BATCH, **shared, **fixed)
    trainer = SFTTrainer(policy, args=config, processing_class=tokenizer, train_dataset=Dataset.from_list(rows))
    keep_trainable_fp32(trainer.model)
    trainer.train()
    trainer.save_model(folder)
