"""Where the course is, and what several of its tests use."""

import errno
import subprocess
import sys
from pathlib import Path

from grpo_utils.evaluation.judging import Evaluation, judge

ROOT = Path(__file__).parent.parent


def full_disk(*args: object, **kwargs: object) -> None:
    """What writes a file, on a disk without room."""
    raise OSError(errno.ENOSPC, "No space left on device")


def cli(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess:
    """`python -m grpo_utils` in a process of its own."""
    return subprocess.run([sys.executable, "-m", "grpo_utils", *arguments], capture_output=True, text=True, cwd=cwd)


def judged(sampled: list[str], greedy: list[str], answers: list[str], **columns: list) -> Evaluation:
    """`judge` on rows of these answers; the prompts are all the same unless they are given."""
    from datasets import Dataset

    rows = {"prompt": ["15 + 27?"] * len(answers), "answer": answers} | columns
    return judge(sampled, greedy, Dataset.from_dict(rows))
