"""One rule for each code: what in the log says so, or None.

A rule gets the whole `Log` and gives the evidence: a sentence with the numbers, and the numbers.
"""

import math
from collections.abc import Callable, Sequence
from statistics import fmean, median

from .log import CORRECTNESS_NAMES, FORMAT_NAMES, Log
from .thresholds import limit

Evidence = tuple[str, dict[str, float]]


def first(values: Sequence[float]) -> float:
    """The mean of the first few values."""
    return fmean(values[: int(limit("window"))])


def last(values: Sequence[float]) -> float:
    """The mean of the last few values."""
    return fmean(values[-int(limit("window")) :])


def trend(values: Sequence[float]) -> tuple[float, float]:
    """How far the values went from first to last, and the p of Kendall's tau against the step.

    >>> change, p = trend([0.1, 0.2, 0.2, 0.4, 0.4, 0.5, 0.6, 0.6, 0.8, 0.9])
    >>> round(change, 2), p < 0.001
    (0.42, True)
    """
    from scipy.stats import kendalltau

    p = float(kendalltau(range(len(values)), values).pvalue)
    return last(values) - first(values), 1.0 if math.isnan(p) else p  # nan: all values are equal


def rises(values: Sequence[float]) -> bool:
    """Whether the values went up, by more than chance."""
    change, p = trend(values)
    return change > 0 and p < limit("trend_p")


def falls(values: Sequence[float]) -> bool:
    """Whether the values went down, by more than chance."""
    return rises([-value for value in values])


def share_right(means: Sequence[float], spreads: Sequence[float]) -> float:
    """Which share of completions earns a reward that pays all or nothing, whatever it pays.

    A reward of ``s`` with probability ``p`` has mean ``s p`` and variance ``s² p (1 - p)``, so
    ``p = mean² / (mean² + variance)``; 0.0 where the mean is not above zero.

    >>> round(share_right([1.8], [0.6]), 3)  # pays 2.0 in nine of ten cases
    0.9
    """
    mean, spread = last(means), last(spreads)
    return mean**2 / (mean**2 + spread**2) if mean > 0 else 0.0


def nan(log: Log) -> Evidence | None:
    """A loss that is no number, or a gradient for several steps in a row."""
    for entry in log.entries:
        if not math.isfinite(entry.get("loss", 0.0)):
            return f"loss is {entry['loss']} at step {entry['step']}", {"loss": entry["loss"]}
    in_a_row, wanted = 0, int(limit("nan_in_a_row"))
    for entry in log.entries:
        in_a_row = 0 if math.isfinite(entry.get("grad_norm", 0.0)) else in_a_row + 1
        if in_a_row == wanted:
            return f"grad_norm is {entry['grad_norm']} for {wanted} steps in a row", {"grad_norm": entry["grad_norm"]}
    return None


def kl_explosion(log: Log) -> Evidence | None:
    """A KL divergence beyond its limit in three steps running; only a run with beta > 0 logs one."""
    newest = log.values("kl")[-3:]
    if len(newest) < 3 or not min(newest) >= limit("kl"):
        return None
    return f"kl {', '.join(f'{value:.3g}' for value in newest)} in the last three steps (limit {limit('kl'):g})", {
        "kl": newest[-1]
    }


def string_prompt(log: Log) -> Evidence | None:
    """The callback saw that prompts are strings, although the tokenizer has a chat template."""
    if 1.0 not in log.checked("health/string_prompts"):
        return None
    return f"the dataset's prompts are strings; reward {last(log.values('reward')):.3g}", {"string_prompts": 1.0}


def mode_collapse(log: Log) -> Evidence | None:
    """Entropy gone or burst without a better reward, or the same completion for different prompts."""
    entropies, rewards = log.values("entropy"), log.values("reward")
    distinct = log.checked("health/distinct")[-1:]
    if distinct and distinct[0] <= limit("distinct"):
        return f"only {distinct[0]:.0%} of the completions to different prompts differ", {"distinct": distinct[0]}
    if not entropies or last(rewards) > rewards[0]:
        return _one_length(log) if not entropies and last(rewards) <= rewards[0] else None
    before, now, lost = entropies[0], last(entropies), _share_lost(log)
    twofold = not before / limit("entropy_moved") < now < before * limit("entropy_moved")
    extreme = not limit("entropy_gone") * before < now < limit("entropy_burst") * before
    if not extreme and not (lost >= limit("reward_lost") and twofold) and lost < limit("reward_gone"):
        return None
    said = f"entropy {before:.3g} -> {now:.3g} nats a token, reward {rewards[0]:.3g} -> {last(rewards):.3g}"
    return said, {"entropy": now, "entropy_first": before, "reward": last(rewards)}


