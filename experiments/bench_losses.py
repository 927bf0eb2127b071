"""Train the tiny model with every loss of lesson 14, several seeds each, and write a table in docs/settings.md.

    python experiments/bench_losses.py           train what experiments/bench_losses.json lacks
    python experiments/bench_losses.py --write   only write the table, from experiments/bench_losses.json

A row is one training run. It is stored as soon as it is complete, so an interrupted bench continues where it stopped.
"""

import json
import re
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, NamedTuple

from benches import difference_text, filled, only_write, provenance, read_stored, train_missing, write_between
from tiny_runs import held_out, train_tiny

from grpo_utils import logged
from grpo_utils.evaluation.judging import Evaluation
from grpo_utils.evaluation.statistics import Estimate, paired_difference, t_interval
from grpo_utils.profiles import CPU, prepare_machine

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

STORED = Path(__file__).with_suffix(".json")
PAGE = Path(__file__).parent.parent / "docs" / "settings.md"
BEGIN, END = "<!-- losses: written by `make bench-losses`, do not edit -->", "<!-- end of the losses -->"
SEEDS, STEPS, PROMPTS = range(6), 16, 200


class Variant(NamedTuple):
    """Changes to `GRPOConfig`, the variant to compare with, and whether a correct answer may have any format."""

    settings: dict
    base: str = ""
    any_format: bool = False


#: 64 completions per step, as in all variants.
MICRO_BATCHES = dict(per_device_train_batch_size=16, gradient_accumulation_steps=4)
OFF = dict(num_iterations=4)
GSPO = OFF | dict(loss_type="grpo", importance_sampling_level="sequence")
VARIANTS = {
    "dapo": Variant(dict(loss_type="dapo")),
    "grpo": Variant(dict(loss_type="grpo"), "dapo"),
    "dr_grpo": Variant(dict(loss_type="dr_grpo", scale_rewards="none"), "dapo"),
    "bnpo, 4 micro-batches": Variant(MICRO_BATCHES | dict(loss_type="bnpo"), "dapo"),
    "scale none": Variant(dict(scale_rewards="none"), "dapo"),
    "scale batch": Variant(dict(scale_rewards="batch"), "dapo"),
    "GDPO": Variant(dict(multi_objective_aggregation="normalize_then_sum"), "dapo"),
    "KL 0.04": Variant(dict(beta=0.04), "dapo"),
    "any format, dapo": Variant(dict(loss_type="dapo"), any_format=True),
    "any format, grpo": Variant(dict(loss_type="grpo"), "any format, dapo", any_format=True),
    "4 updates, dapo": Variant(OFF, "dapo"),
    "4 updates, grpo": Variant(OFF | dict(loss_type="grpo"), "4 updates, dapo"),
    "4 updates, clip 0.28": Variant(OFF | dict(epsilon_high=0.28), "4 updates, dapo"),
    "4 updates, no clip": Variant(OFF | dict(epsilon=1e6, epsilon_high=1e6), "4 updates, dapo"),
    "4 updates, cispo": Variant(OFF | dict(loss_type="cispo", epsilon_high=5.0), "4 updates, dapo"),
    "4 updates, sapo": Variant(OFF | dict(loss_type="sapo"), "4 updates, grpo"),
    "4 updates, gspo": Variant(GSPO, "4 updates, grpo"),
    "4 updates, gspo, paper": Variant(GSPO | dict(epsilon=3e-4, epsilon_high=4e-4), "4 updates, grpo"),
}


def last_number_reward(completions: list[list[dict]], answer: list[str], **kwargs: object) -> list[float]:
    """1 if the last number of the completion is the gold answer, in any format.

    >>> last_number_reward([[{"role": "assistant", "content": "15 + 27 is 42."}]], ["42"])
    [1.0]
    """
    numbers = [re.findall(r"\d+", completion[0]["content"]) for completion in completions]
    return [float(found[-1:] == [gold]) for found, gold in zip(numbers, answer, strict=True)]


