"""What a completion says: its text, its form, and where its answer stands.

    >>> completion = [{"role": "assistant", "content": "<reasoning>15 + 27</reasoning><answer>42</answer>"}]
    >>> extract_answer(completion_text(completion))
    '42'

No completion, however odd, makes a function of this module raise, and each takes time in
proportion to the length of the text.
"""

import functools
import inspect
from collections.abc import Callable, Sequence

from .markup import closing_brace

Completion = str | Sequence[dict] | None

TAGS = ("<reasoning>", "</reasoning>", "<answer>", "</answer>")
OPENING, CLOSING = "<think>", "</think>"


def completion_text(completion: Completion) -> str:
    """The text of a completion: itself, or what its last assistant message says; "" where it says nothing.

    Only what the model wrote is read: messages of tools, users and the system never count, also after the model's
    last one. A message without a role is the model's. Of content in parts the text parts are read.

    >>> completion_text([{"role": "assistant", "content": "42"}, {"role": "tool", "content": "43"}])
    '42'
    >>> completion_text([{"role": "assistant", "content": None}]), completion_text([{"role": "tool", "content": "43"}])
    ('', '')
    """
    if isinstance(completion, str):
        return completion
    if not isinstance(completion, list | tuple):
        return ""
    for message in reversed(completion):
        if isinstance(message, dict) and message.get("role") in ("assistant", None):
            return _content_text(message.get("content"))
    return ""


def _content_text(content: object) -> str:
    """The text of a message's content, which may be a list of parts: images, sounds, texts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list | tuple) else ()
    texts = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type", "text") == "text"]
    return "".join(text for text in texts if isinstance(text, str))


def as_chat(completion: Completion) -> list[dict]:
    """Any completion as the one message that TRL's own rewards read; ``None`` content as "".

    >>> as_chat("42")
    [{'role': 'assistant', 'content': '42'}]
    """
    return [{"role": "assistant", "content": completion_text(completion)}]


def split_form(text: str) -> tuple[str, str] | None:
    """Reasoning and answer of a text in the strict form, else None.

    Strict: each of the four tags once and in order, both parts not blank, nothing but white
    space before, between and after.

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
    """Thinking and answer of a text in the form ``<think>…</think> answer``, else None.

    The opening tag may be missing: many chat templates write it into the prompt, and the completion
    then begins with the thinking. Each tag at most once, nothing before ``<think>``, both parts not blank.

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
    """What stands in the one ``<answer>…</answer>`` of the text, else None.

    Two answers are none: a model must not be paid for guessing twice.

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
    r"""What stands in the ``\boxed{…}`` of the text, braces balanced, else None.

    Several boxes count only where all hold the same.

    >>> extract_boxed(r"so \boxed{\frac{1}{2}}")
    '\\frac{1}{2}'
    >>> extract_boxed(r"\boxed{41} or \boxed{42}") is None
    True
    """
    boxes = {rest[: closing_brace(rest, 0) or 0] for rest in text.split("\\boxed{")[1:]}
    return boxes.pop().strip() or None if len(boxes) == 1 else None


def extract_after_thinking(text: str) -> str | None:
    """All that follows the one ``</think>``, else None; for models that answer in plain text.

    The thinking may be empty, and its ``<think>`` may be part of the prompt (see `split_thinking`), but it may not
    be opened twice.

    >>> extract_after_thinking("<think>capitals</think>Paris"), extract_after_thinking("capitals</think>Paris")
    ('Paris', 'Paris')
    >>> extract_after_thinking("<think>Paris") is None
    True
    """
    before, closing, rest = text.partition(CLOSING)
    once = closing and CLOSING not in rest and OPENING not in rest and before.count(OPENING) <= 1
    return rest.strip() or None if once else None


def extract_after_hashes(text: str) -> str | None:
    """What follows the one ``####``, as GSM8K's own solutions end, else None.

    >>> extract_after_hashes("48 / 2 = <<48/2=24>>24 clips. #### 24")
    '24'
    """
    _, hashes, rest = text.partition("####")
    return rest.strip() or None if hashes and "#" not in rest else None


def extract_all(text: str) -> str | None:
    """The whole text as the answer, for tasks that ask for the answer alone (JSON, for example).

    >>> extract_all(' {"name": "Ana"} ')
    '{"name": "Ana"}'
    """
    return text.strip() or None


def reward_name(reward: Callable) -> str:
    """The name that TRL logs a reward under: of the function, of what a ``partial`` wraps, or of the class.

    >>> from functools import partial
    >>> reward_name(partial(split_form))
    'split_form'
    """
    reward = _unwrapped(reward)
    return getattr(reward, "__name__", type(reward).__name__)


def is_async(reward: Callable) -> bool:
    """Whether calling a reward gives a coroutine.

    >>> is_async(split_form)
    False
    """
    reward = _unwrapped(reward)
    return inspect.iscoroutinefunction(reward) or inspect.iscoroutinefunction(type(reward).__call__)


def _unwrapped(reward: Callable) -> Callable:
    """What a ``partial``, or several around each other, wraps."""
    while isinstance(reward, functools.partial):
        reward = reward.func
    return reward