def _share_lost(log: Log) -> float:
    """Which share of the first reward is gone; 0.0 where that one was too near zero to tell."""
    rewards, spreads = log.values("reward"), log.values("reward_std") or [0.0]
    if rewards[0] <= limit("reward_noise") * spreads[0]:
        return 0.0
    return (rewards[0] - last(rewards)) / rewards[0]


def _one_length(log: Log) -> Evidence | None:
    """Logs without entropy (before TRL 0.20): every completion of a batch has one length, and none is cut off."""
    window = int(limit("window"))
    shortest, longest = log.values("completions/min_length")[-window:], log.values("completions/max_length")[-window:]
    clipped = log.values("completions/clipped_ratio")[-window:]
    if not shortest or shortest != longest or max(clipped, default=0.0) > 0:
        return None
    return f"every completion has {shortest[-1]:g} tokens, and the reward has not risen", {"length": shortest[-1]}


def no_eos(log: Log) -> Evidence | None:
    """Not one completion has ended since the run began, and none ends with more room either."""
    longest = log.values("completions/max_terminated_length")
    with_room = log.checked("health/ended_with_room")[-1:]
    if not longest or max(longest) > 0 or (with_room and with_room[0] >= limit("ended")):
        return None
    said = f"none of the completions of {len(longest)} steps has ended (completions/max_terminated_length 0)"
    return said + (f"; with four times the room {with_room[0]:.0%}" if with_room else ""), {"ended": 0.0}


def all_truncated(log: Log) -> Evidence | None:
    """Nearly all are cut off; where none ever ended and the callback saw that room does not help, it is `no_eos`."""
    clipped, with_room = log.values("completions/clipped_ratio"), log.checked("health/ended_with_room")[-1:]
    if not clipped or last(clipped) < limit("clipped"):
        return None
    if with_room and with_room[0] < limit("ended"):
        return None
    length = log.values("completions/max_length")
    said = f"{last(clipped):.0%} cut off" + (f" at {length[-1]:g} tokens" if length else "")
    return said + (f"; with four times the room {with_room[0]:.0%} end" if with_room else ""), {
        "clipped": last(clipped)
    }


def dead_reward(log: Log) -> Evidence | None:
    """A reward whose standard deviation was zero at every step (before TRL 0.17: whose mean never moved)."""
    dead = {name: value for name in log.rewards if (value := _constant(log, name)) is not None}
    solved = [name for name in dead if dead[name] > 0 and name in _correctness(log)]
    told = {name: value for name, value in dead.items() if name not in solved}
    if not told:
        return None
    said = ", ".join(f"{name} = {value:.3g}" for name, value in told.items())
    return f"{said} for every completion of {len(log)} steps", told


def _constant(log: Log, name: str) -> float | None:
    """The one score that a reward gave to everything, or None."""
    means = [value for value in log.values(f"rewards/{name}/mean") if not math.isnan(value)]
    spreads = [value for value in log.values(f"rewards/{name}/std") if not math.isnan(value)]
    varies = spreads or [value - means[0] for value in means]
    if len(means) < limit("fewest") or any(abs(value) > limit("constant") for value in varies):
        return None
    return means[-1] if max(means) - min(means) <= limit("constant") else None


def _correctness(log: Log) -> list[str]:
    return log.named(CORRECTNESS_NAMES, FORMAT_NAMES)


def _is_tied(log: Log) -> bool:
    tied = log.tied[-int(limit("fewest")) :]
    return bool(tied) and fmean(tied) >= limit("tied")


def _is_solved(log: Log) -> bool:
    """Whether nearly all answers are right now: by the correctness rewards, or by a total that has risen."""
    names = _correctness(log)
    if names:
        pairs = [(log.values(f"rewards/{name}/mean"), log.values(f"rewards/{name}/std")) for name in names]
        return all(share_right(means, spreads or [0.0]) >= limit("right") for means, spreads in pairs)
    total, spreads = log.values("reward"), log.values("reward_std") or [0.0]
    return share_right(total, spreads) >= limit("right") and rises(total)


def saturated(log: Log) -> Evidence | None:
    """Tied, since all are right."""
    if not _is_tied(log) or not _is_solved(log):
        return None
    return f"{last(log.tied):.0%} of the groups tied, reward {last(log.values('reward')):.3g}", {"tied": last(log.tied)}


def no_gradient(log: Log) -> Evidence | None:
    """Tied, and not since all are right. ``reward_std`` does not tell: groups that tie can differ from each other."""
    if not _is_tied(log) or _is_solved(log):
        return None
    spread = log.values("reward_std")[-1:]
    beside = f", while reward_std over the batch is {spread[0]:.3g}" if spread else ""
    return f"{last(log.tied):.0%} of the groups tied{beside}", {"tied": last(log.tied)}


