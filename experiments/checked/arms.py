"""What answers the prompts of a task with a check. Nobody has written an answer to imitate, except the examples."""

import random
from collections.abc import Callable
from pathlib import Path

from free.answering import answer
from free.arms import GRPO_RATE, PASSES, RATE_AT, best_rate
from free.measuring import Answerer, in_parts, load, set_threads
from free.prompts import with_examples
from free.training import PROMPTS_PER_STEP, STEPS, grpo, sft

from grpo_utils.real.measuring import TEMPERATURE

from .measuring import AT_ONCE, TOKENS
from .programs import PROGRAMS
from .tasks import TASKS, training_rows

HERE = Path(__file__).parent
FEW = 3  # examples
SEED = 0  # of every run
SAMPLED_PROMPTS, SAMPLES = STEPS * PROMPTS_PER_STEP, 4  # of self-training: as many as GRPO samples
OWN_SAMPLES = SAMPLED_PROMPTS * SAMPLES
WRITTEN = "SFT on a program's answers"  # an arm that other pages quote


def untrained(count: int) -> Callable[[str, int, Path], Answerer]:
    """The untrained model with the first examples of the task, or none, in its prompt."""

    def make(task: str, seed: int, folder: Path) -> Answerer:
        return Answerer(frame=with_examples(TASKS[task].examples(count)))

    return make


def self_training(task: str, seed: int, folder: Path) -> Answerer:
    """SFT, without examples in the prompt, on the right ones of the samples that three examples give."""
    rows, framed = training_rows(task, SAMPLED_PROMPTS, seed), with_examples(TASKS[task].examples(FEW))
    model, tokenizer = load()

    def sampled(part: range) -> list[list[str]]:
        set_threads()
        how = dict(samples=SAMPLES, temperature=TEMPERATURE, seed=10_000 * seed + part.start, max_new_tokens=TOKENS)
        return answer(model, tokenizer, [framed(rows[n]["prompt"]) for n in part], **how)

    said = in_parts(len(rows), AT_ONCE // SAMPLES, folder / "own", sampled)
    right = [
        [text for text in texts if all(TASKS[task].parts(text, row["drawn"]).values())]
        for texts, row in zip(said, rows, strict=True)
    ]
    kept = [dict(row, answer=texts[0]) for row, texts in zip(rows, right, strict=True) if texts]  # one for each prompt
    adapter = sft(kept, float(best_rate()), PASSES[RATE_AT], seed, folder / "sft")
    return Answerer(adapter, about=dict(right=sum(map(len, right)), kept=len(kept)))


def sft_on_a_program(task: str, seed: int, folder: Path) -> Answerer:
    """SFT on answers that a program writes: as many of them as on orders, at the rate of GRPO."""
    draw = random.Random(seed)
    rows = [dict(row, answer=PROGRAMS[task](row["drawn"], draw)) for row in training_rows(task, RATE_AT, seed)]
    adapter = sft(rows, float(GRPO_RATE), PASSES[RATE_AT], seed, folder / "sft")
    return Answerer(adapter, about=dict(imitated=len(rows)))


def grpo_on(task: str, seed: int, folder: Path) -> Answerer:
    """GRPO with the settings of `make real`, and the check as its rewards."""
    options = ("--dataset_name", task, "--max_prompt_tokens", "256", "--max_completion_length", str(TOKENS))
    files = dict(rewards=HERE / "rewards.py", data=HERE / "data.py")
    adapter, curves = grpo(seed, folder, *options, **files)
    return Answerer(adapter, about=dict(curves=dict(correct=curves["correct"])))


ARMS = {
    "no examples": untrained(0),
    "3 examples": untrained(FEW),
    "8 examples": untrained(8),
    "self-training": self_training,
    WRITTEN: sft_on_a_program,
    "GRPO": grpo_on,
}
