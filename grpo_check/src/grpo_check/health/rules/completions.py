"""Rules about how long completions are, and whether they end."""

from collections.abc import Iterator, Sequence
from statistics import fmean

from ...findings import Finding
from ...logs.log import Log
from ...rule import adding_to, found
from .. import limits
from ..trends import best, clearest_rise, falls, first, last, matters, rises, sigmas, span
from .rule import ENDLESS, HACKED, LENGTH, UNPAID, LogRule, log_of

RULES: list[LogRule] = []
rule = adding_to(RULES, LogRule)


@rule(
    "error",
    "the reward rises as the length changes, and nothing shows that correctness rises",
    why="the policy is rewarded for its length, not for its answers.",
    fixes=(
        "remove the length reward, or give it only to correct answers.",
        "do not raise max_completion_length; more room lets the policy earn more in the same way.",
        "give correctness more weight than all the rest together.",
        "cut long completions with a limit, not with a reward.",
    ),
    symptom=HACKED,
    hides=("all_truncated", "gain_without_answers", "no_gradient", "no_learning", "reward_at_top", LENGTH),
    example=log_of(
        20,
        reward=lambda step: 0.5 + 0.1 * step,
        completions__mean_length=lambda step: 15.0 + 3 * step,
        rewards__length_reward__mean=lambda step: 0.1 * step,
        rewards__correctness_reward__mean=lambda step: 0.5 + 0.01 * (step % 2),
    ),
)
def length_hacking(log: Log) -> Iterator[Finding]:
    """Since the start or some later point, the length changed and a reward rose, but correctness did not.

    Without a correctness reward, only completions that earn more although they are cut off show this.
    """
    recent = max(0, len(log.entries) - log.entries_covering(limits.HACK_STEPS))
    truths = log.of_kind("correctness")
    pairs = [(name, at) for name in truths for at in (0, best(log.means(name))[1], recent)]
    said = [_length_hacked(log, name, at) for name, at in pairs]
    said += [] if truths else [_pays_cut_off(log, at) for at in (0, recent)]
    if hacks := list(filter(None, said)):
        yield found(seen=hacks[0])


def _length_hacked(log: Log, truth: str, at: int) -> str:
    """The length that changed and the reward that rose with it, if correctness did not improve meanwhile."""
    lengths, right = log.values("completions/mean_length"), log.means(truth)
    if {len(lengths), len(right)} != {len(log.entries)} or not lengths[at]:
        return ""
    before, now = first(lengths, at), last(lengths)
    fell = falls(right, at) and matters(first(right, at) - last(right), *log.scores(truth))
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


@rule(
    "error",
    "nearly every completion is cut off",
    why="the answer comes at the end, so the rewards score only beginnings.",
    fixes=(
        "raise max_completion_length (a good value: completions/max_terminated_length of an earlier run).",
        "ask for a shorter answer in the system prompt.",
        "read three completions; if they are noise, fix the prompt or the weights, because no limit is high enough.",
        "set mask_truncated_completions=True only if most completions end; it drops the others from the loss.",
    ),
    symptom=ENDLESS,
    hides=(UNPAID, LENGTH),
    # Some completions of a young run end, so the policy may soon learn to be brief.
    early=lambda log: log.steps < limits.TREND_STEPS and min(log.values("completions/clipped_ratio", 5), default=0) < 1,
    example=log_of(20, completions__clipped_ratio=0.95),
)
def all_truncated(log: Log) -> Iterator[Finding]:
    """Nearly all completions are cut off, and not fewer over time; if more room does not help, it is `no_eos`."""
    clipped, with_room = log.values("completions/clipped_ratio", 5), log.checked("ended_with_room")[-1:]
    lengths = log.values("completions/mean_length")
    if not clipped and len(lengths) >= limits.SAME_LENGTHS and limits.LEAST_LIMIT <= max(lengths) == min(lengths):
        yield found(
            seen=f"the mean length is {lengths[0]:g} tokens in each of {len(lengths)} entries, so it is the limit"
        )
    if not clipped or fmean(clipped) < limits.CLIPPED or _is_recovering(log):
        return
    never = max(log.values("completions/max_terminated_length"), default=1.0) == 0
    if never and with_room and with_room[0] < limits.ENDED:
        return
    length = log.values("completions/max_length") or log.values("completions/mean_length")
    said = f"{fmean(clipped):.0%} of completions cut off" + (f" at {length[-1]:g} tokens" if length else "")
    yield found(seen=said + (f"; with four times the limit, {with_room[0]:.0%} end" if never and with_room else ""))


