"""Which completions are in form, and which are right.

    >>> form = "<reasoning>15 + 27 = 42</reasoning><answer>42</answer>"
    >>> result = judge([form, form, "It is 42."], [form] * 3, ["42", "43", "42"])
    >>> str(result.accuracy), str(result.accuracy_given_format)
    ('0.333 (0.061 to 0.792), 1 of 3', '0.500 (0.095 to 0.905), 1 of 2')

Right is strict: the form and the answer in it (`grpo_utils.is_strictly_right`).
"""

import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import CourseError
from ..rewards import is_strictly_right, split_form
from .generating import answer_twice, generate_samples
from .statistics import Estimate, Rate, majority_right, majority_vote, mean_interval, pass_at_k

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

NOTHING = "There are no held-out rows to evaluate on; a rate of nothing is no rate. Give at least one row."


@dataclass(frozen=True)
class Evaluation:
    """What a policy said to ``n`` prompts, and which of it was in form and right.

    Attributes:
        sampled, greedy: one text a prompt.
        formed, right: of the sampled texts, which are in form; which are in form and right.
        greedy_right: which greedy texts are in form and right.
        asked: checksums of the gold answers and, where they are known, of the prompts, in their order,
            so that a comparison of different prompts is refused; empty where they were not kept.
        kinds: what kind of question each prompt is, such as "carry"; empty where the rows have no kinds.
    """

    sampled: list[str]
    greedy: list[str]
    formed: list[bool]
    right: list[bool]
    greedy_right: list[bool]
    asked: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """The number of prompts."""
        return len(self.sampled)

    @property
    def format(self) -> Rate:
        """How many sampled texts are in form."""
        return Rate(sum(self.formed), self.n)

    @property
    def accuracy(self) -> Rate:
        """How many sampled texts are in form and right: strict accuracy."""
        return Rate(sum(self.right), self.n)

    @property
    def accuracy_given_format(self) -> Rate | None:
        """How many of the sampled texts *that are in form* are right; None where none is in form."""
        return _given_format(self.formed, self.right)

    @property
    def greedy_accuracy(self) -> Rate:
        """How many greedy texts are in form and right."""
        return Rate(sum(self.greedy_right), self.n)

    def summary(self) -> dict:
        """The rates of `report.json`, with 95 % Wilson intervals.

        The accuracy given format is a share of the ``formed`` texts, and None where there are none. All other
        rates are shares of ``n``. Where the prompts have kinds, ``by_kind`` has the counts of each.

        >>> form = "<reasoning>15 + 27 = 42</reasoning><answer>42</answer>"
        >>> summary = judge([form, "42"], [form] * 2, ["42"] * 2, kinds=["carry", "no carry"]).summary()
        >>> summary["format_rate"], summary["formed"], summary["accuracy_given_format"]
        (0.5, 1, 1.0)
        >>> summary["by_kind"]["no carry"]
        {'n': 1, 'formed': 0, 'accuracy_given_format': None, 'accuracy_given_format_ci95': None}
        """
        summary = {
            "n": self.n,
            "format_rate": self.format.value,
            "accuracy": self.accuracy.value,
            "accuracy_ci95": self.accuracy.interval,
            "greedy_accuracy": self.greedy_accuracy.value,
            **_in_form(self.formed, self.right),
        }
        return summary | ({"by_kind": self._by_kind()} if self.kinds else {})

    def _by_kind(self) -> dict[str, dict]:
        """The counts of each kind of prompt, sorted by name so that two reports have them in one order."""
        places = {kind: [i for i, other in enumerate(self.kinds) if other == kind] for kind in sorted(set(self.kinds))}
        return {
            kind: {"n": len(of), **_in_form([self.formed[i] for i in of], [self.right[i] for i in of])}
            for kind, of in places.items()
        }


def _given_format(formed: Sequence[bool], right: Sequence[bool]) -> Rate | None:
    """How many of the texts in form are right; None where none is in form.

    >>> _given_format([True, True, False], [True, False, False]), _given_format([False], [False])
    (Rate(hits=1, n=2), None)
    """
    return Rate(sum(right), sum(formed)) if any(formed) else None


