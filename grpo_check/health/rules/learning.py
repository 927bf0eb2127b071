"""Rules about what the reward teaches: wrong answers, no format, or nothing."""

import math
from collections.abc import Iterator

from ...findings import Finding
from ...rules import adding_to
from .. import limits
from ..evidence import evidence, is_at_top
from ..log import Log
from ..statistics import (
    best,
    clearest_rise,
    falls,
    last,
    matters,
    noise,
    payable,
    rises,
    share_right,
    sigmas,
    span,
)
from .rule import LogRule, log_of, seen

RULES: list[LogRule] = []
rule = adding_to(RULES, LogRule)


def is_learning(log: Log) -> bool:
    """Whether the total or any reward has probably risen within the last hundred steps."""
    curves = [log.values("reward", limits.PATIENCE)]
    curves += [log.values(f"rewards/{name}/mean", limits.PATIENCE) for name in log.rewards]
    return any(clearest_rise(curve) >= limits.LIKELY for curve in curves)


@rule(
    "error",
    "the reward rises, but the answers are wrong or get worse",
    why="the policy has found something that scores better than a correct answer",
    fixes=(
        "read the samples and find what they now have in common",
        "attack that reward: python -m grpo_check probe FILE.py:function",
        "give correctness more weight than all the rest together",
    ),
    hides=("no_learning", "saturated", "reward_at_top"),
    example=log_of(
        30,
        rewards__correctness_reward__mean=lambda step: 0.5 if step < 15 else 0.1,
        rewards__format_reward__mean=lambda step: 0.2 if step < 15 else 0.9,
    ),
)
def reward_hacking_suspected(log: Log) -> Iterator[Finding]:
    """Correctness has fallen far and another reward has risen since, or samples contradict a reward at its top."""
    shown = evidence(log)
    if shown.samples_wrong and is_at_top(log):
        yield seen(f"reward {span(log.values('reward'))}, near its maximum, but {shown.said}")
        return
    said = (_risen_instead(log, name) for name in log.of_kind("correctness"))
    yield from map(seen, list(filter(None, said))[:1])


def _risen_instead(log: Log, name: str) -> str:
    """The rewards that have risen since one for correctness began to fall far."""
    right, (low, _) = log.means(name), payable(*log.scores(name))
    top, at = best(right)
    fallen = top - last(right)
    far = fallen >= limits.CORRECT_FELL * (top - low) and matters(fallen, *log.scores(name))
    if not far or not falls(right, at):
        return ""
    others = {other: log.means(other) for other in log.rewards if other != name}
    risen = {other: means for other, means in others.items() if len(means) == len(right) and rises(means, at)}
    said = ", ".join(f"{other} {span(means, at)}" for other, means in risen.items())
    return f"{name} {top:.3g} -> {last(right):.3g} while {said}" if risen else ""


@rule(
    "error",
    "hardly any completion is correctly formatted",
    why="a reward that reads the answer from the tags finds no answer",
    fixes=(
        "show the format in the system prompt, with an example",
        "reward parts of the format, so that partial progress scores",
        "teach the format with a few hundred rows of SFT first",
    ),
    early=is_learning,
    example=log_of(
        30,
        rewards__format_reward__mean=lambda step: 0.02 * (step % 2),
        rewards__format_reward__std=lambda step: 0.14 * (step % 2),
    ),
)
def format_ignored(log: Log) -> Iterator[Finding]:
    """Hardly any completion earns a format reward and it does not rise, or held-out completions lack the format."""
    held_out = log.checked("heldout_format")
    if len(held_out) > 1 and max(held_out[-2:]) <= limits.FORMED:
        yield seen(f"{held_out[-1]:.0%} of held-out completions correctly formatted")
        return
    names = [name for name in log.of_kind("form") if log.spreads(name) and log.ever_varied(name)]
    earned = {name: share_right(*log.scores(name)) for name in names}
    if log.steps < limits.TREND_STEPS or not names or max(earned.values()) > limits.FORMED:
        return
    name = max(earned, key=earned.get)
    if clearest_rise(log.means(name)) < limits.RISEN:
        yield seen(f"{name} {span(log.means(name))}: about {earned[name]:.0%} of completions earn it")


def _may_still_learn(log: Log) -> bool:
    """Whether it is too early for `no_learning`: few steps, a possible rise, or noise that would hide one."""
    rewards = log.values("reward")
    if log.steps < limits.PATIENCE or len(rewards) < limits.TREND_STEPS:
        return True
    low, high = payable(*log.scores())
    visible = limits.SURE * noise(rewards) * math.sqrt(4 / len(rewards)) <= limits.MATTERS * (high - low)
    higher_now = sigmas(rewards, few=max(limits.WINDOW, len(rewards) // 10)) >= 1.0
    return not visible or higher_now or clearest_rise(rewards) >= limits.RISEN


@rule(
    "error",
    "the reward does not rise",
    why="this run has learned nothing so far; a large model with a small learning rate may need more than 100 steps",
    fixes=(
        "raise learning_rate (1e-5 to 1e-4 for an adapter)",
        "use larger groups or more prompts per step, so that the advantages are less noisy",
        "check that the task is within reach: some completions must be correct",
    ),
    steps=limits.TREND_STEPS,
    early=_may_still_learn,
    example=log_of(120, reward=lambda step: 0.5 + 0.01 * (step % 2), reward_std=0.5),
)
def no_learning(log: Log) -> Iterator[Finding]:
    """The reward has not risen by more than chance, although warmup is over and not all answers are correct."""
    rewards, rates = log.values("reward"), log.values("learning_rate")
    warming = len(rates) > 1 and rates[-1] > rates[0] and rates[-1] == max(rates)
    right = [log.scores(name) for name in log.of_kind("correctness")]
    near_top = any(share_right(means, spreads) >= limits.RIGHT for means, spreads in right if spreads)
    if len(rewards) < 4 or warming or near_top:
        return
    errors = clearest_rise(rewards)
    if errors < limits.LIKELY or not _may_still_learn(log):
        yield seen(f"reward {span(rewards)} in {log.steps} steps (clearest rise: {errors:.1f} standard errors)")
