"""Run the checks from a terminal: ``python -m grpo_check --help``."""

import argparse
import json
import logging
import sys
from pathlib import Path

from . import CourseError, diagnose_file, probe
from .pilot import pilot_file
from .preflight.config_file import preflight_file
from .reward_lab.loading import find_reward, folders_of, imports_from


def probe_files(arguments: argparse.Namespace) -> int:
    """Attack rewards from files. Returns 0 without errors, otherwise 1."""
    columns = {name: read_column(name, values) for name, values in arguments.column}
    with imports_from(*(folder for target in arguments.reward for folder in folders_of(target))):
        rewards = [find_reward(target) for target in arguments.reward]
        report = probe(
            rewards if len(rewards) > 1 else rewards[0],
            answers=arguments.answers,
            answer_column=arguments.answer_column,
            columns=columns,
            tags=arguments.tags,
            weights=arguments.weights,
            examples=arguments.example,
        )
    print(report)
    return 0 if report.ok else 1


def read_column(name: str, text: str) -> list:
    """A dataset column from the command line, a JSON list.

    >>> read_column("tests", '["f(1) == 2", "f(2) == 3"]')
    ['f(1) == 2', 'f(2) == 3']
    """
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        raise CourseError(f'column {name!r}: {text!r} is not JSON ({error}); write a list, \'["a", "b"]\'.') from error
    if not isinstance(values, list):
        raise CourseError(f"column {name!r}: {text!r} is not a JSON list; write '[…]', one value per answer.")
    return values


def preflight_of(arguments: argparse.Namespace) -> int:
    """Check a config file before a run. Returns 0 without errors, otherwise 1."""
    chosen = {name: vars(arguments)[name] for name in ("model", "train", "heldout", "gpu")}
    report = preflight_file(arguments.config, rewards=arguments.reward, **chosen)
    print(report)
    return 0 if report.ok else 1


def pilot_of(arguments: argparse.Namespace) -> int:
    """Sample before a run. Returns 0 for go, otherwise 1."""
    changes = {
        "num_generations": arguments.group,
        "max_completion_length": arguments.limit,
        "max_steps": arguments.steps,
    }
    chosen = {name: vars(arguments)[name] for name in ("model", "adapter", "train", "prompts", "price", "seed")}
    report = pilot_file(arguments.config, rewards=arguments.reward, changes=changes, **chosen)
    print(report)
    return 0 if report.ok else 1


def health_of(arguments: argparse.Namespace) -> int:
    """Diagnose a run from its log. Returns 0 without problems, otherwise 1."""
    verdicts = diagnose_file(arguments.log)
    print(*verdicts, sep="\n")
    # No step follows the end of a file, so a reward that never scored stays dead.
    return int(any(v.severity == "error" or v.code in ("dead_reward", "format_ignored") for v in verdicts))


def parse() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m grpo_check", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    attack = commands.add_parser("probe", help="attack your reward before training on it")
    attack.set_defaults(run=probe_files)
    attack.add_argument("reward", nargs="+", metavar="FILE.py:function", help="one reward, or several to sum")
    attack.add_argument("--answers", nargs="+", metavar="GOLD", help="gold answers as in your dataset")
    attack.add_argument("--answer-column", default="answer", metavar="NAME", help="the column with the gold answers")
    attack.add_argument(
        "--column",
        nargs=2,
        action="append",
        default=[],
        metavar=("NAME", "JSON"),
        help="another dataset column as a JSON list",
    )
    attack.add_argument(
        "--tags",
        nargs="*",
        metavar="TEXT",
        help="the four texts before and after reasoning and answer; no text: the answer alone",
    )
    attack.add_argument("--weights", nargs="+", type=float, metavar="W", help="one weight per reward")
    attack.add_argument(
        "--example",
        action="append",
        default=[],
        metavar="TEXT",
        help="your own completion that the reward should score",
    )
    log = commands.add_parser("health", help="find what is wrong with a run from its log")
    log.set_defaults(run=health_of)
    log.add_argument(
        "log",
        type=Path,
        help="trainer_state.json or its folder, a JSON list, JSON lines, or a text file with the error",
    )
    check = commands.add_parser("preflight", help="find problems in a config of trl grpo before the run")
    check.set_defaults(run=preflight_of)
    sample = commands.add_parser(
        "pilot", help="sample a few groups before a run: will it learn, and what will it cost?"
    )
    sample.set_defaults(run=pilot_of)
    rows = "a .jsonl, .json or .csv file, addition or gsm8k"
    for command in (check, sample):
        command.add_argument("config", type=Path, metavar="config.yaml", help="the file for trl grpo --config")
        command.add_argument("--train", default="", metavar="FILE", help=f"training rows: {rows}")
        replaced = "replaces reward_funcs of the file"
        command.add_argument("--reward", action="append", default=[], metavar="FILE.py:function", help=replaced)
        command.add_argument("--model", default="", help="replaces model_name_or_path of the file")
    check.add_argument("--heldout", default="", metavar="FILE", help=f"held-out rows: {rows}")
    check.add_argument(
        "--gpu",
        default="",
        choices=["t4", "l4", "a100", "h100", "cpu"],
        help="the GPU of the run (default: this machine)",
    )
    sample.add_argument("--adapter", default="", metavar="FOLDER", help="a LoRA adapter for the model")
    sample.add_argument("--prompts", type=int, default=32, metavar="N", help="prompts to sample (default: 32)")
    sample.add_argument("--group", type=int, metavar="N", help="replaces num_generations of the file")
    sample.add_argument("--limit", type=int, metavar="N", help="replaces max_completion_length of the file")
    sample.add_argument("--steps", type=int, metavar="N", help="replaces max_steps of the file")
    sample.add_argument("--price", type=float, metavar="P", help="of an hour on this machine")
    sample.add_argument("--seed", type=int, default=0, help="of the prompts and the sampling (default: 0)")
    return parser.parse_args()


def main() -> None:
    """Run a command; an error that the user can fix is printed as one sentence, and so is Ctrl-C."""
    arguments = parse()
    # On import it reports that a faster 4-bit kernel could be downloaded, which is not needed here.
    logging.getLogger("bitsandbytes.backends.cpu.ops").setLevel(logging.ERROR)
    try:
        sys.exit(arguments.run(arguments))
    except CourseError as error:
        sys.exit(f"Error: {error}")
    except KeyboardInterrupt:
        sys.exit("Interrupted; nothing was written.")


if __name__ == "__main__":
    main()
