"""The known error texts as tables, which the build of the site puts below grpo_check/docs/errors.md.

It needs no package of the course, because the site is built without them.
"""

from pathlib import Path

import yaml

RECORDS = Path(__file__).parent.parent / "grpo_check" / "src" / "grpo_check" / "error_texts.yaml"


def table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A table in Markdown.

    >>> print(table(("code", "meaning"), [("`leak`", "a|b")]))
    | code | meaning |
    |---|---|
    | `leak` | a\\|b |
    """
    cells = [[cell.replace("|", "\\|") for cell in row] for row in (header, *rows)]
    head, *body = [f"| {' | '.join(row)} |" for row in cells]
    return "\n".join([head, "|---" * len(header) + "|", *body])


def error_tables() -> str:
    """A heading and a table of error texts for each library, in the order of the records."""
    header = ("error text", "cause, and what to do", "fixed", "source")
    rows = {}
    for record in yaml.safe_load(RECORDS.read_text(encoding="utf-8")):
        rows.setdefault(record["library"], []).append(error_row(record))
    return "\n\n".join(f"## {library}\n\n{table(header, of_one)}" for library, of_one in rows.items())


def error_row(record: dict[str, str]) -> tuple[str, ...]:
    """A record as a row of the table of its library."""
    text = f"`` {record['text']} ``" if "`" in record["text"] else f"`{record['text']}`"
    more = f" [More](../../{record['entry']})." if "entry" in record else ""
    cause = f"{record['cause']} **Do:** {record['do']}{more}"
    return text, cause, record["fixed"], f"{source_link(record['source'])}, {record['known']}"


def source_link(source: str) -> str:
    """A thread on GitHub as a link, and a file of a library as it is.

    >>> source_link("huggingface/trl#5067")
    '[trl#5067](https://github.com/huggingface/trl/issues/5067)'
    >>> source_link("trl/trainer/grpo_config.py")
    '`trl/trainer/grpo_config.py`'
    """
    repository, _, number = source.partition("#")
    name = f"{repository.rpartition('/')[2]}#{number}"
    return f"[{name}](https://github.com/{repository}/issues/{number})" if number else f"`{source}`"
