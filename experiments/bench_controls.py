"""Train with the true reward and with two controls, and write a section of docs/results.md.

    python experiments/bench_controls.py           train what experiments/bench_controls.json lacks
    python experiments/bench_controls.py --write   only write the section, from experiments/bench_controls.json

The controls are a reward for the format alone and a reward that is drawn at random. Both never read the answer, so what
they gain is not due to correctness. Last, a policy is trained on the held-out questions themselves, and asked those
and fresh ones.
"""

import random
import re
from collections.abc import Callable
from pathlib import Path
from statistics import fmean

from benches import difference_text, filled, provenance, train_missing, write_section
from tiny_runs import Policy, sft_trainer, train_tiny, untrained

from grpo_utils import evaluate, evaluate_samples, load_rows, logged
from grpo_utils.evaluation.statistics import paired_difference
from grpo_utils.rewards import correctness_reward, incremental_format_reward

STORED, TITLE = Path(__file__).with_suffix(".json"), "True reward and controls"
SEEDS, STEPS, PROMPTS, SOME, SAMPLES = range(5), 40, 200, 50, 32
KS = (1, 2, 4, 8, 16, 32)
LEAKED, FRESH, LEAK_STEPS, LEAK_RATE = 200, 190, 150, 2e-3


def random_reward(seed: int) -> Callable[..., list[float]]:
    """A reward of 0 or 1 by a coin toss."""
    coin = random.Random(seed)

    def coin_reward(completions: list, **kwargs: object) -> list[float]:
        return [float(coin.random() < 0.5) for _ in completions]

    return coin_reward


#: What each arm trains with, given the seed; the first does not train.
REWARDS = {
    "before": lambda seed: [],
    "correctness": lambda seed: [correctness_reward],
    "format": lambda seed: [incremental_format_reward],
    "random": lambda seed: [random_reward(seed)],
}
#: The arm that is trained on held-out questions with their answers.
LEAK = "leak"


def last_number_is(text: str, gold: str) -> bool:
    """Whether the last number of a text is the sum, in any format."""
    return (re.findall(r"\d+", text) or [""])[-1] == gold


def measured(policy: Policy, seed: int) -> dict:
    """What a policy does on held-out prompts: sampled, greedy, in any format, and in several tries."""
    once = evaluate(*policy, load_rows("addition", "test", PROMPTS), max_new_tokens=32, temperature=1.0, seed=seed)
    rows = load_rows("addition", "test", SOME)
    many = evaluate_samples(*policy, rows, samples=SAMPLES, max_new_tokens=32, temperature=1.0, seed=seed)
    return dict(
        sampled=once.accuracy.value,
        greedy=once.greedy_accuracy.value,
        sums=fmean(last_number_is(text, gold) for text, (_, gold) in zip(once.sampled, once.asked, strict=True)),
        formed=once.format.value,
        passed={str(k): round(many.pass_at_k(k).value, 4) for k in KS},
    )


def train(arm: str, seed: int) -> dict:
    """One run: what its reward did, and what the policy does after it."""
    if arm == LEAK:
        return leak(seed)
    if not (rewards := REWARDS[arm](seed)):
        return dict(after=measured(untrained(seed), seed))
    policy, log = train_tiny(dict(lr_scheduler_type="linear"), seed, STEPS, rewards=rewards)
    return dict(reward=[round(value, 3) for value in logged(log, "reward")], after=measured(policy, seed))


def demonstration(row: dict) -> dict:
    """A held-out question with its answer, as a row of SFT."""
    question = row["prompt"][-1]["content"]
    a, b = re.findall(r"\d+", question)
    text = f"<reasoning>{a} + {b} = {row['answer']}</reasoning><answer>{row['answer']}</answer>"
    return dict(prompt=row["prompt"], completion=[dict(role="assistant", content=text)])


def leak(seed: int) -> dict:
    """Train on the first held-out questions; ask these and fresh ones."""
    from datasets import Dataset

    rows = load_rows("addition", "test", LEAKED + FRESH)
    leaked, fresh = rows.select(range(LEAKED)), rows.select(range(LEAKED, LEAKED + FRESH))
    policy, shown = untrained(seed), Dataset.from_list([demonstration(row) for row in leaked])
    sizes = dict(per_device_train_batch_size=50, max_steps=LEAK_STEPS)
    sft_trainer(policy, shown, learning_rate=LEAK_RATE, seed=seed, **sizes).train()
    parts = dict(leaked=leaked, fresh=fresh)
    decoding = dict(max_new_tokens=32, temperature=1.0, seed=seed)
    found = {name: evaluate(*policy, part, **decoding) for name, part in parts.items()}
    return {name: one.greedy_accuracy.value for name, one in found.items()}


def of(rows: list[dict], arm: str, key: str) -> list[float]:
    """A number of an arm, seed by seed."""
    mine = sorted((row for row in rows if row["arm"] == arm), key=lambda row: row["seed"])
    return [row["after"][key] for row in mine]


def passed(rows: list[dict], arm: str, k: int) -> float:
    """The mean pass@k of an arm over its seeds."""
    return fmean(row["after"]["passed"][str(k)] for row in rows if row["arm"] == arm)


def ends(rows: list[dict], arm: str) -> str:
    """The mean reward of the first and of the last five steps, over all seeds."""
    rewards = [row["reward"] for row in rows if row["arm"] == arm]
    first, last = (fmean(fmean(one[part]) for one in rewards) for part in (slice(5), slice(-5, None)))
    return f"{first:.2f} to {last:.2f}"


def line(rows: list[dict], arm: str) -> str:
    """An arm as a row of the page's first table."""
    rates = [", ".join(f"{rate:.3f}" for rate in of(rows, arm, key)) for key in ("sampled", "greedy", "sums")]
    change, reward = "-", "-"
    if arm != "before":
        before = of(rows, "before", "sampled")
        change = difference_text(paired_difference(of(rows, arm, "sampled"), before, PROMPTS))
        reward = ends(rows, arm)
    return f"| {arm} | {reward} | {' | '.join(rates)} | {change} |"


def section(stored: dict) -> str:
    """The section of docs/results.md."""
    rows = stored["rows"]
    tries = "\n".join(f"| {arm} | {' | '.join(f'{passed(rows, arm, k):.2f}' for k in KS)} |" for arm in REWARDS)
    leaks = [row for row in rows if row["arm"] == LEAK]
    asked = "\n".join(
        f"| {name} | {count} | {', '.join(f'{row[name]:.3f}' for row in leaks)} |"
        for name, count in (("leaked", LEAKED), ("fresh", FRESH))
    )
    text = filled(
        "controls",
        where=provenance(stored),
        steps=STEPS,
        prompts=PROMPTS,
        table="\n".join(line(rows, arm) for arm in REWARDS),
        some=SOME,
        samples=SAMPLES,
        heads=" | ".join(f"pass@{k}" for k in KS),
        bars="---|" * len(KS),
        tries=tries,
        leak_steps=LEAK_STEPS,
        leaked=LEAKED,
        fresh=FRESH,
        leaked_seeds=len(leaks),
        asked=asked,
    )
    return f"\n{text}"


def measure() -> None:
    runs = [dict(arm=arm, seed=seed) for seed in SEEDS for arm in (*REWARDS, LEAK)]
    train_missing(STORED, runs, train)


if __name__ == "__main__":
    write_section(__doc__, STORED, TITLE, section, measure)
