"""Write the tables of codes in docs, from the rules of the checks: `make figures`.

    python scripts/rule_tables.py

A page has a table between `<!-- rules of CHECK, written by make figures -->` and `<!-- end of rules -->`.
"""

import re
from pathlib import Path

from grpo_check.explaining import rules_of
from grpo_check.rules import Rule

DOCS = Path(__file__).parent.parent / "docs"
BEGIN, END = "<!-- rules of {}, written by make figures -->\n", "<!-- end of rules -->"


def table(rules: list[Rule]) -> str:
    """The codes of a check with their severities and meanings.

    >>> print(table([Rule("leak", "error", "held-out prompts that are also in the training rows", print)]))
    | code | severity | meaning |
    |---|---|---|
    | `leak` | error | held-out prompts that are also in the training rows |
    """
    rows = [f"| `{rule.code}` | {rule.severity} | {rule.meaning.replace('|', chr(92) + '|')} |" for rule in rules]
    return "\n".join(["| code | severity | meaning |", "|---|---|---|", *rows])


def with_tables(page: str) -> str:
    """A page with all its tables as the rules are now."""
    for check, rules in rules_of().items():
        begin = re.escape(BEGIN.format(check))
        new = f"{BEGIN.format(check)}\n{table(rules)}\n\n{END}"
        page = re.sub(rf"{begin}.*?{END}", lambda _, new=new: new, page, flags=re.DOTALL)
    return page


def main() -> None:
    for path in DOCS.glob("*.md"):
        old = path.read_text(encoding="utf-8")
        new = with_tables(old)
        if new != old:
            path.write_text(new, encoding="utf-8")
            print(f"written: docs/{path.name}")


if __name__ == "__main__":
    main()
