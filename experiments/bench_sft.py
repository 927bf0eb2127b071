"""Continue an SFT adapter with GRPO or with more SFT, and write a section of docs/results.md.

    python experiments/bench_sft.py           train what experiments/bench_sft.json lacks
    python experiments/bench_sft.py --write   only write the section, from experiments/bench_sft.json

The task, the rows, the two arms and their settings are those of lesson 09. Both arms start from the same adapter and
have the same constant learning rate. GRPO samples from all new prompts, so every sample is part of the run.
"""

import functools
import itertools
import random
import tempfile
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from benches import difference_text, filled, provenance, train_missing, write_section
from lesson_functions import of_lesson
from tiny_runs import USUAL, Policy, milestones_at, sft_trainer, untrained

from grpo_utils import pass_rates, show_progress
from grpo_utils.evaluation.statistics import Estimate, paired_difference

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import Trainer

STORED, TITLE = Path(__file__).with_suffix(".json"), "SFT, then GRPO or more SFT"
SEEDS, PROMPTS = range(5), 200
RATE, FIRST_STEPS = 1e-3, 50  # the first SFT run has steps of 20 worked answers
STEP, SFT_STEPS = 50, (50, 100)  # of 64 sequences each
CASES = {"100 correct": (100, 0), "100, 30 of them wrong": (100, 30), "100, 50 of them wrong": (100, 50)}
ARMS = ("GRPO", "SFT")
WRONG = """
In a wrong worked answer, the smaller number is called the larger one. The case with 50 of them was added after the
other two were measured."""


def asked(a: int, b: int) -> dict:
    """A prompt with its gold answer."""
    return {"prompt": [{"role": "user", "content": f"Which is larger, {a} or {b}?"}], "answer": str(max(a, b))}


def demonstration(a: int, b: int, wrong: bool) -> dict:
    """A worked answer; a wrong one claims that the smaller number is larger."""
    answer, other = (min(a, b), max(a, b)) if wrong else (max(a, b), min(a, b))
    text = f"<reasoning>{answer} > {other}</reasoning><answer>{answer}</answer>"
    return {"prompt": asked(a, b)["prompt"], "completion": [{"role": "assistant", "content": text}]}


def data(case: str, seed: int) -> tuple["Dataset", "Dataset", "Dataset"]:
    """Demonstrations, new prompts and held-out prompts. They share no pair of numbers."""
    from datasets import Dataset

    number, wrong = CASES[case]
    pairs = random.Random(seed).sample(list(itertools.combinations(range(100, 1000), 2)), PROMPTS + 500)
    pairs = [pair[::-1] if n % 2 else pair for n, pair in enumerate(pairs)]
    shown = [demonstration(*pair, wrong=n < wrong) for n, pair in enumerate(pairs[PROMPTS:][:number])]
    new, held_out = ([asked(*pair) for pair in part] for part in (pairs[PROMPTS + 100 :], pairs[:PROMPTS]))
    return Dataset.from_list(shown), Dataset.from_list(new), Dataset.from_list(held_out)


def trainer_on_answers(policy: Policy, shown: "Dataset", steps: int, batch: int, seed: int) -> "Trainer":
    repeated = shown.select([n % len(shown) for n in range(max(batch, len(shown)))])  # at least one whole batch
    sizes = dict(per_device_train_batch_size=batch, max_steps=steps, dataloader_drop_last=True)
    return sft_trainer(policy, repeated, learning_rate=RATE, seed=seed, **sizes)


def grpo_trainer(policy: Policy, new: "Dataset", seed: int) -> "Trainer":
    from trl import GRPOConfig, GRPOTrainer

    sizes = dict(num_generations=8, per_device_train_batch_size=64, max_completion_length=40, max_steps=STEP)
    config = GRPOConfig(tempfile.mkdtemp(), learning_rate=RATE, seed=seed, **sizes, **USUAL)
    trainer = GRPOTrainer(policy[0], of_lesson("09_sft_then_grpo", "correct"), config, new, processing_class=policy[1])
    show_progress(trainer)
    return trainer


@functools.lru_cache(maxsize=1)
def after_sft(case: str, seed: int) -> tuple[Policy, dict, float]:
    """The policy after the first SFT run, a copy of its adapter, and its accuracy."""
    shown, _, held_out = data(case, seed)
    policy = untrained(seed)
    trainer_on_answers(policy, shown, FIRST_STEPS, batch=20, seed=seed).train()
    adapter = {name: weight.detach().clone() for name, weight in policy[0].named_parameters() if weight.requires_grad}
    return policy, adapter, accuracy(policy, held_out, seed)


