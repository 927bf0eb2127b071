"""The held-out answers of a run before and after training: in a file, as a list of the wrong ones, and per label."""

import json
from collections.abc import Sequence
from pathlib import Path
from textwrap import indent, shorten

from grpo_core.training.measuring import wilson_interval

FILE = "held_out.jsonl"
MOST_LABELS = 20  # with more different gold answers, they are not labels
LONGEST = 600  # characters of an answer that are shown; the file has all of it


def answers_of(rows: object, before: dict, after: dict) -> list[dict]:
    """For each held-out row its prompt, its other columns as gold, the sampled answers and which of them are right.

    ``before`` and ``after`` are results of `evaluate`. An answer that is not a text, such as an episode with tools, is
    written as one.
    """
    found = zip(rows, before["sampled"], after["sampled"], before["right"], after["right"], strict=True)
    return [
        {
            "prompt": row["prompt"],
            "gold": {name: value for name, value in row.items() if name != "prompt"},
            "before": str(old),
            "after": str(new),
            "right_before": was_right,
            "right_after": is_right,
        }
        for row, old, new, was_right, is_right in found
    ]


def write_answers(folder: Path, answers: Sequence[dict]) -> None:
    """Write one line of JSON for each held-out row."""
    lines = [json.dumps(answer, ensure_ascii=False, default=str) for answer in answers]
    (folder / FILE).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def read_answers(folder: Path) -> list[dict]:
    """The lines of `write_answers`."""
    if not (folder / FILE).is_file():
        raise SystemExit(
            f"Error: {folder} has no {FILE}; train.py writes it with the report, so it was moved or deleted."
        )
    lines = (folder / FILE).read_text(encoding="utf-8").split("\n")  # an answer may have other line separators
    return [json.loads(line) for line in lines if line]


def wrong_answers(answers: Sequence[dict], most: int) -> str:
    """The first ``most`` rows whose answer after training is wrong, as text.

    >>> row = {"prompt": [{"role": "user", "content": "2 + 2?"}], "gold": {"answer": "4"}, "before": "5", "after": "6"}
    >>> print(wrong_answers([row | {"right_before": False, "right_after": False}] * 2, most=1))
    2 of 2 held-out answers are wrong after training; the first 1:
    <BLANKLINE>
    2 + 2?
        gold:            4
        before (wrong):  5
        after (wrong):   6
    """
    wrong = [answer for answer in answers if not answer["right_after"]]
    more = f"; the first {most}:" if len(wrong) > most else ":" if wrong else "."
    head = f"{len(wrong)} of {len(answers)} held-out answers are wrong after training{more}"
    return "\n\n".join([head, *map(_shown, wrong[:most])])


def _shown(answer: dict) -> str:
    """One wrong answer with its question and its gold; columns that repeat the question or are empty are left out."""
    asked = answer["prompt"][-1]["content"]
    gold = {name: value for name, value in answer["gold"].items() if value not in (asked, "")}
    golds = [str(*gold.values())] if len(gold) == 1 else [f"{name} {value}" for name, value in gold.items()]
    before = f"before ({'right' if answer['right_before'] else 'wrong'})"
    parts = {"gold": "; ".join(golds), before: _cut(answer["before"]), "after (wrong)": _cut(answer["after"])}
    lines = [f"{name + ':':17}" + indent(text, " " * 17).lstrip() for name, text in parts.items()]
    return f"{asked}\n" + indent("\n".join(lines), "    ")


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} … ({len(text)} characters)"


def labels_of(answers: Sequence[dict]) -> dict[str, dict]:
    """How many rows have each gold answer, and how many of them are right; {} if the gold answers are not labels.

    Labels are a few texts in a column ``answer`` that repeat. Numbers are labels only if each is the answer of many
    rows: a sum that happens to occur twice is none.

    >>> rows = [{"gold": {"answer": label}, "right_before": False, "right_after": True} for label in "aabab"]
    >>> labels_of(rows)["a"], labels_of(rows[:1])
    ({'n': 3, 'right_before': 0, 'right_after': 3}, {})
    """
    golds = [str(answer["gold"].get("answer", "")) for answer in answers]
    labels = sorted(set(golds))
    often = 5 if all(label.strip("-").replace(".", "", 1).isdecimal() for label in labels) else 1.5
    if not 2 <= len(labels) <= min(MOST_LABELS, len(golds) / often):
        return {}
    table = {}
    for label in labels:
        of = [answer for answer, gold in zip(answers, golds, strict=True) if gold == label]
        table[label] = {"n": len(of)} | {key: sum(a[key] for a in of) for key in ("right_before", "right_after")}
    return table


def label_table(labels: dict[str, dict]) -> str:
    """The table of `labels_of`, and what the answer that is right most often would reach.

    >>> print(label_table({"bill": {"n": 3, "right_before": 0, "right_after": 3},
    ...                    "login": {"n": 1, "right_before": 1, "right_after": 0}}))
    label    n  right before  right after
    bill     3             0            3
    login    1             1            0
    Always answering 'bill' would be right for 3 of 4 rows: 0.750 (95% interval 0.301 to 0.954).
    """
    shown = {label: shorten(label, 40, placeholder="…") for label in labels}
    width = max(map(len, [*shown.values(), "label"]))
    lines = [f"{'label':{width}}{'n':>5}{'right before':>14}{'right after':>13}"]
    for label, row in labels.items():
        lines.append(f"{shown[label]:{width}}{row['n']:>5}{row['right_before']:>14}{row['right_after']:>13}")
    n, most = sum(row["n"] for row in labels.values()), max(labels, key=lambda label: labels[label]["n"])
    hits = labels[most]["n"]
    low, high = wilson_interval(hits, n)
    rate = f"{hits / n:.3f} (95% interval {low:.3f} to {high:.3f})"
    return "\n".join([*lines, f"Always answering {shown[most]!r} would be right for {hits} of {n} rows: {rate}."])
