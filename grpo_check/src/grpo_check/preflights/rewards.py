"""Check the rewards: TRL can call them, the dataset has their columns, and `probe` finds no fault."""

from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import NamedTuple

from grpo_core.errors import CourseError
from grpo_core.rewards import correctness_reward, reward_name

from ..findings import Finding
from ..probes.calling import call
from ..probes.forms import FORMS
from ..probes.judging import examples
from ..probes.limits import OutOfTimeError, time_limit
from ..probes.matrix import Case
from ..probes.probing import probe
from ..probes.signatures import PROVIDED, missing_columns, parameters_of, signatures
from ..rule import Rule, adding_to, found
from .columns import meant_by
from .misfits import is_for_a_script
from .planned import PlannedRun, UnreadReward, is_model, name_of, once
from .rows import answer_text, column, columns_of, first, reads_answers, renaming

#: Rows whose answers and columns a reward is probed with.
_MOST_GOLDS = 4
#: Rows among which different gold answers are looked for.
_MOST_LOOKED_AT = 1000
#: Seconds that `probe` may take before it is left out.
LONGEST_TRIAL = 30.0
#: Faults that `probe` can know only of a reward that compares with a gold answer.
_OF_ANSWERS = ("dead", "wrong_beats_right", "pays_missing_answer")
_DETAILS = "try the reward alone with probe, which shows every completion and its score."
_GUESS = "`probe` writes gold answers in tags; if your task differs, tell it how, or leave it out."


RULES: list[Rule] = []
rule = adding_to(RULES, needs=("rewards",))


@rule(
    "error",
    "no reward function is given",
    why='TRL raises "No reward source provided".',
    fixes=("pass a function, or the name of a reward model.",),
    example={"rewards": []},
)
def no_rewards(run: PlannedRun) -> Iterator[Finding]:
    """The list reward_funcs is empty, and a config file names no reward model either."""
    if not run.rewards:
        fix = "write reward_funcs: [my_rewards.my_reward] into the file, or pass --reward FILE.py:function."
        yield found("the run has no rewards.", *([fix] if run.in_terminal else []))


@rule(
    "error",
    "a reward that a config file names and that cannot be loaded",
    why="trl grpo stops when it loads the rewards.",
    fixes=("correct its name or its file, so that it can be imported.",),
    example={"rewards": [UnreadReward("my_rewards.right", "There is no 'right' in my_rewards.")]},
)
def reward_not_found(run: PlannedRun) -> Iterator[Finding]:
    """Each such reward is a finding, and the other checks go on without it. Another script may have a registry."""
    severity = "warning" if is_for_a_script(run.values) else ""
    for reward in run.unread_rewards:
        yield found(reward.what, *filter(None, [reward.fix]), severity=severity)


@rule(
    "error",
    "the number of weights differs from the number of rewards, or all weights are zero",
    why="TRL raises a ValueError, or every completion scores 0, so every advantage is zero.",
    fixes=("set one weight per reward, above 0 for each reward that should be learned, or omit reward_weights.",),
    unless=("no_rewards",),
    example={"reward_weights": [0]},
)
def reward_weights(run: PlannedRun) -> Iterator[Finding]:
    """A weight of 0 is right for a reward that is only logged, as long as another one is above 0."""
    given, ones = run["reward_weights"], [1.0] * len(run.rewards)
    if given is not None and not isinstance(given, (list, tuple)):
        fix = f"set reward_weights={ones}, one per reward in this order, or omit it (1.0 each)."
        yield found(f"reward_weights={given!r} is not a list.", fix, why="TRL raises a TypeError.")
    elif given is not None and len(given) != len(run.rewards):
        names = ", ".join(map(name_of, run.rewards))
        what = f"{len(given)} reward_weights for {len(run.rewards)} rewards ({names})."
        fix = f"set reward_weights={ones}, one per reward in this order, or omit it (1.0 each)."
        yield found(what, fix, why="TRL raises a ValueError.")
    elif given is not None and not any(given):
        why = "every completion scores 0, so every advantage is zero."
        fix = "set a weight above 0 for each reward that should be learned."
        yield found(f"reward_weights={list(given)} are all zero.", fix, why=why)


