"""The rules that judge a reward: a trial in, findings out, one rule per fault.

A finding is an error if a policy would learn something wrong from it or the run would stop, a warning if its fix
changes what a completion earns that a policy could write, and otherwise a note: a fact about the reward.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ...findings import Finding
from ...rule import Rule, adding_to, found
from ..matrix import Case
from ..report import shown
from ..signatures import columns_read
from ..trying.discovery import texts_in_code
from ..trying.trial import OBSERVED, ROUNDING, Scored, Trial
from . import examples
from .counts import SLACK
from .rows import Row, alike, answered_rows, best, near, row_of_example, rows_of, worst

#: Wrong numbers that no tolerance reaches.
FAR = ("far below", "far above", "another number")
#: By what share of its lead a change of an example must earn more.
CLEARLY_MORE = 0.05
#: The share of a right answer's lead from which on it is an error to pay some wrong answers more than others.
MUCH = 0.5
#: Words of a completion whose reasoning is still of a usual length.
LONG_WORDS = 200
#: Why an equal score is only a note where the weighted sum of all rewards tells right from wrong.
PARTIAL = "it does not tell right from wrong; only the weighted sum of all rewards does."


@dataclass(frozen=True)
class RewardRule(Rule):
    """A rule about a reward. Its example is one.

    Attributes:
        most: how many of its findings are reported.
    """

    most: int = 1


#: All rules, in the order in which findings of equal severity are listed.
RULES: list[RewardRule] = []
rule = adding_to(RULES, RewardRule)


def observed_rule(example: Callable, severity: str, meaning: str, details: str, **more: object) -> None:
    """Add a rule, named as its example, that reports what was observed while the reward was called."""
    code = OBSERVED[OBSERVED.index(example.__name__)]

    def find(trial: Trial) -> list[Finding]:
        return trial.observed[code]

    find.__name__, find.__doc__ = code, details
    rule(severity, meaning, example=example, **more)(find)


def showing(what: str, case: Case, *fixes: str, why: str = "", severity: str = "") -> Finding:
    """A finding with the completion that shows it."""
    return found(what, *fixes, why=why, severity=severity, seen=shown(case.text))


observed_rule(
    examples.raises,
    "error",
    "a reward that raises an exception on some completion",
    "Each different exception is reported once, with the first completion that raises it.",
    why="TRL does not catch it, so one such completion ends the training run.",
    fixes=("return 0.0 for a completion that the reward cannot read.",),
    most=3,
)

observed_rule(
    examples.wrong_length,
    "error",
    "a reward that does not return one score per completion",
    "The number of scores differs from the number of completions, or there is no list.",
    why="TRL needs one score per completion, and stops otherwise.",
    fixes=("return a list with one score, or None, per completion, including those without an answer.",),
)

observed_rule(
    examples.not_finite,
    "error",
    "a reward that returns a score that is not a finite number",
    "NaN, infinity, a text or a list as a score.",
    why="TRL takes NaN for None, an infinite score leaves its group without advantages, and a text stops the run.",
    fixes=("return 0.0 where there is no number, and check other values with math.isfinite.",),
    most=3,
)

observed_rule(
    examples.unbounded_time,
    "error",
    "a reward whose time is not bounded: a few dozen characters keep the CPU busy forever "
    "(`(?:[0-9]+|[a-z ])*$`, a loop, `9**9**9**9`)",
    "The time explodes on short runs of a repeated piece, or a completion of the matrix keeps the CPU busy.",
    why="one such completion hangs the training run.",
    fixes=("look for a regular expression that repeats a repetition, such as (a+|b)*, and for a loop without an end.",),
)

observed_rule(
    examples.random,
    "error",
    "a reward that is random: it scores the same batch differently each time",
    "The same batch is scored three times. A cache settles after the first call; randomness does not.",
    why="the policy is trained on noise in every group whose completions are otherwise equal.",
    fixes=(
        "remove the randomness. GRPO needs no tie-breaking: a group without differences has no gradient, as it should.",
        "if the score comes from a model, sample it at temperature 0. If it depends on earlier calls, keep no state.",
    ),
)

observed_rule(
    examples.changes_inputs,
    "error",
    "a reward that changes the messages or columns that TRL passes to the next reward",
    "The arguments of a call are compared with what they were before.",
    why="the rewards after it score something that the model did not write.",
    fixes=("work on a copy.",),
)

observed_rule(
    examples.runs_model_text,
    "error",
    "a reward that executes what the model writes (`eval`, `exec`), although the task does not ask for a program",
    "An answer that leaves a trace if it is executed has left it.",
    why="the model's text can then do whatever your account may do.",
    fixes=("parse the answer instead of using eval or exec, or run it in a sandbox.",),
)


@rule(
    "error",
    "a reward that gives the same score to all completions, also to those that should be paid by what you gave, or to "
    "all completions that have several lines",
    why="all advantages are zero, so nothing is learned.",
    fixes=(
        "call it by hand on a completion that it should pay, and follow where it loses the answer.",
        "compare like with like: a number in the completion is a text at first.",
    ),
    example=examples.dead,
)
def dead(trial: Trial) -> Iterator[Finding]:
    """All completions have the same score, or all completions with a line break in the reasoning do.

    Without your format or your example, all completions may score the same because none is what the reward looks for;
    then it is not judged.
    """
    row = rows_of(trial)[0] if trial.scored else None
    if trial.all_equal:
        own = row.get("example") or row.scored[0]
        tags = [tag for tag in _tags_in_code(trial) if tag not in (own[0].text or "")]
        looks = f"look at the format: its code has {', '.join(tags)}, and this completion does not."
        yield showing(f"all {len(trial.scored)} completions score {own[1]}.", own[0], *([looks] if tags else []))
    elif not trial.answered and row:  # a format that earns something on one line and nothing on several
        one, several, none = row.clean, row.get("lines"), row.nothing
        if one and several and none and several[1] <= none[1] + ROUNDING < one[1]:
            what = f"a completion scores {one[1]:g} on one line and {several[1]:g} if its reasoning has a line break."
            fix = "add re.DOTALL to the regular expression."
            yield showing(what, several[0], fix, why="models write several lines.")


def _tags_in_code(trial: Trial) -> list[str]:
    """The opening tags in the texts and patterns of a reward's code."""
    texts = texts_in_code(trial.reward)
    return [*dict.fromkeys(tag for text in texts for tag in re.findall(r"<[a-zA-Z_]{2,30}>", text))]


