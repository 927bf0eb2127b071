"""A config for the ``train.py`` of a project made from a template of the course: its rows and rewards are code.

Such a project has ``data.py`` with ``load_rows``, ``rewards.py`` with ``REWARDS``, and ``train.py``, which imports
`grpo_run`. Its class `RunConfig` has the settings that TRL does not know. The project's code runs in a process of its
own, in its folder.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import MISSING, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from grpo_run.start import RunConfig

#: Write the weights of the rewards by their names, and both splits as JSONL, into a folder.
_WRITE = """
import json, sys
from data import load_rows
from rewards import REWARDS
name, seed, share, folder, *counts = json.loads(sys.argv[1])
with open(f"{folder}/weights.json", "w") as file:
    json.dump({reward.__name__: weight for reward, weight in REWARDS.items()}, file)
for split, count in zip(("train", "test"), counts):
    load_rows(name, split, count, seed, share).to_json(f"{folder}/{split}.jsonl")
"""
#: Seconds that a project's code may take.
_MOST_SECONDS = 120


class Project(NamedTuple):
    """A project, the settings in its config that only its ``train.py`` reads, and their defaults."""

    folder: Path
    settings: dict


class Made(NamedTuple):
    """Files of rows that a project's code has written, its rewards with their weights, and why there are none."""

    train: str = ""
    heldout: str = ""
    rewards: tuple[str, ...] = ()
    weights: tuple[float, ...] = ()
    unread: str = ""


def project_of(config: Path) -> Project | None:
    """The project whose config a file is; None for any other file."""
    for folder in (config.resolve().parent, config.resolve().parent.parent):
        files = [folder / name for name in ("train.py", "data.py", "rewards.py")]
        if all(path.is_file() for path in files) and "grpo_run" in files[0].read_text(encoding="utf-8"):
            return Project(folder, _settings())
    return None


def _settings() -> dict:
    """The fields of `RunConfig` with their defaults."""
    return {one.name: one.default for one in fields(RunConfig) if one.default is not MISSING}


@contextmanager
def made_by(project: Project | None, config: dict) -> Iterator[Made]:
    """The rows and rewards of a project with the settings of its config, as long as the block lasts."""
    if project is None:
        yield Made()
        return
    use = project.settings | config
    with TemporaryDirectory() as folder:
        wanted = [
            use["dataset_name"],
            use.get("seed", 42),
            use["held_out"],
            folder,
            use["train_rows"],
            use["eval_rows"],
        ]
        command = [sys.executable, "-c", _WRITE, json.dumps(wanted)]
        env, streams = os.environ | {"HF_HUB_OFFLINE": "1"}, dict(stdin=subprocess.DEVNULL, capture_output=True)
        try:
            run = subprocess.run(command, cwd=project.folder, env=env, text=True, timeout=_MOST_SECONDS, **streams)
        except subprocess.TimeoutExpired:
            yield Made(unread=f"data.py in {project.folder} took more than {_MOST_SECONDS} s; pass --train FILE")
            return
        written = Path(folder, "weights.json")
        weights = json.loads(written.read_text(encoding="utf-8")) if written.exists() else {}
        rewards = tuple(f"{project.folder / 'rewards.py'}:{name}" for name in weights)
        made = Made("", "", rewards, tuple(weights.values()))
        if run.returncode:
            why = [*run.stderr.strip().splitlines(), f"it ended with {run.returncode}"][-2:][0]
            yield made._replace(unread=f"data.py in {project.folder} gave none ({why}); pass --train FILE")
        else:
            yield made._replace(train=f"{folder}/train.jsonl", heldout=f"{folder}/test.jsonl")
