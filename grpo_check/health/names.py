"""What a reward is for, as far as its name tells: correctness, form, length, a penalty, or nothing known."""

import re

FORM = {"format", "xml", "xmlcount", "tag", "tags", "think", "json", "structure", "structured", "style"}
FORM |= {"strict", "soft", "form"}
CORRECT = {"correct", "correctness", "accuracy", "accurate"}
PERHAPS_CORRECT = {
    "answer",
    "answers",
    "exact",
    "solve",
    "solved",
    "truth",
    "right",
    "verify",
    "verified",
    "verifiable",
}
PERHAPS_CORRECT |= {"numbers", "equation", "math", "gsm8k", "countdown", "test", "tests", "pass"}
LENGTH = {"length", "long", "longer", "short", "shorter", "brevity", "tokens", "words", "verbosity"}
PENALTY = {"penalty", "punish", "punishment", "overlong", "repetition", "copyright"}


def kind_of(name: str) -> str:
    """``correctness``, ``form``, ``length``, ``penalty`` or ``other``.

    >>> [kind_of(name) for name in ("correctness_reward", "match_format_exactly", "soft_overlong_punishment")]
    ['correctness', 'form', 'penalty']
    >>> [kind_of(name) for name in ("strict_correctness_reward", "answer_length_reward", "stage_reward")]
    ['correctness', 'length', 'other']
    """
    words = set(re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower().replace("-", "_").split("_"))
    groups = (
        ("penalty", PENALTY),
        ("length", LENGTH),
        ("correctness", CORRECT),
        ("form", FORM),
        ("correctness", PERHAPS_CORRECT),
    )
    return next((kind for kind, known in groups if words & known), "other")
