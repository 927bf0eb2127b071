"""Call what rewards.py defines safely: an error names the function, the row and the text."""

import functools
import inspect
import math
import reprlib
import sys
import traceback
from collections.abc import Callable, Iterable
from types import SimpleNamespace

BEFORE = "Tried on one row, before any model is loaded. Fix rewards.py."


class RewardError(Exception):
    """A reward raised, or did not return a list of numbers; the message names the reward and the row."""


def rehearse(
    rewards: dict[Callable, float],
    row: dict,
    is_right: Callable,
    is_in_form: Callable,
    gold_text: Callable = lambda row: None,
    *,
    checks: dict[str, Callable] | None = None,
    factory: Callable | None = None,
    as_answer: Callable = str,
) -> None:
    """Try each function of rewards.py on one row, before a model is loaded; a problem raises `SystemExit`.

    ``gold_text`` returns a text that must count as correct, or None. ``checks`` maps the name of a reward that costs
    money to a function to call instead. ``factory`` creates the environments that rewards get, and ``as_answer`` makes
    of a text what ``is_right`` gets.
    """
    checks, gold = checks or {}, gold_text(row)
    check_rewards(rewards, known=checks)
    texts = trial_texts(row, gold)
    for reward in rewards:
        check = checks.get(reward.__name__)
        scores = check() if check else try_on(reward, row, texts, factory)
        if gold is not None and scores and len(set(scores)) == 1:
            print(
                f"Note: {reward.__name__} gave {scores[0]} to each of the {len(texts)} texts that were tried.", end=" "
            )
            print("The gold answer and no answer at all are among them, so is it correct?")
    for text in texts:
        counts(is_right, as_answer(text), row)
        counts(is_in_form, as_answer(text))
    if gold is not None and not (counts(is_right, gold, row) and counts(is_in_form, gold)):
        which = "is_right" if not counts(is_right, gold, row) else "is_in_form"
        raise SystemExit(
            f"Error: {which} returned False for the gold answer, so no completion could be correct.\n"
            f"Row: {without_prompt(row)}\nText: {gold!r}\n"
            "Correct it in rewards.py; or gold_text there, which writes this text; or the answer in the data."
        )


def trial_texts(row: dict, gold: str | None) -> list[str]:
    """Answers to try on one row: empty, no answer, each text of the row, bare and in tags, and the gold answer."""
    texts = [value for key, value in row.items() if key != "prompt" and isinstance(value, str)]
    tagged = [f"<reasoning>So.</reasoning><answer>{text}</answer>" for text in texts]
    return ["", "I do not know.", *texts, *tagged, *([gold] if gold is not None else [])]


def counts(judge: Callable, text: object, *row: dict) -> bool:
    """What `is_right` or `is_in_form` returns, which must be True or False."""
    tried = f"{''.join(f'Row: {without_prompt(one)}{chr(10)}' for one in row)}Text: {text!r}"
    try:
        found = judge(text, *row)
    except Exception:  # your own code
        where = traceback.format_exc(limit=-2)
        raise SystemExit(f"Error: {judge.__name__} raised.\n{tried}\n{where}{BEFORE}") from None
    if not isinstance(found, bool):
        raise SystemExit(
            f"Error: {judge.__name__} returned {reprlib.repr(found)} ({type(found).__name__}); it should return True "
            f"or False. Is a `return` missing?\n{tried}\n{BEFORE}"
        )
    return found


def without_prompt(row: dict) -> dict:
    """The columns that TRL passes to a reward under their own names."""
    return {name: value for name, value in row.items() if name != "prompt"}


def check_rewards(rewards: dict[Callable, float], known: Iterable[str] = ()) -> None:
    """Check that each reward has a weight, and print a note for each reward function that is not used.

    ``known`` has the names of those that are left out on purpose.
    """
    weights = rewards.items() if isinstance(rewards, dict) else ()
    wrong = [f"{getattr(one, '__name__', one)} has {weight!r}" for one, weight in weights if not is_finite(weight)]
    if wrong or not weights:
        example = "REWARDS = {correctness_reward: 2.0, format_reward: 0.5}"
        found = f" ({', '.join(wrong)})" if wrong else ""
        raise SystemExit(f"Error: REWARDS in rewards.py must give each reward a weight{found}: {example}.")
    written = vars(sys.modules["rewards"]) if "rewards" in sys.modules else {}
    for name, reward in written.items():
        own = name.endswith("_reward") and callable(reward) and reward.__module__ == "rewards"
        if own and name not in known and reward not in rewards:
            print(f"Note: {name} is in rewards.py but not in REWARDS, so it is not used.")


