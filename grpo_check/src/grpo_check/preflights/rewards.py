"""Check the rewards: TRL can call them, the dataset has their columns, and the lab finds no fault."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from grpo_core.errors import CourseError, did_you_mean
from grpo_core.rewards import exact_reward, reward_name

from ..findings import Finding
from ..probes.limits import OutOfTimeError, time_limit
from ..probes.probing import probe
from ..probes.signatures import PROVIDED, missing_columns, parameters_of, signatures
from ..rule import Rule, adding_to, found
from .planned import PlannedRun, is_model, once
from .rows import answer_text, column, columns_of, first, reads_answers

#: Rows whose answers and columns a reward is probed with.
_MOST_GOLDS = 4
#: Rows among which different gold answers are looked for.
_MOST_LOOKED_AT = 1000
#: Seconds that the lab may take before it is left out.
LAB_SECONDS = 30.0
#: Faults that the lab can know only of a reward that compares with a gold answer.
_OF_ANSWERS = ("dead", "wrong_beats_right", "pays_missing_answer")
_DETAILS = "run print(probe(reward, answers=[…])) or `grpo-check probe FILE.py:function` for details."
_FIX_GUESS = (
    "the lab writes gold answers in tags. If your task differs, pass answer_column='…' (the column of gold "
    "answers), tags=(…) (the requested format) or lab=False (no lab)."
)
_FIX_GUESS_IN_TERMINAL = (
    "the lab writes gold answers in tags. If your task differs, try the reward with `grpo-check probe "
    "FILE.py:function` and its options --answers, --answer-column and --tags, and leave this out with --ignore."
)


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
        yield found("reward_funcs is empty.")


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
    if given is not None and len(given) != len(run.rewards):
        names = ", ".join(one if isinstance(one, str) else reward_name(one) for one in run.rewards)
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
    for reward in [one for one in run.rewards if not is_model(one)]:
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
    columns, gold = _columns_given(run), run.answer_column
    plural = f"{wanted}s"  # of TRL's own names only this typo is suggested: 'solution' is not one for 'completions'
    hint = f" Did you mean {plural!r}?" if plural in PROVIDED else did_you_mean(wanted, columns)
    meant = gold if wanted in ("answer", "solution") and gold in columns else columns[0] if len(columns) == 1 else ""
    way = f"use rows.rename_column({meant!r}, {wanted!r})" if meant else "add a column of that name"
    what = f"{name} needs the column {wanted!r}; the dataset has {', '.join(columns) or 'only the prompt'}."
    return found(what, f"{way}, or rename the parameter.{hint}")


class Lab(NamedTuple):
    """What the reward lab has found, a note on it, and why it was not finished, "" if it was."""

    findings: list[Finding]
    note: str = ""
    unfinished: str = ""


@once
def _lab_result(run: PlannedRun) -> Lab:
    """Try the rewards in the lab, within a limit of time; where none is a function, there is nothing to try."""
    if not run.functions:
        return Lab([])
    try:
        with time_limit(LAB_SECONDS):
            return _in_the_lab(run)
    except OutOfTimeError:
        why = f"it took over {LAB_SECONDS:g} s; grpo-check probe FILE.py:function has no such limit"
        return Lab([], unfinished=why)


def _in_the_lab(run: PlannedRun) -> Lab:
    """The lab's findings with a few gold answers of the rows, for each reward and for their sum."""
    subjects, (answers, columns) = run.functions, _golds_and_columns(run)
    weights = run["reward_weights"] or [1.0] * len(run.rewards)
    report = probe(
        subjects,
        answers=answers,
        answer_column=run.answer_column,
        columns=columns,
        tags=run.tags,
        weights=[weight for one, weight in zip(run.rewards, weights, strict=True) if not is_model(one)],
    )
    named = dict(zip(report.verdicts, subjects, strict=False))  # the last one judged is their sum
    about = [(fault, [named[fault.subject]] if fault.subject in named else subjects) for fault in report.findings]
    counted = [_from_lab(run, fault, some) for fault, some in about if _counts(run, fault)]
    guesses = "" if answers else ", with gold answers of its own"
    return Lab(counted, f"the reward lab scored {len(report.scored)} completions{guesses}")


