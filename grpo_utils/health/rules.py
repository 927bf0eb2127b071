"""One rule for each code: what in the log says so, or None.

A rule gets the whole `Log` and gives the evidence: a sentence with the numbers, and the numbers.
Steps are training steps; an entry may stand for several (``logging_steps``).
"""

import math
from collections.abc import Callable, Sequence
from statistics import fmean, median

from .log import Log
from .statistics import best, falls, first, last, rises, share_right, sigmas, span, trend
from .thresholds import limit

Evidence = tuple[str, dict[str, float]]


def nan(log: Log) -> Evidence | None:
    """A loss or reward that is no number, weights that are none, or a gradient for several steps in a row."""
    if log.checked("health/not_finite"):
        return "a trained weight is no number any more", {"not_finite": 1.0}
    in_a_row, wanted = 0, int(limit("nan_in_a_row"))
    for entry in log.entries:
        for name in ("loss", "reward"):
            if not math.isfinite(entry.get(name, 0.0)):
                return f"{name} is {entry[name]} at step {entry['step']}", {name: entry[name]}
        gradient, divergence = entry.get("grad_norm", 0.0), entry.get("kl", 0.0)
        in_a_row = in_a_row + 1 if not math.isfinite(gradient) or math.isnan(divergence) else 0
        if in_a_row == wanted:
            return f"grad_norm is {gradient}, kl {divergence}, for {wanted} entries in a row", {"grad_norm": gradient}
    return None


def kl_explosion(log: Log) -> Evidence | None:
    """A KL divergence beyond its limit three times running; only a run with beta > 0 logs one."""
    entries = [entry for entry in log.entries if "kl" in entry]
    for three in zip(entries, entries[1:], entries[2:], strict=False):
        found = [entry["kl"] for entry in three]
        if min(found) >= limit("kl"):
            said = ", ".join(f"{value:.3g}" for value in found)
            return f"kl {said} up to step {three[-1]['step']} (limit {limit('kl'):g})", {"kl": found[-1]}
    return None


def string_prompt(log: Log) -> Evidence | None:
    """The callback saw that prompts are bare strings, although the tokenizer has a chat template."""
    if 1.0 not in log.checked("health/string_prompts"):
        return None
    return f"the dataset's prompts are plain strings; reward {log.entries[-1]['reward']:.3g}", {"string_prompts": 1.0}


def mode_collapse(log: Log) -> Evidence | None:
    """The reward is lost and the policy changed beyond recognition; or its entropy is gone or has burst for nothing."""
    distinct = log.checked("health/distinct")[-1:]
    if distinct and distinct[0] <= limit("distinct"):
        return f"completions to different prompts differ in {distinct[0]:.0%} of the cases", {"distinct": distinct[0]}
    entropies, rewards = log.values("entropy"), log.values("reward")
    lost = _share_lost(rewards)
    if lost >= limit("reward_lost") and _changed_beyond_recognition(log):
        moved = f", entropy {entropies[0]:.3g} -> {last(entropies):.3g} nats a token" if entropies else ""
        return f"{lost:.0%} of the best reward lost, now {last(rewards):.3g}{moved}", {"reward_lost": lost}
    if not entropies or sigmas(rewards) >= limit("risen"):
        return None
    before, now = entropies[0], last(entropies)
    if limit("entropy_gone") * before < now < limit("entropy_burst") * before:
        return None
    said = f"entropy {before:.3g} -> {now:.3g} nats a token, reward {span(rewards)}"
    return said, {"entropy": now, "entropy_first": before}


def _share_lost(rewards: Sequence[float]) -> float:
    """Which share of the best reward is gone, above zero or the start, whichever is lower; 0.0 if that may be noise."""
    tops = [median(rewards[i : i + 3]) for i in range(max(1, len(rewards) - 2))]  # deaf to one lucky batch
    top, at = max(tops), tops.index(max(tops))
    bottom = min(0.0, first(rewards))
    if top <= bottom or not falls(rewards, min(at, len(rewards) - 1)):
        return 0.0
    return (top - last(rewards)) / (top - bottom)


def _changed_beyond_recognition(log: Log) -> bool:
    """A second sign: entropy far off, everything cut off that was not, or every group tied at nothing."""
    entropies, clipped = log.values("entropy"), log.values("completions/clipped_ratio")
    moved = bool(entropies) and not (
        entropies[0] / limit("entropy_moved") < last(entropies) < entropies[0] * limit("entropy_moved")
    )
    cut = bool(clipped) and last(clipped) >= limit("clipped") > 2 * median(clipped[:3])
    lengths = log.values("completions/min_length"), log.values("completions/max_length")
    one_length = not entropies and bool(lengths[0]) and lengths[0][-3:] == lengths[1][-3:]
    return moved or cut or one_length or _is_tied(log)


def no_eos(log: Log) -> Evidence | None:
    """Not one completion has ended since the run began, and none ends with more room either."""
    longest, with_room = log.values("completions/max_terminated_length"), log.checked("health/ended_with_room")[-1:]
    if not longest or max(longest) > 0 or (with_room and with_room[0] >= limit("ended")):
        return None
    said = f"none of the completions of {log.steps} steps has ended (completions/max_terminated_length 0)"
    return said + (f"; with four times the room {with_room[0]:.0%}" if with_room else ""), {"ended": 0.0}


