"""How is it written? Small nudges beside correctness; each says how a policy games it.

    >>> reasoning_steps_reward(["<reasoning>Add 15 and 20.\\nThen add 7 more.\\nThat gives 42.</reasoning>42"])
    [1.0]

Against repetition take TRL's ``get_repetition_penalty_reward(ngram_size, max_penalty)``, which counts
tokens: a short answer is not punished, and a completion that repeats itself is.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..errors import CourseError
from .text import Completion, completion_text, split_reasoning

WORD = re.compile(r"\w+")
STEP = re.compile(r"[.!?;]\s|\n")
#: Text beyond this many characters is not read by the rewards of this module.
LONGEST_TEXT = 20_000


def reasoning_steps_reward(completions: Sequence[Completion], **kwargs: object) -> list[float]:
    """A third for each different step of reasoning, up to three: the structure, not the words.

    A step is a sentence or a line of at least three different words or numbers, inside
    ``<reasoning>`` or ``<think>``. Lists of connectives ("therefore thus because") are one step at
    most. Gamed by: three different sentences of nonsense; it cannot read.

    >>> stuffed = "<reasoning>" + "therefore thus because since " * 9 + "</reasoning>"
    >>> [round(score, 2) for score in reasoning_steps_reward([stuffed, "therefore, thus"])]
    [0.33, 0.0]
    """
    return [min(count_steps(split_reasoning(completion_text(c)[:LONGEST_TEXT])), 3) / 3 for c in completions]


def count_steps(reasoning: str) -> int:
    """How many different sentences or lines of at least three different words there are.

    >>> count_steps("Add 15 and 20. Then add 7. Then add 7.")
    2
    """
    steps = (frozenset(WORD.findall(part.lower())) for part in STEP.split(reasoning))
    return len({step for step in steps if len(step) >= 3})


#: Phrases of refusals and of pleas to a judge.
UNWANTED = (
    "as an ai",
    "i cannot",
    "i can't",
    "ignore previous",
    "ignore all previous",
    "full marks",
    "full score",
    "the correct answer is whatever",
)


@dataclass(frozen=True)
class UnwantedPhrasesReward:
    """-1.0 where a completion holds one of the phrases, in any case, else 0.0.

    Gamed by: other words for the same thing.

    Args:
        phrases: looked for as they are, not as patterns.

    >>> UnwantedPhrasesReward(("as an AI",))(["As an AI, I think it is 42.", "It is 42."])
    [-1.0, 0.0]
    """

    phrases: tuple[str, ...] = UNWANTED

    __name__ = "unwanted_phrases_reward"

    def __post_init__(self) -> None:
        """Refuse a bare string, of which each letter would be a phrase, and empty phrases."""
        if isinstance(self.phrases, str) or not all(self.phrases):
            raise CourseError(f"phrases={self.phrases!r} should be a tuple of texts, none of them empty.")

    def __call__(self, completions: Sequence[Completion], **kwargs: object) -> list[float]:
        """0.0 or -1.0 a completion."""
        wanted = [phrase.lower() for phrase in self.phrases]
        texts = (completion_text(c).lower() for c in completions)
        return [-1.0 if any(phrase in text for phrase in wanted) else 0.0 for text in texts]


@dataclass(frozen=True)
class DiversityReward:
    """Minus the share of its group that a completion is a near copy of: 0.0 where it is like no other.

    It compares completions of one prompt, so its scores depend on their neighbours on purpose, and
    says so with ``reads_group``. Gamed by: changing a word in ten.

    Args:
        alike: from how large a likeness on (0 to 1, `rapidfuzz`'s ratio) two texts are near copies.

    >>> texts = ["I get 42 apples.", "I get 42 apples!", "Forty-two, I think."]
    >>> DiversityReward()(texts, prompts=["How many?"] * 3)
    [-0.5, -0.5, 0.0]
    """

    alike: float = 0.9
    reads_group: bool = field(default=True, init=False)

    __name__ = "diversity_reward"

    def __call__(
        self, completions: Sequence[Completion], prompts: Sequence[object], **kwargs: object
    ) -> list[float | None]:
        """Between -1.0 and 0.0 a completion; None where it has no neighbours."""
        groups = defaultdict(list)
        for index, prompt in enumerate(prompts):
            groups[str(prompt)].append(index)
        texts = [" ".join(completion_text(c)[:LONGEST_TEXT].lower().split()) for c in completions]
        scores: list[float | None] = [None] * len(texts)
        for members in groups.values():
            for index in members if len(members) > 1 else ():
                scores[index] = -self._copies(index, members, texts) / (len(members) - 1)
        return [score + 0.0 if score is not None else None for score in scores]  # no negative zero

    def _copies(self, index: int, members: list[int], texts: list[str]) -> int:
        from rapidfuzz.fuzz import ratio

        least = 100 * self.alike
        return sum(
            ratio(texts[index], texts[other], score_cutoff=least) >= least for other in members if other != index
        )
