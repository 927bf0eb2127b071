"""Measure what single settings do, draw the figures of docs/settings.md, and write that page's second half.

    python experiments/bench_settings.py           train and evaluate all runs
    python experiments/bench_settings.py --write   only draw and write, from experiments/bench_settings.json

Each run trains the tiny model for a few steps with one setting changed. Three seeds show how runs differ by chance.
"""

import json
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import matplotlib.pyplot
from benches import ROOT, difference_text, filled, measured_on, only_write, provenance, read_stored, write_below
from svg import save_svg
from tiny_runs import held_out, train_tiny

from grpo_utils import compare, compare_seeds, logged
from grpo_utils.evaluation.judging import Evaluation
from grpo_utils.plots.base import GOOD, OTHERS, WIDTH, show_whole_share
from grpo_utils.profiles import CPU, prepare_machine

PAGE, FIGURES, STORED = ROOT / "docs" / "settings.md", ROOT / "docs" / "figures", Path(__file__).with_suffix(".json")
MARK = "<!-- measured: written by `make bench-settings`, do not edit below -->"
SEEDS, STEPS, PROMPTS = range(3), 10, 200


class Setting(NamedTuple):
    """One setting: its default here, the other values that were tried, and what else to look at in the log."""

    default: float
    others: tuple[float, ...]
    metric: str
    label: str
    meaning: str


SETTINGS = {
    "learning_rate": Setting(
        2e-3, (5e-4, 8e-3), "entropy", "entropy",
        "A low rate learns slowly. At a rate that is far too high, a policy can collapse\n"
        "([lesson 04](../notebooks/04_reading_a_run.ipynb)).",
    ),
    "num_generations": Setting(
        8, (4, 16), "frac_reward_zero_std", "share of tied groups",
        "The batch has 64 completions in all runs, so smaller groups mean more prompts. In a small group,\n"
        "all completions are more likely to score the same. Such a tied group teaches nothing.",
    ),
    "temperature": Setting(
        1.0, (0.7, 1.3), "frac_reward_zero_std", "share of tied groups",
        "On the tiny model, fewer groups tied at a higher temperature. On the real model before training, the share\n"
        "of correct fields differed within more groups at 0.7 and 0.4 than at 1.0 ([lesson\n"
        "05](../notebooks/05_real_model.ipynb), 16 groups of 4 at each temperature). All policies are evaluated at\n"
        "temperature 1.0.",
    ),
    "beta": Setting(0.0, (0.04, 0.4), "kl", "kl", "With `beta` at 0, TRL neither computes nor logs `kl`."),
    "num_iterations": Setting(
        1, (2,), "clip_ratio/region_mean", "share of clipped tokens",
        "With 2, each batch of completions serves two steps, so the run samples half as many completions. In\n"
        "the second step, the policy is no longer the one that sampled them, and some tokens are clipped. With 1, no\n"
        "token is clipped, so `epsilon` has no effect.",
    ),
    "r": Setting(
        16, (4, 64), "grad_norm", "gradient norm",
        "All runs have the same learning rate and `lora_alpha` of 32, which the tiny model's profile has for `r` of\n"
        "16. So the table compares ranks at one rate, not each rank at its best rate.",
    ),
    "max_completion_length": Setting(
        32, (20,), "completions/clipped_ratio", "share of truncated completions",
        "A limit that is too low truncates completions before the answer.",
    ),
}  # fmt: skip


def run(changes: dict, rank: int, seed: int) -> tuple[Evaluation, list[dict]]:
    """Train with some arguments changed: the evaluation of the policy, and its log."""
    print({"r": rank} | changes, f"seed {seed}", flush=True)
    policy, log = train_tiny(changes, seed, STEPS, rank)
    return held_out(policy, PROMPTS, seed), log


def measure() -> dict:
    """All runs. The default is trained once and compared with every other value, seed by seed."""
    default, results = [run({}, 16, seed) for seed in SEEDS], {}
    for name, setting in SETTINGS.items():
        results[name] = [result(setting, setting.default, default, default)]
        for value in setting.others:
            changes, rank = ({}, value) if name == "r" else ({name: value}, 16)
            results[name].append(result(setting, value, [run(changes, rank, seed) for seed in SEEDS], default))
    return measured_on() | dict(results=results)


def result(setting: Setting, value: float, runs: list[tuple], default: list[tuple]) -> dict:
    """What the runs of one value gave; the difference from the default has its interval over the seeds."""
    logs = [logged(log, setting.metric) for _, log in runs]
    found = dict(value=value, accuracy=[evaluated.accuracy.value for evaluated, _ in runs])
    found["metric"] = [mean(values) for values in logs if values]
    if runs is not default:
        pairs = zip(default, runs, strict=True)
        found["difference"] = compare_seeds([compare(old, new) for (old, _), (new, _) in pairs]).difference
    return found


