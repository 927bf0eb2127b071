"""Generate completions of held-out prompts, and find which are correctly formatted and which are correct.

    >>> from datasets import Dataset
    >>> rows = Dataset.from_dict({"prompt": ["15 + 27?"] * 3, "answer": ["42", "43", "42"]})
    >>> form = "<reasoning>15 + 27 = 42</reasoning><answer>42</answer>"
    >>> result = judge([form, form, "It is 42."], [form] * 3, rows)
    >>> str(result.accuracy), str(result.accuracy_given_format)
    ('0.333 (0.061 to 0.792), 1 of 3', '0.500 (0.095 to 0.905), 1 of 2')

"Right" always means strict accuracy: the format and the answer in it (`grpo_utils.is_strictly_right`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grpo_core.errors import CourseError
from grpo_core.rewards import is_strictly_right, split_form
from grpo_core.training.generating import generate
from grpo_core.training.measuring import result_of, summary

from .statistics import Estimate, Rate, majority_right, majority_vote, mean_interval, pass_at_k

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


@dataclass(frozen=True)
class Evaluation:
    """The completions of ``n`` prompts, and which of them are correctly formatted and correct.

    Attributes:
        sampled, greedy: one text per prompt.
        formed, right: which sampled texts are correctly formatted; which of these are also correct.
        greedy_right: which greedy texts are correctly formatted and correct.
        asked: each prompt with its gold answer, in order, so that a comparison of different prompts is refused.
        kinds: what kind of question each prompt is, such as "carry"; empty if the rows have no kinds.
    """

    sampled: list[str]
    greedy: list[str]
    formed: list[bool]
    right: list[bool]
    greedy_right: list[bool]
    asked: list[tuple[list[dict], str]]
    kinds: list[str]

    @property
    def n(self) -> int:
        """The number of prompts."""
        return len(self.right)

    @property
    def format(self) -> Rate:
        """How many sampled texts are correctly formatted."""
        return Rate(sum(self.formed), self.n)

    @property
    def accuracy(self) -> Rate:
        """How many sampled texts are correctly formatted and correct: strict accuracy."""
        return Rate(sum(self.right), self.n)

    @property
    def accuracy_given_format(self) -> Rate | None:
        """How many of the correctly formatted sampled texts are correct; None if there are none."""
        return Rate(sum(self.right), sum(self.formed)) if any(self.formed) else None

    @property
    def greedy_accuracy(self) -> Rate:
        """How many greedy texts are correctly formatted and correct."""
        return Rate(sum(self.greedy_right), self.n)

    def summary(self) -> dict:
        """The rates of `report.json`, with 95% Wilson intervals.

        The accuracy given format is a share of the ``formed`` texts, and None if there are none. All other
        rates are shares of ``n``. If the prompts have kinds, ``by_kind`` has the counts of each.

        >>> from datasets import Dataset
        >>> form = "<reasoning>15 + 27 = 42</reasoning><answer>42</answer>"
        >>> columns = {"prompt": ["15 + 27?"] * 2, "answer": ["42"] * 2, "kind": ["carry", "no carry"]}
        >>> rows = Dataset.from_dict(columns)
        >>> rates = judge([form, "42"], [form] * 2, rows).summary()
        >>> rates["format_rate"], rates["formed"], rates["accuracy_given_format"]
        (0.5, 1, 1.0)
        >>> rates["by_kind"]["no carry"]
        {'n': 1, 'formed': 0, 'accuracy_given_format': None, 'accuracy_given_format_ci95': None}
        """
        return summary(vars(self))


@dataclass(frozen=True)
class Samples:
    """Several sampled texts for each of ``n`` prompts: lists of shape (prompts, samples).

    Attributes:
        texts: the completions.
        right: which completions are correctly formatted and correct.
        answers: the gold answer of each prompt.
    """

    texts: list[list[str]]
    right: list[list[bool]]
    answers: list[str]

    @property
    def n(self) -> int:
        """The number of prompts."""
        return len(self.texts)

    @property
    def samples(self) -> int:
        """The number of samples of each prompt."""
        return len(self.texts[0])

    def pass_at_k(self, k: int) -> Estimate:
        """The chance that at least one of ``k`` samples is right (see `pass_at_k`), as a mean over the prompts.

        The 95% bootstrap interval is over the prompts.

        >>> from datasets import Dataset
        >>> rows = Dataset.from_dict({"answer": ["2"] * 3})
        >>> samples = judge_samples([["<reasoning>2</reasoning><answer>2</answer>", "2"]] * 3, rows)
        >>> samples.pass_at_k(1).value, samples.pass_at_k(2).value
        (0.5, 1.0)

        Raises:
            CourseError: ``k`` is above the number of samples, or below 1.
        """
        return mean_interval([pass_at_k(self.samples, sum(row), k) for row in self.right], bounds=(0.0, 1.0))

    def majority_of_each(self) -> list[float]:
        """For each prompt, whether the majority of its samples is right (see `majority_right`).

        A text that is not correctly formatted has no answer and does not vote.
        """
        votes = [majority_vote([_strict_answer(text) for text in texts]) for texts in self.texts]
        return [majority_right(winners, gold) for winners, gold in zip(votes, self.answers, strict=True)]

    def majority(self) -> Estimate:
        """The accuracy of a majority vote over all samples, with a 95% bootstrap interval over the prompts."""
        return mean_interval(self.majority_of_each(), bounds=(0.0, 1.0))


def _strict_answer(text: str) -> str | None:
    parts = split_form(text)
    return parts[1] if parts else None


def answer_twice(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase",
    prompts: Sequence[list[dict]],
    *,
    temperature: float = 1.0,
    **how: int,
) -> tuple[list[str], list[str]]:
    """Two completions for each prompt: all the sampled ones, and all the greedy ones."""
    sampled = generate(model, tokenizer, prompts, temperature=temperature, **how)
    return sampled, generate(model, tokenizer, prompts, temperature=0.0, **how)


def evaluate(
    model: "PreTrainedModel", tokenizer: "PreTrainedTokenizerBase", rows: "Dataset", **decoding: float
) -> Evaluation:
    """Answer the prompts of ``rows`` sampled and greedily, and judge both against ``answer``.

    ``decoding`` is ``max_new_tokens``, ``temperature``, ``batch_size`` and ``seed`` of `generate`. If the rows have
    a column ``kind`` (the additions' is "carry" or "no carry"), the summary counts each kind separately.

    Raises:
        CourseError: there are no rows.
    """
    return judge(*answer_twice(model, tokenizer, _prompts(rows), **decoding), rows)


def generate_samples(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase",
    prompts: Sequence[list[dict]],
    *,
    samples: int,
    temperature: float = 1.0,
    **how: int,
) -> list[list[str]]:
    """``samples`` completions for each prompt, of shape (prompts, samples); ``how``: the sizes and seed of `generate`.

    Raises:
        CourseError: fewer than one sample, or several at temperature 0, where all are the same.
    """
    if samples < 1:
        raise CourseError(f"samples={samples}: nothing would be sampled. Give 1 or more.")
    if samples > 1 and temperature == 0:
        raise CourseError(f"samples={samples} at temperature 0 would all be the same. Give a temperature above 0.")
    repeated = [prompt for prompt in prompts for _ in range(samples)]
    texts = generate(model, tokenizer, repeated, temperature=temperature, **how)
    return [texts[start : start + samples] for start in range(0, len(texts), samples)]


def evaluate_samples(
    model: "PreTrainedModel", tokenizer: "PreTrainedTokenizerBase", rows: "Dataset", *, samples: int, **decoding: float
) -> Samples:
    """Answer each prompt of ``rows`` ``samples`` times and judge all answers against ``answer``.

    ``decoding`` is ``max_new_tokens``, ``temperature``, ``batch_size`` and ``seed`` of `generate`.

    Raises:
        CourseError: there are no rows, fewer than one sample, or several at temperature 0.
    """
    return judge_samples(generate_samples(model, tokenizer, _prompts(rows), samples=samples, **decoding), rows)


def pass_rates(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase",
    rows: "Dataset",
    *,
    samples: int = 8,
    **decoding: float,
) -> list[float]:
    """For each row, the share of ``samples`` completions that are correctly formatted and correct, from 0 to 1.

    For `grpo_utils.drop_tied`; arguments and errors as `evaluate_samples`. It costs ``samples`` completions per
    row, and 0 of 8 does not mean never: a prompt that is solved three times in ten gives 0 of 8 in one case of 17
    (0.7 ** 8).
    """
    said = evaluate_samples(model, tokenizer, rows, samples=samples, **decoding)
    return [sum(right) / samples for right in said.right]


def _prompts(rows: "Dataset") -> list[list[dict]]:
    if not len(rows):
        raise CourseError("There are no held-out rows to evaluate on. Give at least one row.")
    return list(rows["prompt"])


def judge(sampled: Sequence[str], greedy: Sequence[str], rows: "Dataset") -> Evaluation:
    """Judge texts that were already generated: one sampled and one greedy text for each row.

    ``rows`` need the columns ``prompt`` and ``answer``. With ``kind``, the summary also counts each kind separately.

    >>> from datasets import Dataset
    >>> form = "<reasoning>15 + 27 = 42</reasoning><answer>42</answer>"
    >>> rows = Dataset.from_dict({"prompt": ["15 + 27?"] * 2, "answer": ["42"] * 2})
    >>> judge([form, "It is 42."], [form, form], rows).accuracy
    Rate(hits=1, n=2)
    """

    def is_right(text: str, row: dict) -> bool:
        return is_strictly_right(text, row["answer"])

    result = result_of(sampled, greedy, rows, is_right, is_in_form=lambda text: split_form(text) is not None)
    return Evaluation(**result, asked=list(zip(rows["prompt"], rows["answer"], strict=True)))


def judge_samples(texts: Sequence[Sequence[str]], rows: "Dataset") -> Samples:
    """Judge several texts for each row; ``texts`` has the shape (prompts, samples).

    >>> from datasets import Dataset
    >>> form = "<reasoning>15 + 27 = 42</reasoning><answer>42</answer>"
    >>> judge_samples([[form, "It is 42."]], Dataset.from_dict({"answer": ["42"]})).right
    [[True, False]]
    """
    answers = list(rows["answer"])
    right = [[is_strictly_right(text, gold) for text in said] for said, gold in zip(texts, answers, strict=True)]
    return Samples(list(texts), right, answers)
