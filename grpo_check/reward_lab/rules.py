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
    def golds(self) -> list[int]:
        """The numbers of the dataset rows."""
        return sorted({case.number for case, _ in self.scored})

    def of(self, number: int, *roles: str) -> list[Scored]:
        """Cases of one dataset row in certain roles, with their scores; those scored None are left out."""
        return [(c, s) for c, s in self.scored if c.number == number and c.role in roles and s is not None]

    def named(self, number: int, what: str) -> Scored | None:
        """One case of a dataset row, with its score."""
        return next(((c, s) for c, s in self.scored if c.number == number and c.what == what and s is not None), None)

    def nothing(self, number: int) -> Scored | None:
        """The completion without tags and answer."""
        return self.named(number, "no tags, no answer")

    def right(self, number: int) -> Scored | None:
        """The clean completion that scores least."""
        return _worst(self.of(number, "clean"))

    def wrongs(self, number: int) -> list[Scored]:
        """Wrong answers in the asked form."""
        return [pair for pair in self.of(number, "wrong") if pair[0].what != "no tags, wrong"]

    def usual_wrong(self, number: int) -> Scored | None:
        """The wrong answer in the asked form that scores in the middle of them."""
        wrongs = self.wrongs(number)
        plain = [pair for pair in wrongs if pair[0].what in PLAIN_WRONG] or wrongs
        return sorted(plain, key=lambda pair: pair[1])[len(plain) // 2] if plain else None

    def most_for_wrong(self, number: int) -> float:
        """What a wrong answer earns at most, at least nothing."""
        return max([0.0, *(score for _, score in self.wrongs(number))])


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
        number = seen.golds[0]
        one, several = (
            seen.named(number, "right, in the asked form"),
            seen.named(number, "right, reasoning on several lines"),
        )
        none = seen.nothing(number)
        if one and several and none and several[1] <= none[1] + ROUNDING < one[1]:
            what = f"{several[1]:g} as soon as the reasoning has a line break, {one[1]:g} on one line."
            hint = "Models write several lines: does a regular expression lack re.DOTALL?"
            yield finding("dead", f"{what} {hint}", several[0])


def wrong_beats_right(seen: Evidence) -> Iterator[Finding]:
    """A wrong answer scores as much as a right one, or is paid for being near."""
    if not seen.answered or len({score for _, score in seen.scored}) == 1:
        return
    for number in seen.golds:
        yield from _beaten(seen, number)
        yield from _preferred(seen, number)
        yield from _beaten_elsewhere(seen)


def _beaten(seen: Evidence, number: int) -> Iterator[Finding]:
    right, wrong = seen.right(number), _best(seen.of(number, "wrong"))
    if not right or not wrong or wrong[1] < right[1] - ROUNDING:
        return
    lines = "several lines" in right[0].what and _best(seen.of(number, "clean"))[1] > wrong[1] + ROUNDING
    hint = " On one line it is paid: does a regular expression lack re.DOTALL?" if lines else ""
    paid = f"a wrong answer ({wrong[0].what}) scores {wrong[1]:g}"
    what = f"{paid}, a right one ({_how(right[0])}) scores {right[1]:g}.{hint}"
    yield finding("wrong_beats_right", what, right[0] if lines else wrong[0])


def _preferred(seen: Evidence, number: int) -> Iterator[Finding]:
    """Some wrong numbers earn more than others: nearness is paid, and beats a right answer in another writing."""
    plain = [pair for pair in seen.of(number, "wrong") if pair[0].what in PLAIN_WRONG]
    right, worst, best = seen.right(number), _worst(plain), _best(plain)
    if not (right and worst) or best[1] - worst[1] <= SLACK * (right[1] - worst[1]):
        return
    written = _worst(seen.of(number, "writing"))
    less = written and written[1] < best[1] - ROUNDING
    more = f", and a right one ({_how(written[0])}) only {written[1]:g}" if less else ""
    paid = f"{best[0].what} scores {best[1]:g}, {worst[0].what} {worst[1]:g}{more}"
    what = f"some wrong answers are better than others: {paid}. "
    what += "In a group without a right answer the policy is then trained towards that wrong one."
    yield finding("wrong_beats_right", what, best[0])


def _beaten_elsewhere(seen: Evidence) -> Iterator[Finding]:
    """A wrong answer in another form earns as much as a right one in the form that pays it best."""
    right = _best(seen.of(seen.golds[0], "clean"))
    if right and seen.elsewhere and seen.elsewhere[1] >= right[1] - ROUNDING:
        case, score = seen.elsewhere
        what = f"a wrong answer in another form scores {score:g}, a right one ({_how(right[0])}) {right[1]:g}."
        yield finding("wrong_beats_right", what, case)


def pays_missing_answer(seen: Evidence) -> Iterator[Finding]:
    """No answer earns something, and more than a wrong one; or earns something where the gold answer is missing."""
    for number in seen.golds if seen.answered else []:
        most = seen.most_for_wrong(number)
        case, score = _best(seen.of(number, "missing")) or (None, 0.0)
        if score > most + ROUNDING:
            what = f"no answer ({case.what}) scores {score:g}, a wrong answer {most:g}."
            yield finding("pays_missing_answer", what, case)
    for case, with_gold, without, gold in seen.without_gold:
        if without > max(0.0, with_gold) + ROUNDING:
            what = f"no answer ({case.what}) scores {without:g} where the gold answer is {gold}."
            yield finding("pays_missing_answer", what, case)


def pays_abstaining(seen: Evidence) -> Iterator[Finding]:
    """No answer loses less than a wrong one: as long as most answers are wrong, silence is the best policy."""
    for number in seen.golds if seen.answered else []:
        right, wrong, nothing = seen.right(number), seen.usual_wrong(number), _best(seen.of(number, "missing"))
        if not (right and wrong and nothing) or nothing[1] > seen.most_for_wrong(number) + ROUNDING:
            continue
        if nothing[1] > wrong[1] + 2 * SLACK * (right[1] - wrong[1]) + ROUNDING:
            what = f"no answer ({nothing[0].what}) scores {nothing[1]:g}, a wrong one ({wrong[0].what}) {wrong[1]:g}. "
            what += "While most answers are wrong, the policy learns not to answer. Never pay silence more than that."
            yield finding("pays_abstaining", what, nothing[0])


def none_for_wrong(seen: Evidence) -> Iterator[Finding]:
    """Right answers have a score and wrong ones none: TRL leaves those out, and all that is left scores the same."""
    for number in seen.golds if seen.answered else []:
        wrong = [(case, score) for case, score in seen.scored if case.number == number and case.role == "wrong"]
        wrong = [pair for pair in wrong if pair[0].what in PLAIN_WRONG] or wrong
        if seen.right(number) and wrong and all(score is None for _, score in wrong):
            what = "every wrong answer scores None. TRL leaves such completions out, so a group holds only right "
            what += "answers, whose advantages are all zero. Give a wrong answer 0.0; None is for rows that it does "
            what += "not judge."
            yield finding("none_for_wrong", what, wrong[0][0])


def farmable(seen: Evidence) -> Iterator[Finding]:
    """Junk, repetition or stuffing scores more than the best clean completion of any usual length."""
    for number in seen.golds:
        clean = _best(seen.of(number, "clean", "long"))
        nothing = [pair for pair in seen.of(number, "odd") if pair[0].what in ("nothing", "white space")]
        attack = _best([*seen.of(number, "attack", "missing"), *([] if seen.grouped else nothing)])
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
    if not seen.answered or any(wrong_beats_right(seen)):
        return
    for number in seen.golds:
        right, behind = seen.named(number, "right, in the asked form"), seen.named(number, "right, something behind it")
        bare, wrong = seen.named(number, "right, no tags, something behind it"), seen.usual_wrong(number)
        if not (right and behind and bare and wrong) or right[1] <= wrong[1] + ROUNDING:
            continue
        reads_form = behind[1] >= right[1] - ROUNDING > bare[1]
        for what in ("right, the answer alone", "right, no tags"):
            case, score = seen.named(number, what) or wrong
            if reads_form and score >= right[1] - ROUNDING:
                said = f"{score:g} without the asked form, as in it. Nothing teaches the form then; if you need it, "
                yield finding("untagged", f"{said}pay only what is in it.", case)


def form_outweighs(seen: Evidence) -> Iterator[Finding]:
    """A wrong answer in form gains more over no answer than a right one gains over a wrong one."""
    for number in seen.golds if seen.answered else []:
        right, wrong, nothing = seen.right(number), seen.usual_wrong(number), seen.nothing(number)
        if right and wrong and nothing and wrong[1] - nothing[1] > right[1] - wrong[1] + ROUNDING > ROUNDING:
            scores = f"no answer scores {nothing[1]:g}, a wrong one in form {wrong[1]:g}, a right one {right[1]:g}"
            what = f"{scores}: the form is worth more than being right. Correctness should outweigh everything else."
            yield finding("form_outweighs", what, wrong[0])


def too_strict(seen: Evidence) -> Iterator[Finding]:
    """A right answer in another usual writing earns no more than a wrong one."""
    refused = {}
    for number in seen.golds:
        right = seen.named(number, "right, in the asked form")
        nothing = _best(seen.of(number, "wrong")) if seen.answered else seen.nothing(number)
        if not right or not nothing or nothing[1] >= right[1] - ROUNDING:
            continue
        less = right[1] - SLACK * (right[1] - nothing[1])
        refused |= {case.what: case for case, score in seen.of(number, "writing") if score <= nothing[1] + ROUNDING}
        lines = [case for case, score in seen.of(number, "clean") if "lines" in case.what and score < less]
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
