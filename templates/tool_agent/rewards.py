"""The rewards. CHANGE THIS FILE, and environment.py: what you pay for is what the model learns.

A completion is an episode: a list of messages, the model's (role "assistant", some with ``tool_calls``) and the tools'
(role "tool"). ``environments`` are the environments of these episodes, or missing where `TOOLS` has plain tools.
Trust what the environment remembers, never what the model says of it. A new reward is one
function and one line in `REWARDS`, with its weight.
"""

import re
from decimal import Decimal

from lib.scoring import message_text, messages_of

NUMBER = re.compile(r"-?\$?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?")
FORM = re.compile(r"\A[^<>]*<answer>([^<>]+)</answer>\s*")  # the last turn: words if it likes, then one answer


def number(text: str | None) -> Decimal | None:
    """The number that a text is, or None: "1,250" and "$1250.00" are 1250; "4,2", "nan" and words are none."""
    text = (text or "").strip()
    return Decimal(re.sub(r"[,$]", "", text)) if len(text) < 50 and NUMBER.fullmatch(text) else None


def results_of(episode: list[dict], environment: object | None) -> list[Decimal]:
    """What the tools gave back: as the environment remembers it, or as only the loop can write it, in tool messages."""
    told = [message_text(message) for message in episode if message.get("role") == "tool"]
    said = environment.results if environment is not None else told
    return [value for value in map(number, said) if value is not None]


def answer_of(episode: list[dict], environment: object | None) -> str | None:
    """The answer in the last turn, if it has the asked form and stands after a result: without a call there is none."""
    last = episode[-1] if episode else {}
    match = FORM.fullmatch(message_text(last)) if last.get("role") in ("assistant", None) else None
    finished = match and not last.get("tool_calls") and results_of(episode, environment)
    return match[1] if finished else None


def follows(episode: list[dict], environment: object | None, gold: str) -> bool:
    """Whether the answer is the gold number, and is one that the calculator gave back in this episode."""
    value = number(answer_of(episode, environment))
    return value is not None and value == number(gold) and value in results_of(episode, environment)


def share_worked(episode: list[dict], environment: object | None) -> float:
    """The share of the calls that gave a result; unknown tools, wrong arguments, nonsense, too many calls give none."""
    asked = sum(len(message.get("tool_calls") or []) for message in episode)
    return min(1.0, len(results_of(episode, environment)) / asked) if asked else 0.0


def each(completions: list, environments: list | None) -> zip:
    """Episodes with their environments, or with None."""
    return zip(map(messages_of, completions), environments or [None] * len(completions), strict=True)


def correctness_reward(completions: list, answer: list[str], environments: list | None = None, **kwargs) -> list[float]:
    """1.0 for the right answer that follows from a call; a guess without a call is worth nothing."""
    return [float(follows(*pair, gold)) for pair, gold in zip(each(completions, environments), answer, strict=True)]


def tool_reward(completions: list, environments: list | None = None, **kwargs) -> list[float]:
    """The share of the calls that worked: a slope that leads to calls."""
    return [share_worked(*pair) for pair in each(completions, environments)]


def format_reward(completions: list, environments: list | None = None, **kwargs) -> list[float]:
    """1.0 for an answer in form after a call that worked, whatever it says: a slope from the call to the answer."""
    return [float(answer_of(*pair) is not None) for pair in each(completions, environments)]


#: What `train.py` trains on, each with its weight: correctness outweighs the rest together.
REWARDS = {correctness_reward: 2.0, tool_reward: 0.5, format_reward: 0.5}


def is_right(episode: object, row: dict) -> bool:
    """What the report counts as accurate: a call that worked, and its right result given as the answer."""
    return follows(episode.messages, episode.environment, row["answer"])


def is_in_form(episode: object) -> bool:
    """What the report counts as in form."""
    return answer_of(episode.messages, episode.environment) is not None
