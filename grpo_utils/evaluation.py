"""Before and after, fairly: the same prompts, the same template, the same decoding.

    before = evaluate(policy, tokenizer, rows, max_new_tokens=32)
    …train…
    after = evaluate(policy, tokenizer, rows, max_new_tokens=32)
    print(mcnemar_p_value(before.right, after.right))

Each prompt is answered twice: once sampled at the training temperature, which is how GRPO
itself sees the policy, and once greedily, which is how most people will use the model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .data import encode_prompts
from .errors import CourseError
from .rewards import is_strictly_right, split_form

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


@dataclass(frozen=True)
class Evaluation:
    """What a policy said to ``n`` prompts, and which of it was in form and right."""

    sampled: list[str]
    greedy: list[str]
    formed: list[bool]
    right: list[bool]
    greedy_right: list[bool]

    @property
    def n(self) -> int:
        """The number of prompts."""
        return len(self.sampled)

    def summary(self) -> dict:
        """The rates of `report.json`: shares of ``n``, with a 95 % Wilson interval."""
        return {
            "n": self.n,
            "format_rate": sum(self.formed) / self.n,
            "accuracy": sum(self.right) / self.n,
            "accuracy_ci95": wilson_interval(sum(self.right), self.n),
            "greedy_accuracy": sum(self.greedy_right) / self.n,
        }


def wilson_interval(hits: int, n: int) -> list[float]:
    """The 95 % interval of a rate (Wilson 1927), as scipy computes it.

    >>> [round(end, 3) for end in wilson_interval(190, 200)]
    [0.91, 0.973]
    """
    from scipy.stats import binomtest

    interval = binomtest(hits, n).proportion_ci(confidence_level=0.95, method="wilson")
    return [float(interval.low), float(interval.high)]


def mcnemar_p_value(before: Sequence[bool], after: Sequence[bool]) -> float:
    """Exact two-sided McNemar test on the same prompts before and after (McNemar 1947).

    Only prompts that changed count: under "no change" each would as often have got better as
    worse, so the number that got better is binomial with probability 1/2.

    >>> mcnemar_p_value([False] * 6, [True] * 6)
    0.03125
    >>> mcnemar_p_value([True, False], [True, False])
    1.0
    """
    from scipy.stats import binomtest

    changed = [new for old, new in zip(before, after, strict=True) if old != new]
    return float(binomtest(sum(changed), len(changed)).pvalue) if changed else 1.0


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

    Raises:
        CourseError: there are no rows.
    """
    if not len(rows):
        raise CourseError("There are no held-out rows to evaluate on; a rate of nothing is no rate.")
    how = dict(max_new_tokens=max_new_tokens, batch_size=batch_size)
    sampled = generate(model, tokenizer, rows["prompt"], temperature=temperature, seed=seed, **how)
    greedy = generate(model, tokenizer, rows["prompt"], temperature=0.0, **how)
    return judge(sampled, greedy, rows["answer"])


def judge(sampled: Sequence[str], greedy: Sequence[str], answers: Sequence[str]) -> Evaluation:
    """Judge texts that were already generated.

    >>> form = "<reasoning>15 + 27 = 42</reasoning><answer>42</answer>"
    >>> judge([form, "It is 42."], [form, form], ["42", "42"]).summary()["accuracy"]
    0.5
    """
    return Evaluation(
        sampled=list(sampled),
        greedy=list(greedy),
        formed=[split_form(text) is not None for text in sampled],
        right=[is_strictly_right(text, gold) for text, gold in zip(sampled, answers, strict=True)],
        greedy_right=[is_strictly_right(text, gold) for text, gold in zip(greedy, answers, strict=True)],
    )


def generate(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase",
    prompts: Sequence[list[dict]],
    *,
    max_new_tokens: int,
    temperature: float = 1.0,
    batch_size: int = 200,
    seed: int = 0,
) -> list[str]:
    """One completion for each prompt; ``temperature=0.0`` decodes greedily.

    The model goes back to training mode afterwards if that is where it was.
    """
    import torch
    from tqdm.auto import trange

    was_training = model.training
    model.eval()
    torch.manual_seed(seed)
    completions = []
    for start in trange(0, len(prompts), batch_size, desc="generate", leave=False, disable=len(prompts) <= batch_size):
        completions += _generate_batch(
            model, tokenizer, prompts[start : start + batch_size], max_new_tokens, temperature
        )
    model.train(was_training)
    return completions


def _generate_batch(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase",
    prompts: Sequence[list[dict]],
    max_new_tokens: int,
    temperature: float,
) -> list[str]:
    import torch

    inputs = encode_prompts(tokenizer, prompts).to(model.device)
    decoding = (
        dict(do_sample=False) if temperature == 0 else dict(do_sample=True, temperature=temperature, top_p=1.0, top_k=0)
    )
    with torch.inference_mode():
        output = model.generate(
            **inputs,
            **decoding,
            max_new_tokens=max_new_tokens,
            use_cache=True,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    return tokenizer.batch_decode(output[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)


def before_after(before: dict, after: dict, p_value: float, merged: dict | None = None) -> str:
    """The before/after table as plain text, from summaries, and one sentence that reads it.

    >>> old = judge(["It is 42."] * 20, ["It is 42."] * 20, ["42"] * 20).summary()
    >>> print(before_after(old, old, p_value=1.0))
               n   format    accuracy (95 % interval)   greedy
    before    20    0.000      0.000 (0.000 to 0.161)    0.000
    after     20    0.000      0.000 (0.000 to 0.161)    0.000
    No improvement shown: strict accuracy changed by +0.000, within chance (paired test, p = 1).
    """
    lines = [f"{'':7}{'n':>5}{'format':>9}{'accuracy (95 % interval)':>28}{'greedy':>9}"]
    lines += [_line("before", before), _line("after", after)]
    lines += [_line("merged", merged)] if merged else []
    return "\n".join([*lines, verdict(before, after, p_value)])


def _line(name: str, summary: dict) -> str:
    low, high = summary["accuracy_ci95"]
    rate = f"{summary['accuracy']:.3f} ({low:.3f} to {high:.3f})"
    return f"{name:7}{summary['n']:>5}{summary['format_rate']:>9.3f}{rate:>28}{summary['greedy_accuracy']:>9.3f}"


def verdict(before: dict, after: dict, p_value: float) -> str:
    """What the paired test says of the change in strict accuracy, in one sentence."""
    change = after["accuracy"] - before["accuracy"]
    if p_value >= 0.05:
        return (
            f"No improvement shown: strict accuracy changed by {change:+.3f}, "
            f"within chance (paired test, p = {p_value:.2g})."
        )
    direction = "rose" if change > 0 else "FELL"
    return f"Strict accuracy {direction} by {change:+.3f}; chance alone does this with p = {p_value:.1g} (paired test)."