@rule(
    "error",
    "a reward that pays your example no more than a text without an answer, while it pays other completions",
    why="what you ask the model to write earns nothing, so it is trained to write something else.",
    fixes=("compare the two completions: which tag, place or notation does the reward look for?",),
    unless=("dead",),
    example=examples.unpaid_example,
)
def unpaid_example(trial: Trial) -> Iterator[Finding]:
    """Your examples earn as little as no answer in every row, and a completion in another format earns more.

    Where scores depend on the answer, only examples count that have the gold answer of their row in them.
    """
    pairs = [
        (pair, row.nothing)
        for row in rows_of(trial)
        for pair in row.of("odd")
        if pair[0].id == "example" and row.nothing and (not trial.answered or _gold_of(trial, pair[0]) in pair[0].text)
    ]
    if not pairs or any(own[1] > nothing[1] + ROUNDING for own, nothing in pairs):
        return
    paid = best(pair for row in rows_of(trial) for pair in row.of("clean", "writing", "long"))
    own, nothing = pairs[0]
    if paid and paid[1] > max(own[1], nothing[1], 0.0) + ROUNDING:  # below 0, all are penalties
        what = f"your example scores {own[1]:g}, a text without an answer {nothing[1]:g}, and this one {paid[1]:g}."
        yield showing(what, paid[0])


def _gold_of(trial: Trial, case: Case) -> str:
    """The gold answer of a case's row."""
    return trial.plan.golds[case.number]


