"""Guess the kind of a reward from its name: correctness, form, length, penalty or other."""

import re

#: The words of each kind; the first kind with a word of the name counts.
_KIND_WORDS = (
    ("penalty", "penalty punish punishment overlong repetition copyright"),
    ("length", "length long longer short shorter brevity tokens words verbosity"),
    ("correctness", "correct correctness accuracy accurate"),
    ("form", "format xml xmlcount tag tags think json structure structured style strict soft form"),
    ("correctness", "answer answers exact solve solved truth right verify verified verifiable"),
    ("correctness", "numbers equation math gsm8k countdown test tests pass"),
)


def kind_of(name: str) -> str:
    """``correctness``, ``form``, ``length``, ``penalty`` or ``other``.

    >>> [kind_of(name) for name in ("correctness_reward", "match_format_exactly", "soft_overlong_punishment")]
    ['correctness', 'form', 'penalty']
    >>> [kind_of(name) for name in ("strict_correctness_reward", "answer_length_reward", "stage_reward")]
    ['correctness', 'length', 'other']
    """
    words = set(re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower().replace("-", "_").split("_"))
    return next((kind for kind, known in _KIND_WORDS if words & {*known.split()}), "other")
