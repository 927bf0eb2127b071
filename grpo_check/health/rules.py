"""One rule per code. Each returns the evidence in the log as a sentence with its numbers, or "".

A step is a training step. One log entry may cover several (``logging_steps``).
"""

import math
from collections.abc import Callable, Sequence
from statistics import fmean, median

from grpo_utils.run.measuring import wilson_interval

from . import limits
from .evidence import Evidence, evidence, is_at_top
from .log import Log
from .statistics import (
    best,
    clearest_rise,
    falls,
    first,
    last,
    noise,
    payable,
    rises,
    share_right,
    sigmas,
    span,
)


def nan(log: Log) -> str:
    """The loss, the reward or a weight is not finite, or the gradient is not for several steps in a row."""
    found, steps = _not_a_number(log), max(log.checked("accumulation"), default=1.0)
    return f"{found}, with gradient_accumulation_steps={steps:g}" if found and steps > 1 else found


def _not_a_number(log: Log) -> str:
    if log.checked("not_finite"):
        return "a trained weight is no longer finite"
    in_a_row = 0
    for entry in log.entries:
        for name in ("loss", "reward"):
            if not math.isfinite(entry.get(name, 0.0)):
                return f"{name} is {entry[name]} at step {entry['step']}"
        gradient, divergence = entry.get("grad_norm", 0.0), entry.get("kl", 0.0)
        in_a_row = in_a_row + 1 if not math.isfinite(gradient) or math.isnan(divergence) else 0
        if in_a_row == limits.NAN_IN_A_ROW:
            return f"grad_norm is {gradient} and kl {divergence} for {in_a_row} entries in a row"
    return ""


def stalled(log: Log) -> str:
    """The callback's watchdog saw a step that took many times the median step."""
    seconds = log.checked("stalled")
    return f"a step had not finished after {seconds[-1]:.0f} seconds" if seconds else ""


def kl_explosion(log: Log) -> str:
    """The KL divergence exceeds its limit three times in a row. Only runs with beta > 0 log it."""
    entries = [entry for entry in log.entries if "kl" in entry]
    for three in zip(entries, entries[1:], entries[2:], strict=False):
        if min(entry["kl"] for entry in three) >= limits.KL:
            said = ", ".join(f"{entry['kl']:.3g}" for entry in three)
            return f"kl {said} up to step {three[-1]['step']} (limit {limits.KL:g})"
    return ""


def string_prompt(log: Log) -> str:
    """The callback saw plain string prompts although the tokenizer has a chat template."""
    seen = 1.0 in log.checked("string_prompts")
    return f"the prompts are plain strings; reward {log.entries[-1]['reward']:.3g}" if seen else ""


def mode_collapse(log: Log) -> str:
    """The reward is lost and the policy changed completely, or entropy vanished or surged without a gain."""
    distinct = log.checked("distinct")[-1:]
    if distinct and distinct[0] <= limits.DISTINCT:
        return f"only {distinct[0]:.0%} of the completions to different prompts are distinct"
    entropies, rewards, lost = log.values("entropy"), log.values("reward"), _share_lost(log)
    if lost >= limits.REWARD_LOST and _changed_beyond_recognition(log):
        moved = f", entropy {entropies[0]:.3g} -> {last(entropies):.3g} nats per token" if entropies else ""
        return f"{lost:.0%} of the best reward is lost; it is now {last(rewards):.3g}{moved}"
    if not entropies or sigmas(rewards) >= limits.RISEN:
        return ""
    before, now = entropies[0], last(entropies)
    gone = now <= limits.ENTROPY_GONE * before and clearest_rise(rewards) < limits.RISEN
    if not gone and now < limits.ENTROPY_BURST * before:
        return ""
    return f"entropy {before:.3g} -> {now:.3g} nats per token, reward {span(rewards)}"


def _start(values: Sequence[float]) -> float:
    """The level of the first three entries, robust to one lucky batch."""
    return median(values[:3])


