"""Write the tables in docs that come from the code: codes of the checks, and known exploits of rewards.

    python scripts/rule_tables.py

A table is between `<!-- NAME, written by scripts/rule_tables.py -->` and `<!-- end of table -->`.
"""

import inspect
import re
from pathlib import Path

from error_tables import table
from grpo_check.explaining import rules_of
from grpo_check.rule import Rule

from grpo_utils import rewards

ROOT = Path(__file__).parent.parent
BEGIN, END = "<!-- {}, written by scripts/rule_tables.py -->\n", "<!-- end of table -->"


def rule_table(rules: list[Rule]) -> str:
    """The codes of a check with their severities and meanings; for rules about a log, also the metrics."""
    rows = [(f"`{rule.code}`", rule.severity, rule.meaning) for rule in rules]
    if not any(isinstance(rule.example, list) for rule in rules):
        return table(("code", "severity", "meaning"), rows)
    metrics = [", ".join(f"`{name}`" for name in metrics_in(rule.example)) for rule in rules]
    rows = [(*row, names) for row, names in zip(rows, metrics, strict=True)]
    return table(("code", "severity", "meaning", "metrics"), rows)


def metrics_in(example: list[dict] | str) -> list[str]:
    """The metrics in the log that is an example of a rule, and ``reward``, which every log has, if it changes.

    >>> metrics_in([{"step": 1, "reward": 0.5, "rewards/f/std": 0.0}])
    ['rewards/NAME/std']
    """
    entries = [] if isinstance(example, str) else example
    names = dict.fromkeys(re.sub(r"^rewards/\w+/", "rewards/NAME/", name) for entry in entries for name in entry)
    constant = len({entry["reward"] for entry in entries if "reward" in entry}) == 1
    return [name for name in names if name != "step" and not (name == "reward" and constant)]


def exploits() -> dict[str, str]:
    """What each reward's docstring says from "Known exploit:" to the end of the paragraph; "" if it says nothing."""
    names = [name for name in rewards.__all__ if name.endswith("_reward")]
    pages = {name: inspect.getdoc(getattr(rewards, name)) for name in names}
    said = {name: re.search(r"Known\s+exploits?:\s+(.+?)(?:\n\n|$)", page, re.DOTALL) for name, page in pages.items()}
    return {name: " ".join(exploit[1].split()) if exploit else "" for name, exploit in said.items()}


def tables() -> dict[str, str]:
    """Every table by its name."""
    of_rewards = table(("reward", "known exploit"), [(f"`{name}`", said) for name, said in exploits().items()])
    of_checks = {f"rules of {check}": rule_table(rules) for check, rules in rules_of().items()}
    return {**of_checks, "exploits": of_rewards}


def with_tables(page: str) -> str:
    """A page with all its tables as the code is now."""
    for name, new in tables().items():
        page = with_table(page, BEGIN.format(name), new)
    return page


def with_table(page: str, begin: str, new: str) -> str:
    """A page with ``new`` between the mark ``begin`` and the end of its table; a page without the mark as it is."""
    return re.sub(f"{re.escape(begin)}.*?{END}", lambda _: f"{begin}\n{new}\n\n{END}", page, flags=re.DOTALL)


def main() -> None:
    for path in (*ROOT.glob("docs/*.md"), *ROOT.glob("grpo_check/docs/*.md")):
        old = path.read_text(encoding="utf-8")
        new = with_tables(old)
        if new != old:
            path.write_text(new, encoding="utf-8")
            print(f"written: {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
