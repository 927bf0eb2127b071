"""The rules by which a reward is judged: evidence in, findings out, one function for each fault."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from .answers import PLAIN_WRONG
from .calling import Row
from .matrix import Case
from .report import Finding

#: Differences below this are rounding.
ROUNDING = 1e-9
#: Wrong answers may differ in score (by their length, say) by this share of what a right one earns more.
SLACK = 0.02


@dataclass
class Evidence:
    """What was seen of one reward."""

    reward: str
    answered: bool
    rows: list[Row] = field(default_factory=list)
    scores: list[float | None] = field(default_factory=list)
    failures: list[tuple[str, str, Case]] = field(default_factory=list)  # code, message, case
    unlike: list[tuple[Case, float | None, float | None, str]] = field(default_factory=list)  # by neighbours
    without_gold: list[tuple[Case, float, float, str]] = field(default_factory=list)  # with the gold, without
    kinds: list[tuple[str, str]] = field(default_factory=list)  # code, what happens
    slow: list[tuple[str, Case | None]] = field(default_factory=list)
    growth: tuple[str, Case, bool] | None = None  # sentence, case, whether it hangs
    changed: str = ""  # the argument that the reward changed
    ran: Case | None = None  # whose text the reward executed
    elsewhere: tuple[Case, float] | None = None  # the wrong answer that earns most, in whatever form
    grouped: bool = False  # whether it compares a group's completions
    refused: list[str] = field(default_factory=list)  # answers of the lab's own that it does not take as right
    filled: list[list[tuple[Case, float]]] = field(default_factory=list)  # series of growing filler

    def golds(self) -> list[int]:
        """The numbers of the dataset rows."""
        return sorted({row.number for row in self.rows})

    def of(self, number: int, *roles: str) -> list[tuple[Case, float]]:
        """Cases of one dataset row in certain roles, with their scores; those scored None are left out."""
        pairs = zip(self.rows, self.scores, strict=True)
        return [(r.case, s) for r, s in pairs if r.number == number and r.case.role in roles and s is not None]

    def answerless(self, number: int) -> tuple[Case, float] | None:
        """The completion without tags and answer, with its score."""
        return _best([pair for pair in self.of(number, "odd", "missing") if pair[0].what == "no tags, no answer"])


def _best(pairs: list[tuple[Case, float]]) -> tuple[Case, float] | None:
    return max(pairs, key=lambda pair: pair[1], default=None)


def _worst(pairs: list[tuple[Case, float]]) -> tuple[Case, float] | None:
    return min(pairs, key=lambda pair: pair[1], default=None)


def _how(case: Case) -> str:
    """How a right completion is written, without the word for it."""
    return case.what.removeprefix("right, ")


def breaks_contract(seen: Evidence) -> Iterator[Finding]:
    """``raises``, ``wrong_length``, ``not_finite``: one finding for each different message."""
    for code in ("raises", "wrong_length", "not_finite"):
        messages = {}
        for found, message, case in seen.failures:
            if found == code:
                messages.setdefault(message.split("\n")[0], case)
        for message, case in list(messages.items())[:3]:
            shown = "(a chat message without content)" if case.text is None else case.text
            yield Finding(code, f"{message} (on: {case.what}).", shown)


def dead(seen: Evidence) -> Iterator[Finding]:
    """The same score for everything, or for every completion whose reasoning has a line break."""
    values = set(seen.scores)
    if len(values) == 1 and len(seen.scores) > 1:
        value = values.pop()
        yield Finding(
            "dead",
            f"every one of {len(seen.scores)} completions scores {value}. If it wants a form of its own, give tags=…; "
            "if it needs right answers to pay anything, answers=…; if it reacts to something else, examples=….",
            seen.rows[0].case.text,
            value,
        )
    elif not seen.answered and seen.rows:
        yield from _dead_on_lines(seen)


def _dead_on_lines(seen: Evidence) -> Iterator[Finding]:
    """A form reward that pays the form on one line and not on several: mostly a missing DOTALL."""
    number = seen.golds()[0]
    clean = {case.what: (case, score) for case, score in seen.of(number, "clean")}
    none = seen.answerless(number)
    one, several = clean.get("right, in the asked form"), clean.get("right, reasoning on several lines")
    if one and several and none and several[1] <= none[1] + ROUNDING < one[1]:
        yield Finding(
            "dead",
            f"{several[1]:g} as soon as the reasoning has a line break, {one[1]:g} on one line. Models write several "
            "lines: does a regular expression lack re.DOTALL?",
            several[0].text,
            several[1],
        )


def wrong_beats_right(seen: Evidence) -> Iterator[Finding]:
    """A wrong answer scores as much as a right one, or is paid for being near."""
    if not seen.answered or len(set(seen.scores)) == 1:
        return
    for number in seen.golds():
        found = _beaten(seen, number) or _preferred(seen, number) or _beaten_elsewhere(seen)
        if found:
            yield found
            return


def _beaten(seen: Evidence, number: int) -> Finding | None:
    right, wrong = _worst(seen.of(number, "clean")), _best(seen.of(number, "wrong"))
    if not right or not wrong or wrong[1] < right[1] - ROUNDING:
        return None
    lines = "several lines" in right[0].what and _best(seen.of(number, "clean"))[1] > wrong[1] + ROUNDING
    hint = " On one line it is paid: does a regular expression lack re.DOTALL?" if lines else ""
    paid = f"a wrong answer ({wrong[0].what}) scores {wrong[1]:g}"
    sentence = f"{paid}, a right one ({_how(right[0])}) scores {right[1]:g}.{hint}"
    return Finding("wrong_beats_right", sentence, right[0].text if lines else wrong[0].text, wrong[1])


def _beaten_elsewhere(seen: Evidence) -> Finding | None:
    """A wrong answer in another form earns as much as a right one in the form that pays it best."""
    right = _best(seen.of(seen.golds()[0], "clean"))
    if not right or not seen.elsewhere or seen.elsewhere[1] < right[1] - ROUNDING:
        return None
    case, score = seen.elsewhere
    sentence = f"a wrong answer in another form scores {score:g}, a right one ({_how(right[0])}) {right[1]:g}."
    return Finding("wrong_beats_right", sentence, case.text, score)


def _preferred(seen: Evidence, number: int) -> Finding | None:
    """Wrong numbers are told apart: nearness is paid, and beats a right answer in another writing."""
    plain = [pair for pair in seen.of(number, "wrong") if pair[0].what in PLAIN_WRONG]
    right, worst, best = _worst(seen.of(number, "clean")), _worst(plain), _best(plain)
    if not (right and worst) or best[1] - worst[1] <= SLACK * (right[1] - worst[1]):
        return None
    written = _worst(seen.of(number, "writing"))
    less = written and written[1] < best[1] - ROUNDING
    more = f", and a right one ({_how(written[0])}) only {written[1]:g}" if less else ""
    sentence = (
        f"some wrong answers are better than others: {best[0].what} scores {best[1]:g}, {worst[0].what} "
        f"{worst[1]:g}{more}. "
        "In a group without a right answer the policy is then trained towards that wrong one."
    )
    return Finding("wrong_beats_right", sentence, best[0].text, best[1])


def _most_for_wrong(seen: Evidence, number: int) -> float:
    return max([0.0, *(score for case, score in seen.of(number, "wrong") if case.what != "no tags, wrong")])


def pays_missing_answer(seen: Evidence) -> Iterator[Finding]:
    """No answer earns something, and more than a wrong one; or earns something for want of a gold answer."""
    if not seen.answered:
        return
    for number in seen.golds():
        most = _most_for_wrong(seen, number)
        case, score = _best(seen.of(number, "missing")) or (None, 0.0)
        if score > most + ROUNDING:
            sentence = f"no answer ({case.what}) scores {score:g}, a wrong answer {most:g}."
            yield Finding("pays_missing_answer", sentence, case.text, score)
            return
    for case, with_gold, without, gold in seen.without_gold:
        if without > max(0.0, with_gold) + ROUNDING:
            sentence = f"no answer ({case.what}) scores {without:g} where the gold answer is {gold}."
            yield Finding("pays_missing_answer", sentence, case.text, without)
            return


def pays_abstaining(seen: Evidence) -> Iterator[Finding]:
    """No answer loses less than a wrong one: as long as most answers are wrong, silence is the best policy."""
    for number in seen.golds() if seen.answered else []:
        right, wrong, nothing = (
            _worst(seen.of(number, "clean")),
            _usual_wrong(seen, number),
            _best(_missing(seen, number)),
        )
        if not (right and wrong and nothing) or nothing[1] > _most_for_wrong(seen, number) + ROUNDING:
            continue
        if nothing[1] > wrong[1] + 2 * SLACK * (right[1] - wrong[1]) + ROUNDING:
            sentence = (
                f"no answer ({nothing[0].what}) scores {nothing[1]:g}, a wrong one ({wrong[0].what}) {wrong[1]:g}. "
                "While most answers are wrong, the policy learns not to answer. Never pay silence more than that."
            )
            yield Finding("pays_abstaining", sentence, nothing[0].text, nothing[1])
            return


def _missing(seen: Evidence, number: int) -> list[tuple[Case, float]]:
    return seen.of(number, "missing")


def _usual_wrong(seen: Evidence, number: int) -> tuple[Case, float] | None:
    """The wrong answer in the asked form that scores in the middle of them."""
    plain = [pair for pair in seen.of(number, "wrong") if pair[0].what != "no tags, wrong"]
    plain = [pair for pair in plain if pair[0].what in PLAIN_WRONG] or plain
    return sorted(plain, key=lambda pair: pair[1])[len(plain) // 2] if plain else None


def none_for_wrong(seen: Evidence) -> Iterator[Finding]:
    """Right answers have a score and wrong ones none: TRL leaves those out, and all that is left scores the same."""
    for number in seen.golds() if seen.answered else []:
        rows = [(row.case, s) for row, s in zip(seen.rows, seen.scores, strict=True) if row.number == number]
        wrong = [(case, score) for case, score in rows if case.role == "wrong"]
        wrong = [pair for pair in wrong if pair[0].what in PLAIN_WRONG] or wrong
        if seen.of(number, "clean") and wrong and all(score is None for _, score in wrong):
            sentence = (
                "every wrong answer scores None. TRL leaves such completions out, so a group holds only right answers, "
                "whose advantages are all zero. Give a wrong answer 0.0; None is for rows that it does not judge."
            )
            yield Finding("none_for_wrong", sentence, wrong[0][0].text)
            return


def length_farm(seen: Evidence) -> Iterator[Finding]:
    """More text earns more, whatever it says."""
    if not seen.filled or not seen.filled[0]:
        return
    plain, *series = [[(case, score) for case, score in one if score is not None] for one in seen.filled]
    least = min((score for one in [plain, *series] for _, score in one), default=0.0)
    most = max((score for _, score in plain), default=0.0)
    for one in series:
        scores = [score for _, score in one]
        if len(scores) < len(seen.filled[1]) or scores != sorted(scores) or scores[-1] <= scores[0] + ROUNDING:
            continue
        if scores[-1] > most + 0.1 * (scores[-1] - least) or (seen.answered and _drowned(seen, one, most)):
            what, score = one[-1][0].what, scores[-1]
            sentence = (
                f"{what}: {', '.join(f'{s:.3g}' for s in scores)} as it grows; an ordinary completion {most:.3g}."
            )
            yield Finding("length_farm", sentence, one[-1][0].text, score)
            return


def _drowned(seen: Evidence, one: list[tuple[Case, float]], right: float) -> bool:
    """Whether filler lifts a wrong answer to where a right one is."""
    return one[-1][0].what.startswith("wrong") and one[-1][1] >= right - ROUNDING


def untagged(seen: Evidence) -> Iterator[Finding]:
    """A reward that reads the asked form pays the right answer without it as well."""
    if not seen.answered or any(wrong_beats_right(seen)):
        return
    for number in seen.golds():
        scores = {case.what: (case, score) for case, score in seen.of(number, "clean", "odd", "wrong")}
        right = scores.get("right, in the asked form")
        behind, bare = scores.get("right, something behind it"), scores.get("right, no tags, something behind it")
        wrong = _usual_wrong(seen, number)
        if not (right and behind and bare and wrong) or right[1] <= wrong[1] + ROUNDING:
            continue
        reads_form = behind[1] >= right[1] - ROUNDING > bare[1]
        for what in ("right, the answer alone", "right, no tags"):
            case, score = scores.get(what, (None, wrong[1]))
            if reads_form and score >= right[1] - ROUNDING:
                sentence = (
                    f"{score:g} without the asked form, as in it. Nothing teaches the form then; if you need it, pay "
                    "only what is in it."
                )
                yield Finding("untagged", sentence, case.text, score)
                return


def form_outweighs(seen: Evidence) -> Iterator[Finding]:
    """A wrong answer in form gains more over no answer than a right one gains over a wrong one."""
    for number in seen.golds() if seen.answered else []:
        right, wrong, nothing = _worst(seen.of(number, "clean")), _usual_wrong(seen, number), seen.answerless(number)
        if right and wrong and nothing and wrong[1] - nothing[1] > right[1] - wrong[1] + ROUNDING > ROUNDING:
            sentence = (
                f"no answer scores {nothing[1]:g}, a wrong one in form {wrong[1]:g}, a right one {right[1]:g}: the "
                "form is worth more than being right. Correctness should outweigh everything else."
            )
            yield Finding("form_outweighs", sentence, wrong[0].text, wrong[1])
            return


def unbounded_time(seen: Evidence) -> Iterator[Finding]:
    """A text that a model can write costs a time without bound."""
    if seen.growth and seen.growth[-1]:
        yield Finding("unbounded_time", seen.growth[0], seen.growth[1].text)


def changes_inputs(seen: Evidence) -> Iterator[Finding]:
    """The lists and messages that a reward gets are also those of the next reward."""
    if seen.changed:
        yield Finding("changes_inputs", f"it changes `{seen.changed}`, which the next reward gets too; work on a copy.")


def runs_model_text(seen: Evidence) -> Iterator[Finding]:
    """The text of a completion was executed."""
    if seen.ran:
        sentence = "it executes what the model writes (eval or exec). Parse the answer, or run it in a sandbox."
        yield Finding("runs_model_text", sentence, seen.ran.text)


def farmable(seen: Evidence) -> Iterator[Finding]:
    """Junk, repetition or stuffing scores more than the best clean completion of any usual length."""
    for number in seen.golds():
        clean = _best(seen.of(number, "clean", "long"))
        nothing = [pair for pair in seen.of(number, "odd") if pair[0].what in ("nothing", "white space")]
        attack = _best([*seen.of(number, "attack", "missing"), *([] if seen.grouped else nothing)])
        if clean and attack and attack[1] > clean[1] + ROUNDING:
            sentence = f"junk ({attack[0].what}) scores {attack[1]:g}, the best clean completion {clean[1]:g}."
            yield Finding("farmable", sentence, attack[0].text, attack[1])
            return


def order_dependent(seen: Evidence) -> Iterator[Finding]:
    """A score changes with the neighbours, or from one call to the next."""
    for case, first, second, how in seen.unlike[:1]:
        sentence = f"one completion ({case.what}) scores {first} among the others and {second} {how}."
        yield Finding("order_dependent", sentence, case.text, second)


def one_kind_only(seen: Evidence) -> Iterator[Finding]:
    """``chat_only``, ``string_only``."""
    for code, what in seen.kinds:
        yield Finding(code, what)


def too_strict(seen: Evidence) -> Iterator[Finding]:
    """A right answer in another usual writing earns no more than a wrong one."""
    if seen.refused:
        some = ", ".join(seen.refused)
        sentence = (
            f"nothing for a right answer {some}, which is left out. If your task has such answers, give answers=…."
        )
        yield Finding("too_strict", sentence)
    refused = {}
    for number in seen.golds():
        right = _best([pair for pair in seen.of(number, "clean") if pair[0].what == "right, in the asked form"])
        nothing = _best(seen.of(number, "wrong")) if seen.answered else seen.answerless(number)
        if not right or not nothing or nothing[1] >= right[1] - ROUNDING:
            continue
        refused |= {c.what: (c, s) for c, s in seen.of(number, "writing") if s <= nothing[1] + ROUNDING}
        less = right[1] - SLACK * (right[1] - nothing[1])
        refused |= {
            f"{c.what}, which earns less": (c, s) for c, s in seen.of(number, "clean") if "lines" in c.what and s < less
        }
    if refused:
        case, score = next(iter(refused.values()))
        how = "; ".join(what.removeprefix("right, ") for what in refused)
        yield Finding("too_strict", f"nothing for a right answer {how}.", case.text, score)


def slow(seen: Evidence) -> Iterator[Finding]:
    """Too much time for ordinary completions, or for a hostile one."""
    grows = [seen.growth[:2]] if seen.growth and not seen.growth[-1] else []
    for sentence, case in [*seen.slow, *grows]:
        yield Finding("slow", sentence, case.text if case else None)


#: All rules; a probe applies each.
RULES = [
    breaks_contract,
    unbounded_time,
    changes_inputs,
    runs_model_text,
    dead,
    wrong_beats_right,
    pays_missing_answer,
    pays_abstaining,
    none_for_wrong,
    farmable,
    length_farm,
    order_dependent,
    one_kind_only,
    untagged,
    form_outweighs,
    too_strict,
    slow,
]
