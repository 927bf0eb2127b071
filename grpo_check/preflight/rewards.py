"""Check the rewards: TRL can call them, the dataset has their columns, and the lab finds no fault."""

import inspect
from collections.abc import Callable, Iterator

from grpo_utils.errors import CourseError, did_you_mean
from grpo_utils.rewards import reward_name

from ..findings import Finding
from ..reward_lab import probe
from ..reward_lab.calling import PROVIDED, missing_columns, parameters_of
from ..reward_lab.report import shown
from .report import finding
from .rows import column, columns_of, first
from .run import Run

#: Rows whose answers and columns a reward is probed with.
MOST_GOLDS = 4
#: Rows among which different gold answers are looked for.
MOST_LOOKED_AT = 1000
#: Seconds that the lab may take before it is left out.
LAB_SECONDS = 30.0
#: How the lab shows a message without content, which TRL creates for a tool call.
NO_CONTENT = shown(None)
#: Faults that the lab can know only of a reward that compares with a gold answer.
OF_ANSWERS = ("dead", "wrong_beats_right", "pays_missing_answer")
FIX_REWARD = "Fix the reward. Run print(probe(reward, answers=[…])) or `python -m grpo_check probe` for details."
FIX_GUESS = (
    "The lab writes gold answers in tags. If your task differs, pass answer_column='…' (the column of gold "
    "answers), tags=(…) (the requested format) or lab=False (no lab)."
)


def functions(run: Run) -> list[Callable]:
    """The rewards that are functions; a model or the name of one is loaded by TRL and cannot be tried here."""
    return [reward for reward in run.rewards if callable(reward) and not is_model(reward)]


def is_model(reward: object) -> bool:
    """Whether TRL loads or calls it as a reward model."""
    from torch import nn

    return isinstance(reward, str | nn.Module)


def weights(run: Run) -> Iterator[Finding]:
    """At least one reward, and one weight per reward."""
    given, ones = run["reward_weights"], [1.0] * len(run.rewards)
    if not run.rewards:
        why = 'TRL raises "No reward source provided".'
        yield finding("no_rewards", "reward_funcs is empty.", why, "pass a reward, such as those of math_rewards().")
    elif given is not None and len(given) != len(run.rewards):
        names = ", ".join(one if isinstance(one, str) else reward_name(one) for one in run.rewards)
        what = f"{len(given)} reward_weights for {len(run.rewards)} rewards ({names})."
        fix = f"set reward_weights={ones}, one per reward in this order, or omit it (1.0 each)."
        yield finding("reward_weights", what, "TRL raises a ValueError.", fix)
    elif given is not None and not any(given):
        why = "every completion scores 0, so every advantage is zero."
        fix = "set a weight above 0 for each reward that should be learned."
        yield finding("reward_weights", f"reward_weights={list(given)} are all zero.", why, fix)


def signatures(run: Run) -> Iterator[Finding]:
    """Signatures: TRL calls each reward with keyword arguments for every column and more."""
    given = [*PROVIDED, *_columns_given(run)]
    for reward in run.rewards:
        if is_model(reward):
            continue
        try:
            parameters = parameters_of(reward)
        except CourseError as error:
            fix = "write def my_reward(completions, **kwargs) and return one score per completion."
            yield finding("not_a_reward", str(error), "TRL calls each reward with keyword arguments.", fix)
            continue
        name, extra = reward_name(reward), [one for one in given if one not in parameters]
        if extra and not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            why = f"TRL also passes {', '.join(extra)} to every reward, so the first call raises a TypeError."
            fix = f"write def {name}({', '.join(map(str, parameters.values()))}, **kwargs)."
            yield finding("reward_takes_no_more", f"{name} has no **kwargs.", why, fix)
        for wanted in missing_columns(parameters, _columns_given(run)) if run.train else []:
            yield _missing(run, name, wanted)


def _columns_given(run: Run) -> list[str]:
    """The dataset's columns as rewards get them: TRL keeps ``prompt`` and ``completion`` to itself."""
    return [name for name in columns_of(run.train) if name not in ("prompt", "completion", "completion_ids")]