@rule(
    "error",
    "a reward that pays a change of your example more than the example, or as much although the change matters (mostly "
    "a warning): an item, a key or the second half left out, another value or number, a program that computes nothing",
    why="the policy learns to leave out or to change what it cannot get right.",
    fixes=("compare the whole answer with what the column holds, and pay nothing for parts that are missing.",),
    example=examples.pays_changed_example,
)
def pays_changed_example(trial: Trial) -> Iterator[Finding]:
    """The example is changed in one place, in the row that pays it most.

    A value in its JSON counts only if a column of the row names it, a number only if its first and its last one can be
    changed, and half of it or another program only if not every text in that form is paid as much. A little more, as
    for a shorter text, does not count.
    """
    row = row_of_example(rows_of(trial))
    if row is None:
        return
    own, nothing = row.get("example"), row.nothing
    if not nothing or own[1] <= nothing[1] + ROUNDING:
        return
    enough, clearly = own[1] - ROUNDING, own[1] + CLEARLY_MORE * (own[1] - nothing[1])
    numbers = [pair for pair in row.of("odd") if pair[0].id == "number"]
    only = _pays_only_the_example(trial)
    counts = {
        "half": only,
        "number": trial.answered and len(numbers) == 2 and all(score >= enough for _, score in numbers),
        "program": only or trial.answered,
    }
    for case, score in sorted(row.of("odd"), key=lambda pair: -pair[1]):
        more = case.id in ("json", "repeated") and score > clearly
        if more or (score >= enough and (counts.get(case.id) or (case.id == "json" and _matters(trial, own[0], case)))):
            what = f"your example scores {own[1]:g}, and {score:g} with {case.what}."
            yield showing(what, case, severity="" if more or case.id == "program" else "warning")
            return


def _matters(trial: Trial, own: Case, case: Case) -> bool:
    """Whether a change of the example's JSON takes out what a column that the reward reads names."""
    read = {*columns_read(trial.reward)} - ({trial.plan.answer_column} if trial.plan.own_golds else set())
    known = str([value for name, value in own.columns.items() if name in read])
    return any(value in known for value in _values_in(own.text) - _values_in(case.text))


def _values_in(text: str) -> set[str]:
    """What stands in quotes, and the numbers, in a text with JSON."""
    quoted = {one for one in re.findall(r'"([^"]{0,200})"', text) if len(one) > 1}
    return quoted | {*re.findall(r"(?<!\w)\d{1,30}(?!\w)", text)}


@rule(
    "error",
    "a reward that scores a wrong answer at least as high as a correct one in the requested format, or some wrong "
    "numbers higher than others",
    why="the policy learns the wrong answer as readily as the correct one.",
    fixes=("compare the whole answer with the gold answer, and nothing else in the text.",),
    unless=("dead",),
    example=examples.wrong_beats_right,
)
def wrong_beats_right(trial: Trial) -> Iterator[Finding]:
    """A wrong answer scores as much as a correct one, or earns something for being close.

    An equal score is only a note, partial credit, if the reward is one of several whose weighted sum tells right from
    wrong.
    """
    if _pays_only_the_example(trial):
        return
    rows = answered_rows(trial)
    faults = [one for row in rows for one in _beaten(row, trial.partial)]
    faults += [one for row in rows for one in _preferred(row)]
    for row in rows[:1]:
        faults += _beaten_elsewhere(row, trial.plan.elsewhere)
    yield from sorted(faults, key=lambda one: one.severity == "note")  # only the first one is reported


def _pays_only_the_example(trial: Trial) -> bool:
    """Whether it looks for something else than what counts as correct here: nothing earns what an example earns."""
    rows = rows_of(trial)
    own = best(pair for row in rows for pair in row.of("odd") if pair[0].id == "example")
    clean = best(pair for row in rows for pair in row.of("clean", "writing", "wrong"))
    return bool(own and clean) and own[1] > clean[1] + ROUNDING


def _beaten(row: Row, partial: bool) -> Iterator[Finding]:
    right, wrong = row.right, best(row.of("wrong"))
    if not right or not wrong or wrong[1] < right[1] - ROUNDING:
        return
    if best(row.of("clean"))[1] <= worst(row.of("wrong"))[1] + ROUNDING:
        what = f"a correct answer ({_how(right[0])}) scores {right[1]:g}, no more than any wrong one."
        fix = (
            "find out why this completion earns nothing; for a gold answer with braces, the pattern may end too early."
        )
        yield showing(what, right[0], fix, why="no answer to this row is ever paid.")
        return
    what = (
        f"a wrong answer ({wrong[0].what}) scores {wrong[1]:g}, a correct one ({_how(right[0])}) scores {right[1]:g}."
    )
    if right[0].id == "lines" and best(row.of("clean"))[1] > wrong[1] + ROUNDING:
        yield showing(f"{what} On one line it scores more.", right[0], "add re.DOTALL to the regular expression.")
    elif partial and wrong[1] <= right[1] + ROUNDING:
        yield showing(what, wrong[0], why=PARTIAL, severity="note")
    else:
        yield showing(what, wrong[0])


