"""What answers the prompts of a task with a check, without a single answer to imitate except the examples."""

from collections.abc import Callable
from pathlib import Path

from free.answering import answer
from free.arms import PASSES, RATE_AT, best_rate
from free.measuring import Answerer, in_parts, load, set_threads
from free.prompts import with_examples
from free.training import PROMPTS_PER_STEP, STEPS, grpo, sft

from grpo_utils.real.measuring import TEMPERATURE

from .measuring import AT_ONCE, TOKENS
from .tasks import TASKS, training_rows

HERE = Path(__file__).parent
SAMPLED_PROMPTS, SAMPLES = STEPS * PROMPTS_PER_STEP, 4  # of self-training: as many as GRPO samples


def untrained(with_them: bool) -> Callable[[str, int, Path], Answerer]:
    """The untrained model, with or without the examples of the task in its prompt."""

    def make(task: str, seed: int, folder: Path) -> Answerer:
        return Answerer(frame=with_examples(TASKS[task].examples() if with_them else []))

    return make


def self_training(task: str, seed: int, folder: Path) -> Answerer:
    """SFT, without examples in the prompt, on the right ones of the samples that three examples give."""
    rows, framed = training_rows(task, SAMPLED_PROMPTS, seed), with_examples(TASKS[task].examples())
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


def grpo_on(task: str, seed: int, folder: Path, start: Path | None = None) -> Answerer:
    """GRPO with the settings of `make real`, and the check as its rewards."""
    options = ("--dataset_name", task, "--max_prompt_tokens", "256", "--max_completion_length", str(TOKENS))
    files = dict(rewards=HERE / "rewards.py", data=HERE / "data.py")
    adapter, curves = grpo(seed, folder, *options, start=start, **files)
    return Answerer(adapter, about=dict(curves=dict(correct=curves["correct"])))


def self_training_then_grpo(task: str, seed: int, folder: Path) -> Answerer:
    """GRPO that goes on from the adapter of self-training, which another row has trained or this one trains."""
    first = self_training(task, seed, folder.with_name(f"{task}-self-training-{seed}"))
    second = grpo_on(task, seed, folder, start=first.adapter)
    return Answerer(second.adapter, about=first.about | second.about)


ARMS = {
    "no examples": untrained(with_them=False),
    "3 examples": untrained(with_them=True),
    "self-training": self_training,
    "GRPO": grpo_on,
    "self-training, then GRPO": self_training_then_grpo,
}
