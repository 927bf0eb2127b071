"""Logs of runs as they are published, drawn at random: what a diagnosis must bear without crying wolf.

`simulate` draws a run. `log_of` of `grpo_check.health.rules.rule`, which the rules' own examples use, writes one down.
"""

import math
import random
import re
from collections.abc import Callable

from grpo_check import diagnose

Curve = Callable[[int], float]


def bend(low: float, high: float, middle: float, width: float) -> Curve:
    """A rise from ``low`` to ``high`` around the step ``middle``."""
    return lambda step: low + (high - low) / (1 + math.exp(-(step - middle) / width))


def spread(values: list[float]) -> float:
    mean = sum(values) / len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / max(1, len(values) - 1))


def simulate(
    steps: int,
    rewards: dict[str, tuple[float, Curve]],
    *,
    groups: int = 8,
    length: Curve = lambda step: 200.0,
    entropy: Curve = lambda step: 0.4,
    clipped: Curve = lambda step: 0.02,
    kl: Curve | None = None,
    base: float = 0.0,
    every: int = 1,
    seed: int = 0,
    **metrics: Curve,
) -> list[dict]:
    """The log of a run in groups of eight; by a chance that depends on the step a reward pays its worth, else ``base``.

    Prompts differ in difficulty, for each reward on its own. ``every`` is logging_steps. ``metrics`` are further
    ones, which no reward pays; ``__`` stands for ``/``.
    """
    noise, log, kept = random.Random(seed), [], []
    more = {name.replace("__", "/"): curve for name, curve in metrics.items()}
    for step in range(1, steps + 1):
        entry = _scored(noise, {name: (worth, chance(step)) for name, (worth, chance) in rewards.items()}, groups, base)
        entry |= _sampled(noise, 8 * groups, length(step), clipped(step))
        entry |= {"entropy": entropy(step) * (1 + noise.gauss(0, 0.1))}
        entry |= {"kl": abs(noise.gauss(kl(step), kl(step) / 4))} if kl else {}
        kept.append(entry | {name: curve(step) for name, curve in more.items()})
        if step % every == 0:
            log.append({key: sum(e[key] for e in kept) / len(kept) for key in kept[0]} | {"step": step})
            kept = []
    return log


def _scored(noise: random.Random, paid: dict[str, tuple[float, float]], groups: int, base: float) -> dict:
    """What a step logs of its rewards; ``paid`` has the worth of each, and the chance to earn it."""
    scores = {name: [] for name in paid}
    for _ in range(groups):
        hard = {name: noise.betavariate(*_shape(chance)) for name, (_, chance) in paid.items()}
        for _ in range(8):
            for name, (worth, _) in paid.items():
                scores[name].append(worth if noise.random() < hard[name] else base)
    totals = [sum(each) for each in zip(*scores.values())]
    tied = [len(set(totals[at : at + 8])) == 1 for at in range(0, len(totals), 8)]
    return {
        "loss": noise.gauss(0, 0.01),
        "grad_norm": 0.0 if all(tied) else abs(noise.gauss(0.3, 0.1)),
        "reward": sum(totals) / len(totals),
        "reward_std": spread(totals),
        "frac_reward_zero_std": sum(tied) / len(tied),
        **{f"rewards/{name}/mean": sum(values) / len(values) for name, values in scores.items()},
        **{f"rewards/{name}/std": spread(values) for name, values in scores.items()},
    }


def _shape(chance: float) -> tuple[float, float]:
    return (2 * chance, 2 * (1 - chance)) if 0 < chance < 1 else (1e6, 1e-3) if chance else (1e-3, 1e6)


def _sampled(noise: random.Random, completions: int, length: float, clipped: float) -> dict:
    """What a step logs of its completions."""
    mean = length * (1 + noise.gauss(0, 0.3 / math.sqrt(completions)))
    return {
        "completions/mean_length": mean,
        "completions/max_length": 2 * mean,
        "completions/min_length": mean / 2,
        "completions/clipped_ratio": sum(noise.random() < clipped for _ in range(completions)) / completions,
        "completions/max_terminated_length": 2 * mean,
        "step_time": length / 20 * (1 + noise.gauss(0, 0.05)),
    }