def _preferred(row: Row) -> Iterator[Finding]:
    """Some wrong numbers score more than others that look alike, perhaps more than a correct one written otherwise."""
    near_ones = [pair for pair in row.of("wrong") if pair[0].id == "near"]
    for plain in alike(near_ones) if row.right else ():
        least, most = worst(plain), best(plain)
        if most[1] - least[1] <= SLACK * (row.right[1] - least[1]):
            continue
        written = worst(row.of("writing"))
        less = written and written[1] < most[1] - ROUNDING
        more = f", a correct answer ({_how(written[0])}) only {written[1]:g}" if less else ""
        paid = f"{most[0].what} scores {most[1]:g}, {least[0].what} {least[1]:g}{more}"
        why = "in a group without a correct answer, the policy is trained toward the best-scoring wrong one."
        far = best(pair for pair in row.of("wrong") if pair[0].what in FAR)
        close = most[1] < row.clean[1] - ROUNDING and far is not None and far[1] <= least[1] + ROUNDING
        little = most[1] - least[1] < MUCH * (row.clean[1] - least[1])
        severity = "warning" if close or little else ""  # closeness is partial credit, if only what is close earns it
        fix = "score every wrong answer the same."
        fix = f"keep this if close is nearly right, as for a measurement; otherwise {fix}" if severity else fix
        what = f"some wrong answers score more than others: {paid}."
        yield showing(what, most[0], fix, why=why, severity=severity)


def _beaten_elsewhere(row: Row, elsewhere: Scored | None) -> Iterator[Finding]:
    """A wrong answer in another format scores as much as a correct one in its best format."""
    right = best(row.of("clean"))
    if right and elsewhere and elsewhere[1] >= right[1] - ROUNDING:
        case, score = elsewhere
        what = f"a wrong answer in another format scores {score:g}, a correct one ({_how(right[0])}) {right[1]:g}."
        yield showing(what, case)


def _how(case: Case) -> str:
    """How a correct completion is written, such as "in the requested format"."""
    return case.what.removeprefix("correct, ")


@rule(
    "error",
    "a reward that scores a missing answer higher than a wrong one, or above 0 in a row without a gold answer, if you "
    "give such rows",
    why="the policy learns not to answer.",
    fixes=("score a completion without an answer 0.0, before anything is compared.",),
    example=examples.pays_missing_answer,
)
def pays_missing_answer(trial: Trial) -> Iterator[Finding]:
    """A missing answer scores more than a wrong one, or earns something if the gold answer is missing too."""
    for row in answered_rows(trial):
        case, score = best(row.of("missing")) or (None, 0.0)
        relative = 2 * SLACK * (row.right[1] - row.most_for_wrong) if trial.grouped and row.right else 0.0
        if score > row.most_for_wrong + max(ROUNDING, relative):  # the shortest of a group may earn a little more
            yield showing(
                f"a missing answer ({case.what}) scores {score:g}, a wrong answer {row.most_for_wrong:g}.", case
            )
    for case, with_gold, without, gold in trial.without_gold:
        if without > max(0.0, with_gold) + ROUNDING:
            what = f"a missing answer ({case.what}) scores {without:g} if the gold answer is {gold}."
            why = "on a row without a gold answer, saying nothing is paid."
            fix = f"return None where the gold answer is {gold}, or remove such rows."
            yield showing(what, case, fix, why=why)


@rule(
    "error",
    "a reward that penalizes a wrong answer more than a missing one",
    why="while most answers are wrong, the policy learns not to answer.",
    fixes=("score a missing answer no higher than a wrong one.",),
    example=examples.pays_abstaining,
)
def pays_abstaining(trial: Trial) -> Iterator[Finding]:
    """A missing answer loses less than a wrong one: while most answers are wrong, silence is the best policy."""
    for row in answered_rows(trial):
        right, wrong, nothing = row.right, row.usual_wrong, best(row.of("missing"))
        if not (right and wrong and nothing) or nothing[1] > row.most_for_wrong + ROUNDING:
            continue
        if nothing[1] > wrong[1] + 2 * SLACK * (right[1] - wrong[1]) + ROUNDING:
            what = f"a missing answer ({nothing[0].what}) scores {nothing[1]:g}, a wrong one {wrong[1]:g}."
            yield showing(what, nothing[0])