def _counts(run: PlannedRun, fault: Finding) -> bool:
    """Whether a fault says something about this run.

    One in the kind of prompts that the run lacks does not. Without rows, the lab has only gold answers of its own, so
    neither does what it finds of a right or a wrong answer.
    """
    if fault.severity == "note":
        return bool(run.train) and fault.code == ("string_only" if run.chat else "chat_only")
    return bool(run.train) or (fault.severity == "error" and fault.code not in _OF_ANSWERS)


def _from_lab(run: PlannedRun, fault: Finding, about: list[Callable]) -> Finding:
    """A fault from the lab as a finding, with the lab's reason and fixes; less severe if the lab only guesses."""
    severity, fixes = fault.severity, [*fault.fixes, _DETAILS]
    guess = _FIX_GUESS_IN_TERMINAL if run.values.from_yaml else _FIX_GUESS
    if fault.code in ("string_only", "chat_only") and run.train:
        severity = "error"
    elif fault.code in _OF_ANSWERS and not (run.answer_column in columns_of(run.train) and reads_answers(run, about)):
        severity, fixes = "warning", [guess, *fixes]
    elif fault.code == "dead":
        fixes.append(guess)
    why = f"the reward lab reports {fault.code}: {fault.why}"
    return found(f"{fault.subject}: {fault.what}", *fixes, why=why, severity=severity)


def why_untried(run: PlannedRun) -> str:
    """Why the rewards cannot be tried, or should not; "" if they can."""
    if run.rewards is None:
        return "no rewards were given"
    if not run.functions:
        return "none of them is a function"
    if not run.lab:
        return "lab=False"
    if any(one(run) for one in (reward_weights, not_a_reward, reward_takes_no_more, missing_column)):
        return "TRL could not call the rewards"
    needed = [missing_columns(reward, [run.answer_column]) for reward in _callable(run)]
    return (
        "a reward needs dataset columns, but no training rows were given" if run.train is None and any(needed) else ""
    )


def why_no_lab(run: PlannedRun) -> str:
    """Why there is nothing from the lab, "" if there is, or if `no_rewards` or `models` say so already."""
    if run.rewards is not None and not run.functions:
        return ""
    return why_untried(run) or _lab_result(run).unfinished


def models(run: PlannedRun) -> dict[str, str]:
    """What a report says about rewards that are models."""
    names = [one if isinstance(one, str) else type(one).__name__ for one in run.rewards or [] if is_model(one)]
    return {"reward lab for models": f"TRL loads {', '.join(names)}, so the lab cannot try it"} if names else {}


def notes(run: PlannedRun) -> Iterator[str]:
    """What the lab has done."""
    if run.functions and not why_no_lab(run):
        yield _lab_result(run).note


@rule(
    "error",
    "the reward lab found an error",
    why="the policy finds what such a reward pays for without a correct answer, or the run stops.",
    fixes=("fix the reward as the finding says.", _DETAILS),
    needs=("rewards", "lab"),
    example={"rewards": [lambda completions, answer, **kwargs: [1.0 for _ in completions]], "lab": True},
)
def reward_broken(run: PlannedRun) -> Iterator[Finding]:
    """The lab calls the rewards on correct, wrong and odd completions; `grpo-check explain` has each of its codes."""
    yield from (one for one in _lab_result(run).findings if one.severity == "error")


@rule(
    "warning",
    "the reward lab found a warning",
    why="the reward may pay for something else than a correct answer, or the lab only guesses what your task asks for.",
    fixes=("fix the reward as the finding says.", _DETAILS, _FIX_GUESS),
    needs=("rewards", "lab"),
    example={"rewards": [exact_reward], "lab": True},
)
def reward_weak(run: PlannedRun) -> Iterator[Finding]:
    """An error of the lab counts as a warning where it may rest on a wrong guess about your gold answers.

    A reward that does not tell right from wrong is a warning if the weighted sum of all reward functions does: it may
    be partial credit.
    """
    yield from (one for one in _lab_result(run).findings if one.severity != "error")


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