def length_hacking(log: Log) -> Evidence | None:
    """Lengths and reward move, correctness does not; without such a reward, lengths and reward move as one."""
    lengths, rewards = log.values("completions/mean_length"), log.values("reward")
    if not lengths or not first(lengths) or limit("shorter") < last(lengths) / first(lengths) < limit("longer"):
        return None
    right = [log.values(f"rewards/{name}/mean") for name in _correctness(log)]
    if not rises(rewards) or any(rises(values) for values in right) or not (right or _as_one(lengths, rewards)):
        return None
    said = f"mean length {first(lengths):.3g} -> {last(lengths):.3g} tokens, reward {_span(rewards)}"
    said += "".join(f", {name} {_span(values)}" for name, values in zip(_correctness(log), right, strict=True))
    return said, {"length_first": first(lengths), "length": last(lengths)}


def _as_one(lengths: Sequence[float], rewards: Sequence[float]) -> bool:
    from scipy.stats import kendalltau

    return len(lengths) == len(rewards) and abs(kendalltau(lengths, rewards).statistic) > 0.6


def _span(values: Sequence[float]) -> str:
    return f"{first(values):.3g} -> {last(values):.3g}"


def reward_hacking_suspected(log: Log) -> Evidence | None:
    """Since correctness was best it has fallen, and another reward has risen."""
    for name in _correctness(log):
        right = log.values(f"rewards/{name}/mean")
        best, at = _best(right)
        if best <= 0 or best - last(right) < limit("correct_fell") * best or not falls(right[at:]):
            continue
        others = {other: log.values(f"rewards/{other}/mean")[at:] for other in log.rewards if other != name}
        risen = {other: values for other, values in others.items() if len(values) == len(right[at:]) and rises(values)}
        if risen:
            said = ", ".join(f"{other} {_span(values)}" for other, values in risen.items())
            return f"{name} {best:.3g} -> {last(right):.3g} while {said}", {name: last(right), "best": best}
    return None


def _best(values: Sequence[float]) -> tuple[float, int]:
    """The best mean over a window, and where that window begins."""
    window = int(limit("window"))
    means = [fmean(values[start : start + window]) for start in range(max(1, len(values) - window + 1))]
    return max(means), means.index(max(means))


def format_ignored(log: Log) -> Evidence | None:
    """A format reward that hardly anything earns and that does not rise, or held-out completions out of form."""
    held_out = log.checked("health/heldout_format")
    if len(held_out) > 1 and held_out[-1] <= limit("format"):
        return f"{held_out[-1]:.0%} of the held-out completions in form", {"heldout_format": held_out[-1]}
    for name in log.named(FORMAT_NAMES) if len(log) >= limit("trend_steps") else []:
        means, spreads = log.values(f"rewards/{name}/mean"), log.values(f"rewards/{name}/std")
        if not spreads or _constant(log, name) is not None or any(math.isnan(value) for value in means + spreads):
            continue
        earned = share_right(means, spreads)
        if earned <= limit("format") and last(means) >= 0 and not rises(means):
            return f"{name} {_span(means)}: about {earned:.0%} of the completions earn it", {name: last(means)}
    return None


def no_learning(log: Log) -> Evidence | None:
    """The reward has not risen by more than chance."""
    rewards = log.values("reward")
    if len(rewards) < limit("trend_steps") or rises(rewards):
        return None
    change, p = trend(rewards)
    return f"reward {_span(rewards)} in {len(rewards)} steps (p = {p:.2g})", {"change": change, "p": p}


def slow_steps(log: Log) -> Evidence | None:
    """Steps that take several times as long as the first ones, and not because completions grew."""
    seconds, few = log.values("step_time"), int(limit("fewest"))
    if len(seconds) < 2 * few:
        return None
    # The third fastest of ten: a burst of other work on the machine is no slowing down.
    slower = sorted(seconds[-few:])[2] / median(seconds[:few])
    lengths = log.values("completions/max_length")
    grown = max(1.0, median(lengths[-few:]) / median(lengths[:few])) if lengths and median(lengths[:few]) else 1.0
    if slower < limit("slower") * grown:
        return None
    return f"{median(seconds[:few]):.3g} -> {median(seconds[-few:]):.3g} seconds a step", {"slower": slower}


#: Judged at every length of a log; the others from ``fewest`` steps on.
AT_ONCE: dict[str, Callable[[Log], Evidence | None]] = {
    "nan": nan,
    "kl_explosion": kl_explosion,
    "string_prompt": string_prompt,
}

IN_TIME: dict[str, Callable[[Log], Evidence | None]] = {
    rule.__name__: rule
    for rule in (
        mode_collapse,
        no_eos,
        all_truncated,
        dead_reward,
        no_gradient,
        saturated,
        length_hacking,
        reward_hacking_suspected,
        format_ignored,
        no_learning,
        slow_steps,
    )
}
