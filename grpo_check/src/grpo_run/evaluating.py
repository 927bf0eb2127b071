"""Generate completions before and after training, sampled and greedy, and say what they have and lack."""

from collections.abc import Callable, Iterable
from itertools import islice

from grpo_core.training.measuring import result_of


def show_groups(answer: Callable, rows: Iterable[dict], is_right: Callable, size: int) -> None:
    """Print how many groups of the first 8 rows hold a correct answer, and how many also a wrong one.

    Correct is what ``is_right`` says, as in the evaluation. GRPO learns what is correct only from a group with both.
    ``answer`` returns one completion for each prompt.

    >>> rows = [{"prompt": "15 + 27?", "answer": "42"}, {"prompt": "15 + 28?", "answer": "43"}]
    >>> show_groups(lambda prompts: ["42", "43", "42"] * 2, rows, lambda text, row: text == row["answer"], size=3)
    Before training, 2 of 2 groups hold a correct answer, and 2 also a wrong one.
    """
    some = [row for row in islice(rows, 8) for _ in range(size)]
    texts = answer([row["prompt"] for row in some])
    right = [is_right(text, row) for text, row in zip(texts, some, strict=True)]
    counts = [sum(right[start : start + size]) for start in range(0, len(some), size)]
    found, mixed = sum(count > 0 for count in counts), sum(0 < count < size for count in counts)
    print(f"Before training, {found} of {len(counts)} groups hold a correct answer, and {mixed} also a wrong one.")
    if not found:
        print("Only a reward with partial credit can teach here at first. If it stays flat: SFT first, or easier rows.")


def evaluate(answer: Callable, rows: object, is_right: Callable, is_in_form: Callable) -> dict:
    """Generate and score completions for held-out rows: sampled as in training, and greedy.

    ``answer`` returns one completion for each row, sampled at the temperature of training unless it is given another.
    """
    result = result_of(answer(), answer(temperature=0.0), rows, is_right, is_in_form)
    if not any(result["formed"]):
        print(f"Note: none of {len(rows)} sampled answers has the format that rewards.py accepts. The first is:")
        print(f"    {str(result['sampled'][0])[:300]!r}")
        print("Does the prompt in data.py ask for that format? If it is never sampled, no group can teach it.")
    return result
