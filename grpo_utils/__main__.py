"""Run a lesson, train a real model, start a project, or show a report, this machine's profile or solved exercises."""

import argparse
import ast
import os
import shlex
import shutil
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from grpo_core.errors import CourseError, did_you_mean
from grpo_core.training.measuring import before_after

from .exercises import exercise_table
from .profiles import find_profile
from .project import new_project, template_names, upgrade
from .real import training as real
from .runs import read_report, show_replay
from .share import block, where_to_paste

LESSON = Path("notebooks/03_grpo_lora.ipynb")
#: How a parameter is read, by the type in its annotation.
_TYPES = {"str": str, "int": int, "float": float, "bool": {"True": True, "False": False}.__getitem__}


def run(arguments: argparse.Namespace) -> None:
    """Run a lesson through papermill, stream its output, and print its before/after table if it has one."""
    lesson, started = arguments.lesson, time.perf_counter()
    parameters = read_parameters(lesson, arguments.parameter)
    folder = Path(parameters.get("OUTPUT_DIR", "outputs/run"))
    with TemporaryDirectory() as scratch:  # the lesson's own folder must be empty when it starts
        source = lesson if arguments.solutions else without_solutions(lesson, Path(scratch))
        executed = execute(source, Path(scratch), parameters, folder.parent)
        kept = keep(executed, folder / lesson.name if "OUTPUT_DIR" in parameters else timed(folder.parent, lesson.stem))
    if "OUTPUT_DIR" in parameters and (folder / "report.json").exists():  # lesson 05 leaves a model, but no report
        _show_report(folder)
        show_replay(folder)
    else:
        print(f"\n{kept}: the executed lesson, {time.perf_counter() - started:.0f} s")


def timed(folder: Path, stem: str) -> Path:
    """A notebook path with the time in its name, so that no earlier notebook is overwritten."""
    return folder / f"{stem}-{time.strftime('%Y%m%d-%H%M%S')}.ipynb"


def keep(executed: Path, kept: Path) -> Path:
    """Move an executed notebook to its final path."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    return Path(shutil.move(executed, kept))


def read_parameters(lesson: Path, pairs: list[tuple[str, str]]) -> dict:
    """The names and values from the command line as the lesson's parameters, converted to their types.

    If the lesson writes a report, its ``OUTPUT_DIR`` is always included. Papermill itself only warns about an unknown
    name and accepts any type.
    """
    import papermill

    if not lesson.is_file():
        raise CourseError(f"There is no notebook {str(lesson)!r} here. Run this command from the course's folder.")
    valid = papermill.inspect_notebook(str(lesson))
    for name, _ in pairs:
        if name not in valid:
            hint = did_you_mean(name.upper(), valid)
            raise CourseError(f"{name!r} is not a parameter of {lesson.name}.{hint} Valid: {', '.join(valid)}.")
    defaults = {name: ast.literal_eval(valid[name]["default"]) for name in ("OUTPUT_DIR",) if name in valid}
    return defaults | {name: _read_value(name, text, valid[name]["inferred_type_name"]) for name, text in pairs}


def _read_value(name: str, text: str, kind: str) -> object:
    """A command-line value as a ``str``, ``int``, ``float`` or ``bool``.

    >>> _read_value("STEPS", "10", "int"), _read_value("OUTPUT_DIR", "10", "str")
    (10, '10')
    """
    try:
        return _TYPES[kind](text)
    except (ValueError, KeyError):
        example = "True" if kind == "bool" else 3
        raise CourseError(f"{name}={text!r} must be of type {kind}, for example {example}.") from None


def without_solutions(lesson: Path, scratch: Path) -> Path:
    """A copy of a lesson that does not train again for the solutions of its exercises."""
    import nbformat

    book = nbformat.read(lesson, as_version=4)
    book.cells = [cell for cell in book.cells if "solution" not in cell.metadata.get("tags", [])]
    copy = scratch / "without solutions" / lesson.name
    copy.parent.mkdir()
    nbformat.write(book, copy)
    return copy


def execute(lesson: Path, scratch: Path, parameters: dict, failed: Path) -> Path:
    """Run a notebook in ``scratch`` and print its cells' output as they run; ``failed`` keeps one that fails."""
    import papermill

    executed = scratch / lesson.name
    shown = dict(progress_bar=False, stdout_file=sys.stdout, stderr_file=sys.stderr)
    shown["start_timeout"] = 300  # seconds; papermill's 60 are not enough for a kernel on a busy machine
    shown["extra_arguments"] = ["--IPKernelApp.log_level=40"]  # else a warning that its sockets are not encrypted
    try:
        papermill.execute_notebook(lesson, executed, parameters, **shown)
    except papermill.PapermillExecutionError as error:
        if error.ename == CourseError.__name__:
            raise CourseError(error.evalue) from error
        kept = keep(executed, timed(failed, "failed"))
        raise CourseError(f"{error.ename}: {error.evalue}\nThe partly executed notebook: {kept}") from error
    return executed


def _show_report(folder: Path) -> None:
    """Print a finished run's files and its before/after table."""
    report = read_report(folder)
    summaries = report["before"], report["after"], report["p_value"], report.get("merged")
    print(f"\n{report['model']}, {report['profile']} profile, {report['steps']} steps, ", end="")
    print(f"{report['train_seconds']:.0f} s of training, {report['wall_seconds']:.0f} s in all\n")
    print(before_after(*summaries))
    if (folder / "merged").is_dir():  # of lesson 03; a template's run has `model`, often an adapter
        print(f"\n{folder / 'merged'}: the trained model, for AutoModelForCausalLM or pipeline")
    print(f"{folder / 'report.json'}: every figure and setting")


