"""What somebody pasted: without colors and what launchers and loggers add, and the errors in it, the last one first."""

import re
from itertools import pairwise

#: Errors come at the end, and a log can be long.
_LAST_CHARACTERS = 30_000
_COLOR = re.compile(r"\x1b\[[\d;]*[A-Za-z]")
#: What launchers, vLLM, loggers and frames put in front of a line or around it.
_DECORATION = re.compile(
    r"^\[(rank|default)\d+\]: ?|^\([^()\n]*pid=\d+[^()\n]*\) ?|[│╭╮╰╯─┃┏┓┗┛━]"
    r"|^(?:[EWI]\d{4} [\d:.]+ \d+ |(?:ERROR|WARNING|INFO) [\d-]+ [\d:.]+ \[)[^\]\n]*\] ?",
    re.MULTILINE,
)
#: An exception with its message, or alone at the end of a line. A line such as ``except ValueError:`` is none.
_ERROR = re.compile(
    r"(?<![\w.])(?:\w+\.)*(?:\w+(?:Error|Interrupt|Failure)|\w*Exception)(?:: (?=\S)|(?=\s*$))", re.MULTILINE
)
#: Where the message of an exception has ended, if it has more than one line.
_END = re.compile(r"\n\s*\n|\n(?=\s*File \"|Traceback \(|\S*%\|)")
TRACEBACK = "Traceback (most recent call last)"
#: Trainers for GRPO, by the folder of their code.
_TRAINERS = {"trl": "TRL", "swift": "ms-swift", "openrlhf": "OpenRLHF", "llamafactory": "LLaMA-Factory"}
_TRAINERS |= {name: name for name in ("verl", "axolotl", "tunix", "slime", "areal", "verifiers", "nemo_rl", "prime_rl")}
_FRAME = re.compile(rf"^[ \t]*File .*[/\\]({'|'.join(_TRAINERS)})[/\\]", re.MULTILINE)
#: A message can be as long as a batch; its beginning says what went wrong.
_LONGEST = 1000


def plain(pasted: str) -> str:
    """The end of what was pasted, without colors and without what is around its lines.

    >>> plain("\\x1b[31m[rank0]: KeyError: 'prompt'\\x1b[0m")
    "KeyError: 'prompt'"
    >>> plain("(EngineCore_0 pid=9) ERROR 11-20 09:00:01 [core.py:708] ValueError: no memory")
    'ValueError: no memory'
    """
    text = _COLOR.sub("", pasted[-_LAST_CHARACTERS:])
    while (bare := _DECORATION.sub("", text)) != text:  # one can be inside another
        text = bare
    return text


def errors(shown: str) -> list[str]:
    """The exceptions in a text with their messages, without repetitions, the last one first.

    >>> errors('  File "a.py", line 3, in f\\n    raise ValueError(x)\\nValueError: 3\\n\\nKeyError: 1\\n')
    ['KeyError: 1', 'ValueError: 3']
    >>> errors("I like GRPO")
    []
    """
    starts = [match.start() for match in _ERROR.finditer(shown)]
    parts = [shown[start:end] for start, end in pairwise([*starts, len(shown)])]
    found = [" ".join(_END.split(part)[0].split())[:_LONGEST] for part in parts]
    return list(dict.fromkeys(reversed(found)))


def traceback(shown: str) -> str:
    """What is shown from the first traceback on, or from the first exception; all of it if there is neither."""
    first = _ERROR.search(shown)
    starts = [shown.find(TRACEBACK), first.start() if first else -1]
    return shown[min((start for start in starts if start >= 0), default=0) :]


def other_trainer(shown: str) -> str:
    """The trainer whose code a traceback goes through and that is not TRL, "" if it goes through TRL's or no trainer's.

    >>> other_trainer('  File "/opt/swift/cli/main.py", line 62, in cli_main')
    'ms-swift'
    >>> other_trainer('  File "/opt/swift/cli/main.py", line 1\\n  File "/opt/trl/trainer.py", line 2')
    ''
    """
    through = [*dict.fromkeys(_FRAME.findall(shown))]
    return _TRAINERS[through[-1]] if through and "trl" not in through else ""
