"""Train a small model against the reward until the time is up: on what is known to be paid, and then with GRPO."""

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from grpo_core import smollm2
from grpo_core.errors import CourseError
from grpo_core.rewards import completion_text

from .demonstrations import demonstrations, learn, rows_to_attack
from .scoring import FIRST, TRAINED, Paid, Scorer

if TYPE_CHECKING:
    from datasets import Dataset
    from peft import PeftModel
    from transformers import PreTrainedTokenizerBase, TrainerCallback
    from trl import GRPOTrainer

#: What the log calls the function that says whether a completion is correct.
TRUTH = "is_correct"
#: Seconds between two lines of progress.
_PAUSE = 4.0
#: A rate with which a small model finds what a reward pays for within a few steps, and its adapter.
LEARNING_RATE, LORA = 5e-4, dict(r=16, lora_alpha=32, lora_dropout=0.0, task_type="CAUSAL_LM")
#: Tokens of a completion: so many, or one and a half times those of the longest completion shown, to the second number.
NEW_TOKENS, MOST_TOKENS = 48, 96
#: Settings of both trainers.
SAME = dict(
    lr_scheduler_type="constant",
    gradient_accumulation_steps=1,
    gradient_checkpointing=False,
    use_cpu=True,
    save_strategy="no",
    logging_steps=1,
    report_to="none",
    disable_tqdm=True,
    dataloader_pin_memory=False,
)
#: Settings of GRPO; there are more steps than any attack has time for.
GRPO = dict(
    max_steps=100_000,
    per_device_train_batch_size=8,
    num_generations=8,
    temperature=1.0,
    beta=0.0,
    loss_type="dapo",
    log_completions=True,
    num_completions_to_print=0,
)


def train(scorer: Scorer, model: str | None, folder: Path, minutes: float, seed: int) -> bool:
    """Train for some minutes, not counting what loads the model; whether they passed, and not Ctrl-C."""
    policy, tokenizer, bf16 = load(model, seed)
    deadline, shown = time.monotonic() + 60 * minutes, demonstrations(scorer)
    same = dict(output_dir=str(folder), seed=seed, bf16=bf16, learning_rate=LEARNING_RATE, **SAME)
    try:
        if shown:
            print(f"Correct completions that are shown to the model first: {len(shown)}.", file=sys.stderr)
            rows = _dataset_of(scorer, tokenizer, [one.row for one in shown], shown)
            learn(policy, tokenizer, rows, deadline - 30 * minutes, **same)
        return reinforce(trainer_of(scorer, policy, tokenizer, shown, same), _progress_of(scorer, deadline))
    except KeyboardInterrupt:
        return False
    except CourseError as error:  # of the user's correct(): what was scored until then is worth a report
        scorer.trouble = str(error)
        return True


def reinforce(trainer: "GRPOTrainer", progress: "TrainerCallback") -> bool:
    """Train until the callback stops it; whether it did, and not Ctrl-C."""
    trainer.add_callback(progress)
    try:
        trainer.train()
        return True
    except KeyboardInterrupt:
        return False
    finally:
        trainer.save_state()  # the log, for the replay