def _share_report(folder: Path) -> None:
    """Print a finished run's table for sharing, and where to paste it; nothing is sent or copied."""
    print(block(read_report(folder)))
    print("\nThe table has no paths, names or tokens. Nothing was sent.")
    print(f"To share it, copy the table into {where_to_paste()}")


def start_project(template: str, folder: Path) -> None:
    """Copy a template and print the next commands."""
    new_project(template, folder)
    print(f"Created {folder} from {template}, with a tiny model for training on a CPU. Next:\n")
    tests = "    pytest\n" if any(folder.glob("test_*.py")) else ""
    activate = "" if sys.prefix == sys.base_prefix else f"    {activation(Path(sys.prefix))}\n"
    print(f"    cd {shlex.quote(str(folder))}\n{activate}{tests}    {_first_training(folder)}\n")
    print("The README shows what to change first and lists the packages, which this environment already has.")


def upgrade_project(folder: Path) -> None:
    """Replace a project's wheel, and print what changed and the next command."""
    changed = upgrade(folder)
    if not changed:
        print(f"{folder / 'vendor'} is up to date.")
        return
    print(f"{len(changed)} files changed in the wheel in {folder / 'vendor'}:\n    " + "\n    ".join(changed))
    print("To install it, in the project: pip install --force-reinstall --no-deps vendor/*.whl")
    print("Requirements may have changed too: compare requirements.txt with that of the template.")


def activation(environment: Path) -> str:
    """The line that activates a virtual environment; on Windows, in PowerShell."""
    if os.name == "nt":
        return f'& "{environment / "Scripts" / "Activate.ps1"}"'
    return f"source {shlex.quote(str(environment))}/bin/activate"


def _first_training(folder: Path) -> str:
    """The first training command in the template's README (the one for a CPU), without its comment."""
    lines = (folder / "README.md").read_text(encoding="utf-8").splitlines()
    return next(line.partition(" #")[0].strip() for line in lines if " train.py" in line and "--check" not in line)


def parse() -> tuple[argparse.Namespace, list[str]]:
    """The command line, and the options of `real` that are for train.py."""
    parser = argparse.ArgumentParser(prog="python -m grpo_utils", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    lesson = commands.add_parser("run", help="run a lesson from beginning to end, without a browser")
    lesson.add_argument("lesson", nargs="?", type=Path, default=LESSON, help="a notebook (default: lesson 03)")
    lesson.add_argument(
        "-p",
        dest="parameter",
        nargs=2,
        action="append",
        default=[],
        metavar=("NAME", "VALUE"),
        help="set a parameter of the lesson, for example -p FAMILY gemma",
    )
    lesson.add_argument("--solutions", action="store_true", help="run the solutions of the exercises as well")
    commands.add_parser("machine", help="show which profile fits this machine, and why")
    table = commands.add_parser("report", help="show the before/after table of a finished run")
    table.add_argument("folder", nargs="?", type=Path, default=Path("outputs/run"))
    table.add_argument("--share", action="store_true", help="print a table without personal data, to share")
    exercises = commands.add_parser("exercises", help="show which exercises of the student copies were solved here")
    where = "default: outputs/workshop, in this folder or one above it"
    exercises.add_argument("folder", nargs="?", type=Path, help=where)
    project = commands.add_parser("new", help="start a project from a template, with a tiny model")
    project.add_argument("template", metavar="TEMPLATE", help=", ".join(template_names()))
    project.add_argument("folder", type=Path, metavar="FOLDER", help="a new or empty folder")
    newer = commands.add_parser("upgrade", help="replace the wheel in a project's vendor/ with one from this course")
    newer.add_argument("folder", type=Path, metavar="FOLDER", help="a project that `new` made")
    what = "train SmolLM2, a real language model, and measure what it gained; any other option is a setting of train.py"
    real.add_arguments(commands.add_parser("real", help=what, description=real.__doc__.splitlines()[0]))
    arguments, options = parser.parse_known_args()
    if options and arguments.command != "real":
        parser.error(f"unrecognized arguments: {' '.join(options)}")
    return arguments, options


def main() -> None:
    """Run the command; an error that the user can fix prints one message, not a traceback."""
    arguments, options = parse()
    try:
        if arguments.command == "run":
            run(arguments)
        elif arguments.command == "machine":
            profile, reason = find_profile()
            print(f"profile: {profile.name}\nreason: {reason}\nsizes: {profile.why}\nevidence: {profile.evidence}")
        elif arguments.command == "exercises":
            print(exercise_table(arguments.folder))
        elif arguments.command == "real":
            real.main(arguments, options)
        elif arguments.command == "new":
            start_project(arguments.template, arguments.folder)
        elif arguments.command == "upgrade":
            upgrade_project(arguments.folder)
        else:
            (_share_report if arguments.share else _show_report)(arguments.folder)
    except CourseError as error:
        sys.exit(f"Error: {error}")
    except KeyboardInterrupt:
        kept = {"real": "The same command continues.", "new": "Nothing was written."}
        what = kept.get(arguments.command, "The next run keeps this unfinished one under a new name.")
        print(f"Stopped. {what}", file=sys.stderr)
        sys.exit(130)  # as a shell reports a program that Ctrl-C ended


if __name__ == "__main__":
    main()
