"""Run the checks from a terminal: ``grpo-check --help``, or ``python -m grpo_check --help``."""

import argparse
import json
import logging
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from io import TextIOWrapper
from pathlib import Path

from grpo_core.errors import CourseError

from . import __version__
from .error_texts import installed
from .findings import Finding, Report
from .output import FORMATS, in_terminal_words, show
from .preflights.estimate import HARDWARE
from .settings import read_settings

ABOUT = "Checks for a GRPO run with TRL, before and after training."
_MORE = """
examples:
  grpo-check probe my_rewards.py:correct --answers 42 17
  grpo-check attack my_rewards.py:correct --rows rows.jsonl
  grpo-check preflight config.yaml --train rows.jsonl --gpu t4
  grpo-check pilot config.yaml --prompts 32
  grpo-check health outputs/my_run
  grpo-check replay outputs/my_run
  grpo-check explain no_eos
  grpo-check explain "probability tensor contains either"
  grpo-check explain - < traceback.txt

exit codes:
  0  found nothing above a warning (with --strict: nothing above a note)
  1  found an error
  2  could not run

pyproject.toml, here or in a folder above, may have defaults:
  [tool.grpo_check]
  ignore = ["pad_is_eos"]     # also: select, strict, format
"""
ROWS = "a .jsonl, .json, .csv or .parquet file, or a folder of them"
#: Lines of a reward's own output that are shown.
_MOST_PRINTED = 3


def _add_check(commands: argparse._SubParsersAction, name: str, run: object, about: str) -> argparse.ArgumentParser:
    """A command that checks something, with the options that all of them have."""
    parser = commands.add_parser(name, help=about, description=f"{about[0].upper()}{about[1:]}.")
    parser.set_defaults(command=check, run=run, check=name)
    output = parser.add_argument_group("output")
    output.add_argument("--format", choices=FORMATS, help="text (default), json, or github for annotations in a CI job")
    output.add_argument("--select", metavar="CODES", help="only findings with these codes, separated by commas")
    output.add_argument("--ignore", metavar="CODES", help="all findings but those with these codes")
    output.add_argument("--strict", action="store_true", default=None, help="exit with 1 after a warning, too")
    return parser


def _add_config(parser: argparse.ArgumentParser) -> None:
    """The arguments of the two commands that read a config file."""
    what = "the file for trl grpo --config, a training script or notebook with GRPOConfig(…), a shell script, or rows"
    parser.add_argument("config", type=Path, metavar="config.yaml", help=what)
    parser.add_argument("--train", default="", metavar="FILE", help=f"training rows: {ROWS}")
    replaced = "replaces reward_funcs of the file"
    parser.add_argument("--reward", action="append", default=[], metavar="FILE.py:function", help=replaced)
    parser.add_argument("--model", default="", help="replaces model_name_or_path of the file")


def _add_rewards(parser: argparse.ArgumentParser) -> None:
    """The arguments of the two commands that attack rewards."""
    where = "one reward, or several to sum; from a Python file, a training script, a notebook (.ipynb) or a module"
    parser.add_argument("reward", nargs="+", metavar="FILE.py:function", help=where)
    gold = "the column with the gold answers (default: answer); a list in it means accepted alternatives"
    parser.add_argument("--answer-column", metavar="NAME", help=gold)
    parser.add_argument("--weights", nargs="+", type=float, metavar="W", help="one weight per reward")


def _add_probe(commands: argparse._SubParsersAction) -> None:
    """The arguments of ``probe``."""
    parser = _add_check(commands, "probe", _probe_files, "attack your reward before training on it")
    _add_rewards(parser)
    parser.add_argument("--answers", nargs="+", metavar="GOLD", help="gold answers as in your dataset")
    other = "another dataset column as a JSON list"
    parser.add_argument("--column", nargs=2, action="append", default=[], metavar=("NAME", "JSON"), help=other)
    tags = "the four texts before and after reasoning and answer; no text: the answer alone"
    parser.add_argument("--tags", nargs="*", metavar="TEXT", help=tags)
    own = "your own completion that the reward should score"
    parser.add_argument("--example", action="append", default=[], metavar="TEXT", help=own)
    most = "the most completions that each reward, and their sum, may score, where each costs time or money"
    parser.add_argument("--calls", type=int, metavar="N", help=most)