@rule(
    "error",
    "a reward that TRL cannot call",
    why="TRL calls each reward with keyword arguments.",
    fixes=("write def my_reward(completions, **kwargs) and return one score per completion.",),
    example={"rewards": [lambda completion: [1.0]]},
)
def not_a_reward(run: PlannedRun) -> Iterator[Finding]:
    """The text is passed as ``completions``, so a parameter of another name does not get it."""
    for reward in [one for one in run.rewards if not isinstance(one, UnreadReward) and not is_model(one)]:
        try:
            parameters_of(reward)
        except CourseError as error:
            yield found(str(error))


@rule(
    "error",
    "a reward without **kwargs, to which TRL passes extra arguments",
    why="TRL passes every column and more to every reward, so the first call raises a TypeError.",
    fixes=("add **kwargs to the parameters of the reward.",),
    example={"rewards": [lambda completions, answer: [0.0 for _ in completions]]},
)
def reward_takes_no_more(run: PlannedRun) -> Iterator[Finding]:
    """Without rows, it counts only what TRL itself passes, such as prompts and completion_ids."""
    given = [*PROVIDED, *_columns_given(run)]
    for name, parameters in signatures(run.functions):
        extra = [one for one in given if one not in parameters]
        if extra and not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            why = f"TRL also passes {', '.join(extra)} to every reward, so the first call raises a TypeError."
            fix = f"write def {name}({', '.join(map(str, parameters.values()))}, **kwargs)."
            yield found(f"{name} has no **kwargs.", fix, why=why)


@rule(
    "error",
    "a reward parameter that matches no dataset column",
    why="TRL passes columns to a reward by name, so the call raises a TypeError.",
    fixes=("rename the parameter or the column, add the column, or give the parameter a default.",),
    example={"rewards": [lambda completions, solution, **kwargs: [0.0 for _ in completions]]},
)
def missing_column(run: PlannedRun) -> Iterator[Finding]:
    """Parameters that TRL itself fills, such as prompts, and parameters with a default need no column."""
    for reward in _callable(run) if run.train else []:
        for wanted in missing_columns(reward, _columns_given(run)):
            yield _missing(run, reward_name(reward), wanted)


def _callable(run: PlannedRun) -> list[Callable]:
    """The rewards that TRL can call."""
    return [one for one in run.functions if any(signatures([one]))]


def _columns_given(run: PlannedRun) -> list[str]:
    """The dataset's columns as rewards get them: TRL keeps ``prompt`` and ``completion`` to itself."""
    return [name for name in columns_of(run.train) if name not in ("prompt", "completion", "completion_ids")]


def _missing(run: PlannedRun, name: str, wanted: str) -> Finding:
    """The finding for a missing column, with the column to rename if it is obvious."""
    columns = _columns_given(run)
    plural = f"{wanted}s"  # of TRL's own names only this typo is suggested: 'solution' is not one for 'completions'
    hint = f" Did you mean {plural!r}?" if plural in PROVIDED else ""
    meant = "" if hint else meant_by(wanted, columns)
    way = renaming(run, meant, wanted) if meant else f"add a column {wanted!r}, or rename the parameter.{hint}"
    what = f"{name} needs the column {wanted!r}; the dataset has {', '.join(columns) or 'only the prompt'}."
    return found(what, way)


class Tried(NamedTuple):
    """What `probe` has found, a note on it, and why it was not finished, "" if it was."""

    findings: list[Finding]
    note: str = ""
    unfinished: str = ""
    not_judged: Mapping[str, str] = MappingProxyType({})


@once
def _tried(run: PlannedRun) -> Tried:
    """Try the rewards in `probe`, within a limit of time; where none is a function, there is nothing to try."""
    if not run.functions:
        return Tried([])
    try:
        with time_limit(LONGEST_TRIAL):
            return _try(run)
    except OutOfTimeError:
        why = f"it took over {LONGEST_TRIAL:g} s; grpo-check probe FILE.py:function has no such limit"
        return Tried([], unfinished=why)


