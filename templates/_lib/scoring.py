"""Call rewards safely: an error names the reward, the row and the completion."""

import functools
import math
import reprlib
import sys
import traceback
from collections.abc import Callable, Iterable
from types import SimpleNamespace


class RewardError(Exception):
    """A reward raised, or did not return a list of numbers; the message names the reward and the row."""


def rehearse(
    rewards: dict[Callable, float],
    row: dict,
    checks: dict[str, Callable] | None = None,
    factory: Callable | None = None,
) -> None:
    """Try each reward on one row, before a model is loaded.

    ``checks`` maps the name of a reward that costs money to a function to call instead. ``factory`` creates the
    environments that rewards get.
    """
    checks = checks or {}
    check_rewards(rewards, known=checks)
    for reward in rewards:
        check = checks.get(reward.__name__)
        check() if check else try_on(reward, row, factory)


def check_rewards(rewards: dict[Callable, float], known: Iterable[str] = ()) -> None:
    """Check that each reward has a weight, and print a note for each reward function that is not used.

    ``known`` has the names of those that are left out on purpose.
    """
    if not (isinstance(rewards, dict) and rewards and all(map(is_finite, rewards.values()))):
        example = "REWARDS = {correctness_reward: 2.0, format_reward: 0.5}"
        raise SystemExit(f"Error: REWARDS in rewards.py must give each reward a weight: {example}.")
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
        except Exception as error:  # the only place that runs your own code
            where = traceback.format_exc(limit=-2)
            raise RewardError(f"{reward.__name__} raised.\n{blame(reward, completions, columns)}\n{where}") from error
        return check_scores(reward.__name__, scores, completions)

    return score


def check_scores(name: str, scores: object, completions: list) -> list[float | None]:
    """The scores as floats; there must be one per completion, a finite number or None (no score)."""
    if not isinstance(scores, list | tuple) or len(scores) != len(completions):
        shown = (
            reprlib.repr(scores)
            if not isinstance(scores, list | tuple)
            else f"{len(scores)} score{'s' * (len(scores) != 1)}"
        )
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


def counted(n: int, what: str) -> str:
    """A number and what it counts: 1 score, 2 scores."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


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


def try_on(reward: Callable, row: dict, factory: Callable | None = None) -> None:
    """Score some test answers to one row as TRL would: empty, no answer, and each text of the row, bare and in tags.

    A problem raises `SystemExit`. ``factory`` creates the environment of an episode with tools.
    """
    texts = [value for key, value in row.items() if key != "prompt" and isinstance(value, str)]
    texts = ["", "I do not know.", *texts, *(f"<reasoning>So.</reasoning><answer>{text}</answer>" for text in texts)]
    columns = {key: [value] * len(texts) for key, value in row.items() if key != "prompt"}
    columns |= {"prompts": [row["prompt"]] * len(texts), "completion_ids": [[0]] * len(texts)}
    columns |= {"trainer_state": SimpleNamespace(global_step=0, max_steps=1, epoch=0.0, log_history=[])}
    columns |= {"log_extra": lambda *column: None, "log_metric": lambda *metric: None}
    if factory:
        columns["environments"] = [started(factory, row) for _ in texts]
    try:
        guarded(reward)([[{"role": "assistant", "content": text}] for text in texts], **columns)
    except RewardError as error:
        tried = f"Tried on one row with the columns {', '.join(row)}, before any model is loaded. Fix rewards.py."
        raise SystemExit(f"Error: {error}\n({tried})") from None


def started(factory: Callable, row: dict) -> object:
    """An environment at the beginning of an episode, as TRL passes it to a reward."""
    environment = factory()
    environment.reset(**row)
    return environment
