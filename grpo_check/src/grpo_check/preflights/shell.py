"""Read the training command in a shell script: ``accelerate launch train.py --learning_rate 1e-6 …``.

Many training scripts take the arguments of `GRPOConfig` as options, as transformers' parser does. What a variable of
the shell holds is unknown.
"""

import re
import shlex
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from grpo_core.errors import CourseError

ENDINGS = (".sh", ".bash")
#: How the training command of another tool begins, before its options.
_OF_TOOLS = {
    r"\bswift (?:rlhf|sft|pt)\b|\bswift/cli/": "ms-swift",
    r"\bverl\.trainer\b": "verl",
    r"\bopenrlhf\.cli\b": "OpenRLHF",
    r"\bllamafactory-cli\b": "LLaMA-Factory",
    r"\baxolotl(?: train|\.cli)": "axolotl",
}
#: What shows another tool in a command that starts it indirectly, as in a container.
_INSIDE = {r"\bactor_rollout_ref\.|\bverl\.trainer\b|\balgorithm\.adv_estimator\b": "verl", **_OF_TOOLS}
#: A comment on a line of its own. Its backslash at the end continues nothing, so a command before it ends there.
_COMMENT = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
_OF_TRL = re.compile(r"\btrl grpo\b|\btrl/scripts/grpo\.py\b|\btrl\.scripts\.grpo\b")
#: Where the output of a command goes: ``> log``, ``2>&1``, ``&>> log``.
_REDIRECTION = re.compile(r"(?<![^\s;|&])(?:\d|&)?>{1,2}[ \t]*&?[ \t]*[^\s;|&]+")
#: What separates commands.
_BETWEEN = {";", "&", "&&", "|", "||", ";;"}
#: Options of what starts several processes.
_PROCESSES = ("num_processes", "nproc_per_node")


class Command(NamedTuple):
    """A command of a shell script.

    Attributes:
        options: the texts of each option of the program; none for a switch.
        unknown: the names of options whose values are variables.
        processes: how many the launcher starts; "" if it does not say, ``?`` if that is a variable.
        for_trl: whether it starts ``trl grpo``, so that each option must be one of TRL's.
    """

    options: dict[str, list[str]]
    unknown: tuple[str, ...]
    processes: str
    for_trl: bool


def read_shell(path: Path, names: Collection[str]) -> Command:
    """The command of a shell script that has the most options with some names; the last of several.

    Raises:
        CourseError: the file cannot be read, starts another tool, or has no such command.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CourseError(f"{path} cannot be read: {error}.") from error
    commands = list(_commands(_COMMENT.sub("", text)))
    for words in commands:
        program = " ".join(words[: _first_option(words)])
        if tool := next((name for pattern, name in _OF_TOOLS.items() if re.search(pattern, program)), ""):
            raise _of_tool(path, tool)
    found = [_command(words, at) for words in commands if (at := _program(words)) is not None]
    known = [(len({*one.options, *one.unknown} & {*names, "config"}), one) for one in found]
    most = max((count for count, _ in known), default=0)
    if most:
        return [one for count, one in known if count == most][-1]
    if tool := next((name for pattern, name in _INSIDE.items() if re.search(pattern, text)), ""):
        raise _of_tool(path, tool)
    own = next((one for one in found if one.options), None)
    if own:
        options = ", ".join(f"--{name}" for name in [*own.options][:3])
        raise CourseError(
            f"{path} starts a program with options of its own ({options}, …), none of which is an argument of TRL's "
            "GRPOConfig, so nothing was checked. If that program builds a GRPOConfig, pass the program instead."
        )
    raise CourseError(
        f"{path} has no command such as 'python train.py --learning_rate 1e-6 …'. Pass the config file or the training "
        "script that it starts."
    )


def _of_tool(path: Path, tool: str) -> CourseError:
    return CourseError(
        f"{path} starts {tool}, and this check reads arguments of TRL; docs/other-trainers.md maps them."
    )


def _commands(text: str) -> Iterator[list[str]]:
    """The words of each command; a quoted word may have several lines.

    >>> list(_commands("python a.py --seed 1 > log 2>&1; echo 'x\\ny'  # done"))
    [['python', 'a.py', '--seed', '1'], ['echo', 'x\\ny']]
    """
    pending = ""
    for line in text.replace("\\\r\n", " ").replace("\\\n", " ").splitlines():
        pending = f"{pending}\n{line}" if pending else _REDIRECTION.sub(" ", line)
        reader = shlex.shlex(pending, posix=True, punctuation_chars=";&|")
        reader.whitespace_split = True
        try:
            words = list(reader)
        except ValueError:  # a quote is open
            continue
        pending, command = "", []
        for word in [*words, ";"]:
            if word not in _BETWEEN:
                command.append(word)
            elif command:
                yield command
                command = []


def _first_option(words: list[str]) -> int:
    return next((at for at, word in enumerate(words) if word.startswith("--")), len(words))


def _program(words: list[str]) -> int | None:
    """Where the program is whose options are read: a script of Python, a module, or TRL's own command."""
    for at, word in enumerate(words):
        before = words[at - 1] if at else ""
        if word.endswith(".py") or (before == "trl" and word == "grpo") or (before == "-m" and "." in word):
            return at if word != "torch.distributed.run" else None
    return None


def _command(words: list[str], at: int) -> Command:
    options, unknown = _options(words[at:])
    started, hidden = _options(words[:at])
    counts = [started[name] for name in _PROCESSES if name in started]
    processes = "?" if {*hidden} & {*_PROCESSES} else "".join(counts[0][:1]) if counts else ""
    return Command(options, unknown, processes, bool(_OF_TRL.search(" ".join(words[: at + 1]))))


def _options(words: list[str]) -> tuple[dict[str, list[str]], tuple[str, ...]]:
    """The texts of each option among some words, and the names of those with a variable in them.

    >>> _options(["train.py", "--seed", "1", "--bf16", "--reward-funcs", "a", "b", "--lr=$LR"])
    ({'seed': ['1'], 'bf16': [], 'reward_funcs': ['a', 'b']}, ('lr',))
    """
    given: dict[str, list[str]] = {}
    name = ""
    for word in words:
        if word.startswith("--") and len(word) > 2:
            name, equals, value = word[2:].partition("=")
            name = name.replace("-", "_")
            given[name] = [value] if equals else []
        elif name:
            given[name].append(word)
    unknown = tuple(name for name, values in given.items() if any("$" in value or "`" in value for value in values))
    return {name: values for name, values in given.items() if name not in unknown}, unknown
