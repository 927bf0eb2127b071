"""The verdicts of a pilot: whether to start the run, or what to change first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..findings import Finding
from ..preflight.arguments import COLD
from ..rules import Rule, adding_to, found
from .figures import Figures


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
#: Share of correctly formatted completions, and of these the share of correct ones, with which the gold answers are
#: questioned; chosen. A task that is too hard for the model looks the same.
FORMED, OF_FORMED = 0.2, 0.05
#: Groups below which an interrupted pilot does not decide.
FEWEST = 8
#: The verdicts that a model which sees no question in its own format explains.
NO_QUESTION = ("sft_first", "check_golds", "easier_rows", "fix_eos", "raise_limit")


@dataclass(frozen=True)
class Evidence:
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
        ending_pays = self.figures.ending is not None and self.figures.ending[1] > 0
        return self.figures.truncated.value > self.limits.truncated and not ending_pays

    @property
    def paid(self) -> bool:
        """Whether the mean reward is in the upper half of its range."""
        mean, least, most, _ = self.figures.reward
        return mean >= (least + most) / 2 and most > 0

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
verdict = adding_to(RULES)


def decide(evidence: Evidence) -> Finding:
    """The first verdict that applies; without figures, only those that need none are tried.

    >>> print(decide(Evidence(groups=3)))
    error   stopped: only 3 groups were sampled.
            Do:  sample 8 or more.
    """
    possible = [rule for rule in RULES if evidence.figures or not rule.needs]
    return next(finding for rule in possible for finding in rule(evidence))


@verdict("error", "interrupted before there were enough groups to decide")
def stopped(evidence: Evidence) -> Iterator[Finding]:
    """Ctrl-C."""
    if evidence.figures is None and not evidence.failure:
        count = {0: "no group was", 1: "only 1 group was"}.get(evidence.groups, f"only {evidence.groups} groups were")
        yield found(f"{count} sampled.", "", f"sample {FEWEST} or more.")


@verdict("error", "the prompts lack the model's chat template, which explains the other findings", needs=("figures",))
def fix_prompts(evidence: Evidence) -> Iterator[Finding]:
    """A model that sees no question explains every verdict in `NO_QUESTION`."""
    if "string_prompt" not in evidence.warned:
        return
    other = decide(replace(evidence, warned=frozenset()))
    if other.code in NO_QUESTION:
        what = "the prompts are plain text, but the tokenizer has a chat template; with such prompts, "
        fix = "make each prompt a list of messages: chat_prompt(question)."
        yield found(f"{what}{other.what}", "", fix, f"plain text is correct for a base model; then: {other.fixes[0]}")


@verdict("error", "completions do not end even with four times the limit", needs=("figures",))
def fix_eos(evidence: Evidence) -> Iterator[Finding]:
    """Hardly any completion ends, so the limit is not the cause."""
    longer, ends = evidence.longer, sum(ended for _, ended in evidence.longer)
    if evidence.truncated and longer and ends <= len(longer) / 10:
        what = f"{evidence.figures.truncated} of the completions are truncated"
        fix = "set tokenizer.eos_token to the token that ends a turn; a base model that has none needs SFT first."
        yield found(f"{what}, and {len(longer) - ends} of {len(longer)} at 4 times the limit.", "", fix)


@verdict("error", "most completions are cut off at max_completion_length", needs=("figures",))
def raise_limit(evidence: Evidence) -> Iterator[Finding]:
    """To what 95% of the completions need."""
    if not evidence.truncated:
        return
    seen, ends = evidence.figures, sorted(length for length, ended in evidence.longer if ended)
    wanted = ends[round(0.95 * (len(ends) - 1))] if ends else 2 * seen.tokens[2]
    fixes = [f"raise max_completion_length to {wanted} or more."]
    if seen.ending:  # not shown to be above 0, or there would be another verdict
        pays = f"completions that end have a mean advantage of {signed(seen.ending)}"
        fixes.append(
            f"{pays}: if it is above 0 with more prompts, training itself makes them end, and the limit can stay."
        )
    yield found(f"{seen.truncated} of the completions are truncated.", "", *fixes)


@verdict("error", "the temperature is so low that the completions of a group are nearly equal", needs=("figures",))
def raise_temperature(evidence: Evidence) -> Iterator[Finding]:
    """A temperature near 0 explains ties and completions that are all wrong."""
    if evidence.temperature >= COLD or not (evidence.tied or evidence.none_right):
        return
    seen = evidence.figures
    what = f"temperature={evidence.temperature:g} makes completions nearly equal: {seen.tied} of the groups have equal"
    right = f", and {seen.right} of the completions are correct" if seen.right else ""
    yield found(f"{what} rewards{right}.", "", "set temperature=1.0, TRL's default, and run the pilot again.")


@verdict("error", "completions are in the requested format, but hardly any matches its gold answer", needs=("figures",))
def check_golds(evidence: Evidence) -> Iterator[Finding]:
    """The gold answers may belong to other rows."""
    seen = evidence.figures
    if not (seen.right and seen.formed) or seen.formed.value < FORMED:
        return
    if seen.right.value <= OF_FORMED * seen.formed.value:
        what = (
            f"{seen.formed} of the completions are in the requested format, but {seen.right} match their gold answers."
        )
        fix = "compare completions and gold answers: are the golds in the right rows, and does the checker accept them?"
        yield found(what, "", fix, "if they are right, the task is too hard: use SFT or easier rows first.")


@verdict("error", "the reward fails, is the same for every completion, or does not prefer correct answers")
def fix_reward(evidence: Evidence) -> Iterator[Finding]:
    """The only reason to change the reward that a pilot can see; `probe` finds more."""
    if evidence.failure:
        yield found(f"{evidence.failure.removesuffix('.')}.", "", "fix the reward.")
        return
    seen, limits = evidence.figures, evidence.limits
    if evidence.tied:
        every = seen.tied_larger.value == 1.0 and evidence.right is not None and evidence.right > limits.rare
        if seen.reward[1] == seen.reward[2] and evidence.right:
            what = f"every completion scores {seen.reward[1]:g}, but {seen.right} are correct."
            yield found(what, "", "fix the reward: it is the same for correct and wrong answers.")
        elif every and seen.pull:
            what = f"every group ties although {seen.right} are correct: the reward does not read the completion."
            fix = "fix the reward: it scores correct and wrong answers to the same prompt alike. Probe it."
            yield found(what, "", fix)
    elif seen.pull and seen.pull[0] <= limits.pull and not (evidence.none_right or evidence.solved):
        what = f"correct completions have a mean advantage of {signed(seen.pull)}."
        yield found(what, "", "fix the reward: it does not prefer correct answers. Probe it.")


@verdict("error", "most groups tie, and fewer would with 8 completions", needs=("figures",))
def larger_groups(evidence: Evidence) -> Iterator[Finding]:
    """The sampled groups have 8 completions at least."""
    seen = evidence.figures
    if evidence.tied and seen.tied_larger.value <= evidence.limits.tied:
        yield found(
            f"{evidence.all_tied}.", "", f"raise num_generations to {seen.sampled} (with it, {seen.tied_larger} tie)."
        )


@verdict("error", "most groups tie at a low reward, because few prompts are ever answered", needs=("figures",))
def easier_rows(evidence: Evidence) -> Iterator[Finding]:
    """The model is always or never right, or rarely rewarded."""
    every = evidence.figures.tied_larger.value == 1.0
    if evidence.tied and every and evidence.right is not None and evidence.right > evidence.limits.rare:
        fix = "use rows on which the model is sometimes right; here it always or never is."
        yield found(f"{evidence.all_tied}.", "", fix)
    elif evidence.tied and not every and not evidence.paid:
        fix = "use easier rows: keep those on which the model is sometimes right."
        yield found(f"{evidence.all_tied}.", "", fix)


@verdict("error", "most prompts are already answered, so there is nothing left to learn", needs=("figures",))
def harder_rows(evidence: Evidence) -> Iterator[Finding]:
    """By the share of correct completions, or by the reward where groups tie."""
    seen = evidence.figures
    if evidence.solved:
        yield found(f"{seen.right} of the completions are correct.", "", "use harder rows.")
    elif evidence.tied and evidence.paid:
        what = f"{evidence.all_tied}; the mean reward is {seen.reward[0]:.3g} of {seen.reward[2]:.3g}."
        yield found(what, "", "use harder rows.")


@verdict("error", "nothing that should be learned is ever sampled", needs=("figures",))
def sft_first(evidence: Evidence) -> Iterator[Finding]:
    """Every group ties at a low reward."""
    seen, (_, least, most, _) = evidence.figures, evidence.figures.reward
    if evidence.tied and seen.tied_larger.value == 1.0:
        equal = (
            f"every reward is {least:g}" if least == most else "completions of the same prompt always score the same"
        )
        what = f"{seen.right} of the completions are correct" if seen.right else equal
        fix = "train with SFT on some examples first. If no completion is correct, no group can teach it."
        yield found(f"{what}.", "", fix, "or use much easier rows, if there are any.")


@verdict("warning", "no completion is correct, so only partial credit can teach at first", needs=("figures",))
def partial_credit(evidence: Evidence) -> Iterator[Finding]:
    """Groups differ in something else than correct answers."""
    if evidence.none_right:
        what = f"{evidence.figures.right} of the completions are correct, but {evidence.differ}."
        watch = (
            "start the run, and watch the correctness reward: if it is still 0 after 30 steps, train with SFT first."
        )
        yield found(what, "", watch, "read completions with a high reward: do they come closer to a correct answer?")


@verdict("note", "start the run", needs=("figures",))
def go(evidence: Evidence) -> Iterator[Finding]:
    """Nothing speaks against it."""
    pull = evidence.figures.pull
    pulls = f", and correct completions have a mean advantage of {signed(pull)}" if pull else ""
    yield found(f"{evidence.differ}{pulls}.", "", "start the run, and watch it with HealthCallback.")


def signed(pull: tuple[float, float, float] | None) -> str:
    """A mean with its interval."""
    if pull is None:
        return "not known"
    return f"{pull[0]:+.2f} ({pull[1]:+.2f} to {pull[2]:+.2f})"