def _share_lost(log: Log) -> float:
    """The lost share of the best reward above the minimum possible one; 0.0 if that may be noise.

    The best reward is the level at the start, or one held for a whole window. A run with a few lucky steps never
    learned, so it cannot lose anything.
    """
    rewards = log.values("reward")
    kept = [min(rewards[at : at + limits.WINDOW]) for at in range(max(1, len(rewards) - limits.WINDOW + 1))]
    top, at = max((max(kept), kept.index(max(kept))), (_start(rewards), 0))
    bottom = payable(*log.scores())[0]
    return (top - last(rewards)) / (top - bottom) if top > bottom and falls(rewards, at) else 0.0


def _changed_beyond_recognition(log: Log) -> bool:
    """A second sign if entropy is logged: it moved far, completions are newly cut off, or every group ties."""
    entropies, clipped = log.values("entropy"), log.clipped
    if not entropies:
        return True  # nothing else would show it; Unsloth and TRL before 0.20 log none
    before, far = entropies[0], limits.ENTROPY_MOVED
    cut = bool(clipped) and last(clipped) >= limits.CLIPPED > 2 * _start(clipped)
    return not before / far < last(entropies) < before * far or cut or _is_tied(log)


def no_eos(log: Log) -> str:
    """No completion has ended since the start, and a higher limit does not help either."""
    longest, with_room = log.values("completions/max_terminated_length"), log.checked("ended_with_room")[-1:]
    if not longest or max(longest) > 0 or (with_room and with_room[0] >= limits.ENDED):
        return ""
    said = f"no completion of {log.steps} steps ended by itself (completions/max_terminated_length is 0)"
    return said + (f"; with four times the limit, {with_room[0]:.0%} end" if with_room else "")


def all_truncated(log: Log) -> str:
    """Nearly all completions are cut off, and not fewer over time; if more room does not help, it is `no_eos`."""
    clipped, with_room = log.clipped[-log.entries_in(5) :], log.checked("ended_with_room")[-1:]
    if not clipped or fmean(clipped) < limits.CLIPPED or _is_recovering(log):
        return ""
    never = max(log.values("completions/max_terminated_length"), default=1.0) == 0
    if never and with_room and with_room[0] < limits.ENDED:
        return ""
    length = log.values("completions/max_length") or log.values("completions/mean_length")
    said = f"{fmean(clipped):.0%} of completions cut off" + (f" at {length[-1]:g} tokens" if length else "")
    return said + (f"; with four times the limit, {with_room[0]:.0%} end" if never and with_room else "")


def _is_recovering(log: Log) -> bool:
    clipped = log.clipped[-log.entries_in(limits.TREND_STEPS) :]
    return clearest_rise([-share for share in clipped]) >= limits.RISEN and first(clipped) - last(clipped) > 0.05


def may_recover(log: Log) -> bool:
    """Whether the run is young and some completions end, so the policy may soon learn to be brief."""
    return log.steps < limits.TREND_STEPS and min(log.clipped[-log.entries_in(5) :]) < 1.0


def dead_reward(log: Log) -> str:
    """A reward has had no spread for some time, and not because every completion has learned to earn it."""
    said = ", ".join(f"{name} = {value:.3g}" for name, value in dead_rewards(log).items())
    return f"{said} for every completion of the last {limits.FEWEST:g} steps or more" if said else ""


def dead_rewards(log: Log) -> dict[str, float]:
    """The dead rewards by name, with the score that each gives every completion.

    Not dead are a reward that was learned (it varied once and has not clearly fallen), a penalty that was never
    triggered, a format that was always correct, and an accuracy of 1.0 from the start.
    """
    found = {}
    for name in filter(log.means, log.rewards):
        value, means = _constant(log, name), log.means(name)
        if value is None:
            continue
        harmless = {"penalty": value == 0, "form": value > 0, "correctness": value == 1.0}
        varied = log.ever_varied(name)  # what is at its best was learned; what was hardly ever earned is rare
        alive = not falls(means, best(means)[1]) if varied else harmless.get(log.kind(name), False)
        found |= {} if alive else {name: value}
    return found