def all_truncated(log: Log) -> Evidence | None:
    """Nearly all are cut off; where none ever ended and the callback saw that room does not help, it is `no_eos`."""
    clipped, with_room = log.newest("completions/clipped_ratio", 5), log.checked("health/ended_with_room")[-1:]
    if not clipped or fmean(clipped) < limit("clipped"):
        return None
    never = max(log.values("completions/max_terminated_length"), default=1.0) == 0
    if never and with_room and with_room[0] < limit("ended"):
        return None
    length = log.values("completions/max_length")
    said = f"{fmean(clipped):.0%} cut off" + (f" at {length[-1]:g} tokens" if length else "")
    said += f"; with four times the room {with_room[0]:.0%} end" if never and with_room else ""
    return said, {"clipped": fmean(clipped)}


def dead_reward(log: Log) -> Evidence | None:
    """A reward whose standard deviation is zero for some time, and not because all have learned to earn it."""
    named = [name for name in log.rewards if log.means(name)]
    found = {name: value for name in named if (value := _dead_at(log, name)) is not None}
    if not found:
        return None
    said = ", ".join(f"{name} = {value:.3g}" for name, value in found.items())
    return f"{said} for every completion of the last {limit('fewest'):g} steps and more", found


def _dead_at(log: Log, name: str) -> float | None:
    """The score that a dead reward gives to everything, or None.

    Not dead: one that was learned (it varied once, and has not surely fallen); a penalty that never struck; a
    form that was always kept; accuracy of 1.0 from the start.
    """
    value, varied = _constant(log, name), _ever_varied(log, name)
    if value is None or (varied and not falls(log.means(name), best(log.means(name))[1])):
        return None  # what is at its best was learned; what was hardly ever earned is rare
    harmless = {"penalty": value == 0, "form": value > 0, "correctness": value == 1.0}
    known = name in log.of_kind("correctness") and "correctness"
    kinds = [known or kind for kind in harmless if name in log.of_kind(kind)]
    return None if not varied and any(harmless[kind] for kind in kinds) else value


def _constant(log: Log, name: str) -> float | None:
    """The one score that a reward gave to everything of late, or None (before TRL 0.17: whose mean did not move)."""
    means, spreads = (
        log.newest(f"rewards/{name}/mean", limit("fewest")),
        log.newest(f"rewards/{name}/std", limit("fewest")),
    )
    varies = spreads or [value - means[0] for value in means]
    enough = len(means) * log.per_entry >= limit("fewest")
    if not enough or max(means) - min(means) > limit("constant") or max(map(abs, varies)) > limit("constant"):
        return None
    return means[-1]


def _ever_varied(log: Log, name: str) -> bool:
    means = log.means(name)
    return max(log.spreads(name), default=0.0) > limit("constant") or max(means) - min(means) > limit("constant")


def _is_tied(log: Log) -> bool:
    """Whether nearly all groups tie, by their share, or by a gradient of exactly zero where no KL pulls."""
    share = log.tied[-max(1, math.ceil(limit("fewest") / log.per_entry)) :]
    gradients = log.newest("grad_norm", limit("fewest"))
    nothing = bool(gradients) and max(gradients) == 0.0 and not log.values("kl")
    return nothing or (bool(share) and fmean(share) >= limit("tied"))


def _is_solved(log: Log) -> bool:
    """Whether nearly all answers are right now: by rewards of correctness, or by a total that has risen."""
    names = log.of_kind("correctness")
    if not names:
        return share_right(log.values("reward"), log.values("reward_std") or [0.0]) >= limit("right") and rises(
            log.values("reward")
        )
    return all(_is_earned(log, name) for name in names if log.means(name))


def _is_earned(log: Log, name: str) -> bool:
    """Whether nearly all completions earn it; what never varied says nothing, unless it is 1.0, a usual accuracy."""
    means, spreads = log.means(name), log.spreads(name) or [0.0]
    known = _ever_varied(log, name) or means[-1] == 1.0
    return known and share_right(means, spreads) >= limit("right") and last(means) >= 0.9 * max(means)


def saturated(log: Log) -> Evidence | None:
    """Tied, since all are right."""
    if not _is_tied(log) or not _is_solved(log):
        return None
    return f"{_tied_now(log)}, reward {last(log.values('reward')):.3g}", {"tied": last(log.tied or [1.0])}


def no_gradient(log: Log) -> Evidence | None:
    """Tied, and not since all are right. ``reward_std`` does not tell: groups that tie can differ from each other."""
    if not _is_tied(log) or _is_solved(log):
        return None
    spread = log.values("reward_std")[-1:]
    beside = f", while reward_std over the batch is {spread[0]:.3g}" if spread else ""
    return f"{_tied_now(log)}{beside}", {"tied": last(log.tied or [1.0])}


def _tied_now(log: Log) -> str:
    return f"{last(log.tied):.0%} of the groups tied" if log.tied else "grad_norm is 0"