def guarded(reward: Callable) -> Callable:
    """The same reward, which raises only `RewardError` and whose scores are checked."""

    @functools.wraps(reward)
    def score(completions: list, **columns: object) -> list[float | None]:
        try:
            scores = reward(completions=completions, **columns)  # by name, as TRL calls it
        except Exception as error:  # your own code
            where = traceback.format_exc(limit=-2)
            fix = not_called_so(reward, columns)
            raise RewardError(
                f"{reward.__name__} raised.{fix}\n{blame(reward, completions, columns)}\n{where}"
            ) from error
        return check_scores(reward.__name__, scores, completions)

    return score


def check_scores(name: str, scores: object, completions: list) -> list[float | None]:
    """The scores as floats; there must be one per completion, a finite number or None (no score)."""
    if not isinstance(scores, list | tuple) or len(scores) != len(completions):
        counted = isinstance(scores, list | tuple)
        shown = f"{len(scores)} score{'s' * (len(scores) != 1)}" if counted else reprlib.repr(scores)
        wanted = f"it should return a list of {len(completions)} numbers, one per completion"
        raise RewardError(f"{name} returned {shown} ({type(scores).__name__}); {wanted}.")
    for score, completion in zip(scores, completions, strict=True):
        if score is not None and not is_finite(score):
            problem = f"{name} returned {reprlib.repr(score)} ({type(score).__name__}) for one completion"
            raise RewardError(
                f"{problem}; it should be a finite number, or None for no score.\nCompletion: {completion!r}"
            )
    if scores and all(score is None for score in scores):
        note_once(f"Note: {name} returned None for every completion of a batch, so it has no effect on that batch.")
    return [None if score is None else float(score) for score in scores]


def is_finite(score: object) -> bool:
    """Whether a score is a number, and not NaN or infinite."""
    try:
        return math.isfinite(score)
    except (TypeError, ValueError, OverflowError):
        return False


@functools.cache
def note_once(note: str) -> None:
    """Print a note once."""
    print(note, file=sys.stderr)


def not_called_so(reward: Callable, columns: dict) -> str:
    """What is wrong with the parameters of a reward, and how to fix it; "" if it can be called with these columns."""
    try:
        inspect.signature(reward).bind(completions=[], **columns)
    except TypeError as error:
        named = ", ".join(name for name, column in columns.items() if isinstance(column, list))
        return (
            f" It cannot be called as TRL does: {error}. TRL passes completions and every column by name ({named}): "
            "give a parameter the name of its column, and end the parameters with **kwargs."
        )
    return ""


def blame(reward: Callable, completions: list, columns: dict) -> str:
    """The first completion on which the reward raises, and its row."""
    for place, completion in enumerate(completions):
        row = {k: v[place : place + 1] if isinstance(v, list) else v for k, v in columns.items()}
        try:
            reward(completions=[completion], **row)
        except Exception:
            shown = {k: v[0] for k, v in row.items() if isinstance(v, list) and v and k != "completion_ids"}
            return f"Row: {shown}\nCompletion: {completion!r}"
    return "It scores each completion alone, but fails on the whole batch."


def try_on(reward: Callable, row: dict, texts: list[str], factory: Callable | None = None) -> list[float | None]:
    """The scores of test answers to one row, as TRL would get them; a problem raises `SystemExit`."""
    columns = {key: [value] * len(texts) for key, value in row.items() if key != "prompt"}
    columns |= {"prompts": [row["prompt"]] * len(texts), "completion_ids": [[0]] * len(texts)}
    columns |= {"trainer_state": SimpleNamespace(global_step=0, max_steps=1, epoch=0.0, log_history=[])}
    columns |= {"log_extra": lambda *column: None, "log_metric": lambda *metric: None}
    if factory:
        columns["environments"] = [started(factory, row) for _ in texts]
    try:
        return guarded(reward)([[{"role": "assistant", "content": text}] for text in texts], **columns)
    except RewardError as error:
        raise SystemExit(f"Error: {error}\n(Columns: {', '.join(row)}. {BEFORE})") from None


def started(factory: Callable, row: dict) -> object:
    """An environment at the beginning of an episode, as TRL passes it to a reward."""
    environment = factory()
    environment.reset(**row)
    return environment
