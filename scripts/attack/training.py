"""Train a small model with GRPO against the reward until the time is up."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from grpo_utils import model_path, smollm2
from grpo_utils.errors import CourseError
from grpo_utils.rewards import completion_text

from .scoring import FIRST, TRAINED, Scorer

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedTokenizerBase
    from trl import GRPOConfig, GRPOTrainer

#: Settings with which a small model finds what a reward pays for within a few steps.
LEARNING_RATE, TEMPERATURE = 5e-4, 1.0
RANK, ALPHA = 16, 32
GROUP, COMPLETIONS, NEW_TOKENS = 8, 8, 48
#: More steps than any attack has time for.
MOST_STEPS = 100_000


def train(scorer: Scorer, model: str | None, folder: Path, minutes: float, seed: int) -> bool:
    """Train for some minutes, not counting what loads the model; whether they passed, and not Ctrl-C."""
    trainer = trainer_of(scorer, model, folder, seed)
    trainer.add_callback(progress_of(scorer, time.monotonic() + 60 * minutes))
    try:
        trainer.train()
        return True
    except KeyboardInterrupt:
        return False
    finally:
        trainer.save_state()  # the log, for the replay


def trainer_of(scorer: Scorer, model: str | None, folder: Path, seed: int) -> "GRPOTrainer":
    """A trainer of a new adapter for the model. Everything heavy is imported here, after the first checks."""
    from peft import LoraConfig
    from transformers import PrinterCallback

    from grpo_utils.run.policy import LORA_TARGETS, keep_output_layer_uncopied

    from .trainer import LeanTrainer, merge_to_generate

    policy, tokenizer, bf16 = load(model)
    lora = LoraConfig(
        r=RANK, lora_alpha=ALPHA, lora_dropout=0.0, target_modules=list(LORA_TARGETS), task_type="CAUSAL_LM"
    )
    trainer = LeanTrainer(
        model=policy,
        processing_class=tokenizer,
        args=arguments_of(folder, seed, bf16),
        train_dataset=dataset_of(scorer, tokenizer),
        reward_funcs=rewards_of(scorer),
        peft_config=lora,
    )
    keep_output_layer_uncopied(trainer.model)
    merge_to_generate(trainer.model)
    trainer.remove_callback(PrinterCallback)
    return trainer


def load(model: str | None) -> tuple:
    """The model, its tokenizer, and whether it computes in bf16.

    Raises:
        CourseError: it cannot be loaded, or has no chat template.
    """
    import torch
    from transformers import AutoTokenizer
    from transformers.utils import logging

    from grpo_utils.run.policy import load_base

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    place, bf16 = str(smollm2.fetch()) if model is None else model_path(model), smollm2.fast_bf16()
    try:
        policy = load_base(place, dtype=torch.bfloat16 if bf16 else torch.float32, load_in_4bit=False, device_map="cpu")
        tokenizer = AutoTokenizer.from_pretrained(place)
    except (OSError, ValueError) as error:
        raise CourseError(f"{model!r} cannot be loaded: {str(error).strip().splitlines()[0]}") from error
    if tokenizer.chat_template is None:
        raise CourseError(f"{model!r} has no chat template. Use its instruct version.")
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    return policy, tokenizer, bf16


def arguments_of(folder: Path, seed: int, bf16: bool) -> "GRPOConfig":
    """TRL's settings: nothing that takes time and teaches nothing, such as a reference model or an evaluation."""
    from trl import GRPOConfig

    return GRPOConfig(
        output_dir=str(folder),
        max_steps=MOST_STEPS,
        learning_rate=LEARNING_RATE,
        lr_scheduler_type="constant",
        per_device_train_batch_size=COMPLETIONS,
        gradient_accumulation_steps=1,
        gradient_checkpointing=False,
        num_generations=GROUP,
        max_completion_length=NEW_TOKENS,
        temperature=TEMPERATURE,
        beta=0.0,
        loss_type="dapo",
        reward_weights=[1.0, 0.0],
        use_cpu=True,
        bf16=bf16,
        seed=seed,
        save_strategy="no",
        logging_steps=1,
        log_completions=True,
        num_completions_to_print=0,
        report_to="none",
        disable_tqdm=True,
        dataloader_pin_memory=False,
    )


def dataset_of(scorer: Scorer, tokenizer: "PreTrainedTokenizerBase") -> "Dataset":
    """The prompts with the numbers of their rows. Plain text gets the chat template, without which a model rambles."""
    from datasets import Dataset

    prompts = [row["prompt"] for row in scorer.task.rows]
    marked = [isinstance(one, str) and any(token in one for token in tokenizer.all_special_tokens) for one in prompts]
    if not any(marked):
        prompts = [[{"role": "user", "content": one}] if isinstance(one, str) else one for one in prompts]
    plain = [
        [{"role": m["role"], "content": m["content"]} for m in one] if isinstance(one, list) else one for one in prompts
    ]
    return Dataset.from_dict({"prompt": plain, "row": list(range(len(prompts)))})


def rewards_of(scorer: Scorer) -> list[Callable]:
    """The attacked reward, and, with a weight of 0, whether a completion is correct, for the log and the replay."""

    def paid(completions: list, row: list[int], completion_ids: list, trainer_state: object, **rest: object) -> list:
        step = trainer_state.global_step + 1
        pairs = list(zip(row, map(completion_text, completions), strict=True))
        return scorer.score(pairs, FIRST if step == 1 else TRAINED, step=step, ids=completion_ids)

    def correctness_reward(completions: list, row: list[int], **rest: object) -> list[float]:
        texts = map(completion_text, completions)
        return [float(bool(scorer.task.correct(text, n))) for n, text in zip(row, texts, strict=True)]

    paid.__name__ = scorer.name.replace(" ", "_").replace(",", "")
    return [paid, correctness_reward]


def progress_of(scorer: Scorer, deadline: float) -> object:
    """A callback that prints a line after each step, and stops when no other step fits, or the reward hangs."""
    from transformers import TrainerCallback

    class Progress(TrainerCallback):
        started = time.monotonic()

        def on_step_end(self, args: object, state: object, control: object, **rest: object) -> None:
            now = time.monotonic()
            print(progress_line(scorer, state.global_step, deadline - now), file=sys.stderr)
            control.should_training_stop = now + (now - self.started) / 2 > deadline or scorer.hangs
            self.started = now

    return Progress()


def progress_line(scorer: Scorer, step: int, left: float) -> str:
    """Where the attack is after a step."""
    here = [one for one in scorer.paid if one.step == step]
    known = [one.correct for one in here if one.correct is not None]
    mean = f"{sum(one.score for one in here) / len(here):.3g}" if here else "none"
    right = f", {sum(known) / len(known):.0%} correct" if known else ""
    line = f"step {step}: reward {mean}{right}, {max(left, 0) / 60:.1f} minutes left"
    wrong = [one for one in scorer.paid if one.step and (one.correct is False or not scorer.task.judges)]
    best = max(wrong, key=lambda one: one.score, default=None)
    kind = "wrong" if scorer.task.judges else "completion"
    return f"{line}; best-paid {kind} so far: {best.score:.3g} for {shortened(best.text)}" if best else line


def shortened(text: str, most: int = 60) -> str:
    """The beginning of a completion on one line.

    >>> shortened("a" * 80, 5), shortened("two\\nlines")
    ("'aaaaa…'", "'two\\\\nlines'")
    """
    return repr(text if len(text) <= most else f"{text[:most]}…")
