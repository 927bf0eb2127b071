"""Train a small model against your reward for some minutes, and show what it was really paid for.

    python scripts/attack_reward.py my_rewards.py:my_reward --rows rows.jsonl
    python scripts/attack_reward.py my_rewards.py:my_reward --rows rows.jsonl --correct my_rewards.py:is_right

An experiment: what it finds is not measured yet. `scripts/bench_attack.py` tries it on the rewards of tests/attack_zoo,
which nobody may look at to improve it.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from attack import AttackReport, attack

from grpo_check.preflight.config_file import TRAIN_ROWS, read_rows
from grpo_check.reward_lab.loading import find_reward, folders_of, imports_from
from grpo_utils.errors import CourseError


def main(given: Sequence[str] | None = None) -> int:
    """Attack, and print the report; 1 after an error, and 2 if the attack could not run."""
    try:
        report = attack_files(parse(given))
    except CourseError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    print(report)
    return 0 if report.ok else 1


def parse(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("reward", nargs="+", metavar="FILE.py:function", help="one reward, or several to sum")
    parser.add_argument("--rows", required=True, metavar="FILE", help="rows with a prompt: .jsonl, .json or .csv")
    own = "your definition of a correct completion: correct(text, row), True or False"
    parser.add_argument("--correct", default="", metavar="FILE.py:function", help=own)
    parser.add_argument("--answer-column", default="answer", metavar="NAME", help="the column with the gold answers")
    parser.add_argument("--weights", nargs="+", type=float, metavar="W", help="one weight per reward")
    example = "your own correct completion"
    parser.add_argument("--example", action="append", default=[], metavar="TEXT", help=example)
    which = "the model that is trained (default: SmolLM2-135M-Instruct, fetched once)"
    parser.add_argument("--model", default=None, help=which)
    parser.add_argument("--minutes", type=float, default=5.0, metavar="N", help="of training (default: 5)")
    parser.add_argument("--seed", type=int, default=0, help="of the rows and the sampling (default: 0)")
    parser.add_argument("--out", type=Path, default=Path("outputs/attack"), metavar="FOLDER")
    return parser.parse_args(given)


def attack_files(options: argparse.Namespace) -> AttackReport:
    """Attack rewards from files with rows from a file."""
    named = [*options.reward, *filter(None, [options.correct])]
    with imports_from(*(folder for target in named for folder in folders_of(target))):
        functions = [find_reward(target) for target in named]
        return attack(
            functions[: len(options.reward)],
            list(read_rows(options.rows, Path.cwd(), "train", TRAIN_ROWS)),
            correct=functions[-1] if options.correct else None,
            answer_column=options.answer_column,
            weights=options.weights,
            examples=options.example,
            model=options.model,
            minutes=options.minutes,
            seed=options.seed,
            output_dir=options.out,
        )


if __name__ == "__main__":
    sys.exit(main())
