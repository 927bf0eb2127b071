"""Read the command in a shell script that starts a training: ``accelerate launch train.py --learning_rate 1e-6 …``.

Many training scripts take the arguments of `GRPOConfig` as options, as transformers' parser does. What a variable of
the shell holds is unknown.
"""

import re
import shlex
from pathlib import Path
from typing import NamedTuple

from grpo_core.errors import CourseError

ENDINGS = (".sh", ".bash")
#: What starts a training of another tool.
_OF_TOOLS = {
    r"\bswift (?:rlhf|sft|pt)\b|\bswift/cli/": "ms-swift",
    r"\bverl\.trainer\b": "verl",
    r"\bopenrlhf\.cli\b": "OpenRLHF",
    r"\bllamafactory-cli\b": "LLaMA-Factory",
    r"\baxolotl(?: train|\.cli)": "axolotl",
    r"\bslime\b|\btrain_async\.py\b": "slime",
}
_OF_TRL = re.compile(r"\btrl grpo\b|\btrl/scripts/grpo\.py\b")
#: The program whose options are read: a script of Python, a module, or TRL's own command.
_PROGRAM = re.compile(r"\S+\.py|grpo")
#: Options of what starts several processes.
_PROCESSES = ("num_processes", "nproc_per_node")


class Command(NamedTuple):
    """A command of a shell script.

    Attributes:
        options: its options by name, with numbers and switches as such.
        unknown: the names of options whose values are variables.
        for_trl: whether it starts ``trl grpo``, so that each option must be one of TRL's.
    """

    options: dict
    unknown: tuple[str, ...]
    for_trl: bool


def read_shell(path: Path) -> Command:
    """The last command with options for a training in a shell script.

    Raises:
        CourseError: the file cannot be read, starts another tool, or has no such command.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CourseError(f"{path} cannot be read: {error}.") from error
    code = re.sub(r"^[ \t]*#.*$", "", text, flags=re.MULTILINE)
    tool = next((name for pattern, name in _OF_TOOLS.items() if re.search(pattern, code)), "")
    if tool:
        raise CourseError(
            f"{path} starts {tool}, and this check reads arguments of TRL. docs/other-trainers.md maps them."
        )
    for line in reversed(code.replace("\\\n", " ").splitlines()):
        words = _words(line)
        at = next((at for at, word in enumerate(words) if _PROGRAM.fullmatch(word)), None)
        if at is not None and any(word.startswith("--") for word in words[at:]):
            options, unknown = _options(words[at:])
            started, _ = _options(words[:at])
            options |= next(({"num_processes": started[name]} for name in _PROCESSES if name in started), {})
            return Command(options, unknown, bool(_OF_TRL.search(line)))
    raise CourseError(
        f"{path} has no command such as 'python train.py --learning_rate 1e-6 …'. Pass the config file or the training "
        "script that it starts."
    )


def _words(line: str) -> list[str]:
    """The words of a command, without what it would do with their output; none if a quote is open."""
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        return []


def _options(words: list[str]) -> tuple[dict, tuple[str, ...]]:
    """The options among some words, and the names of those with a variable in them.

    >>> _options(["train.py", "--seed", "1", "--bf16", "--rewards", "a", "b", "--lr=$LR"])
    ({'seed': 1, 'bf16': True, 'rewards': ['a', 'b']}, ('lr',))
    """
    given: dict[str, list[str]] = {}
    name = ""
    for word in words:
        if word.startswith("--") and len(word) > 2:
            name, equals, value = word[2:].partition("=")
            given[name] = [value] if equals else []
        elif name and word not in ("|", "&", "&&", ">", "2>&1", ";"):
            given[name].append(word)
        else:
            name = ""
    unknown = tuple(name for name, values in given.items() if any("$" in value or "`" in value for value in values))
    known = {name: [*map(_value, values)] for name, values in given.items() if name not in unknown}
    return {name: True if not some else some[0] if len(some) == 1 else some for name, some in known.items()}, unknown


def _value(text: str) -> object:
    """A number or a switch, if a text is one."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text.lower(), text)