@rule(
    "error",
    "a reward that scores every wrong answer `None`",
    why="TRL leaves such completions out, so a group contains only correct answers and all advantages are zero.",
    fixes=("score a wrong answer 0.0. None is for rows that the reward does not apply to.",),
    example=examples.none_for_wrong,
)
def none_for_wrong(trial: Trial) -> Iterator[Finding]:
    """Wrong answers score None. TRL leaves them out, so all remaining completions of a group score the same."""
    for row in answered_rows(trial):
        wrong = near([pair for pair in row.scored if pair[0].role == "wrong"])
        if row.right and wrong and all(score is None for _, score in wrong):
            yield showing("every wrong answer scores None.", wrong[0][0])


@rule(
    "error",
    "a reward that scores junk, repetition, stuffing, an echo of the prompt or an empty completion higher than a clean "
    "completion",
    why="the policy finds what pays most, and writes it instead of answering.",
    fixes=("count each thing once and only in its place, and put a cap on every sum.",),
    example=examples.farmable,
)
def farmable(trial: Trial) -> Iterator[Finding]:
    """Junk, repetition or stuffing scores more than the best clean completion of any common length.

    For a reward that scores the length alone, no text is junk, but an empty one.
    """
    for row in rows_of(trial):
        own = [pair for pair in row.of("odd") if pair[0].id == "example"]
        empty = [pair for pair in row.of("odd") if pair[0].id == "empty"]
        clean = best([*row.of("clean", "long"), *own])
        junk = [] if trial.length_alone else row.of("attack", "missing")
        if clean and row.nothing and clean[1] <= row.nothing[1] + ROUNDING:
            junk = [
                pair for pair in junk if pair[0].id != "words"
            ]  # they may be what it asks for, and nothing of ours is
        attack = best([*junk, *([] if trial.grouped else empty)])
        lead = clean[1] - row.nothing[1] if clean and row.nothing else 0.0
        lead = 0.0 if attack and attack[0].id == "empty" else lead  # else a sentence of ours may be worth a little
        if row.of("clean", "long") and attack and attack[1] > clean[1] + max(ROUNDING, CLEARLY_MORE * lead):
            what = f"junk ({attack[0].what}) scores {attack[1]:g}, the best clean completion {clean[1]:g}."
            yield showing(what, attack[0])


@rule(
    "error",
    "a reward that gives a higher score to more text (characters, words, lines or steps), with or without a cap; a "
    "length in tokens counts as deliberate",
    why="the policy writes filler instead of working on the answer.",
    fixes=("remove the term that grows with the text, or make it small next to the score for a correct answer.",),
    example=examples.length_farm,
)
def length_farm(trial: Trial) -> Iterator[Finding]:
    """More text scores more, whatever it says."""
    plain, *series = [[(case, score) for case, score in one if score is not None] for one in trial.filled] or [[]]
    least = min((score for one in [plain, *series] for _, score in one), default=0.0)
    most = max((score for _, score in plain), default=0.0)
    for one in series:
        scores = [score for _, score in one]
        if len(scores) < len(trial.filled[1]) or scores != sorted(scores) or scores[-1] <= scores[0] + ROUNDING:
            continue
        case, score = one[-1]
        drowned = trial.answered and case.id == "wrong" and score >= most - ROUNDING
        if drowned or score > most + 0.1 * (score - least):
            curve = ", ".join(f"{s:.3g}" for s in scores)
            yield showing(
                f"a completion ({case.what}) scores {curve} as the filler grows, an ordinary one {most:.3g}.", case
            )


observed_rule(
    examples.order_dependent,
    "error",
    "a reward whose score for a completion depends on its place in the batch, on other rows' columns or on earlier "
    "calls",
    "The same batch comes again, in reverse order, and with other columns in the rows of another prompt. None of these "
    "changes the score of a reward that is relative to its group.",
    why="completions are scored with something that is not theirs, so their advantages are wrong.",
    fixes=(
        "use only what belongs to the completion: for c, gold in zip(completions, answer).",
        "compare the completions of a group by their prompt, not by their place.",
    ),
)

observed_rule(
    examples.mixes_groups,
    "warning",
    "a reward that compares completions of different prompts, although a group has only one prompt",
    """A reward that is relative to its group, and changes with the completions of another prompt.

    This groups the completions by their prompt:

        groups = defaultdict(list)
        for completion, prompt in zip(completions, prompts):
            groups[str(prompt)].append(completion)
    """,
    why="TRL passes several groups in one batch, so a score depends on which prompts are drawn together.",
    fixes=(
        "group the completions by `prompts`, as `grpo-check explain mixes_groups` shows.",
        "if you want to compare the whole batch, set reads_group = True on the reward.",
    ),
)