def _probe_files(arguments: argparse.Namespace) -> Report:
    """Attack rewards from files. Gold answers that pay nothing as texts are tried as numbers, too."""
    from .probes.probing import probe

    columns = {name: _read_column(name, values) for name, values in arguments.column}
    options = dict(answer_column=arguments.answer_column, columns=columns, tags=arguments.tags)
    options |= dict(weights=arguments.weights, examples=arguments.example, calls=arguments.calls)
    with _functions_of(arguments.reward) as rewards:
        report = probe(rewards, answers=arguments.answers, **options)
        if report.not_judged and (numbers := _as_numbers(arguments.answers)):
            other = probe(rewards, answers=numbers, **options)
            if len(other.not_judged) < len(report.not_judged):
                print("As texts, the gold answers pay nothing; they were tried as numbers.", file=sys.stderr)
                report = other
    for line in report.printed[:_MOST_PRINTED]:
        print(f"the reward wrote: {line}", file=sys.stderr)
    if len(report.printed) > _MOST_PRINTED:
        print(f"and {len(report.printed) - _MOST_PRINTED} other lines.", file=sys.stderr)
    return report


def _as_numbers(answers: list[str] | None) -> list[int | float] | None:
    """Gold answers as numbers, if all are some.

    >>> _as_numbers(["18", "0.5"]), _as_numbers(["18", "Paris"])
    ([18, 0.5], None)
    """
    try:
        return [int(one) if one.lstrip("-").isdigit() else float(one) for one in answers or []] or None
    except ValueError:
        return None


@contextmanager
def _functions_of(targets: Sequence[str]) -> Iterator[list[Callable]]:
    """The functions of some FILE.py:function, which may import from their folders as long as they are used."""
    from .probes.loading import find_reward, folders_of, imports_from

    with imports_from(*(folder for target in targets for folder in folders_of(target)), Path.cwd()):
        yield [find_reward(target) for target in targets]


def _read_column(name: str, text: str) -> list:
    """A dataset column from the command line, a JSON list.

    >>> _read_column("tests", '["f(1) == 2", "f(2) == 3"]')
    ['f(1) == 2', 'f(2) == 3']
    """
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        raise CourseError(f'column {name!r}: {text!r} is not JSON ({error}); write a list, \'["a", "b"]\'.') from error
    if not isinstance(values, list):
        raise CourseError(f"column {name!r}: {text!r} is not a JSON list; write '[…]', one value per answer.")
    return values


def _add_attack(commands: argparse._SubParsersAction) -> None:
    """The arguments of ``attack``."""
    about = "train a small model against your reward, and show what the reward really pays for"
    parser = _add_check(commands, "attack", _attack_files, about)
    parser.epilog = (
        "It needs torch, trl, peft and, with the default model, 5 GB of free memory. That model, "
        "SmolLM2-135M-Instruct, is downloaded once (93 MB). Ctrl-C ends the training, and the report covers what was "
        "sampled by then."
    )
    _add_rewards(parser)
    parser.add_argument("--rows", required=True, metavar="FILE", help=f"rows with a prompt: {ROWS}")
    own = "your definition of a correct completion: correct(text, row) returns True or False"
    parser.add_argument("--correct", default="", metavar="FILE.py:function", help=own)
    honest = "your own correct completion"
    parser.add_argument("--example", action="append", default=[], metavar="TEXT", help=honest)
    which = "a folder or a hub id (default: SmolLM2-135M-Instruct)"
    parser.add_argument("--model", help=which)
    real = "of training, in real time (default: 5)"
    parser.add_argument("--minutes", type=float, default=5.0, metavar="N", help=real)
    parser.add_argument("--seed", type=int, default=0, help="of the rows and the sampling (default: 0)")
    kept = "for the log, the completions and their replay (default: outputs/attack)"
    parser.add_argument("--out", type=Path, default=Path("outputs/attack"), metavar="FOLDER", help=kept)


def _attack_files(arguments: argparse.Namespace) -> Report:
    """Train a model against rewards from files, on rows from a file."""
    from .attacks.running import attack
    from .preflights.named_rows import read_rows

    named = [*arguments.reward, *filter(None, [arguments.correct])]
    with _functions_of(named) as functions:
        return attack(
            functions[: len(arguments.reward)],
            list(read_rows(arguments.rows, Path.cwd(), "train")),
            correct=functions[-1] if arguments.correct else None,
            answer_column=arguments.answer_column or "answer",
            weights=arguments.weights,
            examples=arguments.example,
            model=arguments.model,
            minutes=arguments.minutes,
            seed=arguments.seed,
            output_dir=arguments.out,
        )