def dead_may_come(log: Log) -> bool:
    """Whether dead rewards may still be earned: none was so far, and the run is young or learns something else.

    A format reward of 0 does no harm in a run whose total reward has risen, even after it has leveled off. A
    constant penalty was most likely never triggered.
    """
    dead = dead_rewards(log)
    if any(log.ever_varied(name) for name in dead):
        return False
    wanted = {log.kind(name) for name in dead} - {"penalty"}
    alive = {log.kind(name) for name in log.rewards if name not in dead} - {"other"}
    near = wanted <= alive and (log.steps < limits.PATIENCE or not wanted)
    learned = wanted <= {"form"} and clearest_rise(log.values("reward")) >= limits.RISEN
    return near or log.steps < limits.TREND_STEPS or is_learning(log) or learned


def is_learning(log: Log) -> bool:
    """Whether the total or any reward has probably risen within the last hundred steps."""
    curves = [log.values("reward", limits.PATIENCE)]
    curves += [log.values(f"rewards/{name}/mean", limits.PATIENCE) for name in log.rewards]
    return any(clearest_rise(curve) >= limits.LIKELY for curve in curves)


def _constant(log: Log, name: str) -> float | None:
    """The one score that a reward gave all recent completions, or None."""
    means, spreads = (log.values(f"rewards/{name}/{kind}", limits.FEWEST) for kind in ("mean", "std"))
    constant = max(means) - min(means) <= limits.CONSTANT and max(spreads, default=0.0) <= limits.CONSTANT
    return means[-1] if constant and len(means) * log.per_entry >= limits.FEWEST else None


def _is_tied(log: Log) -> bool:
    """Whether nearly all groups tie, by their share or by a gradient of exactly zero without a KL term."""
    gradients = log.values("grad_norm", limits.FEWEST)
    nothing = bool(gradients) and max(gradients) == 0.0 and not any(log.values("kl"))
    return nothing or _groups_tie(log)


def _groups_tie(log: Log) -> bool:
    """Whether a few steps or some more show ties: with one group per step, nine of ten may tie by chance."""
    for steps in (limits.FEWEST, limits.TREND_STEPS):
        share = log.tied[-log.entries_in(steps) :]
        known = min(steps, len(share) * log.per_entry)
        if share and wilson_interval(round(min(max(fmean(share), 0.0), 1.0) * known), known)[0] >= limits.TIED_SURELY:
            return True
    return False


def saturated(log: Log) -> str:
    """Groups tie because nearly all answers are correct, as a correctness reward or samples show."""
    shown = evidence(log)
    return _tied_at_top(log, shown) if shown.rewards or shown.samples_right else ""


def reward_at_top(log: Log) -> str:
    """Groups tie because the reward is near its maximum, and nothing shows that the answers are correct."""
    return "" if saturated(log) else _tied_at_top(log, evidence(log))


def _tied_at_top(log: Log, shown: Evidence) -> str:
    if not _groups_tie(log) or not is_at_top(log):
        return ""
    said = f"{last(log.tied):.0%} of groups tied, reward {last(log.values('reward')):.3g}"
    return ", ".join(filter(None, [said, shown.said]))


def no_gradient(log: Log) -> str:
    """Groups tie although not all answers are correct, or there is no gradient although few groups tie.

    ``reward_std`` does not show ties: groups that tie can differ from each other.
    """
    if not _is_tied(log) or saturated(log) or reward_at_top(log):
        return ""
    spread = log.values("reward_std")[-1:]
    said = f"{last(log.tied):.0%} of groups tied" if _groups_tie(log) else "grad_norm is 0"
    return said + (f"; reward_std over the batch is {spread[0]:.3g}" if spread else "")


def length_hacking(log: Log) -> str:
    """Since the start or some later point, the length changed and a reward rose, but correctness did not.

    Without a correctness reward, only completions that earn more although they are cut off show this.
    """
    recent = max(0, len(log.entries) - math.ceil(limits.RECENT / log.per_entry))
    truths = log.of_kind("correctness")
    pairs = [(name, at) for name in truths for at in (0, best(log.means(name))[1], recent)]
    found = [_length_hacked(log, name, at) for name, at in pairs]
    found += [] if truths else [_pays_cut_off(log, at) for at in (0, recent)]
    return next(filter(None, found), "")


