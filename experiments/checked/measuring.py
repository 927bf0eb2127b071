"""What an answer to a task with a check is worth, and how alike the answers are."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from free.answering import answer
from free.measuring import Answerer, in_parts, load, set_threads

from grpo_utils.real.measuring import SAMPLES, TEMPERATURE

from .tasks import TASKS

TOKENS = 48
AT_ONCE = 64  # answers


def measure(answerer: Answerer, task: str, rows: Sequence[dict], sampled_rows: int, folder: Path) -> dict:
    """One greedy answer to each row, and samples of the first ``sampled_rows``; batches that were answered are kept."""
    prompts, (model, tokenizer) = [answerer.frame(row["prompt"]) for row in rows], load(answerer.adapter)

    def answers(part: range, samples: int, temperature: float) -> list[list[str]]:
        set_threads()
        how = dict(samples=samples, temperature=temperature, seed=part.start, max_new_tokens=TOKENS)
        return answer(model, tokenizer, [prompts[n] for n in part], **how)

    greedy = in_parts(len(rows), AT_ONCE, folder / "greedy", lambda part: answers(part, 1, 0.0))
    group = AT_ONCE // SAMPLES
    sampled = in_parts(sampled_rows, group, folder / "sampled", lambda part: answers(part, SAMPLES, TEMPERATURE))
    return judged(task, rows, greedy, sampled)


def judged(task: str, rows: Sequence[dict], greedy: Sequence[Sequence[str]], sampled: Sequence[Sequence[str]]) -> dict:
    """Which answers are right, which of their parts are, how alike they are, and the texts.

    ``different`` is the mean share of different texts among the samples of a prompt.
    """
    check = TASKS[task].parts
    of_greedy = [check(text, row["drawn"]) for (text,), row in zip(greedy, rows, strict=True)]
    of_samples = [[check(text, row["drawn"]) for text in said] for said, row in zip(sampled, rows, strict=False)]
    every = [parts for group in of_samples for parts in group]
    first_words = Counter(" ".join(text.split()[:2]) for (text,) in greedy)
    return dict(
        greedy="".join(str(int(all(parts.values()))) for parts in of_greedy),
        sampled=[sum(all(parts.values()) for parts in group) for group in of_samples],
        parts={name: round(fmean(parts[name] for parts in every), 3) for name in every[0]},
        most_common_start=round(first_words.most_common(1)[0][1] / len(greedy), 3),
        different=round(fmean(len(set(said)) / len(said) for said in sampled), 3),
        texts=[text for (text,) in greedy],
        sampled_texts=[text for said in sampled[:4] for text in said[:2]],
    )


def rates(row: dict) -> tuple[float, float, float]:
    """Greedy accuracy, sampled accuracy and pass@8."""
    greedy, sampled = fmean(map(int, row["greedy"])), row["sampled"]
    return greedy, fmean(sampled) / SAMPLES, fmean(count > 0 for count in sampled)