def accuracy(policy: Policy, held_out: "Dataset", seed: int) -> float:
    decoding = dict(samples=1, max_new_tokens=40, temperature=1.0, seed=seed)
    return fmean(pass_rates(*policy, held_out, **decoding))


def train(case: str, arm: str, seed: int) -> dict:
    """Continue the adapter of the first SFT run with one arm: the accuracy before, and at the milestones."""
    shown, new, held_out = data(case, seed)
    policy, adapter, start = after_sft(case, seed)
    policy[0].load_state_dict(adapter, strict=False)
    if arm == "GRPO":
        steps, trainer = [STEP], grpo_trainer(policy, new, seed)
    else:
        steps, trainer = SFT_STEPS, trainer_on_answers(policy, shown, SFT_STEPS[-1], batch=64, seed=seed)
    points: list[dict] = []
    trainer.add_callback(milestones_at(steps, lambda: accuracy(policy, held_out, seed), points))
    trainer.train()
    return dict(start=start, points=points)


def at(rows: list[dict], case: str, arm: str, step: int, key: str = "accuracy") -> list[float]:
    """A number after a step (step 0: the accuracy after the first SFT run), seed by seed."""
    mine = sorted((r for r in rows if (r["case"], r["arm"]) == (case, arm)), key=lambda row: row["seed"])
    if not step:
        return [row["start"] for row in mine]
    return [point[key] for row in mine for point in row["points"] if point["step"] == step]


def equal_time(rows: list[dict]) -> int:
    """The last milestone of SFT that takes at most the CPU seconds of the GRPO run, over all cases."""

    def seconds(arm: str, step: int) -> float:
        return fmean(number for case in measured_cases(rows) for number in at(rows, case, arm, step, "seconds"))

    return max(step for step in SFT_STEPS if seconds("SFT", step) <= seconds("GRPO", STEP))


def measured_cases(rows: list[dict]) -> list[str]:
    """The cases with all seeds of both arms."""
    return [case for case in CASES if all(len(at(rows, case, arm, STEP)) == len(SEEDS) for arm in ARMS)]


def difference(rows: list[dict], case: str, step: int) -> Estimate:
    """GRPO minus SFT after ``step`` steps, seed by seed."""
    return paired_difference(at(rows, case, "GRPO", STEP), at(rows, case, "SFT", step), PROMPTS)


def line(rows: list[dict], case: str, label: str, step: int) -> str:
    """One comparison as a row of the page's table."""
    grpo, sft = ((arm, own) for arm, own in (("GRPO", STEP), ("SFT", step)))
    seconds = "{:.1f}, {:.1f}".format(*(fmean(at(rows, case, *arm, "seconds")) for arm in (grpo, sft)))
    rates = [fmean(at(rows, case, "SFT", 0)), *(fmean(at(rows, case, *arm)) for arm in (grpo, sft))]
    cells = [case, label, f"{STEP}, {step}", seconds, *(f"{rate:.3f}" for rate in rates)]
    return f"| {' | '.join([*cells, difference_text(difference(rows, case, step))])} |"


def section(stored: dict) -> str:
    """The section of docs/results.md."""
    rows = stored["rows"]
    kinds = {"equal sequences": STEP, "no more time": equal_time(rows)}
    lines = [line(rows, case, kind, step) for case in measured_cases(rows) for kind, step in kinds.items()]
    if any(CASES[case][1] for case in measured_cases(rows)):
        lines += [WRONG]
    text = filled(
        "sft",
        where=provenance(stored),
        first_steps=FIRST_STEPS,
        step=STEP,
        samples=64 * STEP,
        rate=RATE,
        prompts=PROMPTS,
        seeds=len(SEEDS),
        evaluated=" and ".join(map(str, SFT_STEPS)),
        table="\n".join(lines),
    )
    return f"\n{text}"


def measure() -> None:
    runs = [dict(case=case, arm=arm, seed=seed) for case in CASES for seed in SEEDS for arm in ARMS]
    train_missing(STORED, runs, train)


if __name__ == "__main__":
    write_section(__doc__, STORED, TITLE, section, measure)