def run(variant: str, seed: int) -> dict:
    """Train and evaluate one variant with one seed: the numbers of its row."""
    changes = VARIANTS[variant]
    rewards = [last_number_reward] if changes.any_format else []
    policy, log = train_tiny(changes.settings, seed, STEPS, rewards=rewards)
    evaluated = held_out(policy, PROMPTS, seed)
    clipped = logged(log, "clip_ratio/region_mean") + logged(log, "cispo_clip_ratio")
    numbers = dict(grad_norm=mean(logged(log, "grad_norm")), clipped=mean(clipped) if clipped else None)
    kept = dict(losses=logged(log, "loss"), rewards=logged(log, "reward"), kl=logged(log, "kl"))
    kept = {key: [round(value, 6) for value in values] for key, values in kept.items()}
    return outcome(evaluated, policy[1]) | numbers | kept


def outcome(evaluated: Evaluation, tokenizer: "PreTrainedTokenizerBase") -> dict:
    """Strict accuracy, accuracy in any format, and the lengths in tokens of all and of incorrect answers."""
    golds = [gold for _, gold in evaluated.asked]
    chats = [[{"role": "assistant", "content": text}] for text in evaluated.sampled]
    correct = last_number_reward(chats, golds)
    lengths = [len(tokenizer(text).input_ids) for text in evaluated.sampled]
    wrong = [length for length, good in zip(lengths, correct, strict=True) if not good]
    rates = dict(accuracy=evaluated.accuracy.value, any_format=mean(correct), length=mean(lengths))
    return rates | dict(wrong_length=mean(wrong) if wrong else None)


def measure() -> None:
    """Train what is missing, all variants with one seed before the next seed, and store each row at once."""
    runs = [dict(variant=name, seed=seed) for seed in SEEDS for name in VARIANTS]
    train_missing(STORED, runs, run, steps=STEPS)


def values_of(stored: dict, name: str, key: str) -> list[float]:
    """One number per seed, in the order of the seeds."""
    rows = sorted((row for row in stored["rows"] if row["variant"] == name), key=lambda row: row["seed"])
    return [row[key] for row in rows]


def difference(stored: dict, name: str, key: str) -> Estimate | None:
    """The mean difference of a variant from its base, seed by seed, with its interval; None without a base."""
    base = VARIANTS[name].base
    if not base:
        return None
    ours, theirs = values_of(stored, name, key), values_of(stored, base, key)
    if key in ("accuracy", "any_format"):
        return paired_difference(ours, theirs, PROMPTS)
    return t_interval([one - other for one, other in zip(ours, theirs, strict=True)], least_scatter=1 / PROMPTS)


def settings_text(name: str) -> str:
    """A variant's changes as code.

    >>> settings_text("grpo")
    '`loss_type="grpo"`'
    """
    return "`{}`".format(", ".join(f"{key}={json.dumps(value)}" for key, value in VARIANTS[name].settings.items()))


def line(stored: dict, name: str) -> str:
    """A variant as a row of the page's table."""
    columns = [mean(values_of(stored, name, key)) for key in ("accuracy", "length", "grad_norm")]
    changes = [difference(stored, name, key) for key in ("accuracy", "length")]
    accuracy, length = (difference_text(change) if change else "the base" for change in changes)
    cells = [name, settings_text(name), VARIANTS[name].base or "-", f"{columns[0]:.3f}", accuracy]
    return f"| {' | '.join([*cells, f'{columns[1]:.1f}', length, f'{columns[2]:.3f}'])} |"


def section(stored: dict) -> str:
    """The section of docs/settings.md."""
    dapo, grpo = (mean(values_of(stored, f"any format, {kind}", "any_format")) for kind in ("dapo", "grpo"))
    text = filled(
        "losses",
        where=provenance(stored),
        note=stored.get("note", ""),
        model=CPU.models["qwen"],
        steps=STEPS,
        seeds=len(SEEDS),
        prompts=PROMPTS,
        intervals=2 * sum(bool(variant.base) for variant in VARIANTS.values()),
        dapo=dapo,
        grpo=grpo,
        paid=difference_text(difference(stored, "any format, grpo", "any_format")),
        table="\n".join(line(stored, name) for name in VARIANTS),
    )
    return f"{BEGIN}\n\n{text}\n{END}"


def main() -> None:
    if not only_write(__doc__):
        prepare_machine(CPU)
        measure()
    write_between(PAGE, BEGIN, END, section(read_stored(STORED)))
    print(f"written: {PAGE.relative_to(PAGE.parent.parent)}")


if __name__ == "__main__":
    main()
