"""Print the result of a finished run again, and its wrong answers: python -m grpo_run.report FOLDER --wrong 20."""

import argparse
import json
from pathlib import Path

from grpo_core.training.measuring import before_after

from .held_out import label_table, read_answers, wrong_answers


def read_report(folder: Path) -> dict:
    """The report of a finished run, or stop and name a folder that has one."""
    if not (folder / "report.json").is_file():
        finished = [path.parent.as_posix() for path in sorted(Path("outputs").glob("*/report.json"))]
        fix = f"name the folder of a finished run, for example {finished[-1]}" if finished else "train first"
        raise SystemExit(f"Error: {folder} has no report.json; {fix}.")
    return json.loads((folder / "report.json").read_text(encoding="utf-8"))


def main(arguments: list[str] | None = None) -> None:
    """Print the tables of a finished run, or the answers that are wrong."""
    parser = argparse.ArgumentParser(prog="python -m grpo_run.report", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("outputs"), help="the output_dir of a run")
    parser.add_argument("--wrong", type=int, metavar="N", help="print the first N wrong answers instead of the tables")
    given = parser.parse_args(arguments)
    report = read_report(given.folder)
    if given.wrong is not None:
        print(wrong_answers(read_answers(given.folder), given.wrong))
        return
    print(before_after(report["before"], report["after"], report["p_value"]))
    if report.get("labels"):  # an earlier version wrote none
        print(label_table(report["labels"]))


if __name__ == "__main__":
    main()
