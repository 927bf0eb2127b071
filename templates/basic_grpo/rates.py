"""What before and after are worth: rates, their intervals, a paired test, and the table."""

from collections.abc import Sequence

from scipy.stats import binomtest


def summary(result: dict) -> dict:
    """The rates: accuracy (form and answer both right) of all sampled texts and of those in form; greedy if it was."""
    n, greedy = len(result["right"]), result.get("greedy_right")
    in_form = [right for formed, right in zip(result["formed"], result["right"], strict=True) if formed]
    return {
        "n": n,
        "format_rate": len(in_form) / n,
        "accuracy": sum(result["right"]) / n,
        "accuracy_ci95": wilson(result["right"]),
        "accuracy_given_format": sum(in_form) / len(in_form) if in_form else None,
        "accuracy_given_format_ci95": wilson(in_form) if in_form else None,
        "greedy_accuracy": sum(greedy) / n if greedy else None,
    }


def wilson(right: Sequence[bool]) -> list[float]:
    """Wilson's 95 % interval of the share that is right."""
    interval = binomtest(sum(right), len(right)).proportion_ci(method="wilson")
    return [float(interval.low), float(interval.high)]


def paired_p_value(before: Sequence[bool], after: Sequence[bool]) -> float:
    """The exact McNemar test: of the prompts that changed, how many got better?"""
    better = sum(new and not old for old, new in zip(before, after, strict=True))
    worse = sum(old and not new for old, new in zip(before, after, strict=True))
    return float(binomtest(better, better + worse).pvalue) if better + worse else 1.0


def table(report: dict) -> str:
    """The report's before and after as text, and what may be said of them."""
    lines = [f"{'':8}{'n':>6}{'format':>9}{'accuracy (95 % interval)':>28}{'greedy':>9}{'right if in form (95 %)':>28}"]
    for name in ("before", "after"):
        rates = report[name]
        strict, given = (with_interval(rates, key) for key in ("accuracy", "accuracy_given_format"))
        greedy = "-" if rates["greedy_accuracy"] is None else f"{rates['greedy_accuracy']:.3f}"
        lines.append(f"{name:8}{rates['n']:6}{rates['format_rate']:9.3f}{strict:>28}{greedy:>9}{given:>28}")
    change = report["after"]["accuracy"] - report["before"]["accuracy"]
    p = f"p = {report['p_value']:.2g}, paired test"
    risen = report["p_value"] < 0.05 and change > 0
    lines.append(f"Accuracy rose by {change:+.3f} ({p})." if risen else f"No improvement shown: {change:+.3f} ({p}).")
    return "\n".join(lines)


def with_interval(rates: dict, name: str) -> str:
    """A rate as text; "-" where no text is in form."""
    if rates[name] is None:
        return "-"
    low, high = rates[f"{name}_ci95"]
    return f"{rates[name]:.3f} ({low:.3f} to {high:.3f})"