def _missing(run: Run, name: str, wanted: str) -> Finding:
    """The finding for a missing column, with the column to rename if it is obvious."""
    columns, gold = _columns_given(run), run.answer_column
    plural = f"{wanted}s"  # of TRL's own names only this typo is suggested: 'solution' is not one for 'completions'
    hint = f"Did you mean {plural!r}?" if plural in PROVIDED else did_you_mean(wanted, columns).strip()
    meant = gold if wanted in ("answer", "solution") and gold in columns else columns[0] if len(columns) == 1 else ""
    rename = f" Use rows.rename_column({meant!r}, {wanted!r})" if meant else " Add a column of that name"
    what = f"{name} needs the column {wanted!r}; the dataset has {', '.join(columns) or 'only the prompt'}."
    why = "TRL passes columns to a reward by name, so the call raises a TypeError."
    return finding("missing_column", what, why, f"{hint}{rename}, or rename the parameter.".strip())


def reads_answers(run: Run, rewards: list[Callable]) -> bool:
    """Whether any of these rewards reads the gold answers."""
    return any(run.answer_column in inspect.signature(reward).parameters for reward in rewards)


def in_the_lab(run: Run) -> tuple[list[Finding], str]:
    """The lab's findings with a few gold answers of the rows, for each reward and for their sum."""
    subjects, (answers, columns) = functions(run), sample(run)
    several = len(subjects) > 1
    given = run["reward_weights"] if several and len(subjects) == len(run.rewards) else None
    report = probe(
        subjects if several else subjects[0],
        answers=answers,
        answer_column=run.answer_column,
        columns=columns,
        tags=run.tags,
        weights=list(given) if given else None,
    )
    other_kind = ("chat_only" if run.chat else "string_only") if run.train else ""  # of prompts that the run lacks
    named = dict(zip(report.judged, subjects, strict=False))  # the last one judged is their sum
    about = [(fault, [named[fault.subject]] if fault.subject in named else subjects) for fault in report.findings]
    found = [_from_lab(run, fault, some) for fault, some in about if fault.code != other_kind]
    return found, f"the reward lab scored {len(report.scored)} completions"


def _from_lab(run: Run, fault: Finding, about: list[Callable]) -> Finding:
    """A fault from the lab as a finding, less severe if the lab only guesses."""
    severity, fix = fault.severity, FIX_REWARD
    there = run.train is None or run.answer_column in columns_of(run.train)
    if fault.code in ("string_only", "chat_only") and run.train:
        severity = "error"
    elif fault.code == "raises" and fault.seen == NO_CONTENT:
        severity = "warning"
        fix = "ignore this without tools (TRL then always passes text). With tools: (message.get('content') or '')."
    elif fault.code in OF_ANSWERS and not (there and reads_answers(run, about)):
        severity, fix = "warning", FIX_GUESS
    elif fault.code == "dead":
        fix = f"Fix the reward. {FIX_GUESS}"
    why = f"the reward lab reports {fault.code} (see docs/rewards.md)."
    return finding(
        "reward_broken" if severity == "error" else "reward_weak", f"{fault.subject}: {fault.what}", why, fix
    )


def sample(run: Run) -> tuple[list | None, dict]:
    """Gold answers of the first rows that have one, each once, and their other columns."""
    if not run.train:
        return None, {}
    name, looked_at = run.answer_column, first(run.train, MOST_LOOKED_AT)
    golds = dict(zip(looked_at, column(run.train, name, looked_at), strict=True))
    texts = {index: str(gold) for index, gold in golds.items() if gold is not None and str(gold).strip()}
    indices = sorted({text: index for index, text in reversed(texts.items())}.values())
    kept = [run.train[index] for index in (indices or looked_at)[:MOST_GOLDS]]  # images too: these only
    others = [one for one in _columns_given(run) if one != name]
    return [row[name] for row in kept] if indices else None, {one: [row.get(one) for row in kept] for one in others}


def first_row(run: Run) -> tuple[object, dict]:
    """A gold answer, and the columns of its row."""
    answers, columns = sample(run)
    gold = answers[0] if answers else "42"
    return gold, {run.answer_column: gold, **{name: values[0] for name, values in columns.items()}}