def _pays_cut_off(log: Log, at: int) -> str:
    """The completions grew into the limit and the reward rose with them, so it does not need their ends."""
    lengths, rewards, clipped = log.values("completions/mean_length"), log.values("reward"), log.clipped
    if {len(lengths), len(rewards), len(clipped)} != {len(log.entries)}:
        return ""
    before, now = first(lengths, at), last(lengths)
    cut = last(clipped) >= limits.CLIPPED > 2 * first(clipped, at)
    if not cut or now < limits.LONGER * before or not rises(rewards, at):
        return ""
    said = f"mean length {before:.3g} -> {now:.3g} tokens, {last(clipped):.0%} of completions cut off"
    return f"{said}, while the reward rose ({span(rewards, at)})"


def _length_hacked(log: Log, truth: str, at: int) -> str:
    lengths, right = log.values("completions/mean_length"), log.means(truth)
    if {len(lengths), len(right)} != {len(log.entries)} or not lengths[at]:
        return ""
    before, now = first(lengths, at), last(lengths)
    fell = falls(right, at) and _matters(log, truth, first(right, at) - last(right))
    longer, shorter = now >= limits.LONGER * before, now <= limits.SHORTER * before
    if not (longer and sigmas(right, at) <= 1.0) and not (shorter and fell):
        return ""
    truths = log.of_kind("correctness")
    others = [name for name in log.rewards if name not in truths and (fell or log.kind(name) == "length")]
    risen = [name for name in others if len(log.means(name)) == len(right) and rises(log.means(name), at)]
    if not risen:
        return ""
    said = f"mean length {before:.3g} -> {now:.3g} tokens and {risen[0]} {span(log.means(risen[0]), at)}"
    return f"{said}, while {truth} {span(right, at)}"


def _matters(log: Log, name: str, change: float) -> bool:
    """Whether a change is more than a small part of the reward's range."""
    low, high = payable(*log.scores(name))
    return change >= limits.MATTERS * (high - low)


def shrinking_completions(log: Log) -> str:
    """Completions are much shorter than at first, often because the policy rambles less."""
    return _length_moved(log, lambda times: times <= limits.SHORTER)


def growing_completions(log: Log) -> str:
    """Completions are much longer than at first, often because the policy reasons more."""
    return _length_moved(log, lambda times: times >= limits.LONGER)


def _length_moved(log: Log, far: Callable[[float], bool]) -> str:
    lengths = log.values("completions/mean_length")
    if log.steps < limits.TREND_STEPS or not first(lengths or [0.0]) or abs(sigmas(lengths)) < limits.SURE:
        return ""
    curves = {name: log.means(name) for name in log.of_kind("correctness")} or {"reward": log.values("reward")}
    held = ", ".join(f"{name} {_held(values)}" for name, values in curves.items())
    return f"mean length {span(lengths)} tokens, while {held}" if far(last(lengths) / first(lengths)) else ""


def _held(values: Sequence[float]) -> str:
    """How a reward changed from first to last."""
    errors = sigmas(values)
    change = "rose" if errors >= limits.RISEN else "fell" if errors <= -limits.RISEN else "held steady"
    return f"{change} ({span(values)})"


def reward_hacking_suspected(log: Log) -> str:
    """Correctness has fallen far and another reward has risen since, or samples contradict a reward at its top."""
    shown = evidence(log)
    if shown.samples_wrong and is_at_top(log):
        return f"reward {span(log.values('reward'))}, near its maximum, but {shown.said}"
    for name in log.of_kind("correctness"):
        right = log.means(name)
        top, at = best(right)
        fallen, bottom = top - last(right), payable(*log.scores(name))[0]
        far = fallen >= limits.CORRECT_FELL * (top - bottom) and _matters(log, name, fallen)
        others = {other: log.means(other) for other in log.rewards if other != name}
        candidates = others.items() if far and falls(right, at) else ()
        risen = {n: values for n, values in candidates if len(values) == len(right) and rises(values, at)}
        if risen:
            said = ", ".join(f"{other} {span(values, at)}" for other, values in risen.items())
            return f"{name} {top:.3g} -> {last(right):.3g} while {said}"
    return ""