def by_value(results: list[dict]) -> list[dict]:
    return sorted(results, key=lambda found: found["value"])


def alt_text(name: str, results: list[dict]) -> str:
    """A figure in words."""
    setting = SETTINGS[name]
    parts = [
        f"with {said(r, ' ')}, accuracy {mean(r['accuracy']):.2f}{metric_text(r, setting)}" for r in by_value(results)
    ]
    return f"Results for {name} after {STEPS} steps, means of {len(SEEDS)} seeds: {'; '.join(parts)}."


def metric_text(found: dict, setting: Setting) -> str:
    """The logged metric as a part of a sentence; nothing if TRL did not log it."""
    return f" and {setting.label} {mean(found['metric']):.3f}" if found["metric"] else ""


def said(found: dict, space: str) -> str:
    """A value, marked if it is the default."""
    return f"{found['value']:g}" + (f"{space}(default)" if "difference" not in found else "")


def draw(name: str, results: list[dict]) -> None:
    """Accuracy on the left, the logged metric on the right; a dot for each seed, a line through the means."""
    figure, panels = matplotlib.pyplot.subplots(1, 2, figsize=(WIDTH, 2.6), layout="constrained")
    results = by_value(results)
    labels = [said(found, "\n") for found in results]
    for axes, key, title, color in (
        (panels[0], "accuracy", "held-out accuracy", GOOD),
        (panels[1], "metric", SETTINGS[name].label, OTHERS[0]),
    ):
        for place, found in enumerate(results):
            axes.plot([place] * len(found[key]), found[key], "o", color=color, alpha=0.6, markersize=5)
        means = [(place, mean(found[key])) for place, found in enumerate(results) if found[key]]
        axes.plot(*zip(*means, strict=True), color=color, linewidth=2)
        axes.set_title(title, fontsize="medium")
        axes.set_xlim(-0.4, len(results) - 0.6)
        axes.set_xticks(range(len(results)), labels)
        axes.grid(alpha=0.3)
    show_whole_share(panels[0], [found["accuracy"] for found in results])
    top = max(value for found in results for value in found["metric"])
    panels[1].set_ylim(-0.04 * top, 1.04 * top)  # from 0, so that a small difference does not look large
    figure.supxlabel(f"{name} (dots: one seed each; line: their means)", fontsize="medium")
    save_svg(figure, figure_of(name), alt_text(name, results))
    matplotlib.pyplot.close(figure)


def figure_of(name: str) -> Path:
    return FIGURES / f"setting-{name.replace('_', '-')}.svg"


def section(name: str, results: list[dict]) -> str:
    """One setting: what it does, its figure and its table."""
    setting, rows = SETTINGS[name], []
    for found in by_value(results):
        metric = f"{mean(found['metric']):.3f}" if found["metric"] else "not logged"
        accuracies = ", ".join(f"{accuracy:.3f}" for accuracy in found["accuracy"])
        rows.append(f"| {found['value']:g} | {accuracies} | {change(found)} | {metric} |")
    return f"""### {name}

{setting.meaning}

![{alt_text(name, results)}](figures/{figure_of(name).name})

| `{name}` | accuracy, seeds 0 to {len(SEEDS) - 1} | difference from the default (95% interval) | {setting.label} |
|---|---|---|---|
{chr(10).join(rows)}
"""


def change(found: dict) -> str:
    """The difference from the default, and whether it shows anything."""
    if "difference" not in found:
        return "the default"
    return difference_text(found["difference"])


def measured(stored: dict) -> str:
    """The page's second half."""
    sections = "\n".join(section(name, results) for name, results in stored["results"].items()).rstrip("\n")
    about = dict(where=provenance(stored), model=CPU.models["qwen"], steps=STEPS, prompts=PROMPTS, seeds=len(SEEDS))
    return f"{MARK}\n\n{filled('settings', sections=sections, **about)}"


def main() -> None:
    if not only_write(__doc__):
        prepare_machine(CPU)
        STORED.write_text(json.dumps(measure(), indent=1) + "\n", encoding="utf-8")
    stored = read_stored(STORED)
    matplotlib.use("svg")
    for name, results in stored["results"].items():
        draw(name, results)
    write_below(PAGE, MARK, measured(stored))
    print(f"written: {PAGE.relative_to(ROOT)} and {len(SETTINGS)} figures")


if __name__ == "__main__":
    main()
