"""The rows and the rewards for TRL's own command, which accepts only TRL's settings.

python for_trl.py addition rows                 writes the rows of a dataset as files in a new folder
trl grpo --config configs/trl.yaml              trains on these files, with `weighted_sum` as the reward
"""

import sys
from pathlib import Path

from data import load_rows
from rewards import REWARDS


def weighted_sum(completions: list, **kwargs) -> list[float]:
    """The weighted sum of all rewards, so that configs/trl.yaml stays the same when you change REWARDS."""
    scores = {reward: reward(completions=completions, **kwargs) for reward in REWARDS}
    places = range(len(completions))
    return [sum(weight * (scores[reward][n] or 0.0) for reward, weight in REWARDS.items()) for n in places]


def write_files(name: str, folder: Path) -> None:
    """Write the rows as JSONL, one file per split."""
    folder.mkdir(parents=True)
    for split in ("train", "test"):
        load_rows(name, split, 2000, seed=0).to_json(folder / f"{split}.jsonl")


if __name__ == "__main__":
    if len(sys.argv) != 3 or Path(sys.argv[2]).exists():
        sys.exit("Error: name a dataset and a new folder: python for_trl.py addition rows")
    write_files(sys.argv[1], Path(sys.argv[2]))
