"""What before and after are worth: rates, their intervals, a paired test, and the table."""

from collections.abc import Sequence

from scipy.stats import binomtest


def summary(result: dict) -> dict:
    """The rates, and Wilson's 95 % interval of the accuracy (form and answer both right, sampled); greedy if it was."""
    n, hits = len(result["right"]), sum(result["right"])
    greedy = result.get("greedy_right")
    interval = binomtest(hits, n).proportion_ci(method="wilson")
    return {
        "n": n,
        "format_rate": sum(result["formed"]) / n,
        "accuracy": hits / n,
        "accuracy_ci95": [float(interval.low), float(interval.high)],
        "greedy_accuracy": sum(greedy) / n if greedy else None,
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
        greedy = "-" if rates["greedy_accuracy"] is None else f"{rates['greedy_accuracy']:.3f}"
        lines.append(f"{name:8}{rates['n']:6}{rates['format_rate']:9.3f}{shown:>28}{greedy:>9}")
    change = report["after"]["accuracy"] - report["before"]["accuracy"]
    p = f"p = {report['p_value']:.2g}, paired test"
    risen = report["p_value"] < 0.05 and change > 0
    lines.append(f"Accuracy rose by {change:+.3f} ({p})." if risen else f"No improvement shown: {change:+.3f} ({p}).")
    return "\n".join(lines)
