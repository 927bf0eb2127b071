"""The verdicts of a pilot: whether to start the run, or what to change first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..findings import Finding
from ..preflights.arguments import COLD
from ..rule import Rule, adding_to, found
from .figures import Figures


class Limits(NamedTuple):
    """The thresholds, fitted on half of the configurations in docs/results.md.

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
#: Share of correctly formatted completions, and of these the share of correct ones, with which the gold answers are
#: questioned; chosen. A task that is too hard for the model looks the same.
MANY_FORMED, FEW_OF_THEM = 0.2, 0.05
#: Groups below which an interrupted pilot does not decide.
FEWEST_GROUPS = 8
PLAIN = "make each prompt a list of messages: [{'role': 'user', 'content': question}]."
#: The verdicts that a model which sees no question in its own format explains.
_NO_QUESTION = ("sft_first", "check_golds", "easier_rows", "fix_eos", "raise_limit")


@dataclass(frozen=True)
class Basis:
    """What a pilot knows when it decides.

    Attributes:
        figures: of the sampled groups; None if there are too few of them.
        longer: lengths and ends of completions with a higher limit, if that was tried.
        temperature: of the sampling.
        warned: the codes of what the preflight found.
        failure: how a reward failed.
        groups: how many were sampled.
        limits: the thresholds.
    """

    figures: Figures | None = None
    longer: Sequence[tuple[int, bool]] = ()
    temperature: float = 1.0
    warned: frozenset[str] = frozenset()
    failure: str = ""
    groups: int = 0
    limits: Limits = LIMITS

    @property
    def right(self) -> float | None:
        """The share of correct completions, None if it is not known."""
        return self.figures.right.value if self.figures.right else None

    @property
    def solved(self) -> bool:
        """Whether most completions are correct."""
        return self.right is not None and self.right > self.limits.done

    @property
    def none_right(self) -> bool:
        """Whether hardly any completion is correct."""
        return self.right is not None and self.right <= self.limits.rare

    @property
    def tied(self) -> bool:
        """Whether most groups tie, and not because most completions are correct."""
        return self.figures.tied.value > self.limits.tied and not self.solved

    @property
    def truncated(self) -> bool:
        """Whether most completions are truncated, and training itself would not make them end."""
        ending_pays = self.figures.ending is not None and self.figures.ending.low > 0
        return self.figures.truncated.value > self.limits.truncated and not ending_pays

    @property
    def paid(self) -> bool:
        """Whether the mean reward is in the upper half of its range."""
        reward = self.figures.reward
        return reward.mean >= (reward.least + reward.most) / 2 and reward.most > 0

    @property
    def all_tied(self) -> str:
        """How many groups tie, as the start of a sentence."""
        return f"{self.figures.tied} of the groups of {self.figures.size} have equal rewards, so they teach nothing"

    @property
    def differ(self) -> str:
        """How many groups do not tie."""
        return f"{1 - self.figures.tied.value:.0%} of the groups have different rewards"


#: The verdicts in the order of decision: the first that applies counts.
RULES: list[Rule] = []
verdict = adding_to(RULES, needs=("figures",))


def decide(basis: Basis) -> Finding:
    """The first verdict that applies; without figures, only those that need none are tried.

    >>> print(decide(Basis(groups=3)))
    error   stopped: only 3 groups were sampled.
            Do:  sample 8 or more.
    """
    possible = [rule for rule in RULES if basis.figures or not rule.needs]
    return next(finding for rule in possible for finding in rule(basis))


@verdict(
    "error",
    "interrupted before there were enough groups to decide",
    fixes=(f"sample {FEWEST_GROUPS} or more.",),
    needs=(),
)
def stopped(basis: Basis) -> Iterator[Finding]:
    """Ctrl-C ended the sampling. After 8 groups a pilot still decides, with what it has."""
    if basis.figures is None and not basis.failure:
        count = {0: "no group was", 1: "only 1 group was"}.get(basis.groups, f"only {basis.groups} groups were")
        yield found(f"{count} sampled.")


@verdict(
    "error",
    "the prompts lack the model's chat template, which explains the other findings",
    why="a chat model sees no question in plain text, so its completions are wrong, tied or endless.",
    fixes=(PLAIN, "plain text is correct for a base model; then follow the rest of the verdict."),
)
def fix_prompts(basis: Basis) -> Iterator[Finding]:
    """It replaces the verdicts sft_first, check_golds, easier_rows, fix_eos and raise_limit, and quotes them."""
    if "string_prompt" not in basis.warned:
        return
    other = decide(replace(basis, warned=frozenset()))
    if other.code in _NO_QUESTION:
        what = "the prompts are plain text, but the tokenizer has a chat template; with such prompts, "
        yield found(f"{what}{other.what}", PLAIN, f"plain text is correct for a base model; then: {other.fixes[0]}")