def _try(run: PlannedRun) -> Tried:
    """What `probe` finds with a few gold answers of the rows, for each reward and for their sum."""
    subjects, (answers, columns) = run.functions, _golds_and_columns(run)
    weights = run["reward_weights"] or [1.0] * len(run.rewards)
    report = probe(
        subjects,
        answers=answers,
        answer_column=run.answer_column,
        columns=columns,
        tags=run.tags,
        weights=[weight for one, weight in zip(run.rewards, weights, strict=True) if one in subjects],
    )
    named = dict(zip(report.verdicts, subjects, strict=False))  # the last one judged is their sum
    about = [(fault, [named[fault.subject]] if fault.subject in named else subjects) for fault in report.findings]
    counted = [_from_probe(run, fault, some) for fault, some in about if _counts(run, fault)]
    guesses = "" if answers else ", with gold answers of its own"
    return Tried(counted, f"`probe` scored {len(report.scored)} completions{guesses}", not_judged=report.not_judged)


def _counts(run: PlannedRun, fault: Finding) -> bool:
    """Whether a fault says something about this run.

    Without rows, `probe` has only gold answers of its own, so what it finds of a right or a wrong answer does not. The
    same holds if a reward is missing from the sum. Notes are facts about a reward, not about the run.
    """
    guessed = not run.train or run.unread_rewards
    return fault.severity != "note" and (not guessed or (fault.severity == "error" and fault.code not in _OF_ANSWERS))


def _from_probe(run: PlannedRun, fault: Finding, about: list[Callable]) -> Finding:
    """A fault from `probe` as a finding, with its reason and fixes; less severe if `probe` only guesses."""
    details = "run grpo-check probe FILE.py:function" if run.in_terminal else "run print(probe(reward, answers=[…]))"
    severity, guess = fault.severity, _guess(run)
    fixes = [fix for fix in fault.fixes if "=…" not in fix]  # the others name arguments of probe
    fixes.append(f"{details} for details.")
    if fault.code in _OF_ANSWERS and not (run.answer_column in columns_of(run.train) and reads_answers(run, about)):
        severity, fixes = "warning", [guess, *fixes]
    elif fault.code == "dead":
        fixes.append(guess)
    why = f"`probe` reports {fault.code}: {fault.why}"
    return found(f"{fault.subject}: {fault.what}", *fixes, why=why, severity=severity)


def _guess(run: PlannedRun) -> str:
    """What to do if `probe` takes the task for another one."""
    start = "`probe` writes gold answers in tags. If your task differs, "
    if run.in_terminal:
        return (
            f"{start}try the reward with grpo-check probe and its options --answers, --answer-column and --tags, and "
            "leave this out with --ignore."
        )
    return (
        f"{start}pass answer_column='…' (the column of gold answers), tags=(…) (the requested format) or "
        "try_rewards=False (no probe)."
    )


def why_untried(run: PlannedRun) -> str:
    """Why the rewards cannot be tried, or should not; "" if they can."""
    if run.rewards is None:
        return "no rewards were given"
    if not run.functions:
        return "none of them could be loaded" if run.unread_rewards else "none of them is a function"
    if not run.try_rewards:
        return "try_rewards=False"
    if run.fails(reward_weights, not_a_reward, reward_takes_no_more, missing_column):
        return "TRL could not call the rewards"
    needed = [missing_columns(reward, [run.answer_column]) for reward in _callable(run)]
    return (
        "a reward needs dataset columns, but no training rows were given" if run.train is None and any(needed) else ""
    )


def why_not_tried(run: PlannedRun) -> str:
    """Why there is nothing from `probe`, "" if there is, or if `no_rewards` or `models` say so already."""
    if run.rewards is not None and not run.functions:
        return ""
    return why_untried(run) or _tried(run).unfinished


def models(run: PlannedRun) -> dict[str, str]:
    """What a report says about rewards that are models."""
    names = [one if isinstance(one, str) else type(one).__name__ for one in run.rewards or [] if is_model(one)]
    return {"rewards that are models": f"TRL loads {', '.join(names)}, so it cannot be tried here"} if names else {}


def not_judged(run: PlannedRun) -> dict[str, str]:
    """What a report says about rewards that `probe` could not judge."""
    if not run.functions or why_not_tried(run):
        return {}
    here = "the options of grpo-check probe FILE.py:function" if run.in_terminal else "the arguments of probe(…)"
    return {
        f"what {name} pays for": f"{reason.rstrip('.')}. These are {here}."
        for name, reason in _tried(run).not_judged.items()
    }


def notes(run: PlannedRun) -> Iterator[str]:
    """What `probe` has done."""
    if run.functions and not why_not_tried(run):
        yield _tried(run).note


