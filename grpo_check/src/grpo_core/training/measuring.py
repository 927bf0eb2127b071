"""Score the same held-out prompts before and after: rates, intervals, a paired test, and the report."""

import json
import math
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from statistics import NormalDist

PACKAGES = ("unsloth", "unsloth_zoo", "trl", "transformers", "peft", "bitsandbytes", "accelerate", "datasets", "torch")
SIGNIFICANT = 0.05  # p-values below it show a change


def result_of(sampled: Sequence, greedy: Sequence, rows: object, is_right: Callable, is_in_form: Callable) -> dict:
    """The completions of held-out rows, and which of them are correctly formatted and correct."""
    return {
        "sampled": list(sampled),
        "greedy": list(greedy),
        "formed": [is_in_form(text) for text in sampled],
        "right": [is_right(text, row) for text, row in zip(sampled, rows, strict=True)],
        "greedy_right": [is_right(text, row) for text, row in zip(greedy, rows, strict=True)],
        "kinds": list(rows["kind"]) if "kind" in rows.column_names else [],
    }


def summary(result: dict) -> dict:
    """The rates of `result_of`, with 95% Wilson intervals; accuracy counts correct, correctly formatted answers.

    The accuracy given format is a share of the ``formed`` texts, and None if there are none; all other rates are
    shares of ``n``. If the prompts have kinds, ``by_kind`` has the counts of each.

    >>> rates = summary({"formed": [True, True, False, False], "right": [True, False, False, False]})
    >>> rates["accuracy"], rates["accuracy_given_format"], rates["greedy_accuracy"]
    (0.25, 0.5, None)
    """
    formed, right, greedy = result["formed"], result["right"], result.get("greedy_right")
    kinds = result.get("kinds") or []
    by_kind = {}
    for kind in sorted(set(kinds)):
        of = [place for place, other in enumerate(kinds) if other == kind]
        by_kind[kind] = {"n": len(of), **_in_form([formed[i] for i in of], [right[i] for i in of])}
    return {
        "n": len(right),
        "format_rate": sum(formed) / len(right),
        "accuracy": sum(right) / len(right),
        "accuracy_ci95": wilson_interval(sum(right), len(right)),
        "greedy_accuracy": sum(greedy) / len(greedy) if greedy else None,
        **_in_form(formed, right),
        **({"by_kind": by_kind} if kinds else {}),
    }


def _in_form(formed: Sequence[bool], right: Sequence[bool]) -> dict:
    """The part of a summary that counts correctly formatted answers alone."""
    right_of = [right for formed, right in zip(formed, right, strict=True) if formed]
    return {
        "formed": len(right_of),
        "accuracy_given_format": sum(right_of) / len(right_of) if right_of else None,
        "accuracy_given_format_ci95": wilson_interval(sum(right_of), len(right_of)) if right_of else None,
    }


def wilson_interval(hits: int, n: int) -> list[float]:
    """The 95% Wilson interval of a rate (Wilson 1927).

    It is written out, because scipy.stats has it too, but takes seconds to import.

    >>> [round(end, 3) for end in wilson_interval(190, 200)]
    [0.91, 0.973]
    """
    z, rate = NormalDist().inv_cdf(0.975), hits / n
    center, scale = rate + z * z / (2 * n), 1 + z * z / n
    half = z * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    # At 0 and at n, one end is exactly the rate; rounding would leave it beside.
    return [0.0 if hits == 0 else (center - half) / scale, 1.0 if hits == n else (center + half) / scale]


def mcnemar_p_value(before: Sequence[bool], after: Sequence[bool]) -> float:
    """Exact two-sided McNemar test on the same prompts before and after (McNemar 1947).

    Only prompts that changed count: if training had no effect, each would be as likely to get
    better as worse, so the number that got better is binomial with probability 1/2.

    >>> mcnemar_p_value([False] * 6, [True] * 6)
    0.03125
    >>> mcnemar_p_value([True, False], [True, False])
    1.0
    """
    better = sum(new > old for old, new in zip(before, after, strict=True))
    worse = sum(new < old for old, new in zip(before, after, strict=True))
    changed = better + worse
    one_side = sum(math.comb(changed, count) for count in range(min(better, worse) + 1))
    return min(2 * one_side / 2**changed, 1.0)  # whole numbers, which Python keeps exact


def before_after(before: dict, after: dict, p_value: float, merged: dict | None = None) -> str:
    """The before/after tables as plain text, from summaries, and one sentence with the result.

    >>> old = summary({"formed": [False] * 20, "right": [False] * 20, "greedy_right": [False] * 20})
    >>> print(before_after(old, old, p_value=1.0))
               n   format    accuracy (95% interval)   greedy
    before    20    0.000      0.000 (0.000 to 0.161)    0.000
    after     20    0.000      0.000 (0.000 to 0.161)    0.000
    <BLANKLINE>
    accuracy among the n correctly formatted answers (95% interval):
               n                     all
    before     0                       -
    after      0                       -
    No improvement shown: strict accuracy changed by +0.000 (exact McNemar test, p = 1).
    """
    return "\n".join([rates_table(before, after, merged), verdict(before, after, p_value)])


def rates_table(before: dict, after: dict, merged: dict | None = None) -> str:
    """The tables of `before_after` without its sentence: strict accuracy, then accuracy among the formatted answers.

    The second table separates ability from format, with a column for each kind of prompt. It is left out if a summary
    lacks its numbers, as in older reports.
    """
    rows = {"before": before, "after": after} | ({"merged": merged} if merged else {})
    lines = [f"{'':7}{'n':>5}{'format':>9}{'accuracy (95% interval)':>28}{'greedy':>9}"]
    for name, rates in rows.items():
        rate, greedy = _share(rates, "accuracy"), rates["greedy_accuracy"]
        shown = "-" if greedy is None else f"{greedy:.3f}"
        lines.append(f"{name:7}{rates['n']:>5}{rates['format_rate']:>9.3f}{rate:>28}{shown:>9}")
    if all("formed" in rates for rates in rows.values()):
        lines += _in_form_lines(rows)
    return "\n".join(lines)


