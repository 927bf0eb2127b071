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
    "fix_prompts": "the prompts lack the model's chat template, which explains the other findings",
    "check_golds": "completions are in the requested format, but hardly any matches its gold answer",
    "raise_temperature": "the temperature is so low that the completions of a group are nearly equal",
    "larger_groups": "most groups tie, and fewer would with 8 completions",
    "easier_rows": "most groups tie at a low reward, because few prompts are ever answered",
    "harder_rows": "most prompts are already answered, so there is nothing left to learn",
    "partial_credit": "no completion is correct, so only partial credit can teach at first",
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
#: Temperatures below which the temperature is named as the cause of ties; chosen, not fitted.
COLD = 0.3
#: Share of correctly formatted completions, and of these the share of correct ones, with which the gold answers are
#: questioned; chosen. A task that is too hard for the model looks the same.
FORMED, OF_FORMED = 0.2, 0.05


def decide(
    seen: Figures, longer: Sequence[tuple[int, bool]] = (), limits: Limits = LIMITS, *, temperature: float = 1.0
) -> Finding:
    """The verdict on some figures; ``longer`` has lengths and ends with a higher limit, if that was tried."""
    right = seen.right.value if seen.right else None
    ending_pays = seen.ending is not None and seen.ending[1] > 0  # then training itself makes completions end
    if seen.truncated.value > limits.truncated and not ending_pays:
        return _truncated(seen, longer)
    if right is not None and right > limits.done:
        return stop("harder_rows", f"{seen.right} of the completions are correct", "use harder rows.")
    tied, none_right = seen.tied.value > limits.tied, right is not None and right <= limits.rare
    if temperature < COLD and (tied or none_right):
        return _cold(seen, temperature)
    if seen.right and seen.formed and seen.formed.value >= FORMED and right <= OF_FORMED * seen.formed.value:
        return _none_matches(seen)
    if tied:
        return _tied(seen, limits)
    if none_right:
        return _partial_credit(seen)
    if seen.pull and seen.pull[0] <= limits.pull:
        what = f"correct completions have a mean advantage of {signed(seen.pull)}"
        return stop("fix_reward", what, "fix the reward: it does not prefer correct answers. Probe it.")
    pulls = f", and correct completions have a mean advantage of {signed(seen.pull)}" if seen.pull else ""
    return Finding(
        "go", "note", f"{_not_tied(seen)}{pulls}.", fixes=("start the run, and watch it with HealthCallback.",)
    )


def without_template(verdict: Finding) -> Finding:
    """The verdict where the prompts lack the chat template; a model that sees no question explains all but go."""
    what = f"the prompts are plain text, but the tokenizer has a chat template; with such prompts, {verdict.what}"
    fix = "make each prompt a list of messages: chat_prompt(question)."
    return stop("fix_prompts", what, fix, f"plain text is correct for a base model; then: {verdict.fixes[0]}")


def _cold(seen: Figures, temperature: float) -> Finding:
    what = f"temperature={temperature:g} makes completions nearly equal: {seen.tied} of the groups have equal rewards"
    if seen.right:
        what += f", and {seen.right} of the completions are correct"
    return stop("raise_temperature", what, "set temperature=1.0, TRL's default, and run the pilot again.")


def _truncated(seen: Figures, longer: Sequence[tuple[int, bool]]) -> Finding:
    what = f"{seen.truncated} of the completions are truncated"
    ends = sorted(length for length, ended in longer if ended)
    if longer and len(ends) <= len(longer) / 10:
        fix = "set tokenizer.eos_token to the token that ends a turn; a base model that has none needs SFT first."
        return stop("fix_eos", f"{what}, and {len(longer) - len(ends)} of {len(longer)} at 4 times the limit", fix)
    wanted = ends[round(0.95 * (len(ends) - 1))] if ends else 2 * seen.tokens[2]
    fixes = [f"raise max_completion_length to {wanted} or more."]
    if seen.ending:  # not shown to be above 0, or there would be another verdict
        pays = f"completions that end have a mean advantage of {signed(seen.ending)}"
        fixes.append(
            f"{pays}: if it is above 0 with more prompts, training itself makes them end, and the limit can stay."
        )
    return stop("raise_limit", what, *fixes)


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


def _none_matches(seen: Figures) -> Finding:
    what = f"{seen.formed} of the completions are in the requested format, but {seen.right} match their gold answers"
    fix = "compare completions and gold answers: are the golds in the right rows, and does the checker accept them?"
    return stop("check_golds", what, fix, "if they are right, the task is too hard: use SFT or easier rows first.")


def _not_tied(seen: Figures) -> str:
    return f"{1 - seen.tied.value:.0%} of the groups have different rewards"


def _partial_credit(seen: Figures) -> Finding:
    what = f"{seen.right} of the completions are correct, but {_not_tied(seen)}."
    watch = "start the run, and watch the correctness reward: if it is still 0 after 30 steps, train with SFT first."
    read = "read completions with a high reward: do they come closer to a correct answer?"
    return Finding("partial_credit", "warning", what, CODES["partial_credit"], (watch, read))


def _none_right(seen: Figures) -> Finding:
    _, least, most, _ = seen.reward
    rewards = f"every reward is {least:g}" if least == most else "completions of the same prompt always score the same"
    what = f"{seen.right} of the completions are correct" if seen.right else rewards
    fix = "train with SFT on some examples first. If no completion is correct, no group can teach it."
    return stop("sft_first", what, fix, "or use much easier rows, if there are any.")


def stop(code: str, what: str, *fixes: str) -> Finding:
    """A verdict other than go."""
    return Finding(code, "error", f"{what.removesuffix('.')}.", CODES[code], fixes)


def signed(pull: tuple[float, float, float] | None) -> str:
    """A mean with its interval."""
    if pull is None:
        return "not known"
    return f"{pull[0]:+.2f} ({pull[1]:+.2f} to {pull[2]:+.2f})"
