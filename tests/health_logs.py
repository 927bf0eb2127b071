"""Logs of runs as they are published, drawn at random: what a diagnosis must bear without crying wolf."""

import math
import random
import re
from collections.abc import Callable

from grpo_check import diagnose


def bend(low: float, high: float, middle: float, width: float) -> Callable[[int], float]:
    """A rise from ``low`` to ``high`` around the step ``middle``."""
    return lambda step: low + (high - low) / (1 + math.exp(-(step - middle) / width))


def spread(values: list[float]) -> float:
    mean = sum(values) / len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / max(1, len(values) - 1))


def simulate(
    steps: int,
    right: Callable[[int], float],
    form: Callable[[int], float] = lambda step: 0.9,
    length: Callable[[int], float] = lambda step: 200.0,
    entropy: Callable[[int], float] = lambda step: 0.4,
    *,
    completions: int = 64,
    truth: str = "accuracy_reward",
    extra: dict[str, Callable[[int], float]] | None = None,
    rate: Callable[[int], float] | None = None,
    calls: Callable[[int], float] | None = None,
    mismatch: float = 0.0,
    every: int = 1,
    seed: int = 0,
) -> list[dict]:
    """The log of a run whose prompts differ in difficulty, in groups of eight; ``every`` as logging_steps.

    ``calls``: the share of completions that call a tool. ``mismatch``: nats per token between vLLM and the trainer.
    """
    noise, log, kept = random.Random(seed), [], []
    for step in range(1, steps + 1):
        kept.append(_entry(noise, step, right(step), form(step), completions, truth))
        kept[-1] |= {
            "completions/mean_length": length(step) * (1 + noise.gauss(0, 0.04)),
            "completions/max_length": 2 * length(step),
            "entropy": entropy(step) * (1 + noise.gauss(0, 0.04)),
            **{f"rewards/{name}/mean": value(step) for name, value in (extra or {}).items()},
            **{f"rewards/{name}/std": 0.1 for name in extra or {}},
            **({"learning_rate": rate(step)} if rate else {}),
            **({"tools/call_frequency": _share(noise, calls(step), completions)} if calls else {}),
            **(_ratios(noise, mismatch, length(step), completions) if mismatch else {}),
        }
        if step % every == 0:
            log.append({key: sum(e[key] for e in kept) / len(kept) for key in kept[0]} | {"step": step})
            kept = []
    return log


def _share(noise: random.Random, chance: float, completions: int) -> float:
    return sum(noise.random() < chance for _ in range(completions)) / completions


def _ratios(noise: random.Random, mismatch: float, tokens: float, completions: int) -> dict:
    """What TRL logs of vLLM's importance ratios by default: after those above 3 were set to 0."""
    spread = mismatch * math.sqrt(math.pi / 2 * tokens)
    ratios = [math.exp(noise.gauss(-(spread**2) / 2, spread)) for _ in range(completions)]
    kept = [ratio if ratio <= 3 else 0.0 for ratio in ratios]
    named = {"min": min(kept), "mean": sum(kept) / completions, "max": max(kept)}
    logged = {f"sampling/importance_sampling_ratio/{name}": value for name, value in named.items()}
    return logged | {"sampling/sampling_logp_difference/mean": mismatch}