@rule(
    "error",
    "`probe` found an error",
    why="the policy finds what such a reward pays for without a correct answer, or the run stops.",
    fixes=("fix the reward as the finding says.", _DETAILS),
    needs=("rewards", "try_rewards"),
    example={"rewards": [examples.wrong_beats_right], "try_rewards": True},
)
def reward_broken(run: PlannedRun) -> Iterator[Finding]:
    """`probe` calls the rewards on correct, wrong and odd completions; `grpo-check explain` has each of its codes."""
    yield from (one for one in _tried(run).findings if one.severity == "error")


@rule(
    "warning",
    "`probe` found a warning",
    why="the reward may pay for something else than a correct answer, or `probe` only guesses what your task asks for.",
    fixes=("fix the reward as the finding says.", _DETAILS, _GUESS),
    needs=("rewards", "try_rewards"),
    example={"rewards": [examples.form_outweighs], "try_rewards": True},
)
def reward_weak(run: PlannedRun) -> Iterator[Finding]:
    """An error of `probe` counts as a warning where it may rest on a wrong guess about your gold answers.

    A reward that does not tell right from wrong is no finding if the weighted sum of all reward functions does: it may
    be partial credit.
    """
    yield from (one for one in _tried(run).findings if one.severity != "error")


def _reads_strings(completions: list, answer: list, **kwargs: object) -> list[float]:
    """A reward of the examples that reads only strings."""
    return correctness_reward([one.removesuffix(" ") for one in completions], answer)


@rule(
    "error",
    "a reward that cannot read the completions of this run: chat messages, or strings if the prompts are plain text",
    why="the run stops at its first step, or every completion has the same score.",
    fixes=("read what TRL passes: c[0]['content'] of chat messages, and c itself if the prompts are plain text.",),
    needs=("rows", "rewards", "try_rewards"),
    example={"rewards": [_reads_strings], "try_rewards": True},
)
def other_kind(run: PlannedRun) -> Iterator[Finding]:
    """It calls each reward with the same completions as messages and as strings, and compares what comes back."""
    for reward in run.functions if run.train else []:
        own, other = (_use_of(run, reward, chat) for chat in (run.chat, not run.chat))
        if own >= other:
            continue
        fails = "raises an error on" if own == _Use.NONE else "gives the same score to all"
        if run.chat:
            what = f"{reward_name(reward)} {fails} chat messages, which TRL passes because the prompts are messages."
            fix = "read the text of each completion c: c[0]['content']."
        else:
            what = f"{reward_name(reward)} {fails} strings, which TRL passes because the prompts are plain text."
            fix = "read each completion c itself, without [0]['content']; or make the prompts messages."
        yield found(what, fix)


class _Use(IntEnum):
    """What a reward makes of one kind of completions."""

    NONE = 0
    SAME = 1
    SCORES = 2


def _use_of(run: PlannedRun, reward: Callable, chat: bool) -> _Use:
    """What a reward makes of a gold answer in every common format, and of no answer."""
    gold, columns = first_row(run)
    texts = ["", *dict.fromkeys(form.write("I add up.", str(gold)) for form in FORMS)]
    outcome = call(reward, [Case("", "", text, columns=columns) for text in texts], chat)
    if outcome.error:
        return _Use.NONE
    return _Use.SCORES if len({*outcome.scores}) > 1 else _Use.SAME


def _golds_and_columns(run: PlannedRun) -> tuple[list | None, dict]:
    """Gold answers of the first rows that have one, each once, and their other columns."""
    if not run.train:
        return None, {}
    name, looked_at = run.answer_column, first(run.train, _MOST_LOOKED_AT)
    golds = dict(zip(looked_at, column(run.train, name, looked_at), strict=True))
    texts = {index: str(gold) for index, gold in golds.items() if answer_text(gold)}
    indices = sorted({text: index for index, text in reversed(texts.items())}.values())
    kept = [run.train[index] for index in (indices or looked_at)[:_MOST_GOLDS]]  # images too: these only
    others = [one for one in _columns_given(run) if one != name]
    return [row[name] for row in kept] if indices else None, {one: [row.get(one) for row in kept] for one in others}


def first_row(run: PlannedRun) -> tuple[object, dict]:
    """A gold answer, and the columns of its row."""
    answers, columns = _golds_and_columns(run)
    gold = answers[0] if answers else "42"
    return gold, {run.answer_column: gold, **{name: values[0] for name, values in columns.items()}}