def _in_form(formed: Sequence[bool], right: Sequence[bool]) -> dict:
    """The part of a summary that counts texts in form alone.

    >>> _in_form([False], [False])
    {'formed': 0, 'accuracy_given_format': None, 'accuracy_given_format_ci95': None}
    """
    given = _given_format(formed, right)
    return {
        "formed": sum(formed),
        "accuracy_given_format": given.value if given else None,
        "accuracy_given_format_ci95": given.interval if given else None,
    }


@dataclass(frozen=True)
class Samples:
    """Several sampled texts for each of ``n`` prompts: lists of shape (prompts, samples).

    Attributes:
        texts: what was said.
        formed, right: which of it is in form; which is in form and right.
        answers: the gold answer of each prompt.
        asked: as in `Evaluation`.
    """

    texts: list[list[str]]
    formed: list[list[bool]]
    right: list[list[bool]]
    answers: list[str]
    asked: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """The number of prompts."""
        return len(self.texts)

    @property
    def samples(self) -> int:
        """The number of samples of each prompt."""
        return len(self.texts[0])

    def pass_at_k_of_each(self, k: int) -> list[float]:
        """For each prompt, the chance that at least one of ``k`` samples is right (see `pass_at_k`)."""
        return [pass_at_k(self.samples, sum(row), k) for row in self.right]

    def pass_at_k(self, k: int) -> Estimate:
        """The mean over the prompts, with a 95 % bootstrap interval over the prompts.

        >>> samples = judge_samples([["<reasoning>2</reasoning><answer>2</answer>", "2"]] * 3, ["2"] * 3)
        >>> samples.pass_at_k(1).value, samples.pass_at_k(2).value
        (0.5, 1.0)

        Raises:
            CourseError: ``k`` is above the number of samples, or below 1.
        """
        return mean_interval(self.pass_at_k_of_each(k), bounds=(0.0, 1.0))

    def majority_of_each(self, read: Callable[[str], str | None] | None = None) -> list[float]:
        """For each prompt, whether the majority of its samples is right (see `majority_right`).

        Args:
            read: gives the answer of a text, or None where it has none and does not vote. Left out:
                the answer of a text in the asked form.
        """
        read = read or _strict_answer
        votes = [majority_vote([read(text) for text in texts]) for texts in self.texts]
        return [majority_right(winners, gold) for winners, gold in zip(votes, self.answers, strict=True)]

    def majority(self, read: Callable[[str], str | None] | None = None) -> Estimate:
        """The accuracy of a majority vote over all samples, with a 95 % bootstrap interval over the prompts."""
        return mean_interval(self.majority_of_each(read), bounds=(0.0, 1.0))


def _strict_answer(text: str) -> str | None:
    parts = split_form(text)
    return parts[1] if parts else None


def evaluate(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase",
    rows: "Dataset",
    *,
    max_new_tokens: int,
    temperature: float = 1.0,
    batch_size: int = 200,
    seed: int = 0,
) -> Evaluation:
    """Answer the prompts of ``rows`` sampled and greedily, and judge both against ``answer``.

    If the rows have a column ``kind`` (the additions' is "carry" or "no carry"), the summary counts each kind apart.

    Raises:
        CourseError: there are no rows.
    """
    if not len(rows):
        raise CourseError(NOTHING)
    how = dict(max_new_tokens=max_new_tokens, temperature=temperature, batch_size=batch_size, seed=seed)
    sampled, greedy = answer_twice(model, tokenizer, rows["prompt"], **how)
    return judge_rows(sampled, greedy, rows)


def evaluate_samples(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase",
    rows: "Dataset",
    *,
    samples: int,
    max_new_tokens: int,
    temperature: float = 1.0,
    batch_size: int = 200,
    seed: int = 0,
) -> Samples:
    """Answer each prompt of ``rows`` ``samples`` times and judge all against ``answer``.

    Raises:
        CourseError: there are no rows, fewer than one sample, or several at temperature 0.
    """
    if not len(rows):
        raise CourseError(NOTHING)
    how = dict(samples=samples, max_new_tokens=max_new_tokens, temperature=temperature)
    texts = generate_samples(model, tokenizer, rows["prompt"], batch_size=batch_size, seed=seed, **how)
    return judge_samples(texts, rows["answer"], rows["prompt"])