def length_hacking(log: Log) -> Evidence | None:
    """Since the start, or since some time, the length has changed and a reward has risen, and the truth has not."""
    recent = max(0, len(log) - math.ceil(limit("recent") / log.per_entry))
    for name in log.of_kind("correctness"):
        for at in dict.fromkeys((0, best(log.means(name))[1], recent)):
            evidence = _length_hacked(log, name, at)
            if evidence:
                return evidence
    return None


def _length_hacked(log: Log, truth: str, at: int) -> Evidence | None:
    lengths, right, window = log.values("completions/mean_length"), log.means(truth), int(limit("window"))
    if len(lengths) != len(log) or len(right) != len(log) or not lengths[at]:
        return None
    before, now = fmean(lengths[at : at + window]), last(lengths)
    fell, longer = falls(right, at), now >= limit("longer") * before
    if not (longer and sigmas(right, at) <= 1.0) and not (now <= limit("shorter") * before and fell):
        return None
    others = [n for n in log.rewards if n not in log.of_kind("correctness") and len(log.means(n)) == len(log)]
    risen = [n for n in others if rises(log.means(n), at) and (fell or n not in log.of_kind("form"))]
    if not risen:
        return None
    said = f"mean length {before:.3g} -> {now:.3g} tokens and {risen[0]} {_since(log.means(risen[0]), at)}"
    return f"{said}, while {truth} {_since(right, at)}", {"length_first": before, "length": now}


def _since(values: Sequence[float], at: int) -> str:
    return f"{fmean(values[at : at + int(limit('window'))]):.3g} -> {last(values):.3g}"


def reward_hacking_suspected(log: Log) -> Evidence | None:
    """Since correctness was best it has fallen far and surely, and another reward has risen."""
    for name in log.of_kind("correctness"):
        right = log.means(name)
        top, at = best(right)
        if top <= 0 or top - last(right) < limit("correct_fell") * top or not falls(right, at):
            continue
        others = {other: log.means(other) for other in log.rewards if other != name}
        risen = {n: values for n, values in others.items() if len(values) == len(right) and rises(values, at)}
        if risen:
            said = ", ".join(f"{other} {_since(values, at)}" for other, values in risen.items())
            return f"{name} {top:.3g} -> {last(right):.3g} while {said}", {name: last(right), "best": top}
    return None


def format_ignored(log: Log) -> Evidence | None:
    """A format reward that hardly anything earns and that does not rise, or held-out completions out of form."""
    held_out = log.checked("health/heldout_format")
    if len(held_out) > 1 and max(held_out[-2:]) <= limit("format"):
        return f"{held_out[-1]:.0%} of the held-out completions in form", {"heldout_format": held_out[-1]}
    for name in log.of_kind("form") if log.steps >= limit("trend_steps") else []:
        means, spreads = log.means(name), log.spreads(name)
        if not spreads or min(means) < 0 or not _ever_varied(log, name) or trend(means)[1] < limit("trend_p"):
            continue
        earned = share_right(means, spreads)
        if earned <= limit("format"):
            return f"{name} {span(means)}: about {earned:.0%} of the completions earn it", {name: last(means)}
    return None


def no_learning(log: Log) -> Evidence | None:
    """The reward has not risen by more than chance, although the rate has arrived and not all is right already."""
    rewards, rates = log.values("reward"), log.values("learning_rate")
    warming = len(rates) > 1 and rates[-1] > rates[0] and rates[-1] == max(rates)
    right = [log.means(name) for name in log.of_kind("correctness")]
    near_top = any(last(means) >= limit("right") for means in right if means)
    if log.steps < limit("trend_steps") or len(rewards) < 4 or warming or near_top:
        return None
    change, p = trend(rewards)
    if change > 0 and p < limit("trend_p"):
        return None
    return f"reward {span(rewards)} in {log.steps} steps (p = {p:.2g})", {"change": change, "p": p}


def patience_is_over(log: Log) -> bool:
    """Whether `no_learning` is an alarm by now: after many steps, and with not even a likely rise."""
    enough = log.steps >= limit("patience") and len(log) >= limit("trend_steps")
    return enough and sigmas(log.values("reward")) < 1.0


def slow_steps(log: Log) -> Evidence | None:
    """Steps that take several times as long as the first ones, and not because completions grew."""
    seconds, few = log.values("step_time"), int(limit("fewest"))
    if len(seconds) < 2 * few:
        return None
    # The third fastest of ten: a burst of other work on the machine is no slowing down.
    slower = sorted(seconds[-few:])[2] / median(seconds[:few])
    grown = max(1.0, *(_growth(log.values(f"completions/{kind}_length")) for kind in ("mean", "max")))
    if slower < limit("slower") * grown:
        return None
    return f"{median(seconds[:few]):.3g} -> {median(seconds[-few:]):.3g} seconds a step", {"slower": slower}


def _growth(lengths: Sequence[float]) -> float:
    few = int(limit("fewest"))
    return median(lengths[-few:]) / median(lengths[:few]) if lengths and median(lengths[:few]) else 1.0


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