@verdict(
    "error",
    "completions do not end even with four times the limit",
    why="the limit is not the cause: the model does not write the token at which generation stops.",
    fixes=("set tokenizer.eos_token to the token that ends a turn; a base model that has none needs SFT first.",),
)
def fix_eos(basis: Basis) -> Iterator[Finding]:
    """Where most completions are truncated, the pilot samples one more for each prompt, with four times the limit."""
    longer, ends = basis.longer, sum(ended for _, ended in basis.longer)
    if basis.truncated and longer and ends <= len(longer) / 10:
        what = f"{basis.figures.truncated} of the completions are truncated"
        yield found(f"{what}, and {len(longer) - ends} of {len(longer)} at 4 times the limit.")


@verdict(
    "error",
    "most completions are cut off at max_completion_length",
    why="a completion that is cut off has no answer, so it scores like a wrong one.",
    fixes=("raise max_completion_length to what 95% of the completions need, which the verdict names.",),
)
def raise_limit(basis: Basis) -> Iterator[Finding]:
    """If completions that end have a positive advantage, training itself makes them end, and this does not apply."""
    if not basis.truncated:
        return
    figures, ends = basis.figures, sorted(length for length, ended in basis.longer if ended)
    wanted = ends[round(0.95 * (len(ends) - 1))] if ends else 2 * figures.tokens.longest
    fixes = [f"raise max_completion_length to {wanted} or more."]
    if figures.ending:  # not shown to be above 0, or there would be another verdict
        pays = f"completions that end have a mean advantage of {figures.ending}"
        fixes.append(
            f"{pays}: if it is above 0 with more prompts, training itself makes them end, and the limit can stay."
        )
    yield found(f"{figures.truncated} of the completions are truncated.", *fixes)


@verdict(
    "error",
    "the temperature is so low that the completions of a group are nearly equal",
    why="nearly equal completions score the same, and a tied group has no gradient.",
    fixes=("set temperature=1.0, TRL's default, and run the pilot again.",),
)
def raise_temperature(basis: Basis) -> Iterator[Finding]:
    """A low temperature alone is not reported: most groups must tie, or no completion may be correct."""
    if basis.temperature >= COLD or not (basis.tied or basis.none_right):
        return
    figures = basis.figures
    what = f"temperature={basis.temperature:g} makes completions nearly equal"
    right = f", and {figures.right} of the completions are correct" if figures.right else ""
    yield found(f"{what}: {figures.tied} of the groups have equal rewards{right}.")


@verdict(
    "error",
    "completions are in the requested format, but hardly any matches its gold answer",
    why="gold answers in the wrong rows, or a checker that rejects them, leave nothing correct to reinforce.",
    fixes=(
        "compare completions and gold answers: are the golds in the right rows, and does the checker accept them?",
        "if they are right, the task is too hard: use SFT or easier rows first.",
    ),
)
def check_golds(basis: Basis) -> Iterator[Finding]:
    """The report prints some completions next to their gold answers. A task that is too hard looks the same."""
    figures = basis.figures
    if not (figures.right and figures.formed) or figures.formed.value < MANY_FORMED:
        return
    if figures.right.value <= FEW_OF_THEM * figures.formed.value:
        what = f"{figures.formed} of the completions are in the requested format"
        yield found(f"{what}, but {figures.right} match their gold answers.")


@verdict(
    "error",
    "the reward fails, is the same for every completion, or does not prefer correct answers",
    why="the policy learns what the reward prefers, so it would learn nothing, or wrong answers.",
    fixes=("fix the reward.", "probe it for details: grpo-check probe FILE.py:function."),
    needs=(),
)
def fix_reward(basis: Basis) -> Iterator[Finding]:
    """It sees only what the reward gives to real completions of this model; `probe` tries many more."""
    if basis.failure:
        yield found(f"{basis.failure.removesuffix('.')}.", "fix the reward.")
        return
    figures, limits = basis.figures, basis.limits
    if basis.tied:
        every = figures.tied_larger.value == 1.0 and basis.right is not None and basis.right > limits.rare
        if figures.reward.least == figures.reward.most and basis.right:
            what = f"every completion scores {figures.reward.least:g}, but {figures.right} are correct."
            yield found(what, "fix the reward: it is the same for correct and wrong answers.")
        elif every and figures.pull:
            what = f"every group ties although {figures.right} are correct: the reward does not read the completion."
            fix = "fix the reward: it scores correct and wrong answers to the same prompt alike. Probe it."
            yield found(what, fix)
    elif figures.pull and figures.pull.value <= limits.pull and not (basis.none_right or basis.solved):
        what = f"correct completions have a mean advantage of {figures.pull}."
        yield found(what, "fix the reward: it does not prefer correct answers. Probe it.")


