"""Train on stale samples and on samples of another policy, and write a section of docs/results.md.

    python scripts/bench_stale.py           train what scripts/bench_stale.json lacks
    python scripts/bench_stale.py --write   only write the section, from scripts/bench_stale.json

All arms take the same number of samples and steps. They differ in the sampler (`scripts/stale_trainer.py`) and in what
corrects the difference.
"""

from pathlib import Path
from statistics import fmean
from time import process_time

from benches import difference_text, only_write, provenance, put, read_stored, train_missing
from stale_trainer import CAP, Delay, Rounded, StaleTrainer, Temperature
from tiny_runs import held_out, train_tiny

from grpo_utils import logged
from grpo_utils.evaluation.statistics import paired_difference
from grpo_utils.profiles import CPU, prepare_machine

STORED, TITLE = Path(__file__).with_suffix(".json"), "Stale samples"
SEEDS, STEPS, PROMPTS, DELTA = range(3), 24, 200, 1.5
#: Each arm: how its sampler is made, its correction, and the settings that it changes.
ARMS = {
    "fresh": (lambda: Delay(0), "none", {}),
    "delay 4": (lambda: Delay(4), "none", {}),
    "delay 4, ratio": (lambda: Delay(4), "ratio", {}),
    "delay 8": (lambda: Delay(8), "none", {}),
    "delay 8, ratio": (lambda: Delay(8), "ratio", {}),
    "delay 8, ratio and delta": (lambda: Delay(8), "ratio", dict(delta=DELTA)),
    "delay 8, token_truncate": (lambda: Delay(8), "token_truncate", {}),
    "delay 8, sequence_mask": (lambda: Delay(8), "sequence_mask", {}),
    "temperature 1.3": (lambda: Temperature(1.3), "none", {}),
    "temperature 1.3, token_truncate": (lambda: Temperature(1.3), "token_truncate", {}),
    "temperature 1.3, sequence_mask": (lambda: Temperature(1.3), "sequence_mask", {}),
    "4 bits": (lambda: Rounded(4), "none", {}),
}


def train(arm: str, seed: int) -> dict:
    """One run: its CPU seconds, its ratios by length, and the accuracy after it."""
    make_sampler, correct, changes = ARMS[arm]
    trainers: list[StaleTrainer] = []

    def make(*args: object, **kwargs: object) -> StaleTrainer:
        trainers.append(StaleTrainer(*args, sampler=make_sampler(), correct=correct, **kwargs))
        return trainers[0]

    begin = process_time()
    policy, log = train_tiny(changes, seed, STEPS, trainer_type=make)
    [trainer], total = trainers, process_time() - begin
    seconds = dict(total=total, sampling=trainer.sampling, scoring=trainer.scoring)
    after = held_out(policy, PROMPTS, seed)
    return dict(
        seconds={name: round(value, 2) for name, value in seconds.items()},
        ratios=trainer.ratio_rows(),
        clipped=round(fmean(logged(log, "clip_ratio/region_mean")), 4),
        sampled=after.accuracy.value,
        greedy=after.greedy_accuracy.value,
    )


def measure() -> None:
    train_missing(STORED, [dict(arm=arm, seed=seed) for seed in SEEDS for arm in ARMS], train)


def main() -> None:
    if not only_write(__doc__):
        prepare_machine(CPU)
        measure()
    put(TITLE, section(read_stored(STORED)))


if __name__ == "__main__":
    main()
