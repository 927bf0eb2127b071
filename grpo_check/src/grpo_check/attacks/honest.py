"""What a correct completion of a row earns, with which everything else is compared."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from ..probes.forms import FORMS, Form
from ..probes.matrix import reasoning
from ..probes.trying.discovery import forms_of
from ..probes.trying.trial import ROUNDING
from .scoring import FIRST, HONEST, Paid, Scorer
from .variations import corrected

#: Formats in which references are written for every row: those that pay best on the first rows.
MOST_FORMS, TRIED_ROWS = 4, 4


@dataclass(frozen=True)
class Pay:
    """What is known about the pay of one row.

    Attributes:
        floor: the least that any completion was paid.
        plain: the most that an honest completion was paid: a reference, an example, or one sampled before training.
        best: the most that any correct completion was paid.
    """

    floor: float
    plain: float
    best: float

    def overpays(self, score: float) -> bool:
        """Whether a wrong completion with this score is paid at least as much as an honest one.

        Not if making the same completion correct would add more than its form has earned: that is partial credit,
        which the plain references are too plain for.

        >>> Pay(floor=0.0, plain=1.0, best=1.0).overpays(1.0), Pay(0.0, plain=0.5, best=1.5).overpays(0.5)
        (True, False)
        """
        earned, missed = score - self.floor, self.best - score
        return earned > ROUNDING and score >= self.plain - ROUNDING and earned > missed + ROUNDING


def score_references(scorer: Scorer, examples: Sequence[str]) -> list[Form]:
    """Score correct completions of each row: the user's examples, and gold answers in the formats that pay best.

    Returns:
        These formats, the best first; none without gold answers.
    """
    task = scorer.task
    rows = range(len(task.rows))
    _score(scorer, [(n, text) for n in rows for text in examples])
    golden = [n for n in rows if task.golds[n]]
    forms = _best_forms(scorer, golden[:TRIED_ROWS]) if golden else []
    _score(scorer, [(n, text) for n in golden for text in _references(task.golds[n], forms)])
    return forms


def _score(scorer: Scorer, pairs: list[tuple[int, str]]) -> None:
    """Score those that are correct; a reward that reads the group gets each row alone."""
    right = [(n, text) for n, text in dict.fromkeys(pairs) if scorer.task.correct(text, n)]
    for number in sorted({n for n, _ in right}) if scorer.relative else []:
        scorer.score([pair for pair in right if pair[0] == number], HONEST)
    if right and not scorer.relative:
        scorer.score(right, HONEST)


def _references(gold: str, forms: Sequence[Form]) -> list[str]:
    """A gold answer alone, and in formats.

    >>> _references("42", FORMS[2:3])[:2]
    ['42', 'First I look at what is given. Then I work it out step by step. So the result is 42.\\n<answer>42</answer>']
    """
    written = [form.write(thoughts, gold) for thoughts in (reasoning(gold), "") for form in forms]
    return list(dict.fromkeys([gold, *written]))


def _best_forms(scorer: Scorer, rows: Sequence[int]) -> list[Form]:
    """The formats in which a correct answer is paid best on some rows."""
    forms = tuple(dict.fromkeys([*FORMS, *forms_of(scorer.reward)]))
    totals = dict.fromkeys(forms, 0.0)
    for number in rows:
        gold = scorer.task.golds[number]
        scores = scorer.score([(number, form.write(reasoning(gold), gold)) for form in forms], HONEST)
        for form, score in zip(forms, scores, strict=True):
            totals[form] += score or 0.0
    return sorted(forms, key=lambda form: -totals[form])[:MOST_FORMS]


def score_corrected(scorer: Scorer, some: Sequence[Paid]) -> None:
    """Score well-paid wrong completions once more, with the gold answer in place of theirs."""
    golds = scorer.task.golds
    _score(scorer, [(one.row, text) for one in some if golds[one.row] for text in corrected(one.text, golds[one.row])])


def pay_of(paid: Sequence[Paid], relative: bool) -> dict[object, Pay]:
    """What is known about the pay of each row, by `place_of`; rows without a correct completion get the others' median.

    Scores of a reward that reads the group say nothing about another group, so there is no median of those.
    """
    by_place = {}
    for one in paid:
        by_place.setdefault(place_of(one, relative), []).append(one)
    known = {place: pay for place, some in by_place.items() if (pay := _pay(some))}
    if relative or not known:
        return known
    usual = Pay(*(median(getattr(pay, name) for pay in known.values()) for name in ("floor", "plain", "best")))
    return {place: known.get(place, usual) for place in by_place}


def place_of(one: Paid, relative: bool) -> object:
    """Within what scores can be compared: the row, or for a reward that reads the group the row in one call."""
    return (one.row, one.batch) if relative else one.row


def _pay(some: list[Paid]) -> Pay | None:
    """The pay of one row, if a correct completion of it is known."""
    right = [one for one in some if one.correct]
    if not right:
        return None
    floor, best = min(one.score for one in some), max(one.score for one in right)
    plain = max((one.score for one in right if one.source in (HONEST, FIRST)), default=best)
    return Pay(floor, plain, best)