@verdict(
    "error",
    "most groups tie, and fewer would with 8 completions",
    why="a group whose rewards are all equal has no gradient.",
    fixes=("raise num_generations to the number of completions that the pilot sampled per prompt.",),
)
def larger_groups(basis: Basis) -> Iterator[Finding]:
    """The pilot samples 8 completions per prompt at least, and counts how often smaller groups of them tie."""
    figures = basis.figures
    if basis.tied and figures.tied_larger.value <= basis.limits.tied:
        fix = f"raise num_generations to {figures.sampled} (with it, {figures.tied_larger} tie)."
        yield found(f"{basis.all_tied}.", fix)


@verdict(
    "error",
    "most groups tie at a low reward, because few prompts are ever answered",
    why="a group whose rewards are all equal has no gradient.",
    fixes=("use rows on which the model is sometimes right.",),
)
def easier_rows(basis: Basis) -> Iterator[Finding]:
    """Some completions are rewarded, but in most groups either all of them or none."""
    every = basis.figures.tied_larger.value == 1.0
    if basis.tied and every and basis.right is not None and basis.right > basis.limits.rare:
        fix = "use rows on which the model is sometimes right; here it always or never is."
        yield found(f"{basis.all_tied}.", fix)
    elif basis.tied and not every and not basis.paid:
        fix = "use easier rows: keep those on which the model is sometimes right."
        yield found(f"{basis.all_tied}.", fix)


@verdict(
    "error",
    "most prompts are already answered, so there is nothing left to learn",
    why="groups in which every completion is correct have no gradient.",
    fixes=("use harder rows.",),
)
def harder_rows(basis: Basis) -> Iterator[Finding]:
    """Most completions are correct, or most groups tie at a high reward."""
    figures = basis.figures
    if basis.solved:
        yield found(f"{figures.right} of the completions are correct.")
    elif basis.tied and basis.paid:
        yield found(f"{basis.all_tied}; the mean reward is {figures.reward.mean:.3g} of {figures.reward.most:.3g}.")


@verdict(
    "error",
    "nothing that should be learned is ever sampled",
    why="GRPO reinforces what the model already produces sometimes, and every group ties at a low reward.",
    fixes=(
        "see first what three examples in the prompt give for nothing: pilot(…, examples=3).",
        "train with SFT on some examples first. If no completion is correct, no group can teach it.",
        "or use much easier rows, if there are any.",
    ),
)
def sft_first(basis: Basis) -> Iterator[Finding]:
    """Groups of the sampled size tie too, so larger groups would not help."""
    figures, reward = basis.figures, basis.figures.reward
    if not basis.tied or figures.tied_larger.value < 1.0:
        return
    if figures.right:
        yield found(f"{figures.right} of the completions are correct.")
    elif reward.least == reward.most:
        yield found(f"every reward is {reward.least:g}.")
    else:
        yield found("completions of the same prompt always score the same.")


@verdict(
    "warning",
    "no completion is correct, so only partial credit can teach at first",
    why="the policy learns what the other rewards pay for, which need not lead to correct answers.",
    fixes=(
        "start the run, and watch the correctness reward. If it is still 0 after about 30 steps, try a higher "
        "learning rate, or SFT first (rules of thumb).",
        "read completions with a high reward: do they come closer to a correct answer?",
    ),
)
def partial_credit(basis: Basis) -> Iterator[Finding]:
    """The rewards within a group differ by something else than correct answers, such as the format."""
    if basis.none_right:
        yield found(f"{basis.figures.right} of the completions are correct, but {basis.differ}.")


@verdict(
    "note",
    "start the run",
    fixes=("start the run, and watch it with HealthCallback.",),
)
def go(basis: Basis) -> Iterator[Finding]:
    """No other verdict applies: groups differ, completions end, and correct ones are preferred as far as is known."""
    pull = basis.figures.pull
    pulls = f", and correct completions have a mean advantage of {pull}" if pull else ""
    yield found(f"{basis.differ}{pulls}.")
