"""The rules that judge a reward: evidence in, findings out, one function per fault.

Only the first finding of each rule counts.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from ..findings import Finding
from .answers import PLAIN_WRONG
from .matrix import Case
from .report import finding

#: Smaller differences are rounding errors.
ROUNDING = 1e-9
#: Scores of wrong answers may differ (by length, say) by this share of the gap to a correct answer.
SLACK = 0.02

Scored = tuple[Case, float]


class Row:
    """The scores of one dataset row's completions. All attributes except ``scored`` leave out scores of None."""

    def __init__(self, scored: list[tuple[Case, float | None]]):
        self.scored = scored
        self.pairs = [(case, score) for case, score in scored if score is not None]
        self.clean = self.named("correct, in the requested format")
        self.right = _worst(self.of("clean"))
        self.nothing = self.named("no tags, no answer")
        wrongs = [pair for pair in self.of("wrong") if pair[0].what != "no tags, wrong"]  # in the requested format
        self.most_for_wrong = max([0.0, *(score for _, score in wrongs)])
        plain = sorted(_plain(wrongs), key=lambda pair: pair[1])
        self.usual_wrong = plain[len(plain) // 2] if plain else None

    def of(self, *roles: str) -> list[Scored]:
        """The completions with these roles."""
        return [pair for pair in self.pairs if pair[0].role in roles]

    def named(self, what: str) -> Scored | None:
        """The completion of this name, if there is one."""
        return next((pair for pair in self.pairs if pair[0].what == what), None)


@dataclass
class Evidence:
    """Everything the lab observed about one reward."""

    reward: str
    grouped: bool  # whether it compares the completions of a group
    found: list[Finding]
    answered: bool = False  # whether its scores should depend on the answer
    scored: list[tuple[Case, float | None]] = field(default_factory=list)
    without_gold: list[tuple[Case, float, float, str]] = field(default_factory=list)  # score with gold, without
    elsewhere: Scored | None = None  # the best-scoring wrong answer in any format
    filled: list[list[tuple[Case, float | None]]] = field(default_factory=list)  # series of growing filler

    def add(self, code: str, what: str, case: Case | None = None) -> None:
        """Add a finding that needs no rule."""
        self.found.append(finding(code, what, case))

    def found_a(self, *codes: str) -> bool:
        """Whether a finding has one of these codes."""
        return any(found.code in codes for found in self.found)

    def judge(self) -> None:
        """Apply all rules."""
        self.found += [found for rule in RULES for found in islice(rule(self), 1)]

    @property
    def rows(self) -> list[Row]:
        """The dataset rows."""
        numbers = sorted({case.number for case, _ in self.scored})
        return [Row([pair for pair in self.scored if pair[0].number == number]) for number in numbers]

    @property
    def answered_rows(self) -> list[Row]:
        """The dataset rows, if the reward is tested with answers."""
        return self.rows if self.answered else []


def _plain(wrongs: list[Scored]) -> list[Scored]:
    """Wrong answers that differ only in their distance from the gold answer; all if there are none."""
    return [pair for pair in wrongs if pair[0].what in PLAIN_WRONG] or wrongs


def _best(pairs: list[Scored]) -> Scored | None:
    return max(pairs, key=lambda pair: pair[1], default=None)


def _worst(pairs: list[Scored]) -> Scored | None:
    return min(pairs, key=lambda pair: pair[1], default=None)


def _how(case: Case) -> str:
    """How a correct completion is written, such as "in the requested format"."""
    return case.what.removeprefix("correct, ")


def dead(seen: Evidence) -> Iterator[Finding]:
    """All completions have the same score, or all completions with a line break in the reasoning do."""
    values = {score for _, score in seen.scored}
    if len(values) == 1 and len(seen.scored) > 1:
        what = f"all {len(seen.scored)} completions score {values.pop()}."
        fix = (
            "If the reward expects a special format, pass tags=…. If it compares with gold answers, pass answers=…. "
            "If it looks for something else, pass examples=…."
        )
        yield finding("dead", what, seen.scored[0][0], fix)
    elif not seen.answered and seen.scored:  # a format that earns something on one line and nothing on several
        row = seen.rows[0]
        one, several, none = row.clean, row.named("correct, reasoning on several lines"), row.nothing
        if one and several and none and several[1] <= none[1] + ROUNDING < one[1]:
            what = f"a completion scores {one[1]:g} on one line and {several[1]:g} if its reasoning has a line break."
            hint = "Models write several lines. Does a regular expression lack re.DOTALL?"
            yield finding("dead", f"{what} {hint}", several[0])


def wrong_beats_right(seen: Evidence) -> Iterator[Finding]:
    """A wrong answer scores as much as a correct one, or earns something for being close."""
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
    hint = " On one line it scores more. Does a regular expression lack re.DOTALL?" if lines else ""
    paid = f"a wrong answer ({wrong[0].what}) scores {wrong[1]:g}"
    what = f"{paid}, a correct one ({_how(right[0])}) scores {right[1]:g}.{hint}"
    yield finding("wrong_beats_right", what, right[0] if lines else wrong[0])


def _preferred(row: Row) -> Iterator[Finding]:
    """Some wrong numbers score more than others, perhaps more than a correct answer in another notation."""
    plain = [pair for pair in row.of("wrong") if pair[0].what in PLAIN_WRONG]
    right, worst, best = row.right, _worst(plain), _best(plain)
    if not (right and worst) or best[1] - worst[1] <= SLACK * (right[1] - worst[1]):
        return
    written = _worst(row.of("writing"))
    less = written and written[1] < best[1] - ROUNDING
    more = f", a correct answer ({_how(written[0])}) only {written[1]:g}" if less else ""
    paid = f"{best[0].what} scores {best[1]:g}, {worst[0].what} {worst[1]:g}{more}"
    what = f"some wrong answers score more than others: {paid}. "
    what += "In a group without a correct answer, the policy is trained toward the best-scoring wrong one."
    yield finding("wrong_beats_right", what, best[0])


def _beaten_elsewhere(seen: Evidence) -> Iterator[Finding]:
    """A wrong answer in another format scores as much as a correct one in its best format."""
    right = _best(seen.rows[0].of("clean"))
    if right and seen.elsewhere and seen.elsewhere[1] >= right[1] - ROUNDING:
        case, score = seen.elsewhere
        what = f"a wrong answer in another format scores {score:g}, a correct one ({_how(right[0])}) {right[1]:g}."
        yield finding("wrong_beats_right", what, case)


def pays_missing_answer(seen: Evidence) -> Iterator[Finding]:
    """A missing answer scores more than a wrong one, or earns something if the gold answer is missing too."""
    for row in seen.answered_rows:
        case, score = _best(row.of("missing")) or (None, 0.0)
        if score > row.most_for_wrong + ROUNDING:
            what = f"a missing answer ({case.what}) scores {score:g}, a wrong answer {row.most_for_wrong:g}."
            yield finding("pays_missing_answer", what, case)
    for case, with_gold, without, gold in seen.without_gold:
        if without > max(0.0, with_gold) + ROUNDING:
            what = f"a missing answer ({case.what}) scores {without:g} if the gold answer is {gold}."
            yield finding("pays_missing_answer", what, case)


def pays_abstaining(seen: Evidence) -> Iterator[Finding]:
    """A missing answer loses less than a wrong one: while most answers are wrong, silence is the best policy."""
    for row in seen.answered_rows:
        right, wrong, nothing = row.right, row.usual_wrong, _best(row.of("missing"))
        if not (right and wrong and nothing) or nothing[1] > row.most_for_wrong + ROUNDING:
            continue
        if nothing[1] > wrong[1] + 2 * SLACK * (right[1] - wrong[1]) + ROUNDING:
            what = f"a missing answer ({nothing[0].what}) scores {nothing[1]:g}, a wrong one {wrong[1]:g}. "
            what += "While most answers are wrong, the policy learns not to answer. Score a missing answer no higher."
            yield finding("pays_abstaining", what, nothing[0])


def none_for_wrong(seen: Evidence) -> Iterator[Finding]:
    """Wrong answers score None. TRL leaves them out, so all remaining completions of a group score the same."""
    for row in seen.answered_rows:
        wrong = _plain([pair for pair in row.scored if pair[0].role == "wrong"])
        if row.right and wrong and all(score is None for _, score in wrong):
            what = "every wrong answer scores None. TRL leaves such completions out, so a group contains only correct "
            what += "answers and all advantages are zero. Score a wrong answer 0.0; None is for rows that the reward "
            what += "does not apply to."
            yield finding("none_for_wrong", what, wrong[0][0])


def farmable(seen: Evidence) -> Iterator[Finding]:
    """Junk, repetition or stuffing scores more than the best clean completion of any common length."""
    for row in seen.rows:
        clean = _best(row.of("clean", "long"))
        nothing = [pair for pair in row.of("odd") if pair[0].what in ("an empty completion", "only whitespace")]
        attack = _best([*row.of("attack", "missing"), *([] if seen.grouped else nothing)])
        if clean and attack and attack[1] > clean[1] + ROUNDING:
            what = f"junk ({attack[0].what}) scores {attack[1]:g}, the best clean completion {clean[1]:g}."
            yield finding("farmable", what, attack[0])


def length_farm(seen: Evidence) -> Iterator[Finding]:
    """More text scores more, whatever it says."""
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
            what = f"a completion ({case.what}) scores {curve} as the filler grows, an ordinary one {most:.3g}."
            yield finding("length_farm", what, case)


def untagged(seen: Evidence) -> Iterator[Finding]:
    """The reward reads the requested format but gives a correct answer without it the full score."""
    for row in [] if any(wrong_beats_right(seen)) else seen.answered_rows:
        right, wrong, behind = row.clean, row.usual_wrong, row.named("correct, text after it")
        bare = row.named("correct, no tags, text after it")
        if not (right and behind and bare and wrong) or right[1] <= wrong[1] + ROUNDING:
            continue
        reads_form = behind[1] >= right[1] - ROUNDING > bare[1]
        for what in ("correct, the answer alone", "correct, no tags"):
            case, score = row.named(what) or wrong
            if reads_form and score >= right[1] - ROUNDING:
                said = f"a correct answer scores {score:g} with or without the requested format, so the policy does "
                said += "not learn the format. If you need the format, score only answers in it."
                yield finding("untagged", said, case)


def form_outweighs(seen: Evidence) -> Iterator[Finding]:
    """A formatted wrong answer gains more over no answer than a correct answer gains over a wrong one."""
    for row in seen.answered_rows:
        right, wrong, nothing = row.right, row.usual_wrong, row.nothing
        if right and wrong and nothing and wrong[1] - nothing[1] > right[1] - wrong[1] + ROUNDING > ROUNDING:
            scores = f"no answer scores {nothing[1]:g}, a formatted wrong one {wrong[1]:g}, a correct one {right[1]:g}"
            what = f"{scores}. The format is worth more than correctness, which should outweigh everything else."
            yield finding("form_outweighs", what, wrong[0])


def too_strict(seen: Evidence) -> Iterator[Finding]:
    """A correct answer in another common notation scores no more than a wrong one."""
    refused = {}
    for row in seen.rows:
        right, nothing = row.clean, _best(row.of("wrong")) if seen.answered else row.nothing
        if not right or not nothing or nothing[1] >= right[1] - ROUNDING:
            continue
        less = right[1] - SLACK * (right[1] - nothing[1])
        refused |= {case.what: case for case, score in row.of("writing") if score <= nothing[1] + ROUNDING}
        lines = [case for case, score in row.of("clean") if "lines" in case.what and score < less]
        refused |= {f"{case.what}, which scores less": case for case in lines}
    if refused:
        how = "; ".join(what.removeprefix("correct, ") for what in refused)
        what = f"a correct answer earns nothing in these notations: {how}."
        yield finding("too_strict", what, next(iter(refused.values())))


#: All rules, in the order in which a probe applies them.
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
