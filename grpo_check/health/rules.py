"""One rule for each code: what in the log says so, or None.

A rule gets the whole `Log` and gives the evidence: a sentence with the numbers, and the numbers.
Steps are training steps; an entry may stand for several (``logging_steps``).
"""

import math
from collections.abc import Callable, Sequence
from statistics import fmean, median

from grpo_utils.evaluation.statistics import wilson_interval

from .log import Log
from .statistics import best, clearest_rise, falls, first, last, noise, payable, rises, share_right, sigmas, span
from .thresholds import limit

Evidence = tuple[str, dict[str, float]]


def nan(log: Log) -> Evidence | None:
    """A loss or reward that is no number, weights that are none, or a gradient for several steps in a row."""
    found, steps = _not_a_number(log), max(log.checked("health/accumulation"), default=1.0)
    if found and steps > 1:
        return f"{found[0]}, with gradient_accumulation_steps={steps:g}", {**found[1], "accumulation": steps}
    return found


def _not_a_number(log: Log) -> Evidence | None:
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


def stalled(log: Log) -> Evidence | None:
    """The callback's watchdog saw a step that did not end for many times the median step."""
    seconds = log.checked("health/stalled")[-1:]
    return (f"a step had not ended after {seconds[0]:.0f} seconds", {"stalled": seconds[0]}) if seconds else None


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
    lost = _share_lost(log)
    if lost >= limit("reward_lost") and _changed_beyond_recognition(log):
        moved = f", entropy {entropies[0]:.3g} -> {last(entropies):.3g} nats per token" if entropies else ""
        return f"{lost:.0%} of the reward once reached is lost, now {last(rewards):.3g}{moved}", {"lost": lost}
    if not entropies or sigmas(rewards) >= limit("risen"):
        return None
    before, now = entropies[0], last(entropies)
    gone = now <= limit("entropy_gone") * before and clearest_rise(rewards) < limit("risen")
    if not gone and now < limit("entropy_burst") * before:
        return None
    said = f"entropy {before:.3g} -> {now:.3g} nats per token, reward {span(rewards)}"
    return said, {"entropy": now, "entropy_first": before}


def _start(values: Sequence[float]) -> float:
    """The level of the first three entries, which one lucky batch cannot move."""
    return median(values[:3])


def _share_lost(log: Log) -> float:
    """Which share is gone of the reward reached above the least that can be paid; 0.0 if that may be noise.

    Reached is the level of the start, or one that was kept for a whole window: a run that was lucky a few times
    never learned, so it cannot lose anything.
    """
    rewards, window = log.values("reward"), int(limit("window"))
    kept = [min(rewards[at : at + window]) for at in range(max(1, len(rewards) - window + 1))]
    top, at = max((max(kept), kept.index(max(kept))), (_start(rewards), 0))
    bottom = payable(*log.scores())[0]
    return (top - last(rewards)) / (top - bottom) if top > bottom and falls(rewards, at) else 0.0


def _changed_beyond_recognition(log: Log) -> bool:
    """A second sign, where entropy is logged: that far off, all cut off that was not, or every group tied."""
    entropies, clipped = log.values("entropy"), log.clipped
    if not entropies:
        return True  # nothing else would show it; Unsloth and TRL before 0.20 log none
    before = entropies[0]
    moved = not before / limit("entropy_moved") < last(entropies) < before * limit("entropy_moved")
    cut = bool(clipped) and last(clipped) >= limit("clipped") > 2 * _start(clipped)
    return moved or cut or _is_tied(log)


def no_eos(log: Log) -> Evidence | None:
    """Not one completion has ended since the run began, and none ends with more room either."""
    longest, with_room = log.values("completions/max_terminated_length"), log.checked("health/ended_with_room")[-1:]
    if not longest or max(longest) > 0 or (with_room and with_room[0] >= limit("ended")):
        return None
    said = f"none of the completions of {log.steps} steps has ended (completions/max_terminated_length 0)"
    return said + (f"; with four times the room {with_room[0]:.0%}" if with_room else ""), {"ended": 0.0}


