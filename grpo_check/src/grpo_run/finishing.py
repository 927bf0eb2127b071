"""Leave the result of a run in its folder: the answers to held-out rows, the report and the model's card."""

from pathlib import Path

from grpo_core.training import measuring

from .cards import write_card
from .held_out import FILE, answers_of, label_table, labels_of, write_answers


def finish(folder: Path, rows: object, before: dict, after: dict, **entries: object) -> None:
    """Write the answers to the held-out rows, the report of a run and the card of its model; print the tables.

    ``before`` and ``after`` are results of `evaluate`, and ``entries`` go into the report.
    """
    answers = answers_of(rows, before, after)
    write_answers(folder, answers)  # first, because a report marks a finished run
    labels = labels_of(answers)
    measuring.finish(folder, before, after, **entries, labels=labels)
    if labels:
        print(label_table(labels))
    write_card(folder / "model", folder)
    print(f"written: {folder / FILE}\nwritten: {folder / 'model'}")
    print(f"Next, in the project's folder: python -m grpo_run.report {folder.as_posix()} --wrong 20")
    for run in sorted({path.parent.parent for path in folder.rglob("completions_*.parquet")}):  # one, or each stage
        print(f"Watch it learn, step by step: grpo-check replay {run.as_posix()}")