def _entry(noise: random.Random, step: int, right: float, form: float, completions: int, truth: str) -> dict:
    groups = []
    for _ in range(completions // 8):
        chance = noise.betavariate(max(0.02, 2 * right), max(0.02, 2 * (1 - right)))
        groups.append([(float(noise.random() < chance), float(noise.random() < form)) for _ in range(8)])
    correct, formed = zip(*(pair for group in groups for pair in group))
    totals = [a + b for a, b in zip(correct, formed)]
    return {
        "loss": noise.gauss(0, 0.01),
        "grad_norm": 0.3,
        "reward": sum(totals) / completions,
        "reward_std": spread(totals),
        "frac_reward_zero_std": sum(len({a + b for a, b in group}) == 1 for group in groups) / len(groups),
        f"rewards/{truth}/mean": sum(correct) / completions,
        f"rewards/{truth}/std": spread(list(correct)),
        "rewards/format_reward/mean": sum(formed) / completions,
        "rewards/format_reward/std": spread(list(formed)),
        "completions/clipped_ratio": 0.05,
        "completions/max_terminated_length": 300.0,
        "step_time": 10 + noise.gauss(0, 0.5),
    }


def alarms(log: list[dict], stride: int = 1) -> dict[str, int]:
    """Each alarming code, and the first step at which it is one."""
    told = {}
    for end in range(1, len(log) + 1, stride):
        for verdict in diagnose(log[:end]):
            if verdict.severity == "error":
                told.setdefault(verdict.code, log[end - 1]["step"])
    return told


#: Runs that are well, each as the arguments of `simulate`.
WELL = {
    "GSM8K, slowly": dict(steps=300, right=lambda s: 0.55 + 0.2 * s / 300, form=bend(0.6, 0.98, 60, 20)),
    "the same in small batches": dict(
        steps=250, right=lambda s: 0.3 + 0.4 * s / 250, form=bend(0.3, 0.98, 100, 20), completions=16
    ),
    "logged every ten steps": dict(steps=400, right=lambda s: 0.5 + 0.2 * s / 400, every=10),
    "R1-Zero: longer and righter": dict(steps=240, right=bend(0.1, 0.7, 120, 40), length=lambda s: 300 + 3 * s),
    "the same, its reward of an unknown name": dict(
        steps=240, right=bend(0.1, 0.7, 120, 40), length=lambda s: 300 + 3 * s, truth="stage_reward"
    ),
    "rambling unlearned": dict(
        steps=120,
        right=lambda s: 0.5 + 0.1 * s / 120,
        form=bend(0.1, 0.98, 15, 5),
        length=lambda s: max(150, 300 - 6 * s),
    ),
    "a long warm-up": dict(
        steps=150, right=lambda s: 0.4 + 0.3 * max(0, s - 50) / 100, rate=lambda s: min(1.0, s / 50) * 1e-6
    ),
    "quick, then a plateau": dict(steps=250, right=bend(0.25, 0.85, 10, 4), form=bend(0.2, 0.98, 10, 4)),
    "tools that are hardly called at first": dict(
        steps=120, right=bend(0.05, 0.6, 60, 15), calls=bend(0.01, 1.0, 50, 10), completions=16
    ),
    "vLLM with a small mismatch": dict(steps=120, right=bend(0.3, 0.7, 40, 10), mismatch=0.005),
    "vLLM with long completions": dict(
        steps=120, right=bend(0.3, 0.7, 40, 10), length=lambda s: 4000.0, mismatch=0.02, completions=16
    ),
    "hard prompts, so that most groups tie": dict(steps=200, right=lambda s: 0.03 + 0.12 * s / 200, form=lambda s: 1.0),
    "an overlong penalty that never strikes": dict(
        steps=80, right=bend(0.3, 0.7, 30, 10), extra={"soft_overlong_punishment": lambda s: 0.0}
    ),
}


def drawn(seed: int) -> list[dict]:
    """A run that learns, drawn at random: batch, rewards and their worth, curves, lengths, noise and logging."""
    draw = random.Random(f"healthy {seed}")
    steps, groups = draw.choice([40, 80, 150, 300]), draw.choice([1, 2, 4, 8, 16])
    pace = draw.uniform(0.05, 0.25) * steps
    begin, top = draw.uniform(0.05, 0.5), draw.uniform(0.65, 0.95)
    rise = draw.choice(
        [bend(begin, top, 2 * pace, pace / 2), lambda s: min(top, begin + (top - begin) * s / steps * 2)]
    )
    rewards = {"correctness_reward": (draw.choice([1.0, 2.0, 5.0]), rise)}
    rewards["soft_format_reward"] = (0.5, bend(draw.uniform(0.1, 0.6), 0.98, pace, pace / 4))
    if draw.random() < 0.7:  # nothing for a while, then learned
        at = min(90, pace * 2)
        rewards["strict_format_reward"] = (0.5, lambda s: 0.0 if s < at else min(0.95, (s - at) / pace))
    if draw.random() < 0.5:
        rewards["int_reward"] = (0.5, bend(0.3, 0.9, pace, pace / 3))
    if draw.random() < 0.3:
        rewards["overlong_penalty"] = (-1.0, lambda s: 0.0)
    times, every = draw.choice([0.3, 1.0, 1.0, 1.2, 3.0]), draw.choice([1, 1, 1, 5])
    words = dict(length=lambda s: 300 * (1 + (times - 1) * min(1.0, s / steps)), entropy=lambda s: 0.5 / (1 + s / 40))
    return run(steps, rewards, groups=groups, every=every, seed=seed, **words)


def run(
    steps: int,
    rewards: dict[str, tuple[float, Callable[[int], float]]],
    *,
    groups: int = 8,
    length: Callable[[int], float] = lambda step: 200.0,
    entropy: Callable[[int], float] = lambda step: 0.4,
    clipped: Callable[[int], float] = lambda step: 0.02,
    kl: Callable[[int], float] | None = None,
    base: float = 0.0,
    every: int = 1,
    seed: int = 0,
) -> list[dict]:
    """The log of a run in groups of eight; by a chance that depends on the step a reward pays its worth, else ``base``.

    Prompts differ in difficulty, for each reward on its own.
    """
    noise, log, kept = random.Random(seed), [], []
    for step in range(1, steps + 1):
        scores = {name: [] for name in rewards}
        for _ in range(groups):
            hard = {name: noise.betavariate(*_shape(chance(step))) for name, (_, chance) in rewards.items()}
            for _ in range(8):
                for name, (worth, _) in rewards.items():
                    scores[name].append(worth if noise.random() < hard[name] else base)
        totals = [sum(each) for each in zip(*scores.values())]
        tied = [len(set(totals[at : at + 8])) == 1 for at in range(0, len(totals), 8)]
        mean_length, cut = length(step) * (1 + noise.gauss(0, 0.3 / math.sqrt(8 * groups))), clipped(step)
        kept.append(
            {
                "loss": noise.gauss(0, 0.01),
                "grad_norm": 0.0 if all(tied) else abs(noise.gauss(0.3, 0.1)),
                "reward": sum(totals) / len(totals),
                "reward_std": spread(totals),
                "frac_reward_zero_std": sum(tied) / len(tied),
                "completions/mean_length": mean_length,
                "completions/max_length": 2 * mean_length,
                "completions/min_length": mean_length / 2,
                "completions/clipped_ratio": sum(noise.random() < cut for _ in totals) / len(totals),
                "completions/max_terminated_length": 2 * mean_length,
                "entropy": entropy(step) * (1 + noise.gauss(0, 0.1)),
                "step_time": 10 * length(step) / 200 + noise.gauss(0, 0.5),
                **({"kl": abs(noise.gauss(kl(step), kl(step) / 4))} if kl else {}),
                **{f"rewards/{name}/mean": sum(values) / len(values) for name, values in scores.items()},
                **{f"rewards/{name}/std": spread(values) for name, values in scores.items()},
            }
        )
        if step % every == 0:
            log.append({key: sum(e[key] for e in kept) / len(kept) for key in kept[0]} | {"step": step})
            kept = []
    return log


def _shape(chance: float) -> tuple[float, float]:
    return (2 * chance, 2 * (1 - chance)) if 0 < chance < 1 else (1e6, 1e-3) if chance else (1e-3, 1e6)


def rescaled(log: list[dict], times: float, plus: float) -> list[dict]:
    """The same run with rewards on another scale."""
    spreads, means = re.compile(r"reward_std|rewards/.+/std"), re.compile(r"reward|rewards/.+/mean")

    def change(key: str, value: float) -> float:
        if value is None:
            return None
        return value * times if spreads.fullmatch(key) else value * times + plus if means.fullmatch(key) else value

    return [{key: change(key, value) for key, value in entry.items()} for entry in log]


def as_unsloth(log: list[dict]) -> list[dict]:
    """The same run as Unsloth's own GPU trainer logs it: no entropy, a KL of 0.0 with beta 0, the length twice."""
    kept = [{key: value for key, value in entry.items() if key != "entropy"} for entry in log]
    return [
        entry | {"kl": entry.get("kl", 0.0), "completion_length": entry["completions/mean_length"]}
        if "completions/mean_length" in entry
        else entry
        for entry in kept
    ]
