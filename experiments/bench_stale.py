"""Train on stale samples and on samples of another policy, and write a section of docs/results.md.

    python experiments/bench_stale.py           train what experiments/bench_stale.json lacks
    python experiments/bench_stale.py --write   only write the section, from experiments/bench_stale.json

All arms take the same number of samples and steps. They differ in the sampler (`stale_trainer.py`) and in what corrects
the difference.
"""

from pathlib import Path
from statistics import fmean
from time import process_time

from benches import difference_text, filled, provenance, train_missing, write_section
from stale_trainer import BOUNDS, CAP, EVERY, Delay, Rounded, StaleTrainer, Temperature
from tiny_runs import held_out, train_tiny

from grpo_utils import logged
from grpo_utils.evaluation.statistics import paired_difference

STORED, TITLE = Path(__file__).with_suffix(".json"), "Stale samples"
SEEDS, STEPS, PROMPTS, DELTA = range(3), 24, 200, 1.5
FRESH = "fresh"
#: Each arm: how its sampler is made, its correction, and the settings that it changes.
ARMS = {
    FRESH: (lambda: Delay(0), "none", {}),
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
#: The arms whose ratios the page shows.
BY_LENGTH = ("delay 4", "delay 8", "delay 4, ratio", "delay 8, ratio", "temperature 1.3", "4 bits")


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


def of(rows: list[dict], arm: str, key: str) -> list[float]:
    """A number of an arm, seed by seed."""
    return [row[key] for row in sorted(rows, key=lambda row: row["seed"]) if row["arm"] == arm]


def rates_text(rows: list[dict], arm: str, key: str, digits: int = 3) -> str:
    return ", ".join(f"{rate:.{digits}f}" for rate in of(rows, arm, key))


def change(rows: list[dict], arm: str) -> str:
    """The sampled accuracy of an arm minus that of fresh samples, seed by seed."""
    if arm == FRESH:
        return "-"
    seeds = {row["seed"] for row in rows if row["arm"] == arm}
    if len(seeds) == 1:
        return "one seed"
    fresh = of([row for row in rows if row["seed"] in seeds], FRESH, "sampled")
    difference = paired_difference(of(rows, arm, "sampled"), fresh, PROMPTS)
    return difference_text([min(1.0, max(-1.0, bound)) for bound in difference])  # no rate changes by more


def line(rows: list[dict], arm: str) -> str:
    """An arm as a row of the page's first table."""
    rates = " | ".join(rates_text(rows, arm, key) for key in ("sampled", "greedy"))
    return f"| {arm} | {rates} | {change(rows, arm)} | {fmean(of(rows, arm, 'clipped')):.1%} |"


def by_length(rows: list[dict], arm: str) -> list[dict]:
    """The ratios of an arm, a row for each group of lengths: the mean of the seeds that have the group."""
    found = [one for row in rows if row["arm"] == arm for one in row["ratios"]]
    groups = [[one for one in found if one["bound"] == bound] for bound in BOUNDS]
    return [{name: fmean(one[name] for one in group) for name in group[0]} for group in groups if group]


def length_lines(rows: list[dict], arm: str) -> str:
    """The ratios of an arm by length, as rows of the page's second table."""
    lows = dict(zip(BOUNDS, (0, *BOUNDS), strict=False))
    return "\n".join(
        f"| {arm} | {lows[bound := round(one['bound'])] + 1} to {bound} | {one['token']:.3f} | {one['sequence']:.3f} | "
        f"{one['outside']:.1%} | {one['share']:.2f} |"
        for one in by_length(rows, arm)
    )


def seconds(rows: list[dict], name: str) -> float:
    """The mean CPU seconds of a step over all runs: of ``sampling``, or of the ``rest`` without scoring."""
    spent = [row["seconds"] for row in rows]
    parts = dict(sampling=[s["sampling"] for s in spent])
    parts["rest"] = [s["total"] - s["sampling"] - s["scoring"] for s in spent]
    return fmean(parts[name]) / STEPS


def section(stored: dict) -> str:
    """The section of docs/results.md."""
    rows = stored["rows"]
    sampling, rest = seconds(rows, "sampling"), seconds(rows, "rest")
    both, slower = sampling + rest, max(sampling, rest)
    text = filled(
        "stale",
        where=provenance(stored),
        steps=STEPS,
        prompts=PROMPTS,
        delta=DELTA,
        cap=CAP,
        every=EVERY,
        table="\n".join(line(rows, arm) for arm in ARMS),
        lengths="\n".join(length_lines(rows, arm) for arm in BY_LENGTH),
        sampling=sampling,
        rest=rest,
        both=both,
        slower=slower,
        times=both / slower,
    )
    return f"\n{text}"


def measure() -> None:
    train_missing(STORED, [dict(arm=arm, seed=seed) for seed in SEEDS for arm in ARMS], train)


if __name__ == "__main__":
    write_section(__doc__, STORED, TITLE, section, measure)