def paying(right: Curve, form: Curve = lambda step: 0.9, truth: str = "accuracy_reward") -> dict:
    """The two rewards that most runs have: for correctness, and for the format."""
    return {truth: (1.0, right), "format_reward": (1.0, form)}


def tool_calls(chance: Curve, completions: int) -> dict[str, Curve]:
    """The share of completions that call a tool, as a metric of `simulate`."""

    def share(step: int) -> float:
        noise = random.Random(step)
        return sum(noise.random() < chance(step) for _ in range(completions)) / completions

    return {"tools__call_frequency": share}


def vllm_weights(mismatch: float, tokens: float, completions: int) -> dict[str, Curve]:
    """What TRL logs of vLLM's importance ratios by default: after those above 3 were set to 0.

    ``mismatch``: nats per token between vLLM and the trainer.
    """
    spread_of_sums = mismatch * math.sqrt(math.pi / 2 * tokens)

    def mean(step: int) -> float:
        noise = random.Random(step)
        ratios = [math.exp(noise.gauss(-(spread_of_sums**2) / 2, spread_of_sums)) for _ in range(completions)]
        return sum(ratio for ratio in ratios if ratio <= 3) / completions

    return {
        "sampling__importance_sampling_ratio__mean": mean,
        "sampling__sampling_logp_difference__mean": lambda step: mismatch,
    }


def healthy(steps: int = 40, seed: int = 0) -> list[dict]:
    """A run that learns: form and correctness rise to near 1."""
    return _run_of_lesson_03(steps, lambda step: 1 / (1 + math.exp(-(step - 10) / 4)), seed)


def flat(steps: int = 25) -> list[dict]:
    """A run whose policy stays what it was."""
    return _run_of_lesson_03(steps, lambda step: 0.0, seed=1)


def _run_of_lesson_03(steps: int, skill: Curve, seed: int) -> list[dict]:
    rewards = {
        "correctness_reward": (2.0, lambda step: 0.25 + 0.6 * skill(step)),
        "strict_format_reward": (1.0, lambda step: 0.2 + 0.75 * skill(step)),
    }
    lengths = dict(length=lambda step: 15 + 3 * skill(step), clipped=lambda step: 0.0)
    return simulate(steps, rewards, groups=32, entropy=lambda step: 0.13 - 0.09 * skill(step), **lengths, seed=seed)


def changed(log: list[dict], **changes) -> list[dict]:
    """The log with some metrics replaced; a function gets the index of the step. ``__`` stands for ``/``."""
    return [
        e | {key.replace("__", "/"): value(i) if callable(value) else value for key, value in changes.items()}
        for i, e in enumerate(log)
    ]


def check(**values) -> dict:
    """What the callback adds to a log."""
    return {"step": 6, **{f"health/{key}": value for key, value in values.items()}}


def codes(log: list[dict]) -> list[str]:
    return [verdict.code for verdict in diagnose(log)]


def alarms(log: list[dict], stride: int = 1) -> dict[str, int]:
    """Each alarming code, and the first step at which it is one."""
    told = {}
    for end in range(1, len(log) + 1, stride):
        for verdict in diagnose(log[:end]):
            if verdict.severity == "error":
                told.setdefault(verdict.code, log[end - 1]["step"])
    return told


def collapsed(log: list[dict]) -> list[dict]:
    """From step 4 on every completion is noise that never ends."""
    ruin = {"reward": 0.0, "reward_std": 0.0, "frac_reward_zero_std": 1.0, "entropy": 5.1}
    ruin |= {"completions/clipped_ratio": 1.0, "completions/max_terminated_length": 0.0}
    return [e | ruin if i > 3 else e for i, e in enumerate(log)]