def _add_preflight(commands: argparse._SubParsersAction) -> None:
    """The arguments of ``preflight``."""
    parser = _add_check(commands, "preflight", preflight_of, "find problems in a config of trl grpo before the run")
    _add_config(parser)
    parser.add_argument("--heldout", default="", metavar="FILE", help=f"held-out rows: {ROWS}")
    parser.add_argument("--gpu", default="", choices=tuple(HARDWARE), help="the GPU of the run (default: this machine)")


def preflight_of(arguments: argparse.Namespace) -> Report:
    """Check a config file before a run."""
    from .preflights.config_file import preflight_file

    return preflight_file(
        arguments.config,
        model=arguments.model,
        train=arguments.train,
        heldout=arguments.heldout,
        rewards=arguments.reward,
        gpu=arguments.gpu,
    )


def _add_pilot(commands: argparse._SubParsersAction) -> None:
    """The arguments of ``pilot``."""
    about = "sample a few groups before a run: will it learn, and what will it cost?"
    parser = _add_check(commands, "pilot", _pilot_of, about)
    _add_config(parser)
    parser.add_argument("--adapter", default="", metavar="FOLDER", help="a LoRA adapter for the model")
    parser.add_argument("--prompts", type=int, default=32, metavar="N", help="prompts to sample (default: 32)")
    what = "rows with their gold answers in each prompt, to see what they give for nothing (default: 0)"
    parser.add_argument("--examples", type=int, default=0, metavar="N", help=what)
    parser.add_argument("--group", type=int, metavar="N", help="replaces num_generations of the file")
    parser.add_argument("--limit", type=int, metavar="N", help="replaces max_completion_length of the file")
    parser.add_argument("--steps", type=int, metavar="N", help="replaces max_steps of the file")
    parser.add_argument("--price", type=float, metavar="P", help="of an hour on this machine")
    parser.add_argument("--seed", type=int, default=0, help="of the prompts and the sampling (default: 0)")


def _pilot_of(arguments: argparse.Namespace) -> Report:
    """Sample before a run. Findings of the preflight that are left out stop nothing; the verdict always stays."""
    from .pilots.running import pilot_file

    changes = {
        "num_generations": arguments.group,
        "max_completion_length": arguments.limit,
        "max_steps": arguments.steps,
    }
    return pilot_file(
        arguments.config,
        model=arguments.model,
        adapter=arguments.adapter,
        train=arguments.train,
        rewards=arguments.reward,
        changes=changes,
        wanted=arguments.settings.keeps,
        prompts=arguments.prompts,
        examples=arguments.examples,
        price=arguments.price,
        seed=arguments.seed,
    )


def _add_health(commands: argparse._SubParsersAction) -> None:
    """The arguments of ``health``."""
    parser = _add_check(commands, "health", _health_of, "find what is wrong with a run from its log")
    what = "the folder of a run, trainer_state.json, JSON, CSV, a notebook, printed output, or a text with the error"
    parser.add_argument("log", type=Path, help=what)
    _add_correctness(parser)


def _add_correctness(parser: argparse.ArgumentParser) -> None:
    """The option of the two commands that judge a log."""
    what = "a reward that measures whether an answer is correct (default: known by its name)"
    parser.add_argument("--correctness", action="append", default=[], metavar="NAME", help=what)


def _health_of(arguments: argparse.Namespace) -> Report:
    """Diagnose a run from its log."""
    from .health.diagnosis import diagnose_file

    return _HealthReport(tuple(map(_in_a_terminal, diagnose_file(arguments.log, correctness=arguments.correctness))))


def _in_a_terminal(finding: Finding) -> Finding:
    """A finding whose advice names the option of the command instead of the argument of a function."""
    fixes = (fix.replace("in correctness=[…]", "with --correctness NAME") for fix in finding.fixes)
    return replace(finding, fixes=tuple(fixes))


class _HealthReport(Report):
    """The findings on a log. What was found is the verdict, so no line counts errors after it."""

    def last_line(self) -> str:
        """Nothing."""
        return ""


