"""Check the rewards: that TRL can call them, that the dataset has their columns, and what the lab finds."""

import functools
import inspect
import time
from collections.abc import Callable

from grpo_utils.errors import CourseError, did_you_mean
from grpo_utils.rewards import is_async, reward_name

from ..findings import Finding as Fault
from ..reward_lab import probe
from ..reward_lab.calling import PROVIDED, call, missing_columns, parameters_of
from ..reward_lab.forms import FORMS
from ..reward_lab.matrix import Case, clean_case
from .planned import Planned
from .report import Finding
from .rows import column, columns_of, first_rows, names_of

#: Rows whose answers and columns a reward is probed with.
MOST_GOLDS = 4
#: Rows among which different gold answers are looked for.
MOST_LOOKED_AT = 1000
#: What TRL gives a reward beside the dataset's columns in every run.
GIVEN = (*PROVIDED, "environments")
#: Seconds that one completion may take a reward, and the whole lab, before it is left out.
SECONDS_FOR_ONE, LAB_SECONDS = 0.1, 30.0
TOO_SLOW = "too slow to try here: python -m grpo_check probe FILE.py:function takes its time"
#: How the lab shows the message without content, which TRL makes of a tool call alone.
NO_CONTENT = "(a chat message without content)"
#: Faults that the lab can know only of a reward that compares with a gold answer.
OF_ANSWERS = ("dead", "wrong_beats_right", "pays_missing_answer")
MEND_REWARD = "Mend the reward; see all with print(probe(reward, answers=[…])), or `python -m grpo_check probe`."
MEND_GUESS = (
    "The lab writes gold answers in tags; if the task is another one, say so: answer_column='…' (where the gold "
    "answers are), tags=(…) (the asked form), or lab=False (no lab)."
)


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
    meant = _meant(run, wanted, columns)
    rename = f" rows.rename_column({meant!r}, {wanted!r})" if meant else " A column of that name"
    mend = f"{hint}{rename}, or another name in the reward.".strip()
    what = f"{name} asks for {wanted!r}; the dataset's columns are {', '.join(columns) or 'none beside the prompt'}."
    return Finding("missing_column", what, "TRL fills it from a column of that name, and raises a TypeError.", mend)


def _meant(run: Planned, wanted: str, columns: list[str]) -> str | None:
    """The column that is to be renamed: the gold answers, which TRL's own rewards call solution, or the only one."""
    if wanted in ("answer", "solution") and run.answer_column in columns:
        return run.answer_column
    return columns[0] if len(columns) == 1 else None


class OutOfBudgetError(BaseException):
    """The lab took too long; the lab itself survives every `Exception`, so this is none."""


def too_slow(run: Planned) -> list[str]:
    """The rewards that take too long for two completions; a first call that loads something is not counted."""
    answers, columns = sample(run)
    first = {name: values[0] for name, values in columns.items()}
    first |= {run.answer_column: answers[0]} if answers else {}
    cases = [clean_case(FORMS[0], str(answers[0] if answers else 42)), Case("another", "odd", "I do not know.")]
    rows = [case._replace(columns=first) for case in cases]
    return [reward_name(reward) for reward in functions(run) if _seconds(reward, rows, is_chat(run)) > SECONDS_FOR_ONE]


def _seconds(reward: Callable, rows: list[Case], chat: bool) -> float:
    """Seconds a completion."""
    first = call(reward, rows, chat)
    again = first.seconds / len(rows) > SECONDS_FOR_ONE and first.code != "slow"
    return (call(reward, rows, chat) if again else first).seconds / len(rows)


def within(reward: Callable, ends: float) -> Callable:
    """The reward itself until a time, after which a call raises `OutOfBudgetError`."""
    if is_async(reward):
        return reward

    @functools.wraps(reward)
    def bounded(**arguments: object) -> object:
        if time.perf_counter() > ends:
            raise OutOfBudgetError
        return reward(**arguments)

    bounded.__name__ = reward_name(reward)
    return bounded


def in_the_lab(run: Planned) -> tuple[list[Finding], str]:
    """What the reward lab finds with a few gold answers of the rows; each reward on its own, then their sum."""
    ends = time.perf_counter() + LAB_SECONDS
    subjects = [within(reward, ends) for reward in functions(run)]
    answers, columns = sample(run)
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
    found = [_from_lab(run, finding, kinds) for finding in report.findings if kinds.get(finding.code) != "no matter"]
    return found, f"the lab tried {len(report.scored)} completions"


def _from_lab(run: Planned, finding: Fault, kinds: dict[str, str]) -> Finding:
    """A fault that the lab found, as a finding."""
    severity, mend = kinds.get(finding.code, finding.severity), MEND_REWARD
    if finding.code == "raises" and finding.seen == NO_CONTENT:
        severity = "warning"
        mend = "None if the run has no tools: TRL then always gives a text. With tools: (message.get('content') or '')."
    elif finding.code in OF_ANSWERS and not _reads_answers(run, finding.subject):
        severity, mend = "warning", MEND_GUESS
    elif finding.code == "dead":
        mend = f"Mend the reward. {MEND_GUESS}"
    why = f"the lab calls this {finding.code} (docs/rewards.md says what it means)."
    code = "reward_broken" if severity == "error" else "reward_weak"
    return Finding(code, f"{finding.subject}: {finding.what.rstrip('.')}.", why, mend)


def _reads_answers(run: Planned, name: str) -> bool:
    """Whether the reward of a name, as the lab gives it, reads the gold answers that the rows have."""
    if run.train is not None and run.answer_column not in columns_of(run.train):
        return False
    alone = [reward for reward in functions(run) if name.partition(" (")[0] == reward_name(reward)]
    return any(run.answer_column in names_of(reward) for reward in alone or functions(run))


def _kinds(run: Planned) -> dict[str, str]:
    """How severe it is that a reward handles one kind of completion: what counts is the kind of the prompts."""
    if run.train is None or not len(run.train):
        return {}
    chat = is_chat(run)
    return {"string_only": "error" if chat else "no matter", "chat_only": "no matter" if chat else "error"}


def is_chat(run: Planned) -> bool:
    """Whether the prompts are messages, as they are taken to be where there are none."""
    if run.train is None or not len(run.train):
        return True
    return isinstance(run.train[0].get("prompt"), list)


def sample(run: Planned) -> tuple[list | None, dict]:
    """Gold answers of the first rows that have one, and their other columns."""
    if run.train is None or not len(run.train):
        return None, {}
    names = _columns_given(run)
    few = first_rows(run.train, MOST_LOOKED_AT)
    golds = column(few, run.answer_column) if run.answer_column in names else list(range(len(few)))
    chosen = _different(golds)
    kept = [run.train[i] for i in chosen or range(min(MOST_GOLDS, len(few)))]  # read in full, images too: only these
    answers = [row.get(run.answer_column) for row in kept] if chosen and run.answer_column in names else None
    return answers, {name: [row.get(name) for row in kept] for name in names if name != run.answer_column}


def _different(golds: list) -> list[int]:
    """The first few rows with gold answers that are not alike."""
    chosen: dict[str, int] = {}
    for index, gold in enumerate(golds):
        if gold is not None and str(gold).strip() and len(chosen) < MOST_GOLDS:
            chosen.setdefault(str(gold), index)
    return list(chosen.values())
