"""Check the rewards: that TRL can call them, that the dataset has their columns, and what the lab finds."""

import inspect
from collections.abc import Callable

from ..errors import CourseError, did_you_mean
from ..reward_lab import probe
from ..reward_lab.calling import PROVIDED, missing_columns, parameters_of
from ..rewards import reward_name
from .planned import Planned
from .report import Finding
from .rows import column, columns_of

#: Rows whose answers and columns a reward is probed with.
MOST_GOLDS = 4
#: What TRL gives a reward beside the dataset's columns in every run.
GIVEN = (*PROVIDED, "environments")


def functions(run: Planned) -> list[Callable]:
    """The rewards that are functions; a model or the name of one is loaded by TRL and cannot be tried here."""
    return [reward for reward in run.rewards if callable(reward) and not _is_model(reward)]


def models(run: Planned) -> list[str]:
    """Which rewards are models."""
    return [
        str(reward) if isinstance(reward, str) else type(reward).__name__ for reward in run.rewards if _is_model(reward)
    ]


def _is_model(reward: object) -> bool:
    from torch import nn

    return isinstance(reward, str | nn.Module)


def there(run: Planned) -> list[Finding]:
    """That there is a reward, and as many weights."""
    if not run.rewards:
        why = 'TRL raises: "No reward source provided".'
        return [Finding("no_rewards", "reward_funcs is empty.", why, "rewards, weights = math_rewards(), for example.")]
    weights = run["reward_weights"]
    if weights is None:
        return []
    if not isinstance(weights, list | tuple):
        mend = f"reward_weights={[1.0] * len(run.rewards)}, one for each reward."
        return [Finding("reward_weights", f"reward_weights={weights!r} is no list.", "TRL counts its items.", mend)]
    if len(weights) != len(run.rewards):
        names = ", ".join(reward if isinstance(reward, str) else reward_name(reward) for reward in run.rewards)
        what = f"{len(weights)} reward_weights for {len(run.rewards)} rewards ({names})."
        mend = f"reward_weights={[1.0] * len(run.rewards)}, one for each in this order; or leave it out: 1.0 each."
        return [Finding("reward_weights", what, "TRL raises a ValueError.", mend)]
    if not any(weights):
        why = "every completion earns 0, so every advantage is zero."
        return [
            Finding(
                "reward_weights",
                f"reward_weights={list(weights)}.",
                why,
                "A weight above 0 for what should be learned.",
            )
        ]
    return []


def callable_by_trl(run: Planned) -> list[Finding]:
    """Signatures: TRL calls with keywords, and gives every column and more to each reward."""
    found = []
    for reward in run.rewards:
        if not _is_model(reward):
            found += _signature(run, reward)
    return found


def _signature(run: Planned, reward: object) -> list[Finding]:
    try:
        parameters = parameters_of(reward)
    except CourseError as error:
        mend = "def my_reward(completions, **kwargs): return [score for each completion]."
        return [Finding("not_a_reward", str(error), "TRL calls each reward with keywords.", mend)]
    name, found = reward_name(reward), []
    extra = [given for given in _all_given(run) if given not in parameters]
    if extra and not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        why = f"TRL gives every reward {', '.join(extra)} as well, so it raises a TypeError after the first sampling."
        written = ", ".join(map(str, inspect.signature(reward).parameters.values()))
        found.append(
            Finding("reward_takes_no_more", f"{name} has no **kwargs.", why, f"def {name}({written}, **kwargs).")
        )
    if run.train is not None and len(run.train):
        found += [_missing(run, name, column) for column in missing_columns(parameters, _columns_given(run))]
    return found


def _columns_given(run: Planned) -> list[str]:
    """The dataset's columns as rewards get them: TRL keeps ``prompt`` and ``completion`` to itself."""
    return [name for name in columns_of(run.train) if name not in ("prompt", "completion", "completion_ids")]


def _all_given(run: Planned) -> list[str]:
    return [*PROVIDED, *(_columns_given(run) if run.train is not None else [])]


def _missing(run: Planned, name: str, wanted: str) -> Finding:
    columns = _columns_given(run)
    plural = f"{wanted}s"  # of TRL's own names only this slip is suggested: 'solution' is none for 'completions'
    hint = f"Did you mean {plural!r}?" if plural in PROVIDED else did_you_mean(wanted, columns).strip()
    rename = f" rows.rename_column({columns[0]!r}, {wanted!r})" if len(columns) == 1 else " A column of that name"
    mend = f"{hint}{rename}, or another name in the reward.".strip()
    what = f"{name} asks for {wanted!r}; the dataset's columns are {', '.join(columns) or 'none beside the prompt'}."
    return Finding("missing_column", what, "TRL fills it from a column of that name, and raises a TypeError.", mend)


def in_the_lab(run: Planned) -> tuple[list[Finding], str]:
    """What the reward lab finds with a few gold answers of the rows; each reward on its own, then their sum."""
    subjects = functions(run)
    answers, columns = _sample(run)
    weights = run["reward_weights"] if len(subjects) == len(run.rewards) else None
    report = probe(
        subjects if len(subjects) > 1 else subjects[0],
        answers=answers,
        answer_column=run.answer_column,
        columns=columns,
        tags=run.tags,
        weights=list(weights) if weights and len(subjects) > 1 else None,
    )
    kinds = _kinds(run)
    found = [
        Finding(
            "reward_broken" if kinds.get(finding.code, finding.severity) == "error" else "reward_weak",
            f"{finding.reward}: {finding.sentence}",
            f"the lab calls this {finding.code} (docs/rewards.md says what it means).",
            "Mend the reward; see all with print(probe(reward, answers=[…])), or `python -m grpo_utils probe`.",
        )
        for finding in report.findings
        if kinds.get(finding.code) != "no matter"
    ]
    return found, f"the lab tried {len(report.scored)} completions"


def _kinds(run: Planned) -> dict[str, str]:
    """How severe it is that a reward handles one kind of completion: what counts is the kind of the prompts."""
    if run.train is None or not len(run.train):
        return {}
    chat = isinstance(column(run.train, "prompt")[0], list)
    return {"string_only": "error" if chat else "no matter", "chat_only": "no matter" if chat else "error"}


def _sample(run: Planned) -> tuple[list | None, dict]:
    """Gold answers of the first rows that have one, and their other columns."""
    if run.train is None or not len(run.train):
        return None, {}
    columns = {name: column(run.train, name) for name in _columns_given(run)}
    golds = columns.get(run.answer_column) or [True] * len(run.train)
    kept = _different(golds)
    answers = [golds[i] for i in kept] if run.answer_column in columns else None
    return answers, {name: [v[i] for i in kept] for name, v in columns.items() if name != run.answer_column}


def _different(golds: list) -> list[int]:
    """The first few rows with gold answers that are not alike."""
    chosen: dict[str, int] = {}
    for index, gold in enumerate(golds):
        if gold is not None and str(gold).strip() and len(chosen) < MOST_GOLDS:
            chosen.setdefault(str(gold), index)
    return list(chosen.values())
