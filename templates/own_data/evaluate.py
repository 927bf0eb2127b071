"""Before and after on the same held-out prompts: sampled and greedy, with intervals and a paired test.

python evaluate.py outputs/basic        the table of a finished run
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from generation import generate
from rewards import is_in_form, is_right
from scipy.stats import binomtest


def evaluate(policy: object, tokenizer: object, rows: object, *, tokens: int, batch: int, seed: int) -> dict:
    """Texts and what they are worth: sampled at temperature 1, as in training, and greedily."""
    sampled = generate(policy, tokenizer, rows["prompt"], tokens=tokens, batch=batch, seed=seed, sample=True)
    greedy = generate(policy, tokenizer, rows["prompt"], tokens=tokens, batch=batch, seed=seed, sample=False)
    return {
        "sampled": sampled,
        "formed": [is_in_form(text) for text in sampled],
        "right": [is_right(text, row) for text, row in zip(sampled, rows, strict=True)],
        "greedy_right": [is_right(text, row) for text, row in zip(greedy, rows, strict=True)],
    }


def summary(result: dict) -> dict:
    """The rates, and Wilson's 95 % interval of the accuracy (form and answer both right, sampled)."""
    n, hits = len(result["right"]), sum(result["right"])
    interval = binomtest(hits, n).proportion_ci(method="wilson")
    return {
        "n": n,
        "format_rate": sum(result["formed"]) / n,
        "accuracy": hits / n,
        "accuracy_ci95": [float(interval.low), float(interval.high)],
        "greedy_accuracy": sum(result["greedy_right"]) / n,
    }


def paired_p_value(before: Sequence[bool], after: Sequence[bool]) -> float:
    """The exact McNemar test: of the prompts that changed, how many got better?"""
    better = sum(new and not old for old, new in zip(before, after, strict=True))
    worse = sum(old and not new for old, new in zip(before, after, strict=True))
    return float(binomtest(better, better + worse).pvalue) if better + worse else 1.0


def table(report: dict) -> str:
    """The report's before and after as text, and what may be said of them."""
    lines = [f"{'':8}{'n':>6}{'format':>9}{'accuracy (95 % interval)':>28}{'greedy':>9}"]
    for name in ("before", "after"):
        rates = report[name]
        low, high = rates["accuracy_ci95"]
        shown = f"{rates['accuracy']:.3f} ({low:.3f} to {high:.3f})"
        lines.append(f"{name:8}{rates['n']:6}{rates['format_rate']:9.3f}{shown:>28}{rates['greedy_accuracy']:9.3f}")
    change = report["after"]["accuracy"] - report["before"]["accuracy"]
    p = f"p = {report['p_value']:.2g}, paired test"
    risen = report["p_value"] < 0.05 and change > 0
    lines.append(f"Accuracy rose by {change:+.3f} ({p})." if risen else f"No improvement shown: {change:+.3f} ({p}).")
    return "\n".join(lines)


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1], "report.json").is_file():
        sys.exit(
            "Error: give the folder of a finished run, which holds a report.json: python evaluate.py outputs/basic"
        )
    print(table(json.loads(Path(sys.argv[1], "report.json").read_text(encoding="utf-8"))))