def _is_recovering(log: Log) -> bool:
    """Whether more and more completions end."""
    clipped = log.values("completions/clipped_ratio", limits.TREND_STEPS)
    return clearest_rise([-share for share in clipped]) >= limits.RISEN and first(clipped) - last(clipped) > 0.05


@rule(
    "error",
    "no completion can end, so every completion is cut off at the limit",
    why="every completion is cut off at the limit, so rewards see half a text and every step takes the longest time.",
    fixes=(
        "make prompts lists of messages; TRL applies no chat template to a plain string.",
        "set tokenizer.eos_token to the token that ends a turn in the chat template.",
        "for a base model without a chat template, end the few-shot examples with the EOS token.",
    ),
    symptom=ENDLESS,
    hides=(UNPAID, LENGTH),
    example=[
        *log_of(10, completions__clipped_ratio=1.0, completions__max_terminated_length=0.0),
        {"step": 10, "health/ended_with_room": 0.0},
    ],
)
def no_eos(log: Log) -> Iterator[Finding]:
    """No completion has ended since the start, and a higher limit does not help either."""
    longest, with_room = log.values("completions/max_terminated_length"), log.checked("ended_with_room")[-1:]
    if not longest or max(longest) > 0 or (with_room and with_room[0] >= limits.ENDED):
        return
    said = f"no completion of {log.steps} steps ended by itself (completions/max_terminated_length is 0)"
    said += f"; with four times the limit, {with_room[0]:.0%} end" if with_room else ""
    yield found("no completion ever ends", seen=said)


@rule(
    "note",
    "completions are growing",
    why="if the extra reasoning helps, accuracy rises too; otherwise each step just takes longer.",
    fixes=(
        "watch completions/clipped_ratio; completions at the limit lose their answers.",
        "if accuracy does not rise, use loss_type='dr_grpo' or 'dapo'; neither favors long wrong answers.",
    ),
    steps=limits.TREND_STEPS,
    harmless=True,
    symptom=LENGTH,
    example=log_of(20, reward=lambda step: step / 20, completions__mean_length=lambda step: 100.0 + 10 * step),
)
def growing_completions(log: Log) -> Iterator[Finding]:
    """Completions are much longer than at first, often because the policy reasons more."""
    times, said = _length_moved(log)
    if times >= limits.LONGER:
        yield found(seen=said)


@rule(
    "note",
    "completions are shrinking",
    why="less rambling is harmless, but less reasoning is not.",
    fixes=(
        "compare accuracy on held-out prompts with the base model.",
        "read the samples: is reasoning missing, or only padding?",
        "if accuracy falls, remove what rewards brevity, and reward the format only with a correct answer.",
    ),
    steps=limits.TREND_STEPS,
    harmless=True,
    symptom=LENGTH,
    example=log_of(20, reward=lambda step: step / 20, completions__mean_length=lambda step: 300.0 - 10 * step),
)
def shrinking_completions(log: Log) -> Iterator[Finding]:
    """Completions are much shorter than at first, often because the policy rambles less."""
    times, said = _length_moved(log)
    if times <= limits.SHORTER:
        yield found(seen=said)


def _length_moved(log: Log) -> tuple[float, str]:
    """How many times as long completions are now, and what rewards did meanwhile; 1.0 if the change may be noise."""
    lengths = log.values("completions/mean_length")
    if not first(lengths or [0.0]) or abs(sigmas(lengths)) < limits.SURE:
        return 1.0, ""
    curves = {name: log.means(name) for name in log.of_kind("correctness")} or {"reward": log.values("reward")}
    held = ", ".join(f"{name} {_held(values)}" for name, values in curves.items())
    return last(lengths) / first(lengths), f"mean length {span(lengths)} tokens, while {held}"


def _held(values: Sequence[float]) -> str:
    """How a reward changed from first to last."""
    errors = sigmas(values)
    change = "rose" if errors >= limits.RISEN else "fell" if errors <= -limits.RISEN else "held steady"
    return f"{change} ({span(values)})"