#: Where it matters: `preflight` knows the prompts, and reports an error if they are of the other kind.
BOTH_KINDS = ("read both if your prompts are of both kinds: c if isinstance(c, str) else c[0]['content'].",)
OTHER_KIND = "with prompts of the other kind, the run ends or every score is the same."

observed_rule(
    examples.chat_only,
    "note",
    "a reward that scores chat messages, but not strings",
    "Some completions are scored as strings too. `preflight` reports an error if your prompts are strings.",
    why=OTHER_KIND,
    fixes=BOTH_KINDS,
)

observed_rule(
    examples.string_only,
    "note",
    "a reward that scores strings, but not chat messages",
    "Some completions are scored as chat messages too. `preflight` reports an error if your prompts are messages.",
    why=OTHER_KIND,
    fixes=BOTH_KINDS,
)


@rule(
    "note",
    "a reward that reads the requested format, but also gives the full score to a correct answer without that format",
    why="the policy does not learn the format.",
    fixes=("if you need the format, score only answers in it.",),
    unless=("wrong_beats_right",),
    example=examples.untagged,
)
def untagged(trial: Trial) -> Iterator[Finding]:
    """The reward reads the requested format but gives a correct answer without it the full score."""
    for row in answered_rows(trial):
        right, wrong, behind, bare = row.clean, row.usual_wrong, row.get("text after"), row.get("bare, after")
        if not (right and behind and bare and wrong) or right[1] <= wrong[1] + ROUNDING:
            continue
        reads_form = behind[1] >= right[1] - ROUNDING > bare[1]
        for case, score in filter(None, (row.get("alone"), row.get("untagged"))):
            if reads_form and score >= right[1] - ROUNDING:
                yield showing("it pays a correct answer without the format as much.", case)


@rule(
    "warning",
    "a reward in which the format alone adds more to the score than a correct answer in that format does",
    why="the policy is paid more for the tags than for what is in them.",
    fixes=("give correctness more weight than everything else together.",),
    example=examples.form_outweighs,
)
def form_outweighs(trial: Trial) -> Iterator[Finding]:
    """A formatted wrong answer gains more over no answer than a correct answer gains over a wrong one."""
    for row in answered_rows(trial):
        right, wrong, nothing = row.right, row.usual_wrong, row.nothing
        if right and wrong and nothing and wrong[1] - nothing[1] > right[1] - wrong[1] + ROUNDING > ROUNDING:
            scores = f"no answer scores {nothing[1]:g}, a formatted wrong one {wrong[1]:g}, a correct one {right[1]:g}"
            yield showing(f"{scores}.", wrong[0])


@rule(
    "warning",
    "a reward that scores a correct answer higher if it contains words of another language",
    why="the policy is paid for changing the language.",
    fixes=("ignore this if you want that language. Otherwise find the term that these words add to.",),
    example=examples.pays_languages,
)
def pays_languages(trial: Trial) -> Iterator[Finding]:
    """Words of ten languages before a correct answer score more than the best clean completion of any length."""
    for row in answered_rows(trial):
        clean, foreign = best(row.of("clean", "long")), best(row.of("foreign"))
        if clean and foreign and row.right and row.usual_wrong:
            gap = row.right[1] - row.usual_wrong[1]
            if foreign[1] > clean[1] + max(ROUNDING, SLACK * gap):
                scores = f"{foreign[1]:g} with words of other languages, and {clean[1]:g} in English"
                yield showing(f"a correct answer scores {scores}.", foreign[0])


