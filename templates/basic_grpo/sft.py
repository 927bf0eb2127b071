"""If no sampled answer is ever correct, start here: train on demonstrations (SFT), and let train.py continue.

python sft.py demonstrations.jsonl --config config.cpu.yaml
python train.py --config config.cpu.yaml --model_name_or_path outputs/basic-sft --output_dir outputs/after-sft

Each line of the file has a question, and a completion as you want the model to write it:
{"question": "What is 9 - 4?", "completion": "<reasoning>9 - 4 = 5</reasoning><answer>5</answer>"}
"""

import sys
from pathlib import Path

from grpo_run import start

if {"-h", "--help"} & set(sys.argv):
    print(__doc__)
    sys.exit()
if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
    sys.exit("Error: name a file first, then a config: python sft.py demonstrations.jsonl --config config.cpu.yaml")
if not Path(sys.argv[1]).is_file():
    sys.exit(f"Error: there is no file {sys.argv[1]}.")
settings = start.parse(sys.argv[2:])  # rejects invalid settings, sets the environment, imports Unsloth before TRL

from data import chat, load_rows
from datasets import Dataset
from grpo_core.training.policy import keep_trainable_fp32
from grpo_run.folder import check_writable
from grpo_run.limits import require
from grpo_run.loading import load_policy
from grpo_run.rows import read_rows
from grpo_run.table import Columns
from rewards import is_in_form
from trl import SFTConfig, SFTTrainer

BATCH = 8  # demonstrations per step
#: Settings of the config that SFT uses too. It takes num_train_epochs (3 unless you set it), and not max_steps.
SAME = ("num_train_epochs", "learning_rate", "optim", "seed", "use_cpu", "fp16", "bf16", "gradient_checkpointing")


def problem(row: dict) -> str:
    """What is wrong with a demonstration; "" for a valid one."""
    if is_in_form(row["completion"]):
        return ""
    return f"the completion {row['completion']!r} does not have the format that rewards.py accepts"


def demonstrations(name: str, settings: start.Settings) -> list[dict]:
    """The rows of the file, without prompts that train.py evaluates."""
    run, training = settings.run, settings.training
    rows = [
        {"prompt": chat(row["question"]), "completion": [{"role": "assistant", "content": row["completion"]}]}
        for row in read_rows(name, Columns(("question", "completion")), problem)
    ]
    held_out = load_rows(run.dataset_name, "test", run.eval_rows, training.seed, run.held_out)
    held_out = [row["prompt"] for row in held_out]
    kept = [row for row in rows if row["prompt"] not in held_out]
    left_out = len(rows) - len(kept)
    print(f"{len(kept)} demonstrations; {left_out} are left out, because train.py evaluates their prompts.")
    if not kept:
        raise SystemExit(f"Error: {name} has no demonstrations to train on; add some whose prompts are not held out.")
    return [row | {"chat_template_kwargs": training.chat_template_kwargs or {}} for row in kept]


def main(name: str, settings: start.Settings) -> None:
    """Train an adapter, or all weights, on the demonstrations, and save it where train.py can start from it."""
    training = settings.training
    folder = Path(f"{training.output_dir}-sft")
    if any(folder.glob("*.safetensors")):  # an interrupted run leaves the folder without a model
        raise SystemExit(f"Error: {folder} already has a model. Rename it, or choose another output_dir.")
    require(settings.values, ["num_train_epochs"], lambda n: n > 0, "above 0")
    check_writable(folder)
    rows = demonstrations(name, settings)
    policy, tokenizer = load_policy(settings.run, training, settings.model)
    shared = {setting: getattr(training, setting) for setting in SAME}
    fixed = dict(max_length=None, save_strategy="no", report_to="none", logging_steps=10)
    config = SFTConfig(str(folder), per_device_train_batch_size=BATCH, **shared, **fixed)
    trainer = SFTTrainer(policy, args=config, processing_class=tokenizer, train_dataset=Dataset.from_list(rows))
    keep_trainable_fp32(trainer.model)
    trainer.train()
    trainer.save_model(folder)
    print(f"Next: python train.py with the same config, --model_name_or_path {folder} and a new --output_dir")


if __name__ == "__main__":
    main(sys.argv[1], settings)
