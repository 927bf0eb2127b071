"""Read a completion: its text, its format, and its answer.

    >>> completion = [{"role": "assistant", "content": "<reasoning>15 + 27</reasoning><answer>42</answer>"}]
    >>> extract_answer(completion_text(completion))
    '42'

No completion makes a function of this module raise, and each function takes time in
proportion to the length of the text.
"""

import functools
import inspect
from collections.abc import Callable, Sequence

from ..training.texts import completion_text

Completion = str | Sequence[dict] | None

TAGS = ("<reasoning>", "</reasoning>", "<answer>", "</answer>")
OPENING, CLOSING = "<think>", "</think>"


def as_chat(completion: Completion) -> list[dict]:
    """Any completion as one message, which TRL's rewards need; ``None`` content becomes "".

    >>> as_chat("42")
    [{'role': 'assistant', 'content': '42'}]
    """
    return [{"role": "assistant", "content": completion_text(completion)}]


def split_form(text: str) -> tuple[str, str] | None:
    """The reasoning and the answer of a text in the strict format, else None.

    Strict means that each of the four tags appears once and in order, both parts are not blank, and only
    white space is before, between and after them.

    >>> split_form("<reasoning>15 + 27 = 42</reasoning> <answer>42</answer>")
    ('15 + 27 = 42', '42')
    >>> split_form("<reasoning>15 + 27 = 42 <answer>42") is None
    True
    """
    text = text.strip()
    if not (text.startswith(TAGS[0]) and text.endswith(TAGS[3])):
        return None
    if any(text.count(tag) != 1 for tag in TAGS):
        return None
    reasoning, _, rest = text[len(TAGS[0]) : -len(TAGS[3])].partition(TAGS[1])
    between, opening, answer = rest.partition(TAGS[2])
    if not opening or between.strip() or not reasoning.strip() or not answer.strip():
        return None
    return reasoning.strip(), answer.strip()


def split_thinking(text: str) -> tuple[str, str] | None:
    """The thinking and the answer of a text in the format ``<think>…</think> answer``, else None.

    The opening tag may be missing, because many chat templates write it into the prompt, so that the completion
    starts with the thinking. Each tag may appear once, nothing before ``<think>``, and both parts must not be blank.

    >>> split_thinking("<think>15 + 27</think>42"), split_thinking("15 + 27</think> 42")
    (('15 + 27', '42'), ('15 + 27', '42'))
    >>> split_thinking("<think>15 + 27</think>"), split_thinking("<think>a</think>42<think>b</think>43")
    (None, None)
    """
    thinking, _, answer = text.partition(CLOSING)
    thinking, answer = thinking.strip().removeprefix(OPENING).strip(), answer.strip()
    whole = thinking and answer and OPENING not in thinking + answer and CLOSING not in answer
    return (thinking, answer) if whole else None


def extract_answer(text: str) -> str | None:
    """The text in the only ``<answer>…</answer>``, else None.

    Two answers count as none, because a model must not be rewarded for guessing twice.

    >>> extract_answer("so <answer> 42 </answer>")
    '42'
    >>> extract_answer("<answer>41</answer><answer>42</answer>") is None
    True
    """
    if text.count(TAGS[2]) != 1 or text.count(TAGS[3]) != 1:
        return None
    answer, closing, _ = text.partition(TAGS[2])[2].partition(TAGS[3])
    return answer.strip() or None if closing else None


def extract_boxed(text: str) -> str | None:
    r"""The text in ``\boxed{…}``, with balanced braces, else None.

    Several boxes count only if they all have the same content.

    >>> extract_boxed(r"so \boxed{\frac{1}{2}}")
    '\\frac{1}{2}'
    >>> extract_boxed(r"\boxed{41} or \boxed{42}") is None
    True
    """
    boxes = {rest[: _closing_brace(rest)] for rest in text.split("\\boxed{")[1:]}
    return boxes.pop().strip() or None if len(boxes) == 1 else None


def _closing_brace(text: str) -> int:
    """The index of the brace that closes one before the text, or 0 without one."""
    depth = 1
    for place, char in enumerate(text):
        depth += (char == "{") - (char == "}")
        if not depth:
            return place
    return 0


def extract_after_thinking(text: str) -> str | None:
    """The text after the only ``</think>``, else None; for models that answer in plain text.

    The thinking may be empty, and its ``<think>`` may be in the prompt (see `split_thinking`), but it must not appear
    twice.

    >>> extract_after_thinking("<think>capitals</think>Paris"), extract_after_thinking("capitals</think>Paris")
    ('Paris', 'Paris')
    >>> extract_after_thinking("<think>Paris") is None
    True
    """
    before, closing, rest = text.partition(CLOSING)
    once = closing and CLOSING not in rest and OPENING not in rest and before.count(OPENING) <= 1
    return rest.strip() or None if once else None


def extract_after_hashes(text: str) -> str | None:
    """The text after the only ``####``, as in GSM8K's solutions, else None.

    >>> extract_after_hashes("48 / 2 = <<48/2=24>>24 clips. #### 24")
    '24'
    """
    _, hashes, rest = text.partition("####")
    return rest.strip() or None if hashes and "#" not in rest else None


def extract_all(text: str) -> str | None:
    """The whole text as the answer, for tasks that ask only for the answer (for example JSON).

    >>> extract_all(' {"name": "Ana"} ')
    '{"name": "Ana"}'
    """
    return text.strip() or None


def reward_name(reward: Callable) -> str:
    """The name of a reward in TRL's log: the name of the function, of the function in a ``partial``, or of the class.

    >>> from functools import partial
    >>> reward_name(partial(split_form))
    'split_form'
    """
    reward = _unwrapped(reward)
    return getattr(reward, "__name__", type(reward).__name__)


def is_async(reward: Callable) -> bool:
    """Whether calling a reward returns a coroutine.

    >>> is_async(split_form)
    False
    """
    reward = _unwrapped(reward)
    return inspect.iscoroutinefunction(reward) or inspect.iscoroutinefunction(type(reward).__call__)


def _unwrapped(reward: Callable) -> Callable:
    """The function inside a ``partial``, or inside nested ones."""
    while isinstance(reward, functools.partial):
        reward = reward.func
    return reward
