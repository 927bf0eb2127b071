"""The rewards. CHANGE THIS FILE and environment.py: the model learns what you reward.

A completion is an episode: a list of messages from the model (role "assistant", some with ``tool_calls``) and the
tools (role "tool"). ``environments`` has their environments; with plain tools in `TOOLS`, there are none. Trust only
what the environment records, not what the model says about it. To add a reward, write a function and add it with its
weight to `REWARDS`.
"""

import re

from grpo_core.training.answers import parse_number, same_number
from grpo_core.training.texts import message_text, messages_of

FORMAT = re.compile(r"\A[^<>]*<answer>([^<>]+)</answer>\s*")  # the last turn: optional words, then one answer


def results_of(episode: list[dict], environment: object | None) -> list[str]:
    """The numbers that the tools returned, from the environment's record or, without one, from the tool messages."""
    output = [message_text(message) for message in episode if message.get("role") == "tool"]
    results = environment.results if environment is not None else output
    return [result for result in results if parse_number(result)]


def answer_of(episode: list[dict], environment: object | None) -> str | None:
    """The answer in the last turn, if it is correctly formatted and comes after a result; else None."""
    last = episode[-1] if episode else {}
    match = FORMAT.fullmatch(message_text(last)) if last.get("role") in ("assistant", None) else None
    finished = match and not last.get("tool_calls") and results_of(episode, environment)
    return match[1] if finished else None


def follows(episode: list[dict], environment: object | None, gold: str) -> bool:
    """Whether the answer is the gold number and a result of the calculator in this episode."""
    said, results = answer_of(episode, environment), results_of(episode, environment)
    return same_number(said, gold) and any(same_number(said, result) for result in results)


def share_worked(episode: list[dict], environment: object | None) -> float:
    """The share of calls with a result. Unknown tools, wrong arguments, nonsense and too many calls have none."""
    asked = sum(len(message.get("tool_calls") or []) for message in episode)
    return min(1.0, len(results_of(episode, environment)) / asked) if asked else 0.0


def each(completions: list, environments: list | None) -> zip:
    """Pairs of an episode and its environment or None."""
    return zip(map(messages_of, completions), environments or [None] * len(completions), strict=True)


def correctness_reward(completions: list, answer: list[str], environments: list | None = None, **kwargs) -> list[float]:
    """1.0 for a correct answer that is the result of a call; a guess without a call gets 0."""
    return [float(follows(*pair, gold)) for pair, gold in zip(each(completions, environments), answer, strict=True)]


def tool_reward(completions: list, environments: list | None = None, **kwargs) -> list[float]:
    """The share of calls that worked, as partial credit for calls."""
    return [share_worked(*pair) for pair in each(completions, environments)]


def format_reward(completions: list, environments: list | None = None, **kwargs) -> list[float]:
    """1.0 for a correctly formatted answer after a call that worked, as partial credit for answers."""
    return [float(answer_of(*pair) is not None) for pair in each(completions, environments)]


#: The rewards that `train.py` uses, with their weights. Correctness outweighs all others together.
REWARDS = {correctness_reward: 2.0, tool_reward: 0.5, format_reward: 0.5}


def is_right(episode: object, row: dict) -> bool:
    """Whether the report counts an episode as accurate: a call worked, and its correct result is the answer."""
    return follows(episode.messages, episode.environment, row["answer"])


def is_in_form(episode: object) -> bool:
    """Whether the report counts an episode as correctly formatted."""
    return answer_of(episode.messages, episode.environment) is not None