def _in_form_lines(rows: dict[str, dict]) -> list[str]:
    """Accuracy among the formatted answers: for all prompts, and for each kind that all summaries have."""
    first, *others = (rates.get("by_kind", {}) for rates in rows.values())
    kinds = [kind for kind in first if all(kind in other for other in others)]
    lines = ["", "accuracy among the n correctly formatted answers (95% interval):"]
    lines.append(f"{'':7}" + "".join(f"{'n':>5}{heading:>24}" for heading in ("all", *kinds)))
    for name, rates in rows.items():
        cells = [rates, *(rates["by_kind"][kind] for kind in kinds)]
        lines.append(f"{name:7}" + "".join(f"{c['formed']:>5}{_share(c, 'accuracy_given_format'):>24}" for c in cells))
    return lines


def _share(rates: dict, name: str) -> str:
    """A rate with its interval, or "-" if there is none.

    >>> _share({"accuracy": 0.45, "accuracy_ci95": [0.258, 0.658]}, "accuracy")
    '0.450 (0.258 to 0.658)'
    """
    return "-" if rates[name] is None else "{:.3f} ({:.3f} to {:.3f})".format(rates[name], *rates[f"{name}_ci95"])


def verdict(before: dict, after: dict, p_value: float) -> str:
    """The paired test's result for the change in strict accuracy, in one sentence."""
    change = after["accuracy"] - before["accuracy"]
    return change_sentence(change, p_value < SIGNIFICANT, f"exact McNemar test, {p_text(p_value)}")


def change_sentence(change: float, is_shown: bool, evidence: str) -> str:
    """What is shown about strict accuracy, with the evidence in parentheses.

    >>> change_sentence(-0.25, True, "exact McNemar test, p = 0.012")
    'Strict accuracy FELL by 0.250 (exact McNemar test, p = 0.012).'
    """
    if not is_shown:
        return f"No improvement shown: strict accuracy changed by {change:+.3f} ({evidence})."
    return f"Strict accuracy {'rose' if change > 0 else 'FELL'} by {abs(change):.3f} ({evidence})."


def p_text(p_value: float) -> str:
    """A p-value as text: two digits, more if rounding would move it to 0.05, and a bound if it is tiny.

    >>> p_text(0.0488), p_text(0.04996), p_text(0.12345), p_text(1.0), p_text(0.0)
    ('p = 0.049', 'p = 0.04996', 'p = 0.12', 'p = 1', 'p < 1e-300')
    """
    if p_value < 1e-300:
        return "p < 1e-300"
    rounded = (f"{p_value:.{digits}g}" for digits in range(2, 17))
    texts = (text for text in rounded if (float(text) < SIGNIFICANT) == (p_value < SIGNIFICANT))
    return f"p = {next(texts, repr(p_value))}"


def versions() -> dict[str, str]:
    """The installed versions of the packages that affect a run."""
    return {name: installed_version(name) or "not installed" for name in PACKAGES}


def installed_version(name: str) -> str | None:
    """The version of an installed package, or None. A folder of that name can be imported, but has no version.

    >>> installed_version("no-such-package") is None
    True
    """
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def machine() -> dict:
    """The machine of this process; ``gpu`` is None unless torch reserved memory on one.

    >>> sorted(machine())
    ['cores', 'gpu', 'python', 'system']
    """
    found = {"python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}"}
    return found | {"cores": os.cpu_count(), "gpu": _gpu()}


def _gpu() -> dict | None:
    """The GPU that torch used, and the peak memory that this process has reserved so far."""
    torch = sys.modules.get("torch")  # a process that never imported torch used no GPU
    if not torch or not (peak := torch.cuda.max_memory_reserved()):
        return None
    gpu = torch.cuda.get_device_properties(torch.cuda.current_device())
    return {
        "name": gpu.name,
        "memory_gib": round(gpu.total_memory / 2**30, 1),
        "peak_gib": round(peak / 2**30, 2),
    }


def write_report(folder: str | Path, report: dict) -> Path:
    """Write ``report.json`` atomically: the report with seconds rounded to tenths, and the `machine`."""
    rounded = {key: round(value, 1) for key, value in report.items() if key.endswith("_seconds")}
    rounded["machine"] = machine()
    path, draft = Path(folder) / "report.json", Path(folder) / "report.json.part"
    text = json.dumps(report | rounded, indent=2, ensure_ascii=False, default=str)  # other types become text
    draft.write_text(text + "\n", encoding="utf-8")
    return draft.replace(path)


def finish(folder: Path, before: dict, after: dict, merged: dict | None = None, **entries: object) -> None:
    """Write a run's report from results of `result_of` and more ``entries``, and print its tables.

    ``merged`` is the result of the merged model, if it was evaluated too.
    """
    rates, p_value = [summary(before), summary(after)], mcnemar_p_value(before["right"], after["right"])
    result = dict(before=rates[0], after=rates[1], p_value=p_value)
    if merged:
        result |= dict(merged=summary(merged), merged_p_value=mcnemar_p_value(before["right"], merged["right"]))
    stamp = dict(written=time.strftime("%Y-%m-%d %H:%M:%S"), versions=versions())
    written = write_report(folder, entries | result | stamp)
    print(before_after(*rates, p_value, result.get("merged")))
    print("written:", written)