def _add_replay(commands: argparse._SubParsersAction) -> None:
    """The arguments of ``replay``."""
    about = "write a page that replays a run: its completions step by step, curves and verdicts in one HTML file"
    parser = commands.add_parser("replay", help=about, description=f"{about[0].upper()}{about[1:]}.")
    what = "the output_dir of a run with log_completions=True, or with the samples of HealthCallback"
    parser.add_argument("folder", type=Path, metavar="RUN_FOLDER", help=what)
    parser.add_argument("--output", type=Path, metavar="FILE", help="the page (default: replay.html in the folder)")
    parser.add_argument("--log", type=Path, metavar="FILE", help="the log (default: the newest in the folder)")
    _add_correctness(parser)
    parser.set_defaults(command=replay_of)


def replay_of(arguments: argparse.Namespace) -> int:
    """Write the page of a run, and say what a reader of the page should know about it."""
    from .replay.page import write_replay
    from .replay.read import read_run, run_folder

    file = arguments.output or run_folder(arguments.folder) / "replay.html"
    for note in write_replay(read_run(arguments.folder, arguments.log, arguments.correctness), file):
        print(f"note    {note}")
    print(f"written: {file} ({file.stat().st_size / 1e6:.1f} MB). Open it in a browser; it needs no network.")
    return 0


def _add_explain(commands: argparse._SubParsersAction) -> None:
    """The arguments of ``explain``."""
    about = "say what a code or an error text means, and what to do about it"
    parser = commands.add_parser("explain", help=about, description=f"{about[0].upper()}{about[1:]}.")
    what = "a code such as no_eos, an error text in quotes, or - to read a traceback from standard input; "
    parser.add_argument("asked", metavar="CODE|TEXT", nargs="*", help=f"{what}without one, all codes are listed")
    parser.set_defaults(command=_explain_asked)


def _explain_asked(arguments: argparse.Namespace) -> int:
    """Print what some codes or an error text mean, or a list of all codes."""
    from .explaining import explain_all, index

    asked = [pasted() if one == "-" else one for one in arguments.asked]
    _say(explain_all(asked) if asked else index())
    return 0


def pasted() -> str:
    """What standard input has. A log may be cut off inside a character, or be in another encoding."""
    return sys.stdin.buffer.read().decode("utf-8", errors="replace").strip()


def parse(given: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="grpo-check", description=ABOUT, epilog=_MORE, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    versions = f"grpo-check {__version__}, trl {installed('trl')}"
    parser.add_argument("--version", action="version", version=versions)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _add_probe(commands)
    _add_attack(commands)
    _add_preflight(commands)
    _add_pilot(commands)
    _add_health(commands)
    _add_replay(commands)
    _add_explain(commands)
    return parser.parse_args(given)


def check(arguments: argparse.Namespace) -> int:
    """Run a check, print what it found, and return the exit code."""
    arguments.settings = settings = read_settings(Path.cwd(), arguments)
    report = replace(arguments.run(arguments).keeping(settings.keeps), failing=settings.failing)
    _say(show(report, arguments.check, settings.format))
    return report.exit_code


def _say(text: str) -> None:
    """Print a text, also to a reader that stops before its end, as ``| head`` does."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more when it ends


def main() -> None:
    """Run a command. An error that the user can fix is printed as one sentence, and so is Ctrl-C.

    Any other exception prints its traceback; it may come from the user's own rewards, so all kinds are caught. Python
    itself would exit with 1, which means that an error was found.
    """
    if isinstance(sys.stdout, TextIOWrapper):  # a notebook's is none
        sys.stdout.reconfigure(errors="backslashreplace")  # for a name that the terminal's encoding lacks
    arguments = parse()
    # On import it reports that a faster 4-bit kernel could be downloaded, which is not needed here.
    logging.getLogger("bitsandbytes.backends.cpu.ops").setLevel(logging.ERROR)
    try:
        sys.exit(arguments.command(arguments))
    except CourseError as error:
        print(f"Error: {in_terminal_words(str(error))}", file=sys.stderr)
    except KeyboardInterrupt:
        print("Interrupted; nothing was written.", file=sys.stderr)
    except Exception:
        traceback.print_exc()
    sys.exit(2)


if __name__ == "__main__":
    main()