CUT = changed(flat(), completions__clipped_ratio=1.0, completions__max_terminated_length=0.0)
#: Logs with one fault each, by its code.
BROKEN = {
    "nan": changed(flat(12), loss=lambda i: math.nan if i == 11 else 0.0),
    "kl_explosion": changed(flat(8), kl=lambda i: 0.02 * 4**i),
    "mode_collapse": collapsed(flat()),
    "no_eos": [*CUT, check(ended_with_room=0.0)],
    "all_truncated": changed(flat(), completions__clipped_ratio=lambda i: 0.5 if i < 3 else 0.96),
    "dead_reward": changed(
        healthy(12), rewards__strict_format_reward__mean=0.0, rewards__strict_format_reward__std=0.0
    ),
    "no_gradient": changed(flat(12), frac_reward_zero_std=1.0, grad_norm=0.0, reward_std=0.49),
    "saturated": changed(
        healthy(60),
        frac_reward_zero_std=lambda i: 0.2 if i < 40 else 1.0,
        rewards__correctness_reward__mean=lambda i: min(1.0, 0.3 + i / 50),
        rewards__correctness_reward__std=lambda i: 0.4 if i < 40 else 0.05,
    ),
    "length_hacking": changed(
        flat(),
        completions__mean_length=lambda i: 15.0 + 3 * i,
        rewards__length_reward__mean=lambda i: 0.1 + 0.03 * i,
        reward=lambda i: 0.5 + 0.1 * i,
    ),
    "reward_hacking_suspected": changed(
        flat(40),
        rewards__correctness_reward__mean=lambda i: 0.5 if i < 15 else max(0.0, 0.5 - (i - 15) / 20),
        rewards__strict_format_reward__mean=lambda i: min(1.0, 0.2 + i / 45),
        reward=lambda i: 0.5 + i / 30,
    ),
    "format_ignored": changed(
        healthy(30),
        rewards__strict_format_reward__mean=lambda i: 0.016 * (i % 2),
        rewards__strict_format_reward__std=lambda i: 0.125 * (i % 2),
    ),
    "gain_without_answers": simulate(
        120,
        {"accuracy_reward": (1.0, lambda s: 0.1), "language_reward": (2.0, bend(0.1, 0.95, 40, 10))},
        groups=16,
        seed=4,
    ),
    "falling_reward": simulate(60, {"stage_reward": (1.0, lambda s: 0.7 if s <= 30 else 0.4)}),
    "no_learning": flat(),
    "slow_steps": changed(healthy(40), step_time=lambda i: 0.3 if i < 20 else 1.5),
    "stalled": [*healthy(12), check(stalled=312.0)],
}
#: What is worth a word and no alarm.
NOTED = {
    "shrinking_completions": changed(
        healthy(40), completions__mean_length=lambda i: 900.0 - 725 * i / 39 + 9 * (i % 2)
    ),
    "growing_completions": changed(healthy(40), completions__mean_length=lambda i: 15.0 + 2 * i),
    "constant_reward": changed(healthy(40), rewards__runs__mean=1.0, rewards__runs__std=0.0),
}