def format_ignored(log: Log) -> str:
    """Hardly any completion earns a format reward and it does not rise, or held-out completions lack the format."""
    held_out = log.checked("heldout_format")
    if len(held_out) > 1 and max(held_out[-2:]) <= limits.FORMED:
        return f"{held_out[-1]:.0%} of held-out completions correctly formatted"
    names = [name for name in log.of_kind("form") if log.spreads(name) and log.ever_varied(name)]
    earned = {name: share_right(*log.scores(name)) for name in names}
    if log.steps < limits.TREND_STEPS or not names or max(earned.values()) > limits.FORMED:
        return ""
    name = max(earned, key=earned.get)
    if clearest_rise(log.means(name)) >= limits.RISEN:
        return ""
    return f"{name} {span(log.means(name))}: about {earned[name]:.0%} of completions earn it"


def no_learning(log: Log) -> str:
    """The reward has not risen by more than chance, although warmup is over and not all answers are correct."""
    rewards, rates = log.values("reward"), log.values("learning_rate")
    warming = len(rates) > 1 and rates[-1] > rates[0] and rates[-1] == max(rates)
    right = [log.scores(name) for name in log.of_kind("correctness")]
    near_top = any(share_right(means, spreads) >= limits.RIGHT for means, spreads in right if spreads)
    if log.steps < limits.TREND_STEPS or len(rewards) < 4 or warming or near_top:
        return ""
    errors = clearest_rise(rewards)
    if errors >= limits.LIKELY and may_still_learn(log):
        return ""
    return f"reward {span(rewards)} in {log.steps} steps (clearest rise: {errors:.1f} standard errors)"


def may_still_learn(log: Log) -> bool:
    """Whether it is too early for `no_learning`: few steps, a possible rise, or noise that would hide one."""
    rewards = log.values("reward")
    if log.steps < limits.PATIENCE or len(rewards) < limits.TREND_STEPS:
        return True
    low, high = payable(*log.scores())
    visible = limits.SURE * noise(rewards) * math.sqrt(4 / len(rewards)) <= limits.MATTERS * (high - low)
    higher_now = sigmas(rewards, few=max(limits.WINDOW, len(rewards) // 10)) >= 1.0
    return not visible or higher_now or clearest_rise(rewards) >= limits.RISEN


def slow_steps(log: Log) -> str:
    """Steps take several times as long as the first ones, and not because completions grew."""
    seconds, few = log.values("step_time"), limits.FEWEST
    if len(seconds) < 2 * few or median(seconds[:few]) <= 0:
        return ""
    # The third fastest of ten: a burst of other work on the machine does not count.
    slower = sorted(seconds[-few:])[2] / median(seconds[:few])
    lengths = [log.values(f"completions/{kind}_length") for kind in ("mean", "max")]
    grown = [median(some[-few:]) / median(some[:few]) for some in lengths if some and median(some[:few])]
    if slower < limits.SLOWER * max([1.0, *grown]):
        return ""
    return f"{median(seconds[:few]):.3g} -> {median(seconds[-few:]):.3g} seconds per step"


#: Checked at every length of a log; the others start at `limits.FEWEST` steps.
AT_ONCE = (nan, kl_explosion, string_prompt, stalled)
IN_TIME = (mode_collapse, no_eos, all_truncated, dead_reward, no_gradient, saturated, reward_at_top)
IN_TIME += (length_hacking, shrinking_completions, growing_completions, reward_hacking_suspected, format_ignored)
IN_TIME += (no_learning, slow_steps)

#: Findings that stay warnings while this is true.
NOT_YET: dict[str, Callable[[Log], bool]] = {
    "all_truncated": may_recover,
    "dead_reward": dead_may_come,
    "format_ignored": is_learning,
    "no_learning": may_still_learn,
}
