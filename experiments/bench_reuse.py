"""Compare one update with four updates per batch of completions, and write a section of docs/results.md.

    python experiments/bench_reuse.py           train what experiments/bench_reuse.json lacks
    python experiments/bench_reuse.py --write   only write the section, from experiments/bench_reuse.json

The comparison is made twice: with equal samples, and with equal CPU seconds of training. `TIME_STEPS` was chosen from
the CPU seconds of short runs, before the first row was stored. Each number of updates uses the lesson's learning rate,
and also the rate that was best for it with other seeds.
"""

from pathlib import Path
from statistics import fmean

from benches import difference_text, filled, provenance, train_missing, write_section
from tiny_runs import Policy, milestones_at, train_tiny

from grpo_utils import load_rows, pass_rates
from grpo_utils.evaluation.statistics import Estimate, paired_difference
from grpo_utils.profiles import CPU

STORED, TITLE = Path(__file__).with_suffix(".json"), "Four updates per batch"
SEEDS, SWEEP_SEEDS, PROMPTS = range(5), (100,), 200
UPDATES, RATES, LESSON_RATE = (1, 4), (1e-3, 2e-3, 4e-3), 2e-3
BATCHES = 8  # of 64 completions, in the comparison with equal samples
SAMPLE_STEPS = {updates: BATCHES * updates for updates in UPDATES}
TIME_STEPS = {1: 16, 4: 24}


def train(updates: int, rate: float, seed: int) -> dict:
    """Train once; evaluate after as many samples, and after as much time."""
    points: list[dict] = []
    steps = sorted({SAMPLE_STEPS[updates], TIME_STEPS[updates]})
    rows = load_rows("addition", "test", PROMPTS)

    def milestones(policy: Policy):
        decoding = dict(samples=1, max_new_tokens=32, temperature=1.0, seed=seed)
        return milestones_at(steps, lambda: fmean(pass_rates(*policy, rows, **decoding)), points)

    changes = dict(num_iterations=updates, learning_rate=rate)
    train_tiny(changes, seed, steps[-1], milestones=milestones)
    return dict(points=points)


def best_rates(rows: list[dict]) -> dict[int, float]:
    """The learning rate with the best mean accuracy of the sweep, for each number of updates."""
    return {updates: max(RATES, key=lambda rate: fmean(sweep(rows, updates, rate))) for updates in UPDATES}


def sweep(rows: list[dict], updates: int, rate: float) -> list[float]:
    """All accuracies of the sweep with one rate."""
    steps = SAMPLE_STEPS[updates], TIME_STEPS[updates]
    return [number for step in steps for number in accuracies(rows, updates, rate, step, SWEEP_SEEDS)]


def accuracies(rows: list[dict], updates: int, rate: float, step: int, seeds=SEEDS) -> list[float]:
    """The accuracy after a step, seed by seed."""
    return [point(rows, updates, rate, step, seed)["accuracy"] for seed in seeds]


def point(rows: list[dict], updates: int, rate: float, step: int, seed: int) -> dict:
    wanted = dict(updates=updates, rate=rate, seed=seed)
    [row] = [row for row in rows if wanted.items() <= row.items()]
    [found] = [found for found in row["points"] if found["step"] == step]
    return found


def cost(rows: list[dict], updates: int) -> float:
    """The mean CPU seconds per batch of completions, sampling and all its updates together."""
    last = max(SAMPLE_STEPS[updates], TIME_STEPS[updates])
    mine = [row for row in rows if row["updates"] == updates]
    return fmean(point(rows, updates, row["rate"], last, row["seed"])["seconds"] for row in mine) / (last / updates)


def difference(rows: list[dict], rates: dict[int, float], steps: dict[int, int]) -> Estimate:
    """Four updates minus one, seed by seed."""
    four, one = (accuracies(rows, updates, rates[updates], steps[updates]) for updates in (4, 1))
    return paired_difference(four, one, PROMPTS)


def line(rows: list[dict], label: str, rates: dict[int, float], steps: dict[int, int]) -> str:
    """One comparison as a row of the page's table."""
    cells = [label, ", ".join(f"{rates[updates]:g}" for updates in UPDATES)]
    cells += [", ".join(f"{64 * steps[updates] // updates:,}" for updates in UPDATES)]
    seconds = [fmean(point(rows, u, rates[u], steps[u], seed)["seconds"] for seed in SEEDS) for u in UPDATES]
    cells += [", ".join(f"{number:.1f}" for number in seconds)]
    cells += [", ".join(f"{fmean(accuracies(rows, u, rates[u], steps[u])):.3f}" for u in UPDATES)]
    return f"| {' | '.join([*cells, difference_text(difference(rows, rates, steps))])} |"


def sweep_text(rows: list[dict], updates: int) -> str:
    return ", ".join(f"{fmean(sweep(rows, updates, rate)):.3f} at {rate:g}" for rate in RATES)


def section(stored: dict) -> str:
    """The section of docs/results.md."""
    rows, best = stored["rows"], best_rates(stored["rows"])
    lesson = dict.fromkeys(UPDATES, LESSON_RATE)
    kinds = {"equal samples": SAMPLE_STEPS, "equal time": TIME_STEPS}
    choices = {"": lesson} if best == lesson else {", lesson 14's rate": lesson, ", each its best rate": best}
    lines = [line(rows, kind + how, rates, steps) for how, rates in choices.items() for kind, steps in kinds.items()]
    once, four = cost(rows, 1), cost(rows, 4)
    learning = (four - once) / 3
    text = filled(
        "reuse",
        where=provenance(stored),
        model=CPU.models["qwen"],
        prompts=PROMPTS,
        seeds=len(SEEDS),
        table="\n".join(lines),
        steps_once=TIME_STEPS[1],
        steps_four=TIME_STEPS[4],
        rates=", ".join(f"{rate:g}" for rate in RATES),
        sweep_seeds=", ".join(map(str, SWEEP_SEEDS)),
        swept="\n".join(f"- {updates} per batch: {sweep_text(rows, updates)}" for updates in UPDATES),
        once=once,
        four=four,
        learning=learning,
        sampling=(once - learning) / once,
    )
    return f"\n{text}"


def measure() -> None:
    runs = [dict(updates=u, rate=rate, seed=seed) for seed in SWEEP_SEEDS for rate in RATES for u in UPDATES]
    best = best_rates(train_missing(STORED, runs, train)["rows"])
    pairs = [(updates, rate) for updates in UPDATES for rate in sorted({LESSON_RATE, best[updates]})]
    train_missing(STORED, [dict(updates=u, rate=rate, seed=seed) for seed in SEEDS for u, rate in pairs], train)


if __name__ == "__main__":
    write_section(__doc__, STORED, TITLE, section, measure)
