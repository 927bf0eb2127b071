"""Choose the format in which a reward is tried, and find out whether its scores depend on the answer."""

import math
import re
from collections.abc import Sequence
from dataclasses import replace

from ..answers import answer_kind
from ..calling import reads_group
from ..forms import FORMS, BareForm, Form
from ..matrix import NO_ANSWER, Case, reasoning
from ..signatures import makes_use_of, parameters_of
from .discovery import forms_of
from .planning import Plan
from .trial import ROUNDING, Trial

#: A correct answer has to beat a wrong one by this share of what it earns more than a missing one. A cost for each
#: character makes a difference between any two texts.
CLEARLY = 0.02

#: A tag that opens the answer.
_ANSWER_OPENS = re.compile(r"<[\w-]*(?:answer|solution|final|result|output)[\w-]*>", re.IGNORECASE)

Three = tuple[float | None, float | None, float | None]


def choose_form(trial: Trial) -> Plan:
    """The plan with the format and the kind of completions in which a right answer scores furthest above others.

    No other format is tried than one that was asked for. An example with a gold answer in it shows one.

    Args:
        trial: of the reward; of several, the one of their sum.
    """
    plan = trial.plan
    shown = _shown_by(plan.examples, plan.golds)
    forms = (plan.form,) if plan.asked else tuple(dict.fromkeys([*shown, *FORMS, *forms_of(trial.reward)]))
    if trial.most is not None and not plan.asked:
        forms = tuple(dict.fromkeys([*shown, *forms_of(trial.reward), *FORMS]))[: max(trial.most // 20, 1)]
    options = [replace(plan, form=form) for form in forms]
    scores = _scores(trial, options)
    if not any(_stands_out(*three) for three in scores) and trial.most is None:
        strings = [replace(option, chat=not plan.chat) for option in options]
        scores, options = scores + _scores(trial, strings), options + strings
    best = max(range(len(options)), key=lambda i: _margin(*scores[i]))  # the first of equal ones
    chosen = options[best]
    told = _stands_out(*scores[best])
    if not plan.asked and (not told or _takes_any_form(trial, chosen, scores[best])):
        chosen = replace(plan, form=shown[0] if shown and told else FORMS[0], any_form=True)
    chosen = replace(chosen, told=told)
    wrong = [(_three_texts(option)[1], three[1]) for option, three in zip(options, scores, strict=True)]
    paid = [(case, score) for case, score in wrong if score is not None and not math.isnan(score)]
    return replace(_fitting(trial, chosen), elsewhere=max(paid, key=lambda pair: pair[1], default=None))


def _shown_by(examples: Sequence[str], golds: Sequence[str]) -> list[Form]:
    """The formats of examples that contain a gold answer (72 for 72.0), as the text before and after its last place.

    >>> _shown_by(['{"label": "neutral", "score": 0.8}'], ["positive", "neutral"])[0].write("", "positive")
    '{"label": "positive", "score": 0.8}'
    """
    found = []
    for text in examples:
        for gold in dict.fromkeys(name for one in golds for name in (one, re.sub(r"(?<=\d)\.0+$", "", one))):
            places = [*re.finditer(rf"(?<!\w){re.escape(gold)}(?!\w)", text)] if text != gold else []
            for place in places[-1:]:  # what leads to it must not name it, or a wrong answer would be right before
                if _ANSWER_OPENS.search(text, place.end()):  # a number in the reasoning, such as countdown's target
                    continue
                before = re.sub(rf"(?<!\w){re.escape(gold)}(?!\w)", "?", text[: place.start()])
                found.append(BareForm("", "", before, text[place.end() :]))
    return found


def _scores(trial: Trial, options: list[Plan]) -> list[Three]:
    """For each option the scores of a clean, a wrong and a missing answer, in one batch or one by one if it fails."""
    rows, chat = [row for option in options for row in option.rows(_three_texts(option))], options[0].chat
    whole = None if reads_group(trial.reward) else trial.score(rows, chat=chat).scores
    scores = whole or [(trial.score([row], chat=chat).scores or [math.nan])[0] for row in rows]
    return list(zip(scores[::3], scores[1::3], scores[2::3], strict=True))


def _three_texts(plan: Plan) -> list[Case]:
    """A correct, a wrong and a missing answer."""
    wrong = plan.form.write(reasoning(plan.wrong), plan.wrong)
    return [
        plan.clean._replace(role="odd"),
        Case("wrong, in another format", "odd", wrong),
        Case("no answer", "odd", NO_ANSWER),
    ]


def _margin(clean: float | None, other: float | None, nothing: float | None) -> tuple[bool, bool, float]:
    """Whether a clean completion has a score, whether it beats a wrong one, and its lead over a missing answer."""
    if clean is None or any(math.isnan(score or 0.0) for score in (clean, other, nothing)):
        return (False, False, 0.0)
    lowest = min(0.0, clean - 1.0)  # where it gives no score
    other, nothing = (lowest if score is None else score for score in (other, nothing))
    return (True, clean - other > CLEARLY * max(clean - nothing, 0.0), clean - nothing)


def _stands_out(clean: float | None, other: float | None, nothing: float | None) -> bool:
    """Whether a right answer in this format earns more than a wrong or a missing one."""
    _, beats, lead = _margin(clean, other, nothing)
    return beats or lead > ROUNDING


def _takes_any_form(trial: Trial, plan: Plan, scores: Three) -> bool:
    """Whether the same texts score the same if the letters of all tags are reversed: then no tag matters."""
    form = Form(*(re.sub("[A-Za-z]+", lambda found: found[0][::-1], tag) for tag in plan.form))
    return form != Form(*plan.form) and _scores(trial, [replace(plan, form=form)])[0] == scores


def _fitting(trial: Trial, plan: Plan) -> Plan:
    """The plan without its own answers that the reward does not accept (a task may have no decimals)."""
    if not plan.own_golds:
        return plan
    if trial.most is not None:  # the calls are for the completions
        return plan.of_golds([0])
    fits = [_margin(*_scores(trial, [plan.of_golds([i])])[0])[1] for i in range(len(plan.golds))]
    refused = tuple(gold for gold, fit in zip(plan.golds, fits, strict=True) if not fit)
    return replace(plan.of_golds([i for i, fit in enumerate(fits) if fit]), refused=refused) if any(fits) else plan


def depends_on_answer(trial: Trial, among_others: bool) -> bool:
    """Whether scores should depend on the answer: the reward uses the column, or another row's answer matters.

    A single reward that names any of the columns given with answers is; of several some may only shape.
    """
    plan = trial.plan
    names = {plan.answer_column} if among_others or plan.own_golds else set(plan.columns[0])
    if any(makes_use_of(trial.reward, name) for name in names & set(parameters_of(trial.reward))):
        return True
    if answer_kind(plan.golds[0]) == "program" and not among_others and _tells_programs_apart(trial):
        return True
    several = len(plan.golds) > 1 and not plan.own_golds
    columns = plan.columns[-1] if several else {plan.answer_column: plan.wrong}
    batches = [plan.clean] * 2, [plan.clean] * 2, plan.rows([plan.clean] * 2, **columns)
    first, again, other = (trial.score(rows).scores for rows in batches)
    return first == again != other


def _tells_programs_apart(trial: Trial) -> bool:
    """Whether a text that is not a program scores less than the gold program, whatever the columns contain."""
    plan = trial.plan
    none = Case("", "", plan.form.write(reasoning("I do not know."), "I do not know."))
    right, wrong = ((trial.score([row]).scores or [None])[0] for row in [plan.clean, *plan.rows([none])])
    return None not in (right, wrong) and wrong < right