def all_truncated(log: Log) -> Evidence | None:
    """Nearly all are cut off, and not ever fewer; where the callback saw that room does not help, it is `no_eos`."""
    clipped, with_room = log.clipped[-log.entries_in(5) :], log.checked("health/ended_with_room")[-1:]
    if not clipped or fmean(clipped) < limit("clipped") or _is_recovering(log):
        return None
    never = max(log.values("completions/max_terminated_length"), default=1.0) == 0
    if never and with_room and with_room[0] < limit("ended"):
        return None
    length = log.values("completions/max_length") or log.values("completions/mean_length")
    said = f"{fmean(clipped):.0%} cut off" + (f" at {length[-1]:g} tokens" if length else "")
    said += "" if log.values("completions/clipped_ratio") else " (the mean length stays at its maximum)"
    said += f"; with four times the room {with_room[0]:.0%} end" if never and with_room else ""
    return said, {"clipped": fmean(clipped)}


def may_recover(log: Log) -> bool:
    """Whether the run is young and some completions do end: a policy may soon learn to be brief."""
    return log.steps < limit("trend_steps") and min(log.clipped[-log.entries_in(5) :]) < 1.0


def _is_recovering(log: Log) -> bool:
    clipped = log.clipped[-log.entries_in(limit("trend_steps")) :]
    return clearest_rise([-share for share in clipped]) >= limit("risen") and first(clipped) - last(clipped) > 0.05


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
    return None if not varied and harmless.get(log.kind(name), False) else value


def dead_may_come(log: Log) -> bool:
    """Whether each dead reward may still be earned: none was before, and the run is young or learns something else.

    A form that nothing earns does no harm in a run whose reward has risen, also after that has leveled off.
    A penalty that always pays the same, whatever that is, has most likely never struck.
    """
    dead = [name for name in log.rewards if log.means(name) and _dead_at(log, name) is not None]
    if any(_ever_varied(log, name) for name in dead):
        return False
    wanted = {log.kind(name) for name in dead} - {"penalty"}
    alive = {log.kind(name) for name in log.rewards if name not in dead} - {"other"}
    near = wanted <= alive and (log.steps < limit("patience") or not wanted)
    learned = wanted <= {"form"} and clearest_rise(log.values("reward")) >= limit("risen")
    return near or log.steps < limit("trend_steps") or is_learning(log) or learned


def is_learning(log: Log) -> bool:
    """Whether the reward, or one of the rewards, has risen within the last hundred steps, as far as noise lets see."""
    entries = log.entries_in(limit("patience"))
    curves = [log.values("reward"), *(log.means(name) for name in log.rewards)]
    return any(clearest_rise(curve[-entries:]) >= limit("likely") for curve in curves)


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
    gradients = log.newest("grad_norm", limit("fewest"))
    nothing = bool(gradients) and max(gradients) == 0.0 and not any(log.values("kl"))
    return nothing or _groups_tie(log)


def _groups_tie(log: Log) -> bool:
    return any(_are_tied(log, steps) for steps in (limit("fewest"), limit("trend_steps")))


def _are_tied(log: Log, steps: float) -> bool:
    """Whether so many steps show it: where a step is one group, nine of ten tie by chance, too."""
    share = log.tied[-log.entries_in(steps) :]
    known = min(steps, len(share) * log.per_entry)
    return bool(share) and wilson_interval(round(fmean(share) * known), int(known))[0] >= limit("tied_surely")


def _is_solved(log: Log) -> bool:
    """Whether nearly all answers are right now: by rewards of correctness, or by a total that has risen."""
    names = log.of_kind("correctness")
    if not names:
        return share_right(*log.scores()) >= limit("right") and rises(log.values("reward"))
    return all(_is_earned(log, name) for name in names if log.means(name))


