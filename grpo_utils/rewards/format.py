"""Is the form right? Between 0.0 and 1.0, whatever the answer says.

    >>> whole = "<reasoning>15 + 27 = 42</reasoning><answer>42</answer>"
    >>> strict_format_reward([whole, "It is 42."])
    [1.0, 0.0]

A form can always be had without being right, so weigh it below correctness (see `combine`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from .text import TAGS, Completion, completion_text, split_form, split_thinking


def strict_format_reward(completions: Sequence[Completion], **kwargs: object) -> list[float]:
    """1.0 for exactly the asked form (see `split_form`), else 0.0.

    Gamed by: the form around anything.

    >>> strict_format_reward(["<reasoning>a</reasoning><answer>b</answer>", "b"])
    [1.0, 0.0]
    """
    return [1.0 if split_form(completion_text(c)) else 0.0 for c in completions]


def incremental_format_reward(completions: Sequence[Completion], **kwargs: object) -> list[float]:
    """0.25 for each of the four tags in its place, so that half a form earns more than none.

    Only `split_form`'s strict form earns all four (1.0); see `count_placed_tags`. Gamed by: the form
    around anything; not by repeating, appending or reordering tags.

    >>> half, whole = "<reasoning>a <answer>b", "<reasoning>a</reasoning><answer>b</answer>"
    >>> incremental_format_reward([half, whole, whole + whole, whole + " and so on"])
    [0.5, 1.0, 0.0, 0.75]
    """
    return [0.25 * count_placed_tags(completion_text(c)) for c in completions]


def count_placed_tags(text: str) -> int:
    """How many of the four tags stand where the form wants them.

    The text must open with ``<reasoning>`` and hold no tag twice or out of order, or nothing
    counts. A tag counts when its part of the form is there: reasoning that is not blank (else nothing
    counts), nothing between the two parts, an answer that is not blank, nothing after it. So empty
    tags, a form appended to other text, and a tail all earn less than the form itself.

    >>> count_placed_tags("It is 42.<reasoning></reasoning><answer></answer>")
    0
    >>> count_placed_tags("<reasoning>15 + 27 = 42</reasoning> so <answer>42</answer>")
    3
    """
    text = text.strip()
    places = [text.find(tag) for tag in TAGS]
    found = [place for place in places if place >= 0]
    if places[0] != 0 or found != sorted(found) or any(text.count(tag) > 1 for tag in TAGS):
        return 0
    _, closed, answered, ended = (place >= 0 for place in places)
    if not _part(text, places, 0):
        return 0
    between = text[places[1] + len(TAGS[1]) : places[2]] if closed and answered else ""
    whole_answer = ended and bool(_part(text, places, 2)) and text.endswith(TAGS[3])
    return 1 + closed + (answered and not between.strip()) + whole_answer


def _part(text: str, places: list[int], index: int) -> str:
    """What stands between a tag and the next one that is there, without white space around."""
    if places[index] < 0:
        return ""
    end = next((place for place in places[index + 1 :] if place >= 0), len(text))
    return text[places[index] + len(TAGS[index]) : end].strip()


def think_format_reward(completions: Sequence[Completion], **kwargs: object) -> list[float]:
    """1.0 for ``<think>…</think>`` and then an answer (see `split_thinking`), else 0.0.

    It works whether or not the chat template has written ``<think>`` into the prompt; TRL's reward of that name gives
    0.0 to every completion if it has. Gamed by: one word as the thinking.

    >>> think_format_reward(["<think>a</think>b", "a</think>b", "<think>a</think>", "<think></think>b"])
    [1.0, 1.0, 0.0, 0.0]
    """
    return [1.0 if split_thinking(completion_text(c)) else 0.0 for c in completions]


@dataclass(frozen=True)
class PatternReward:
    """1.0 where a regular expression matches the whole completion, else 0.0.

    The dot matches line breaks (``DOTALL``): without that, a pattern such as ``<a>.*</a>`` is dead on
    every completion of several lines. A match that takes longer than ``seconds`` scores 0.0: some
    patterns take years on hostile text, and a policy writes hostile text sooner or later.

    Args:
        pattern: as for Python's `re`, or the richer `regex` package, which does the matching and rejects
            a wrong pattern when the reward is made.
        seconds: the longest time for one completion.

    >>> PatternReward(r"Answer: [0-9]+")(["Answer: 42", "Answer: 42!"])
    [1.0, 0.0]
    """

    pattern: str
    seconds: float = 0.05

    __name__ = "pattern_reward"

    def __post_init__(self) -> None:
        """Reject a wrong pattern now, not in the middle of a training run."""
        import regex

        regex.compile(self.pattern, regex.DOTALL)

    def __call__(self, completions: Sequence[Completion], **kwargs: object) -> list[float]:
        """1.0 or 0.0 a completion."""
        return [1.0 if self._matches(completion_text(c).strip()) else 0.0 for c in completions]

    def _matches(self, text: str) -> bool:
        import regex

        try:
            return regex.fullmatch(self.pattern, text, regex.DOTALL, timeout=self.seconds) is not None
        except TimeoutError:
            return False