#: Runs that fail late.
COLLAPSE = simulate(
    100,
    paying(lambda s: bend(0.05, 0.85, 20, 6)(s) if s < 60 else 0.03, form=lambda s: 0.95 if s < 60 else 0.02),
    entropy=lambda s: 0.4 if s < 60 else 2.5,
)
LATE_HACK = simulate(
    280,
    paying(lambda s: min(0.7, 0.3 + s / 350)),
    length=lambda s: 200 if s < 200 else 200 + 12 * (s - 200),
    rewards__length_reward__mean=lambda s: 0.2 if s < 200 else min(1.0, 0.2 + (s - 200) / 80),
    rewards__length_reward__std=lambda s: 0.1,
)
_FORMS = {
    "int_reward": (0.5, bend(0.2, 0.97, 25, 8)),
    "strict_format_reward": (0.5, bend(0.02, 0.97, 60, 20)),
    "soft_format_reward": (0.5, bend(0.05, 0.97, 50, 17)),
    "xmlcount_reward": (0.5, bend(0.4, 0.97, 20, 7)),
}
#: Runs that are well, each as the arguments of `simulate`.
WELL = {
    "GSM8K, slowly": dict(steps=300, rewards=paying(lambda s: 0.55 + 0.2 * s / 300, form=bend(0.6, 0.98, 60, 20))),
    "the same in small batches": dict(
        steps=250, rewards=paying(lambda s: 0.3 + 0.4 * s / 250, form=bend(0.3, 0.98, 100, 20)), groups=2
    ),
    "logged every ten steps": dict(steps=400, rewards=paying(lambda s: 0.5 + 0.2 * s / 400), every=10),
    "R1-Zero: longer and righter": dict(
        steps=240, rewards=paying(bend(0.1, 0.7, 120, 40)), length=lambda s: 300 + 3 * s
    ),
    "the same, its reward of an unknown name": dict(
        steps=240, rewards=paying(bend(0.1, 0.7, 120, 40), truth="stage_reward"), length=lambda s: 300 + 3 * s
    ),
    "rambling unlearned": dict(
        steps=120,
        rewards=paying(lambda s: 0.5 + 0.1 * s / 120, form=bend(0.1, 0.98, 15, 5)),
        length=lambda s: max(150, 300 - 6 * s),
    ),
    "a long warm-up": dict(
        steps=150,
        rewards=paying(lambda s: 0.4 + 0.3 * max(0, s - 50) / 100),
        learning_rate=lambda s: min(1.0, s / 50) * 1e-6,
    ),
    "quick, then a plateau": dict(steps=250, rewards=paying(bend(0.25, 0.85, 10, 4), form=bend(0.2, 0.98, 10, 4))),
    "tools that are hardly called at first": dict(
        steps=120, rewards=paying(bend(0.05, 0.6, 60, 15)), groups=2, **tool_calls(bend(0.01, 1.0, 50, 10), 16)
    ),
    "vLLM with a small mismatch": dict(
        steps=120, rewards=paying(bend(0.3, 0.7, 40, 10)), **vllm_weights(0.005, 200.0, 64)
    ),
    "vLLM with long completions": dict(
        steps=120,
        rewards=paying(bend(0.3, 0.7, 40, 10)),
        groups=2,
        length=lambda s: 4000.0,
        **vllm_weights(0.02, 4000.0, 16),
    ),
    "hard prompts, so that most groups tie": dict(
        steps=200, rewards=paying(lambda s: 0.05 + 0.2 * s / 200, form=lambda s: 1.0)
    ),
    "an overlong penalty that never strikes": dict(
        steps=80, rewards=paying(bend(0.3, 0.7, 30, 10)) | {"soft_overlong_punishment": (-1.0, lambda s: 0.0)}
    ),
    "GSM8K with 0.5B, one group per step": dict(
        steps=300, rewards={"correctness_reward": (2.0, lambda s: 0.1 + 0.25 * s / 300), **_FORMS}, groups=1
    ),
    "slowly, one group per step": dict(
        steps=300, rewards=paying(lambda s: 0.3 + s / 1000, form=lambda s: 0.95), groups=1
    ),
    "countdown": dict(
        steps=300,
        rewards=paying(bend(0.02, 0.6, 150, 30), form=bend(0.1, 0.95, 25, 8), truth="equation_reward"),
        groups=2,
        length=lambda s: 250 - 2 * min(s, 50) + max(0, s - 150),
    ),
    "with a KL": dict(
        steps=150,
        rewards=paying(bend(0.2, 0.6, 60, 20), form=bend(0.3, 0.95, 30, 10)),
        groups=2,
        kl=lambda s: 0.001 + 0.3 * min(1, s / 80),
    ),
    "cut off at first, and soon no more": dict(
        steps=120,
        rewards=paying(bend(0.02, 0.6, 50, 12), form=bend(0.05, 0.95, 30, 8)),
        groups=4,
        clipped=bend(0.97, 0.05, 20, 5),
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
    return simulate(steps, rewards, groups=groups, every=every, seed=seed, **words)


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