def _is_earned(log: Log, name: str) -> bool:
    """Whether nearly all completions earn it; what never varied says nothing, unless it is 1.0, a usual accuracy."""
    known = _ever_varied(log, name) or log.means(name)[-1] == 1.0
    return known and share_right(*log.scores(name)) >= limit("right")


def saturated(log: Log) -> Evidence | None:
    """Tied, since all are right."""
    if not _groups_tie(log) or not _is_solved(log):
        return None
    return f"{last(log.tied):.0%} of the groups tied, reward {last(log.values('reward')):.3g}", {"tied": last(log.tied)}


def no_gradient(log: Log) -> Evidence | None:
    """Tied, and not since all are right; or no gradient although few groups tie.

    ``reward_std`` does not show ties: groups that tie can differ from each other.
    """
    if not _is_tied(log) or saturated(log):
        return None
    spread = log.values("reward_std")[-1:]
    beside = f", while reward_std over the batch is {spread[0]:.3g}" if spread else ""
    if not _groups_tie(log):
        return f"grad_norm is 0{beside}", {"grad_norm": 0.0}
    return f"{last(log.tied):.0%} of the groups tied{beside}", {"tied": last(log.tied)}


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
    fell = falls(right, at) and _matters(log, truth, fmean(right[at : at + window]) - last(right))
    longer, shorter = now >= limit("longer") * before, now <= limit("shorter") * before
    if not (longer and sigmas(right, at) <= 1.0) and not (shorter and fell):
        return None
    others = [n for n in log.rewards if n not in log.of_kind("correctness") and len(log.means(n)) == len(log)]
    risen = [n for n in others if rises(log.means(n), at) and (fell or log.kind(n) == "length")]
    if not risen:
        return None
    said = f"mean length {before:.3g} -> {now:.3g} tokens and {risen[0]} {_since(log.means(risen[0]), at)}"
    return f"{said}, while {truth} {_since(right, at)}", {"length_first": before, "length": now}


def _matters(log: Log, name: str, change: float) -> bool:
    """Whether a change is more than a small part of what the reward pays between its least and its most."""
    means, spreads = log.scores(name)
    low, high = payable(means, spreads)
    if not spreads and log.values("reward_std"):  # before TRL 0.17; two values with this spread are twice as far apart
        high = max(high, low + 2 * median(log.values("reward_std")))
    return change >= limit("matters") * (high - low)


def _since(values: Sequence[float], at: int) -> str:
    return f"{fmean(values[at : at + int(limit('window'))]):.3g} -> {last(values):.3g}"


def shrinking_completions(log: Log) -> Evidence | None:
    """Completions are much shorter than at first. Often that is rambling unlearned."""
    return _length_moved(log, -1)


def growing_completions(log: Log) -> Evidence | None:
    """Completions are much longer than at first. Often that is reasoning learned."""
    return _length_moved(log, 1)


def _length_moved(log: Log, direction: int) -> Evidence | None:
    lengths = log.values("completions/mean_length")
    if log.steps < limit("trend_steps") or not first(lengths or [0.0]) or abs(sigmas(lengths)) < limit("sure"):
        return None
    times = last(lengths) / first(lengths)
    if not (times >= limit("longer") if direction > 0 else times <= limit("shorter")):
        return None
    names = [name for name in log.of_kind("correctness") if log.means(name)]
    held = [f"{name} {_held(log.means(name))}" for name in names] or [f"reward {_held(log.values('reward'))}"]
    return f"mean length {span(lengths)} tokens, while {', '.join(held)}", {"times": times}


def _held(values: Sequence[float]) -> str:
    """What became of a reward, from first to last."""
    errors = sigmas(values)
    change = "rose" if errors >= limit("risen") else "fell" if errors <= -limit("risen") else "held"
    return f"{change} ({span(values)})"


