# Generated from grpo_utils 0.1.0, templates/_lib/report.py; the same in every template.
"""Print the table of a finished run again: python -m lib.report FOLDER, its output_dir."""

import json
import sys
from pathlib import Path

from .measuring import before_after


def main(arguments: list[str]) -> None:
    """Print the table in the folder that is named, or stop and name one."""
    if len(arguments) != 1 or not Path(arguments[0], "report.json").is_file():
        finished = [path.parent.as_posix() for path in sorted(Path("outputs").glob("*/report.json"))] or ["FOLDER"]
        raise SystemExit(
            f"Error: name a folder with a report.json, from a finished run: python -m lib.report {finished[-1]}"
        )
    report = json.loads(Path(arguments[0], "report.json").read_text(encoding="utf-8"))
    print(before_after(report["before"], report["after"], report["p_value"]))


if __name__ == "__main__":
    main(sys.argv[1:])
