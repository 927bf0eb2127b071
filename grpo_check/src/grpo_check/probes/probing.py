"""Test a reward: try it, then judge what was seen."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from grpo_core.rewards import reward_name

from .calling import log_handlers_follow_stderr
from .forms import read_tags
from .judging.judge import judge
from .report import ProbeReport
from .signatures import makes_use_of, not_taken, parameters_of
from .trying.choosing import choose_form, depends_on_answer
from .trying.growth import grow
from .trying.looking import look
from .trying.planning import make_plan, rewards_of
from .trying.scoring import score_all
from .trying.trial import NotJudgedError, SpentError, Trial

#: What to do if all completions score the same.
SHOW = (
    "Show a completion that it should pay: examples=[…]. Or say how its answers look: answers=[…] as in your dataset, "
    "tags=(…) for the texts around reasoning and answer"
)


def probe(
    reward: Callable | Sequence[Callable],
    *,
    answers: Sequence[object] | None = None,
    answer_column: str | None = None,
    columns: dict[str, Sequence] | None = None,
    tags: Sequence[str] | None = None,
    weights: Sequence[float] | None = None,
    examples: Sequence[str] = (),
    calls: int | None = None,
) -> ProbeReport:
    """Attack a reward before a training run does.

    Args:
        reward: one reward, async or not, or a list of rewards, tested one by one and as a weighted sum.
        answers: gold answers as in your dataset, a few of each kind. By default `probe` uses numbers of its own, and
            judges a reward that does not read them by its format alone.
        answer_column: the name of the column with the gold answers. By default it is ``answer``, or another usual name
            that the reward reads.
        columns: further dataset columns, each with one value per answer.
        tags: the requested format, as the four texts around reasoning and answer, or ``()`` for the answer
            alone. By default `probe` tries common formats and uses the one that scores best.
        weights: one per reward in a list; 1.0 each by default.
        examples: your own completions that the reward should score, for a reward that looks for something
            that `probe` does not know (swear words, bullet points). Junk may score as much as they do, but not more.
        calls: the most completions that each reward, and their sum, may score; by default there is no limit, but an
            expensive reward is not judged before you say one.

    >>> from grpo_core.rewards import correctness_reward
    >>> probe(correctness_reward, answers=["42", "1000"]).ok
    True
    >>> def finds_it(completions, answer, **kwargs):
    ...     return [1.0 if gold in c[0]["content"] else 0.0 for c, gold in zip(completions, answer)]
    >>> print(sorted(probe(finds_it, answers=["42"]).codes))
    ['chat_only', 'wrong_beats_right']

    Raises:
        CourseError: the reward is not a function, needs a column that was not given, or the
            lengths of answers, columns or weights do not match.
    """
    rewards = rewards_of(reward, weights)
    plan = make_plan(rewards, answers, answer_column, columns or {}, read_tags(tags))
    plan = replace(plan, asked=tags is not None, examples=tuple(examples))
    trials = [Trial(name, one, plan, calls) for name, one in zip(_names(rewards), rewards, strict=True)]
    with log_handlers_follow_stderr():
        return judge(_try(trials))


def _names(rewards: list[Callable]) -> list[str]:
    """The names of the rewards, numbered if two are equal."""
    names = [reward_name(reward) for reward in rewards]
    return [f"{name} ({i + 1})" if names.count(name) > 1 else name for i, name in enumerate(names)]


def _try(trials: list[Trial]) -> list[Trial]:
    """Try each reward, and the sum of those that can be tried, which comes last."""
    parts = trials[:-1] or trials
    for trial in parts:
        with _noting_why_not(trial):
            look(trial)
            if trial.most is None and not trial.stopped:
                grow(trial)
    able = [trial for trial in parts if not trial.stopped]
    if not able:
        return parts
    whole = able[0] if len(able) == 1 else trials[-1]
    if 1 < len(able) < len(parts):
        rest = trials[-1].reward.of([trial.reward for trial in able])
        whole = Trial(reward_name(rest), rest, trials[-1].plan, trials[-1].most)
    whole.plan = replace(whole.plan, chat=all(trial.plan.chat for trial in able))
    tried = able if whole in able else [*able, whole]
    _choose(tried)
    for trial in tried:
        with _noting_why_not(trial):
            score_all(trial)
            _check_equal(trial, one_of_several=trial is not whole)
    for trial in parts:
        _note_what_it_does_not_take(trial)
    return parts if whole in parts else [*parts, whole]


@contextmanager
def _noting_why_not(trial: Trial) -> Iterator[None]:
    """Note in the block that a reward cannot be judged, and why."""
    try:
        yield
    except NotJudgedError as error:
        trial.not_judged = str(error)
    except SpentError:
        trial.not_judged = f"{trial.most} completions are too few to choose a format. Allow more: calls=…."


def _choose(trials: list[Trial]) -> None:
    """Choose the format by the last trial, and for each reward whether it is judged by the answer.

    If none of our own gold answers makes a difference as a text, it may as a number: a dataset can hold either.
    """
    whole = trials[-1]
    with _noting_why_not(whole):
        plan = choose_form(whole)
        if plan.own_golds and not plan.told and (numbers := whole.plan.as_numbers()):
            whole.plan = replace(numbers, chat=plan.chat)
            other = choose_form(whole)
            plan = replace(other, numbers=True) if other.told else plan
        for trial in trials:
            # What was found is about the whole; what another format adds to a sum may be the pay of another reward.
            trial.plan = plan if len(trials) == 1 else replace(plan, elsewhere=None)
            trial.answered = depends_on_answer(trial, len(trials) > 1)
        if plan.own_golds and not any(trial.answered for trial in trials):
            for trial in trials:
                trial.plan = trial.plan.without_answers()


def _check_equal(trial: Trial, one_of_several: bool) -> None:
    """A reward that scores all completions the same is dead only if one of them should be paid by what was given.

    An example is right for the sum of several rewards, and may have nothing of what one of them looks for.
    """
    if not trial.all_equal or trial.observed["raises"]:
        return
    plan, outside = trial.plan, trial.needs_from_outside()
    given = plan.examples and not (one_of_several and not trial.answered)
    given = given or (plan.asked and (not trial.answered or not plan.own_golds))
    asks = "prompt" not in plan.columns[0] and makes_use_of(trial.reward, "prompts")  # it may look something up
    if outside or asks or not given:
        said = next(iter([*trial.logs, *trial.prints]), "")
        printed = f" It prints: {said}." if said else ""
        show = SHOW.replace("Show a completion", "Your example has nothing of it; show one") if plan.examples else SHOW
        show = show.replace("it should pay", "it should pay less" if trial.scored[0][1] > 0 else "it should pay")
        prompts = " It reads the prompts: pass columns={'prompt': […]} with some of yours." if asks else ""
        alike = "so none may be what it looks for." if trial.scored[0][1] <= 0 else "so it takes nothing off for any."
        unseen = f"{alike}{printed}{prompts}{'' if given else f' {show}.'}"
        raise NotJudgedError(f"all {len(trial.scored)} completions score {trial.scored[0][1]}, {outside or unseen}")


def _note_what_it_does_not_take(trial: Trial) -> None:
    """Note a reward without ``**kwargs``, which is tried all the same with what it takes."""
    if more := not_taken(trial.reward):
        taken = ", ".join(map(str, parameters_of(trial.reward).values()))
        what = f"it has no **kwargs, and TRL also passes {', '.join(more)}, which is a TypeError."
        trial.add("raises", what, None, f"write def {trial.name}({taken}, **kwargs).")