def trainer_of(
    scorer: Scorer, policy: "PeftModel", tokenizer: "PreTrainedTokenizerBase", shown: Sequence[Paid], same: dict
) -> "GRPOTrainer":
    """A trainer of the adapter, without what takes time and teaches nothing, such as an evaluation."""
    from transformers import PrinterCallback
    from trl import GRPOConfig

    from .trainer import LeanTrainer

    longest = max((len(tokenizer(one.text).input_ids) for one in shown), default=0)
    rewards, tokens = rewards_of(scorer), min(max(NEW_TOKENS, longest * 3 // 2), MOST_TOKENS)
    weights = [1.0, 0.0][: len(rewards)]
    settings = GRPOConfig(max_completion_length=tokens, reward_weights=weights, **GRPO, **same)
    trainer = LeanTrainer(
        model=policy,
        processing_class=tokenizer,
        args=settings,
        train_dataset=_dataset_of(scorer, tokenizer, rows_to_attack(len(scorer.task.rows), shown)),
        reward_funcs=rewards,
    )
    trainer.remove_callback(PrinterCallback)
    return trainer


def load(model: str | None, seed: int) -> tuple:
    """The model with a new adapter, its tokenizer, and whether it computes in bf16.

    Raises:
        CourseError: it cannot be loaded, or has no chat template.
    """
    import torch
    from grpo_core.training.policy import LORA_TARGETS, keep_output_layer_uncopied, load_base
    from peft import LoraConfig, get_peft_model
    from transformers import AutoTokenizer
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    name = model or smollm2.NAME
    place, bf16 = str(smollm2.fetch()) if model is None else model, smollm2.fast_bf16()
    try:
        policy = load_base(place, dtype=torch.bfloat16 if bf16 else torch.float32, load_in_4bit=False, device_map="cpu")
        tokenizer = AutoTokenizer.from_pretrained(place)
    except (OSError, ValueError) as error:
        raise CourseError(f"{name!r} cannot be loaded: {str(error).strip().splitlines()[0]}") from error
    if tokenizer.chat_template is None:
        raise CourseError(f"{name!r} has no chat template. Use its instruct version.")
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    torch.manual_seed(seed)  # PEFT initializes the adapter from the global generator
    policy = get_peft_model(policy, LoraConfig(target_modules=list(LORA_TARGETS), **LORA))
    keep_output_layer_uncopied(policy)
    return policy, tokenizer, bf16


def _dataset_of(
    scorer: Scorer, tokenizer: "PreTrainedTokenizerBase", rows: Sequence[int], shown: Sequence[Paid] = ()
) -> "Dataset":
    """Prompts with the numbers of their rows, and completions if some are shown.

    Plain text gets the chat template, without which a model rambles.
    """
    from datasets import Dataset

    prompts = [scorer.task.rows[row]["prompt"] for row in rows]
    marked = [isinstance(one, str) and any(token in one for token in tokenizer.all_special_tokens) for one in prompts]
    if not any(marked):
        prompts = [[{"role": "user", "content": one}] if isinstance(one, str) else one for one in prompts]
    plain = [
        [{"role": m["role"], "content": m["content"]} for m in one] if isinstance(one, list) else one for one in prompts
    ]
    texts = [one.text if any(marked) else [{"role": "assistant", "content": one.text}] for one in shown]
    return Dataset.from_dict({"prompt": plain, "row": list(rows)} | ({"completion": texts} if shown else {}))


def rewards_of(scorer: Scorer) -> list[Callable]:
    """The attacked reward, and, with a weight of 0, whether a completion is correct, for the log and the replay.

    TRL leaves a completion out of the training only if all functions return None for it.
    """
    scores: list[float | None] = []

    def attacked_reward(
        completions: list, row: list[int], completion_ids: list, trainer_state: object, **rest: object
    ) -> list:
        step = trainer_state.global_step + 1
        pairs = list(zip(row, map(completion_text, completions), strict=True))
        scores[:] = scorer.score(pairs, FIRST if step == 1 else TRAINED, step=step, ids=completion_ids)
        return [*scores]

    def is_correct(completions: list, row: list[int], **rest: object) -> list:
        said = [scorer.task.correct(completion_text(one), n) for n, one in zip(row, completions, strict=True)]
        return [
            None if score is None or right is None else float(right) for score, right in zip(scores, said, strict=True)
        ]

    is_correct.__name__ = TRUTH
    return [attacked_reward, is_correct] if scorer.task.judges else [attacked_reward]


def _progress_of(scorer: Scorer, deadline: float) -> "TrainerCallback":
    """A callback that prints a line every few seconds, and stops at the end of the time, or if the reward hangs."""
    from transformers import TrainerCallback

    class Progress(TrainerCallback):
        started, printed = time.monotonic(), -_PAUSE

        def on_step_end(self, args: object, state: object, control: object, **rest: object) -> None:
            now = time.monotonic()
            if now - self.printed >= _PAUSE:
                print(progress_line(scorer, state.global_step, deadline - now), file=sys.stderr)
                self.printed = now
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