@rule(
    "note",
    "a reward that gives nothing for a correct answer in another common notation (a warning if line breaks in the "
    "reasoning cost something)",
    why="a correct answer in that notation is trained away like a wrong one.",
    fixes=("if your task has such answers, accept them, or ask for one notation in the prompt.",),
    unless=("dead",),
    example=examples.too_strict,
    most=2,
)
def too_strict(trial: Trial) -> Iterator[Finding]:
    """A correct answer in another common notation scores no more than a wrong one."""
    if trial.plan.refused and trial.answered:
        what = f"the correct answers {', '.join(trial.plan.refused)} earn nothing, so they were left out."
        yield found(what, "if your task has such answers, pass answers=[…].")
    refused: dict[str, Case] = {}  # the first case for each notation
    for row in rows_of(trial):
        right, nothing = row.clean, best(row.of("wrong")) if trial.answered else row.nothing
        if not right or not nothing or nothing[1] >= right[1] - ROUNDING:
            continue
        for case, score in row.of("writing", "clean"):
            if case.role == "writing" and score <= nothing[1] + ROUNDING:
                refused.setdefault(case.what, case)
            elif case.id == "lines" and score < right[1] - SLACK * (right[1] - nothing[1]):
                what = f"a correct answer scores {right[1]:g}, and {score:g} if its reasoning has several lines."
                fix = "add re.DOTALL to the regular expression."
                yield showing(what, case, fix, why="models write several lines.", severity="warning")
                return
    if refused:
        how = "; ".join(what.removeprefix("correct, ") for what in refused)
        yield showing(f"a correct answer earns nothing in these notations: {how}.", next(iter(refused.values())))


@rule(
    "warning",
    "a reward that pays a correct answer no more than a wrong one if its reasoning is long, up to 200 words",
    why="the policy learns not to reason, or to stop before the answer.",
    fixes=("count tokens rather than characters, or take off only a part of the score.",),
    unless=("dead",),
    example=examples.unpaid_long,
)
def unpaid_long(trial: Trial) -> Iterator[Finding]:
    """A correct answer after long reasoning earns what a wrong one earns, and one after short reasoning more."""
    for row in answered_rows(trial):
        right, wrong = row.clean, row.usual_wrong
        if not right or not wrong or right[1] <= wrong[1] + ROUNDING:
            continue
        for case, score in sorted(row.of("long"), key=lambda pair: len(pair[0].text)):
            words = len(case.text.split())
            if words <= LONG_WORDS and score <= wrong[1] + ROUNDING:
                size = f"{words} words ({len(case.text)} characters)"
                yield showing(f"a correct answer scores {right[1]:g}, and {score:g} in a completion of {size}.", case)
                return


@rule(
    "warning",
    "a reward that pays the words of your example in any order as much as the example",
    why="the policy finds that a list of words is enough.",
    fixes=("look for whole phrases or sentences, or pay for the words only beside a reward for the answer.",),
    example=examples.word_salad,
)
def word_salad(trial: Trial) -> Iterator[Finding]:
    """Your example earns more than any other completion, and so do its words in another order."""
    row = row_of_example(rows_of(trial))
    if row is None:
        return
    own, salad, other = row.get("example"), row.get("salad"), best(row.of("clean", "long", "missing"))
    if salad and other and own[1] > other[1] + ROUNDING and salad[1] >= own[1] - ROUNDING:
        yield showing(f"your example scores {own[1]:g}, its words in another order {salad[1]:g}.", salad[0])


@rule(
    "warning",
    "a reward that pays a list of answers in place of one, wherever in it the correct one stands",
    why="a list is no answer, and the policy is free to write one.",
    fixes=("compare everything between the tags with the gold answer, not a number that is found there.",),
    unless=("wrong_beats_right",),
    example=examples.several_answers,
)
def several_answers(trial: Trial) -> Iterator[Finding]:
    """Three answers in the tags are paid like the correct one, whether that comes first or last.

    A reward that reads only the last number, say, is not reported: the last one is then what the policy says.
    """
    for row in answered_rows(trial):
        hedge, right, wrong = worst(row.of("hedge")), row.right, row.usual_wrong
        tells_apart = right and wrong and right[1] > wrong[1] + ROUNDING
        if hedge and tells_apart and hedge[1] >= right[1] - ROUNDING:
            yield showing(f"{hedge[0].what}: {hedge[1]:g}, as much as the correct one alone.", hedge[0])


observed_rule(
    examples.slow,
    "warning",
    "a reward that takes more than a tenth of a step (counted as 10 s with 32 completions), or far more than four "
    "times as long on a text that is four times as long, or that does not finish",
    "Only processor time counts. Before a reward is called often that waits for something, such as a judge on the "
    "network, `probe` asks how often it may be called.",
    why="every training step waits for its rewards.",
    fixes=("let patterns read only the part of a completion that they need, such as its end.",),
    most=3,
)
