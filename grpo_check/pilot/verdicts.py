"""Decide from the figures of a pilot whether to start the run, or what to change first."""

from collections.abc import Sequence
from typing import NamedTuple

from ..findings import Finding
from .figures import Figures

#: Every verdict and its meaning.
CODES = {
    "go": "start the run",
    "raise_limit": "most completions are cut off at max_completion_length",
    "fix_eos": "completions do not end even with four times the limit",
    "larger_groups": "most groups tie, and fewer would with 8 completions",
    "easier_rows": "most groups tie at a low reward, because few prompts are ever answered",
    "harder_rows": "most prompts are already answered, so there is nothing left to learn",
    "sft_first": "nothing that should be learned is ever sampled",
    "fix_reward": "the reward fails, is the same for every completion, or does not prefer correct answers",
    "stopped": "interrupted before there were enough groups to decide",
}


class Limits(NamedTuple):
    """The thresholds, fitted on half of the configurations in docs/pilot.md.

    Attributes:
        truncated: largest share of truncated completions.
        tied: largest share of tied groups.
        pull: least mean advantage of correct completions.
        rare: largest share of correct completions that counts as none.
        done: largest share of correct completions with something left to learn.
    """

    truncated: float = 0.5
    tied: float = 0.9
    pull: float = 0.0
    rare: float = 0.0
    done: float = 0.8


LIMITS = Limits()


def decide(seen: Figures, longer: Sequence[tuple[int, bool]] = (), limits: Limits = LIMITS) -> Finding:
    """The verdict on some figures; ``longer`` has lengths and ends with a higher limit, if that was tried."""
    right = seen.right.value if seen.right else None
    if seen.truncated.value > limits.truncated:
        return _truncated(seen, longer)
    if right is not None and right > limits.done:
        return stop("harder_rows", f"{seen.right} of the completions are correct", "use harder rows.")
    if seen.tied.value > limits.tied:
        return _tied(seen, limits)
    if right is not None and right <= limits.rare:
        return _none_right(seen)
    if seen.pull and seen.pull[0] <= limits.pull:
        what = f"correct completions have a mean advantage of {signed(seen.pull)}"
        return stop("fix_reward", what, "fix the reward: it does not prefer correct answers. Probe it.")
    learns = f"{1 - seen.tied.value:.0%} of the groups have different rewards"
    pulls = f", and correct completions have a mean advantage of {signed(seen.pull)}" if seen.pull else ""
    return Finding("go", "note", f"{learns}{pulls}.", fixes=("start the run, and watch it with HealthCallback.",))


def _truncated(seen: Figures, longer: Sequence[tuple[int, bool]]) -> Finding:
    what = f"{seen.truncated} of the completions are truncated"
    ends = sorted(length for length, ended in longer if ended)
    if longer and len(ends) <= len(longer) / 10:
        fix = "set tokenizer.eos_token to the token that ends a turn; a base model that has none needs SFT first."
        return stop("fix_eos", f"{what}, and {len(longer) - len(ends)} of {len(longer)} at 4 times the limit", fix)
    wanted = ends[round(0.95 * (len(ends) - 1))] if ends else 2 * seen.tokens[2]
    return stop("raise_limit", what, f"raise max_completion_length to {wanted} or more.")


def _tied(seen: Figures, limits: Limits) -> Finding:
    what = f"{seen.tied} of the groups of {seen.size} have equal rewards, so they teach nothing"
    if seen.reward[1] == seen.reward[2] and seen.right and seen.right.value > 0:
        fix = "fix the reward: it is the same for correct and wrong answers."
        return stop("fix_reward", f"every completion scores {seen.reward[1]:g}, but {seen.right} are correct", fix)
    if seen.tied_larger.value <= limits.tied:
        fix = f"raise num_generations to {seen.sampled} (with it, {seen.tied_larger} tie)."
        return stop("larger_groups", what, fix)
    if seen.tied_larger.value == 1.0 and seen.right and seen.right.value > limits.rare:
        return _all_tied(seen, what)
    mean, least, most, _ = seen.reward
    if mean >= (least + most) / 2 and most > 0:
        return stop("harder_rows", f"{what}; the mean reward is {mean:.3g} of {most:.3g}", "use harder rows.")
    if seen.tied_larger.value == 1.0:
        return _none_right(seen)
    return stop("easier_rows", what, "use easier rows: keep those on which the model is sometimes right.")


def _all_tied(seen: Figures, what: str) -> Finding:
    """Every group ties although some completions are correct; ``pull`` is None if no group has wrong ones as well."""
    if seen.pull:
        fix = "fix the reward: it scores correct and wrong answers to the same prompt alike. Probe it."
        what = f"every group ties although {seen.right} are correct: the reward does not read the completion"
        return stop("fix_reward", what, fix)
    return stop("easier_rows", what, "use rows on which the model is sometimes right; here it always or never is.")


def _none_right(seen: Figures) -> Finding:
    _, least, most, _ = seen.reward
    rewards = f"every reward is {least:g}" if least == most else "completions of the same prompt always score the same"
    what = f"{seen.right} of the completions are correct" if seen.right else rewards
    fix = "train with SFT on some examples first. GRPO cannot teach what is never sampled."
    return stop("sft_first", what, fix, "or use much easier rows, if there are any.")


def stop(code: str, what: str, *fixes: str) -> Finding:
    """A verdict other than go."""
    return Finding(code, "error", f"{what.removesuffix('.')}.", CODES[code], fixes)


def signed(pull: tuple[float, float, float] | None) -> str:
    """A mean with its interval."""
    if pull is None:
        return "not known"
    return f"{pull[0]:+.2f} ({pull[1]:+.2f} to {pull[2]:+.2f})"
