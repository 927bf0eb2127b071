"""Test a reward: choose a format, score the matrix of completions, collect what the rules need, and judge it."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from grpo_core.rewards import reward_name

from ..findings import Finding, in_order
from .calling import reads_group
from .collecting import collect
from .forms import FORMS, read_tags
from .growth import find_growth
from .planning import Plan, answer_column_of, choose_form, depends_on_answer, make_plan, subjects_of
from .report import ProbeReport
from .rules import RULES
from .trial import STOPPING, Trial


def probe(
    reward: Callable | Sequence[Callable],
    *,
    answers: Sequence[object] | None = None,
    answer_column: str = "answer",
    columns: dict[str, Sequence] | None = None,
    tags: Sequence[str] | None = None,
    weights: Sequence[float] | None = None,
    examples: Sequence[str] = (),
) -> ProbeReport:
    """Attack a reward before a training run does.

    Args:
        reward: one reward, async or not, or a list of rewards, tested one by one and as a weighted sum.
        answers: gold answers as in your dataset, a few of each kind. By default the lab uses
            numbers of its own, and judges a reward that does not read them by its format alone.
        answer_column: the name of the column with the gold answers.
        columns: further dataset columns, each with one value per answer.
        tags: the requested format, as the four texts around reasoning and answer, or ``()`` for the answer
            alone. By default the lab tries common formats and uses the one that scores best.
        weights: one per reward in a list; 1.0 each by default.
        examples: your own completions that the reward should score, for a reward that looks for something
            the lab does not know (swear words, bullet points). Junk may score as much as they do, but not more.

    >>> from grpo_core.rewards import correctness_reward
    >>> probe(correctness_reward, answers=["42", "1000"]).ok
    True
    >>> def finds_it(completions, answer, **kwargs):
    ...     return [1.0 if gold in c[0]["content"] else 0.0 for c, gold in zip(completions, answer)]
    >>> print(sorted(probe(finds_it, answers=["42"]).codes))
    ['chat_only', 'pays_missing_answer', 'raises', 'wrong_beats_right']

    Raises:
        CourseError: the reward is not a function, needs a column that was not given, or the
            lengths of answers, columns or weights do not match.
    """
    subjects, columns = subjects_of(reward, weights), dict(columns or {})
    if answers is None:
        answer_column = answer_column_of(subjects, answer_column, columns)
        answers = columns.pop(answer_column, None)
    plan = make_plan(subjects, answers, answer_column, columns, FORMS[0] if tags is None else read_tags(tags))
    trials = [_trial_of(name, one, plan) for name, one in zip(_names(subjects), subjects, strict=True)]
    for trial in trials if len(trials) == 1 else trials[:-1]:  # the last of several is their sum
        trial.add_growth(find_growth(trial.subject, plan))
    if not any(trial.stopped for trial in trials):
        _choose_format(trials, plan, asked=tags is not None)
        for trial in trials:
            collect(trial, examples)
    return _report(trials)


def _trial_of(name: str, subject: Callable, plan: Plan) -> Trial:
    """The trial of a reward before its first call, with an empty list for each rule that reports calls."""
    return Trial(name, subject, plan, reads_group(subject), {rule.code: [] for rule in RULES if rule.observed})


def _names(subjects: list[Callable]) -> list[str]:
    """The names of the rewards, numbered if two are equal."""
    names = [reward_name(subject) for subject in subjects]
    return [f"{name} ({i + 1})" if names.count(name) > 1 else name for i, name in enumerate(names)]


def _choose_format(trials: list[Trial], plan: Plan, asked: bool) -> None:
    """Choose the format, and for each reward whether it is judged by the answer."""
    plan = choose_form(trials[-1].subject, plan, asked)
    for trial in trials:
        trial.answered = depends_on_answer(trial.subject, plan, len(trials) > 1)
    if plan.own_golds and not any(trial.answered for trial in trials):
        plan = plan.without_answers()
    for trial in trials:  # what was found while the format was chosen is about the last one
        trial.plan = plan if trial is trials[-1] else replace(plan, elsewhere=None)


def _report(trials: list[Trial]) -> ProbeReport:
    scored = [
        {"reward": trial.reward, "gold": trial.plan.golds[case.number] if trial.answered else "", "what": case.what}
        | {"label": case.label, "completion": case.text, "score": score}
        for trial in trials
        for case, score in trial.scored
    ]
    judged = {trial.reward: _judged(trial, trials) for trial in trials}
    return ProbeReport(in_order(_judge_all(trials)), tuple(scored), judged)


def _judge_all(trials: list[Trial]) -> list[Finding]:
    """Judge each reward. The sum comes first, because partial credit needs one that tells right from wrong."""
    *parts, last = trials
    of_last = _judge(last)
    for trial in parts:
        trial.partial = last.answered and not {"wrong_beats_right", *STOPPING} & {one.code for one in of_last}
    return [*(found for trial in parts for found in _judge(trial)), *of_last]


def _judge(trial: Trial) -> list[Finding]:
    """Apply the rules; where nothing else can be tested, only those that say why."""
    findings: list[Finding] = []
    for rule in RULES:
        if (not trial.stopped or rule.code in STOPPING) and not {one.code for one in findings} & {*rule.unless}:
            findings += rule(trial)[: rule.most]
    return [replace(one, subject=trial.reward) for one in findings]


def _judged(trial: Trial, trials: list[Trial]) -> str:
    """A sentence that says how one reward was tested."""
    plan = trial.plan
    if not trial.scored and any(one.observed["unbounded_time"] for one in trials):
        return "not judged, because the scoring of one completion never finished."
    kind = "chat messages" if plan.chat else "strings"
    golds = ", ".join(plan.golds[:4]) + (", …" if len(plan.golds) > 4 else "")
    how = f"judged by the answer ({golds})" if trial.answered else "judged by its format alone"
    if trial.stopped:
        how = "not judged, because chance decides"
    return f"{len(trial.scored)} completions as {kind}, format {plan.form}, {how}."