def pass_rates(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase",
    rows: "Dataset",
    *,
    samples: int = 8,
    max_new_tokens: int,
    temperature: float = 1.0,
    batch_size: int = 200,
    seed: int = 0,
) -> list[float]:
    """For each row the share of ``samples`` completions that is in form and right, from 0 to 1.

    For `grpo_utils.drop_tied`. It costs ``samples`` completions a row, and 0 of 8 does not mean never: a prompt
    that is solved three times in ten comes out so too, in one case of 17 (0.7 ** 8).

    Raises:
        CourseError: there are no rows, fewer than one sample, or several at temperature 0.
    """
    how = dict(samples=samples, max_new_tokens=max_new_tokens, temperature=temperature)
    said = evaluate_samples(model, tokenizer, rows, batch_size=batch_size, seed=seed, **how)
    return [sum(right) / said.samples for right in said.right]


def judge(
    sampled: Sequence[str],
    greedy: Sequence[str],
    answers: Sequence[str],
    prompts: Sequence[list[dict]] | None = None,
    kinds: Sequence[str] | None = None,
) -> Evaluation:
    """Judge texts that were already generated, one sampled and one greedy for each gold answer.

    With ``kinds``, one name for each prompt, the summary also counts each kind apart.

    >>> form = "<reasoning>15 + 27 = 42</reasoning><answer>42</answer>"
    >>> judge([form, "It is 42."], [form, form], ["42", "42"]).summary()["accuracy"]
    0.5

    Raises:
        CourseError: there is nothing to judge, or the lists differ in length.
    """
    _check_lengths(sampled=sampled, greedy=greedy, answers=answers, prompts=prompts, kinds=kinds)
    return Evaluation(
        sampled=list(sampled),
        greedy=list(greedy),
        formed=[split_form(text) is not None for text in sampled],
        right=[is_strictly_right(text, gold) for text, gold in zip(sampled, answers, strict=True)],
        greedy_right=[is_strictly_right(text, gold) for text, gold in zip(greedy, answers, strict=True)],
        asked=_checksums(answers, prompts),
        kinds=tuple(str(kind) for kind in kinds or ()),
    )


def judge_rows(sampled: Sequence[str], greedy: Sequence[str], rows: "Dataset") -> Evaluation:
    """Judge texts against the rows that they answer: their gold answers and, where they have them, their kinds.

    Raises:
        CourseError: as `judge`.
    """
    kinds = rows["kind"] if "kind" in rows.column_names else None
    return judge(sampled, greedy, rows["answer"], rows["prompt"], kinds)


def judge_samples(
    texts: Sequence[Sequence[str]], answers: Sequence[str], prompts: Sequence[list[dict]] | None = None
) -> Samples:
    """Judge several texts for each gold answer; ``texts`` has the shape (prompts, samples).

    >>> form = "<reasoning>15 + 27 = 42</reasoning><answer>42</answer>"
    >>> judge_samples([[form, "It is 42."]], ["42"]).right
    [[True, False]]

    Raises:
        CourseError: there is nothing to judge, or the lists differ in length.
    """
    _check_lengths(texts=texts, answers=answers, prompts=prompts)
    counts = {len(said) for said in texts}
    if len(counts) > 1 or 0 in counts:
        raise CourseError(f"Each prompt needs the same number of samples, at least one; here: {sorted(counts)}.")
    return Samples(
        texts=[list(said) for said in texts],
        formed=[[split_form(text) is not None for text in said] for said in texts],
        right=[[is_strictly_right(text, gold) for text in said] for said, gold in zip(texts, answers, strict=True)],
        answers=list(answers),
        asked=_checksums(answers, prompts),
    )


def _check_lengths(**lists: Sequence | None) -> None:
    lengths = {name: len(values) for name, values in lists.items() if values is not None}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{count} {name}" for name, count in lengths.items())
        raise CourseError(f"Each prompt needs one of each; here are {told}. Judge the texts with the rows they answer.")
    if not min(lengths.values()):
        raise CourseError(NOTHING)


def _checksums(answers: Sequence[str], prompts: Sequence[list[dict]] | None) -> tuple[str, ...]:
    """What was asked, in order: a checksum of the answers and, if known, one of the prompts."""
    asked = [list(answers)] if prompts is None else [list(answers), list(prompts)]
    return tuple(checksum(part) for part in asked)


def checksum(part: list) -> str:
    """Eight hex digits that two different lists of texts or messages hardly ever share."""
    return f"{zlib.crc32(json.dumps(part, sort_keys=True).encode()):08x}"