def reward_hacking_suspected(log: Log) -> Evidence | None:
    """Since correctness was best it has fallen far and surely, and another reward has risen."""
    for name in log.of_kind("correctness"):
        right = log.means(name)
        if not right:
            continue
        top, at = best(right)
        fallen, bottom = top - last(right), payable(*log.scores(name))[0]
        far = fallen >= limit("correct_fell") * (top - bottom) and _matters(log, name, fallen)
        if not far or not falls(right, at):
            continue
        others = {other: log.means(other) for other in log.rewards if other != name}
        risen = {n: values for n, values in others.items() if len(values) == len(right) and rises(values, at)}
        if risen:
            said = ", ".join(f"{other} {_since(values, at)}" for other, values in risen.items())
            return f"{name} {top:.3g} -> {last(right):.3g} while {said}", {name: last(right), "best": top}
    return None


def format_ignored(log: Log) -> Evidence | None:
    """Format rewards that hardly anything earns and that do not rise, or held-out completions out of form."""
    held_out = log.checked("health/heldout_format")
    if len(held_out) > 1 and max(held_out[-2:]) <= limit("format"):
        return f"{held_out[-1]:.0%} of the held-out completions in form", {"heldout_format": held_out[-1]}
    names = [name for name in log.of_kind("form") if log.spreads(name) and _ever_varied(log, name)]
    earned = {name: share_right(*log.scores(name)) for name in names}
    if log.steps < limit("trend_steps") or not names or max(earned.values()) > limit("format"):
        return None
    name = max(earned, key=earned.get)
    if clearest_rise(log.means(name)) >= limit("risen"):
        return None
    said = f"{name} {span(log.means(name))}: about {earned[name]:.0%} of the completions earn it"
    return said, {name: last(log.means(name))}


def no_learning(log: Log) -> Evidence | None:
    """The reward has not risen by more than chance, although the rate has arrived and not all is right already."""
    rewards, rates = log.values("reward"), log.values("learning_rate")
    warming = len(rates) > 1 and rates[-1] > rates[0] and rates[-1] == max(rates)
    right = [log.scores(name) for name in log.of_kind("correctness") if log.means(name)]
    near_top = any(share_right(means, spreads) >= limit("right") for means, spreads in right if spreads)
    if log.steps < limit("trend_steps") or len(rewards) < 4 or warming or near_top:
        return None
    errors = clearest_rise(rewards)
    if errors >= limit("likely") and may_still_learn(log):
        return None
    said = f"reward {span(rewards)} in {log.steps} steps (the clearest rise: {errors:.1f} standard errors)"
    return said, {"change": last(rewards) - first(rewards), "errors": errors}


def may_still_learn(log: Log) -> bool:
    """Whether `no_learning` is no alarm yet: few steps, perhaps a rise, or noise in which none could be seen."""
    rewards = log.values("reward")
    if log.steps < limit("patience") or len(rewards) < limit("trend_steps"):
        return True
    low, high = payable(*log.scores())
    visible = limit("sure") * noise(rewards) * math.sqrt(4 / len(rewards)) <= limit("matters") * (high - low)
    higher_now = sigmas(rewards, few=max(int(limit("window")), len(rewards) // 10)) >= 1.0
    return not visible or higher_now or clearest_rise(rewards) >= limit("risen")


def slow_steps(log: Log) -> Evidence | None:
    """Steps that take several times as long as the first ones, and not because completions grew."""
    seconds, few = log.values("step_time"), int(limit("fewest"))
    if len(seconds) < 2 * few or median(seconds[:few]) <= 0:
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
    "stalled": stalled,
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
        shrinking_completions,
        growing_completions,
        reward_hacking_suspected,
        format_ignored,
        no_learning,
        slow_steps,
    )
}

#: Findings that are no alarm yet, as long as this holds.
NOT_YET: dict[str, Callable[[Log], bool]] = {
    "all_truncated": may_recover,
    "dead_reward": dead_may_come,
    "format_ignored": is_learning,
    "no_learning": may_still_learn,
}
