"""The rules by which a reward is judged: evidence in, findings out, one function for each fault.

Of each rule the first finding counts.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from ..findings import Finding
from .answers import PLAIN_WRONG
from .matrix import Case
from .report import finding

#: Differences below this are rounding.
ROUNDING = 1e-9
#: Wrong answers may differ in score (by their length, say) by this share of what a right one earns more.
SLACK = 0.02

Scored = tuple[Case, float]


class Row:
    """What the completions of one dataset row scored; all but ``scored`` leaves out those scored None."""

    def __init__(self, scored: list[tuple[Case, float | None]]):
        self.scored = scored
        self.pairs = [(case, score) for case, score in scored if score is not None]
        self.clean = self.named("right, in the asked form")
        self.right = _worst(self.of("clean"))
        self.nothing = self.named("no tags, no answer")
        wrongs = [pair for pair in self.of("wrong") if pair[0].what != "no tags, wrong"]  # in the asked form
        self.most_for_wrong = max([0.0, *(score for _, score in wrongs)])
        plain = sorted(_plain(wrongs), key=lambda pair: pair[1])
        self.usual_wrong = plain[len(plain) // 2] if plain else None

    def of(self, *roles: str) -> list[Scored]:
        """The completions in certain roles."""
        return [pair for pair in self.pairs if pair[0].role in roles]

    def named(self, what: str) -> Scored | None:
        """One completion."""
        return next((pair for pair in self.pairs if pair[0].what == what), None)


@dataclass
class Evidence:
    """What was seen of one reward."""

    reward: str
    grouped: bool  # whether it compares a group's completions
    found: list[Finding]
    answered: bool = False  # whether it is judged by the answer
    scored: list[tuple[Case, float | None]] = field(default_factory=list)
    without_gold: list[tuple[Case, float, float, str]] = field(default_factory=list)  # with the gold answer, without
    elsewhere: Scored | None = None  # the wrong answer that earns most, in whatever form
    filled: list[list[tuple[Case, float | None]]] = field(default_factory=list)  # series of growing filler

    def add(self, code: str, what: str, case: Case | None = None) -> None:
        """Note a finding that needs no rule."""
        self.found.append(finding(code, what, case))

    def found_a(self, *codes: str) -> bool:
        """Whether there is a finding with one of the codes."""
        return any(found.code in codes for found in self.found)

    def judge(self) -> None:
        """Apply the rules."""
        self.found += [found for rule in RULES for found in islice(rule(self), 1)]

    @property
    def rows(self) -> list[Row]:
        """The dataset rows."""
        numbers = sorted({case.number for case, _ in self.scored})
        return [Row([pair for pair in self.scored if pair[0].number == number]) for number in numbers]

    @property
    def answered_rows(self) -> list[Row]:
        """The dataset rows, if the reward is judged by the answer."""
        return self.rows if self.answered else []


def _plain(wrongs: list[Scored]) -> list[Scored]:
    """Wrong answers that differ only in how near they are; where there are none, all."""
    return [pair for pair in wrongs if pair[0].what in PLAIN_WRONG] or wrongs


def _best(pairs: list[Scored]) -> Scored | None:
    return max(pairs, key=lambda pair: pair[1], default=None)


def _worst(pairs: list[Scored]) -> Scored | None:
    return min(pairs, key=lambda pair: pair[1], default=None)


def _how(case: Case) -> str:
    """How a right completion is written, without the word for it."""
    return case.what.removeprefix("right, ")


def dead(seen: Evidence) -> Iterator[Finding]:
    """The same score for everything, or for every completion whose reasoning has a line break."""
    values = {score for _, score in seen.scored}
    if len(values) == 1 and len(seen.scored) > 1:
        what = f"every one of {len(seen.scored)} completions scores {values.pop()}."
        fix = (
            "If it wants a form of its own, give tags=…; if it needs right answers to pay anything, answers=…; "
            "if it reacts to something else, examples=…."
        )
        yield finding("dead", what, seen.scored[0][0], fix)
    elif not seen.answered and seen.scored:  # a form that is paid on one line and not on several
        row = seen.rows[0]
        one, several, none = row.clean, row.named("right, reasoning on several lines"), row.nothing
        if one and several and none and several[1] <= none[1] + ROUNDING < one[1]:
            what = f"{several[1]:g} as soon as the reasoning has a line break, {one[1]:g} on one line."
            hint = "Models write several lines: does a regular expression lack re.DOTALL?"
            yield finding("dead", f"{what} {hint}", several[0])


def wrong_beats_right(seen: Evidence) -> Iterator[Finding]:
    """A wrong answer scores as much as a right one, or is paid for being near."""
    if len({score for _, score in seen.scored}) == 1:
        return
    for row in seen.answered_rows:
        yield from _beaten(row)
        yield from _preferred(row)
        yield from _beaten_elsewhere(seen)


def _beaten(row: Row) -> Iterator[Finding]:
    right, wrong = row.right, _best(row.of("wrong"))
    if not right or not wrong or wrong[1] < right[1] - ROUNDING:
        return
    lines = "several lines" in right[0].what and _best(row.of("clean"))[1] > wrong[1] + ROUNDING
    hint = " On one line it is paid: does a regular expression lack re.DOTALL?" if lines else ""
    paid = f"a wrong answer ({wrong[0].what}) scores {wrong[1]:g}"
    what = f"{paid}, a right one ({_how(right[0])}) scores {right[1]:g}.{hint}"
    yield finding("wrong_beats_right", what, right[0] if lines else wrong[0])


def _preferred(row: Row) -> Iterator[Finding]:
    """Some wrong numbers earn more than others: nearness is paid, and beats a right answer in another writing."""
    plain = [pair for pair in row.of("wrong") if pair[0].what in PLAIN_WRONG]
    right, worst, best = row.right, _worst(plain), _best(plain)
    if not (right and worst) or best[1] - worst[1] <= SLACK * (right[1] - worst[1]):
        return
    written = _worst(row.of("writing"))
    less = written and written[1] < best[1] - ROUNDING
    more = f", and a right one ({_how(written[0])}) only {written[1]:g}" if less else ""
    paid = f"{best[0].what} scores {best[1]:g}, {worst[0].what} {worst[1]:g}{more}"
    what = f"some wrong answers are better than others: {paid}. "
    what += "In a group without a right answer the policy is then trained towards that wrong one."
    yield finding("wrong_beats_right", what, best[0])


def _beaten_elsewhere(seen: Evidence) -> Iterator[Finding]:
    """A wrong answer in another form earns as much as a right one in the form that pays it best."""
    right = _best(seen.rows[0].of("clean"))
    if right and seen.elsewhere and seen.elsewhere[1] >= right[1] - ROUNDING:
        case, score = seen.elsewhere
        what = f"a wrong answer in another form scores {score:g}, a right one ({_how(right[0])}) {right[1]:g}."
        yield finding("wrong_beats_right", what, case)


def pays_missing_answer(seen: Evidence) -> Iterator[Finding]:
    """No answer earns something, and more than a wrong one; or earns something where the gold answer is missing."""
    for row in seen.answered_rows:
        case, score = _best(row.of("missing")) or (None, 0.0)
        if score > row.most_for_wrong + ROUNDING:
            what = f"no answer ({case.what}) scores {score:g}, a wrong answer {row.most_for_wrong:g}."
            yield finding("pays_missing_answer", what, case)
    for case, with_gold, without, gold in seen.without_gold:
        if without > max(0.0, with_gold) + ROUNDING:
            what = f"no answer ({case.what}) scores {without:g} where the gold answer is {gold}."
            yield finding("pays_missing_answer", what, case)


def pays_abstaining(seen: Evidence) -> Iterator[Finding]:
    """No answer loses less than a wrong one: as long as most answers are wrong, silence is the best policy."""
    for row in seen.answered_rows:
        right, wrong, nothing = row.right, row.usual_wrong, _best(row.of("missing"))
        if not (right and wrong and nothing) or nothing[1] > row.most_for_wrong + ROUNDING:
            continue
        if nothing[1] > wrong[1] + 2 * SLACK * (right[1] - wrong[1]) + ROUNDING:
            what = f"no answer ({nothing[0].what}) scores {nothing[1]:g}, a wrong one ({wrong[0].what}) {wrong[1]:g}. "
            what += "While most answers are wrong, the policy learns not to answer. Never pay silence more than that."
            yield finding("pays_abstaining", what, nothing[0])


def none_for_wrong(seen: Evidence) -> Iterator[Finding]:
    """Right answers have a score and wrong ones none: TRL leaves those out, and all that is left scores the same."""
    for row in seen.answered_rows:
        wrong = _plain([pair for pair in row.scored if pair[0].role == "wrong"])
        if row.right and wrong and all(score is None for _, score in wrong):
            what = "every wrong answer scores None. TRL leaves such completions out, so a group holds only right "
            what += "answers, whose advantages are all zero. Give a wrong answer 0.0; None is for rows that it does "
            what += "not judge."
            yield finding("none_for_wrong", what, wrong[0][0])


def farmable(seen: Evidence) -> Iterator[Finding]:
    """Junk, repetition or stuffing scores more than the best clean completion of any usual length."""
    for row in seen.rows:
        clean = _best(row.of("clean", "long"))
        nothing = [pair for pair in row.of("odd") if pair[0].what in ("nothing", "white space")]
        attack = _best([*row.of("attack", "missing"), *([] if seen.grouped else nothing)])
        if clean and attack and attack[1] > clean[1] + ROUNDING:
            what = f"junk ({attack[0].what}) scores {attack[1]:g}, the best clean completion {clean[1]:g}."
            yield finding("farmable", what, attack[0])


def length_farm(seen: Evidence) -> Iterator[Finding]:
    """More text earns more, whatever it says."""
    plain, *series = [[(case, score) for case, score in one if score is not None] for one in seen.filled] or [[]]
    least = min((score for one in [plain, *series] for _, score in one), default=0.0)
    most = max((score for _, score in plain), default=0.0)
    for one in series:
        scores = [score for _, score in one]
        if len(scores) < len(seen.filled[1]) or scores != sorted(scores) or scores[-1] <= scores[0] + ROUNDING:
            continue
        case, score = one[-1]
        drowned = seen.answered and case.what.startswith("wrong") and score >= most - ROUNDING
        if drowned or score > most + 0.1 * (score - least):
            curve = ", ".join(f"{s:.3g}" for s in scores)
            yield finding("length_farm", f"{case.what}: {curve} as it grows; an ordinary completion {most:.3g}.", case)


def untagged(seen: Evidence) -> Iterator[Finding]:
    """A reward that reads the asked form pays the right answer without it as well."""
    for row in [] if any(wrong_beats_right(seen)) else seen.answered_rows:
        right, wrong, behind = row.clean, row.usual_wrong, row.named("right, something behind it")
        bare = row.named("right, no tags, something behind it")
        if not (right and behind and bare and wrong) or right[1] <= wrong[1] + ROUNDING:
            continue
        reads_form = behind[1] >= right[1] - ROUNDING > bare[1]
        for what in ("right, the answer alone", "right, no tags"):
            case, score = row.named(what) or wrong
            if reads_form and score >= right[1] - ROUNDING:
                said = f"{score:g} without the asked form, as in it. Nothing teaches the form then; if you need it, "
                yield finding("untagged", f"{said}pay only what is in it.", case)


def form_outweighs(seen: Evidence) -> Iterator[Finding]:
    """A wrong answer in form gains more over no answer than a right one gains over a wrong one."""
    for row in seen.answered_rows:
        right, wrong, nothing = row.right, row.usual_wrong, row.nothing
        if right and wrong and nothing and wrong[1] - nothing[1] > right[1] - wrong[1] + ROUNDING > ROUNDING:
            scores = f"no answer scores {nothing[1]:g}, a wrong one in form {wrong[1]:g}, a right one {right[1]:g}"
            what = f"{scores}: the form is worth more than being right. Correctness should outweigh everything else."
            yield finding("form_outweighs", what, wrong[0])


def too_strict(seen: Evidence) -> Iterator[Finding]:
    """A right answer in another usual writing earns no more than a wrong one."""
    refused = {}
    for row in seen.rows:
        right, nothing = row.clean, _best(row.of("wrong")) if seen.answered else row.nothing
        if not right or not nothing or nothing[1] >= right[1] - ROUNDING:
            continue
        less = right[1] - SLACK * (right[1] - nothing[1])
        refused |= {case.what: case for case, score in row.of("writing") if score <= nothing[1] + ROUNDING}
        lines = [case for case, score in row.of("clean") if "lines" in case.what and score < less]
        refused |= {f"{case.what}, which earns less": case for case in lines}
    if refused:
        how = "; ".join(what.removeprefix("right, ") for what in refused)
        yield finding("too_strict", f"nothing for a right answer {how}.", next(iter(refused.values())))


#: All rules; a probe applies each.
RULES = [
    dead,
    wrong_beats_right,
    pays_missing_answer,
    pays_abstaining,
    none_for_wrong,
    farmable,
    length_farm,
    untagged,
    form_outweighs,
    too_strict,
]
