"""Rules about a policy that is lost: its numbers are not finite, it left the reference model, or it collapsed."""

import math
from collections.abc import Iterator
from statistics import median

from ...findings import Finding
from ...logs.log import Log
from ...rule import adding_to, found
from .. import limits
from ..trends import clearest_rise, falls, last, payable, sigmas, span
from .rewards import is_tied
from .rule import LOST, LogRule, log_of

#: A known bug of some releases (unsloth#3129). This fix moves to the top if the run uses accumulation.
_ACCUMULATION = (
    "if gradient_accumulation_steps is above 1, try 1 with the same batch on the device; if the loss stays finite, the "
    "library's accumulation is at fault, so upgrade unsloth and trl."
)
#: The error of sampling from weights that are not finite.
_NOT_A_PROBABILITY = "probability tensor contains either `inf`, `nan` or element < 0"

RULES: list[LogRule] = []
rule = adding_to(RULES, LogRule)


@rule(
    "error",
    "the loss or the gradient is not a number",
    why="a step with such a gradient ruins the weights, and every later step is wasted.",
    fixes=(
        "go back to the last checkpoint.",
        _ACCUMULATION,
        "fp16: compute in bf16 or fp32 (Gemma 3 overflows fp16).",
        "divide learning_rate by 10.",
        "find the reward that returns inf or nan (grpo-check probe FILE.py:function).",
    ),
    steps=0,
    example=log_of(3, loss=lambda step: math.nan if step == 3 else 0.0),
)
def nan(log: Log) -> Iterator[Finding]:
    """The loss, the reward or a weight is not finite, or the gradient is not for several steps in a row.

    Nothing else can be read from such a log, so the other rules are then left out.
    """
    said, accumulated = _not_a_number(log), max(log.checked("accumulation"), default=1.0)
    if said and accumulated > 1:
        others = (fix for fix in nan.fixes if fix != _ACCUMULATION)
        yield found("", _ACCUMULATION, *others, seen=f"{said}, with gradient_accumulation_steps={accumulated:g}")
    elif said:
        yield found(seen=said)


def _not_a_number(log: Log) -> str:
    if _NOT_A_PROBABILITY in log.error:
        return log.error.strip().splitlines()[0][:160]
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


@rule(
    "error",
    "the policy has moved too far from the reference model",
    why="the abilities of the base model are lost, and the KL term now dominates the loss.",
    fixes=(
        "go back to the last checkpoint.",
        "divide learning_rate by 10.",
        "raise beta.",
        "find the reward that scores nonsense (grpo-check probe FILE.py:function).",
    ),
    hides=(*LOST, "mode_collapse"),
    steps=1,
    example=log_of(3, kl=5.0),
)
def kl_explosion(log: Log) -> Iterator[Finding]:
    """The KL divergence exceeds its limit three times in a row. Only runs with beta > 0 log it."""
    entries = [entry for entry in log.entries if "kl" in entry]
    for three in zip(entries, entries[1:], entries[2:], strict=False):
        if min(entry["kl"] for entry in three) >= limits.KL:
            said = ", ".join(f"{entry['kl']:.3g}" for entry in three)
            yield found(seen=f"kl {said} up to step {three[-1]['step']} (limit {limits.KL:g})")
            return


@rule(
    "error",
    "the policy has collapsed",
    why="it gives every prompt the same answer or noise; from equal completions, GRPO learns nothing more.",
    fixes=(
        "go back to the last checkpoint.",
        "divide learning_rate by 10.",
        "read the samples: the rewards favor what they repeat.",
        "check whether the prompts became much harder at that step; if so, it is not a collapse.",
    ),
    hides=LOST,
    example=log_of(20, reward=lambda step: 0.5 if step < 10 else 0.0, entropy=lambda step: 0.1 if step < 10 else 5.0),
)
def mode_collapse(log: Log) -> Iterator[Finding]:
    """The reward is lost and the policy changed completely, or entropy vanished or surged without a gain."""
    if said := _equal_completions(log) or _lost_reward(log) or _moved_entropy(log):
        yield found(seen=said)


def _equal_completions(log: Log) -> str:
    distinct = log.checked("distinct")[-1:]
    if not distinct or distinct[0] > limits.DISTINCT:
        return ""
    return f"only {distinct[0]:.0%} of the completions to different prompts are distinct"


def _lost_reward(log: Log) -> str:
    entropies, lost = log.values("entropy"), _share_lost(log)
    if lost < limits.REWARD_LOST or not _changed_beyond_recognition(log):
        return ""
    moved = f", entropy {entropies[0]:.3g} -> {last(entropies):.3g} nats per token" if entropies else ""
    return f"{lost:.0%} of the best reward is lost; it is now {last(log.values('reward')):.3g}{moved}"


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
    return not before / far < last(entropies) < before * far or cut or is_tied(log)


def _start(values: list[float]) -> float:
    """The level of the first three entries, robust to one lucky batch."""
    return median(values[:3])


def _moved_entropy(log: Log) -> str:
    entropies, rewards = log.values("entropy"), log.values("reward")
    if not entropies or sigmas(rewards) >= limits.RISEN:
        return ""
    before, now = entropies[0], last(entropies)
    gone = now <= limits.ENTROPY_GONE * before and clearest_rise(rewards) < limits.RISEN
    if not gone and now < limits.ENTROPY_BURST * before:
        return ""
    return f"entropy {before:.3g} -> {now:.3g} nats per token, reward {span(rewards)}"
