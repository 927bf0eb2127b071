"""Rules about what the run learns (wrong answers, no format, or nothing), and how long its steps take."""

import math
from collections.abc import Iterator, Sequence
from statistics import fmean, median

from ...findings import Finding
from ...logs.log import Log
from ...rule import adding_to, found
from .. import limits
from ..correctness import correctness_of, is_at_top, is_high, is_learning
from ..remarks import remarks
from ..trends import (
    best,
    clearest_fall,
    clearest_rise,
    ends,
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
from .rule import HACKED, UNPAID, LogRule, log_of

RULES: list[LogRule] = []
rule = adding_to(RULES, LogRule)


@rule(
    "error",
    "the reward rises, but the answers are wrong or get worse",
    why="the policy has found something that scores better than a correct answer.",
    fixes=(
        "read the samples and find what they now have in common.",
        "attack that reward: grpo-check probe FILE.py:function.",
        "give correctness more weight than all the rest together.",
    ),
    symptom=HACKED,
    hides=("gain_without_answers", "falling_reward", "no_learning", "saturated", "reward_at_top"),
    example=log_of(
        30,
        rewards__correctness_reward__mean=lambda step: 0.5 if step < 15 else 0.1,
        rewards__format_reward__mean=lambda step: 0.2 if step < 15 else 0.9,
    ),
)
def reward_hacking_suspected(log: Log) -> Iterator[Finding]:
    """Correctness has fallen far and another reward has risen since, or samples contradict a reward at its top."""
    shown = correctness_of(log)
    if shown.samples_wrong and is_at_top(log):
        yield found(seen=f"reward {span(log.values('reward'))}, near its maximum, but {shown.said}")
        return
    said = (_risen_instead(log, name) for name in log.of_kind("correctness"))
    if hack := next(filter(None, said), ""):
        yield found(seen=hack)


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


def _may_be_noise(log: Log) -> bool:
    """Whether correctness may have risen a little, or noise would hide a rise that matters."""
    names = [name for name in log.of_kind("correctness") if log.ever_varied(name)]
    return any(clearest_rise(log.means(name)) >= 1.0 or not _shows_a_rise(log, name) for name in names)


def _shows_a_rise(log: Log, name: str = "") -> bool:
    """Whether a rise that matters would be seen in a reward (in the total, if not named), in spite of its noise."""
    means, spreads = log.scores(name)
    low, high = payable(means, spreads)
    return bool(spreads) and limits.SURE * noise(means) * math.sqrt(4 / len(means)) <= limits.MATTERS * (high - low)


@rule(
    "error",
    "the reward rises, but no reward for correct answers does",
    why="the policy learns what is easier to earn than a correct answer.",
    fixes=(
        "read samples next to their gold answers: is an answer ever given, where the reward looks for it?",
        "probe the reward for correctness on a correct completion: grpo-check probe FILE.py:function.",
        "use easier prompts, or SFT first, so that some answers are correct.",
        "give correctness more weight than all the rest together.",
    ),
    steps=limits.FLAT_STEPS,
    symptom=HACKED,
    early=_may_be_noise,
    example=log_of(
        120,
        reward=lambda step: step / 120,
        rewards__correctness_reward__mean=0.0,
        rewards__language_reward__mean=lambda step: step / 120,
    ),
)
def gain_without_answers(log: Log) -> Iterator[Finding]:
    """For a long time, the total has risen and every reward for correctness has stayed where it was, below one half."""
    names, shown = log.of_kind("correctness"), correctness_of(log)
    curves = [log.means(name) for name in names]
    learned = any(clearest_rise(means) >= limits.LIKELY for means in curves) or any(is_high(log, n) for n in names)
    rewards = log.values("reward")
    if not names or learned or clearest_rise(rewards) < limits.RISEN or not _matters_so_far(log):
        return
    if shown.sampled and shown.right >= limits.HALF * shown.sampled:
        return
    others = {name: log.means(name) for name in log.rewards if name not in names}
    risen = [f"{name} {span(means)}" for name, means in others.items() if clearest_rise(means) >= limits.RISEN]
    by = f" ({', '.join(risen)})" if risen else ""
    yield found(seen=f"reward {span(rewards)}{by}, while {', '.join(_curve_of(log, name) for name in names)}")


def _matters_so_far(log: Log) -> bool:
    """Whether the total has risen by more than a small part of its range."""
    rewards = log.values("reward")
    few = ends(rewards)
    return matters(fmean(rewards[-few:]) - fmean(rewards[:few]), *log.scores())


def _curve_of(log: Log, name: str) -> str:
    """A reward from first to last, or its only value."""
    return f"{name} {span(log.means(name))}" if log.ever_varied(name) else f"{name} = {log.means(name)[-1]:.3g}"


@rule(
    "error",
    "hardly any completion is correctly formatted",
    why="a reward that reads the answer from the tags finds no answer.",
    fixes=(
        "show the format in the system prompt, and three rows as examples in the prompt: grpo-check pilot --examples 3 "
        "says what that gives for nothing.",
        "reward parts of the format, so that partial progress scores.",
        "teach the format with a few hundred rows of SFT first.",
    ),
    symptom=UNPAID,
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
    if len(held_out) > 1 and max(held_out[-2:]) <= limits.HARDLY_FORMED:
        yield found(seen=f"{held_out[-1]:.0%} of held-out completions correctly formatted")
        return
    names = [name for name in log.of_kind("form") if log.spreads(name) and log.ever_varied(name)]
    earned = {name: share_right(*log.scores(name)) for name in names}
    if log.steps < limits.TREND_STEPS or not names or max(earned.values()) > limits.HARDLY_FORMED:
        return
    name = max(earned, key=earned.get)
    if clearest_rise(log.means(name)) < limits.RISEN:
        yield found(seen=f"{name} {span(log.means(name))}: about {earned[name]:.0%} of completions earn it")


def _may_still_learn(log: Log) -> bool:
    """Whether it is too early for `no_learning`: few steps, a possible rise, or noise that would hide one."""
    rewards = log.values("reward")
    if log.steps < limits.FLAT_STEPS or len(rewards) < limits.TREND_STEPS:
        return True
    higher_now = sigmas(rewards, few=max(limits.WINDOW, len(rewards) // 10)) >= 1.0
    return not _shows_a_rise(log) or higher_now or clearest_rise(rewards) >= limits.RISEN


@rule(
    "error",
    "the reward has fallen",
    why="the policy is worse than it was, and more steps of the same kind rarely bring it back.",
    fixes=(
        "go back to the last checkpoint before the fall, and divide learning_rate by 3.",
        "raise beta, which holds the policy near the model that it started from.",
        "check whether the prompts became harder at that step; if so, shuffle them.",
    ),
    steps=limits.TREND_STEPS,
    symptom=UNPAID,
    hides=("no_learning",),
    early=lambda log: clearest_fall(log.values("reward"))[0] < limits.SURE,
    example=log_of(40, reward=lambda step: (0.8 if step < 20 else 0.5) + 0.01 * (step % 2), reward_std=0.4),
)
def falling_reward(log: Log) -> Iterator[Finding]:
    """The reward is clearly lower than before some step; `mode_collapse` has what is lost nearly whole."""
    rewards = log.values("reward")
    errors, at = clearest_fall(rewards)
    if errors < limits.RISEN:
        return
    before, after = fmean(rewards[:at]), fmean(rewards[at:])
    if not matters(before - after, *log.scores()):
        return
    curves = {name: log.means(name) for name in log.rewards}
    fell = {name: means for name, means in curves.items() if len(means) == len(rewards) and means != rewards}
    by = [f"{name} {fmean(means[:at]):.3g} -> {fmean(means[at:]):.3g}" for name, means in fell.items() if _fell(means)]
    said = f"mean reward {before:.3g} up to {log.unit} {log.entries[at - 1]['step']}, {after:.3g} since"
    yield found(seen=f"{said} ({errors:.1f} standard errors){': ' * bool(by)}{', '.join(by)}")


def _fell(means: Sequence[float]) -> bool:
    return clearest_fall(means)[0] >= limits.RISEN


@rule(
    "error",
    "the reward does not rise",
    why="this run has learned nothing so far; a large model with a small learning rate may need more than 100 steps.",
    fixes=(
        "raise learning_rate (1e-5 to 2e-4 for an adapter).",
        "use larger groups or more prompts per step, so that the advantages are less noisy.",
        "check that the task is within reach: some completions must be correct.",
    ),
    steps=limits.TREND_STEPS,
    symptom=UNPAID,
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
        said = f"reward {span(rewards)} in {log.steps} steps (clearest rise: {errors:.1f} standard errors)"
        yield found(seen="; ".join([said, *remarks(log)]))


@rule(
    "error",
    "the steps take longer and longer",
    why="the run will take longer than planned.",
    fixes=(
        "look for other processes on this machine and for swapping.",
        "time the rewards; a slow one delays every step.",
        "check the GPU temperature; a GPU that is too hot slows down.",
    ),
    example=log_of(20, step_time=lambda step: 0.3 if step <= 10 else 1.5),
)
def slow_steps(log: Log) -> Iterator[Finding]:
    """Steps take several times as long as the first ones, and not because completions grew."""
    seconds, few = log.values("step_time"), limits.FEWEST_STEPS
    if len(seconds) < 2 * few or median(seconds[:few]) <= 0:
        return
    # The third fastest of ten: a burst of other work on the machine does not count.
    slower = sorted(seconds[-few:])[2] / median(seconds[:few])
    lengths = [log.values(f"completions/{kind}_length") for kind in ("mean", "max")]
    grown = [median(some[-few:]) / median(some[:few]) for some in lengths if some and median(some[:few])]
    if slower >= limits.SLOWER * max([1.0, *grown]):
        yield found(seen=f"{median(seconds[:few]):.3g} -> {median(seconds[-few:]):.3g} seconds per step")


@rule(
    "error",
    "a step does not finish",
    why="the run hangs, and no log shows this.",
    fixes=(
        "find out where the process hangs: health/verdicts.txt has the stack of every thread.",
        "in a reward, limit its time (a regular expression with nested quantifiers, a request without a timeout).",
        "in generate or a collective call, check that every process is still running (nvidia-smi, py-spy).",
    ),
    steps=1,
    example=[*log_of(1), {"step": 1, "health/stalled": 312.0}],
)
def stalled(log: Log) -> Iterator[Finding]:
    """The callback's watchdog saw a step that took many times the median step."""
    if seconds := log.checked("stalled"):
        yield found(seen=f"a step had not finished after {seconds[-1]:.0f} seconds")
