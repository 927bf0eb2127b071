"""Say what a code means: its rule's meaning, reason, fixes, details and example; or what a known error text means."""

from collections.abc import Callable
from inspect import getsource, isfunction, signature
from textwrap import dedent, indent

from grpo_core.errors import CourseError, did_you_mean

from .attacks.rules import RULES as OF_ATTACK
from .error_texts import find
from .findings import advice
from .health.rules import RULES as OF_HEALTH
from .pilots.verdicts import RULES as OF_PILOT
from .preflights.checking import RULES as OF_PREFLIGHT
from .probes.judging.rules import RULES as OF_PROBE
from .rule import Rule


def rules_of() -> dict[str, list[Rule]]:
    """The rules of each check, in the order in which it lists them."""
    first = {"probe": OF_PROBE, "attack": OF_ATTACK}
    return {**first, "preflight": OF_PREFLIGHT, "pilot": OF_PILOT, "health": OF_HEALTH}


def all_rules() -> list[Rule]:
    """The rules of all checks."""
    return [rule for rules in rules_of().values() for rule in rules]


def rules_with(code: str) -> list[tuple[str, Rule]]:
    """The rules with a code, each with its check.

    Raises:
        CourseError: there is none.
    """
    there = [(check, rule) for check, rules in rules_of().items() for rule in rules if rule.code == code]
    if not there:
        hint = did_you_mean(code, _all_codes())
        raise CourseError(f"{code!r:.80} is not the code of a finding.{hint} grpo-check explain lists all codes.")
    return there


def _all_codes() -> set[str]:
    """The codes of all findings."""
    return {rule.code for rule in all_rules()}


def explain_all(asked: list[str]) -> str:
    """All that is known about some codes, or about one error text, whose words may be separate.

    >>> explain_all(["device-side", "assert"]) == explain("device-side assert")
    True
    """
    text, codes = " ".join(asked), _all_codes()
    words = codes & set(asked) and (codes >= set(asked) or not find(text))
    return "\n\n".join(map(explain, asked if words else [text]))


def explain(asked: str) -> str:
    """All that is known about a code, for each check that has it, or about the error texts in what was pasted.

    Raises:
        CourseError: it is neither a code nor close to a known error text.
    """
    known = [] if asked in _all_codes() else find(asked)
    return "\n\n".join(map(str, known)) or _explain_code(asked)


def _explain_code(code: str) -> str:
    """All that is known about a code, for each check that has it.

    Raises:
        CourseError: no check has it.
    """
    try:
        return "\n\n".join(page(check, rule) for check, rule in rules_with(code))
    except CourseError as error:
        raise CourseError(f"{error} No known error text is close to it either.") from None


def index() -> str:
    """All codes with their meanings, by check."""
    return "\n\n".join("\n".join([f"{check}:", *map(line, rules)]) for check, rules in rules_of().items())


def line(rule: Rule) -> str:
    """A rule in one line."""
    return f"  {rule.code:26}{rule.meaning}"


def page(check: str, rule: Rule) -> str:
    """What one check means by a code."""
    title = f"{rule.code}: {rule.meaning} ({rule.severity} of {check})"
    example = f"Example:\n{indent(_example_text(rule.example), '    ')}" if rule.example else ""
    return "\n\n".join(filter(None, [title, rule.details, "\n".join(advice(rule.why, rule.fixes)), example]))


def _example_text(example: object) -> str:
    """An example as it is written: a function's source, arguments one to a line, or the end of a log.

    >>> print(_example_text([{"step": 1, "reward": 0.5}, {"step": 2, "reward": 0.5}]))
    a log of 2 entries that ends with
    step=2
    reward=0.5
    """
    if isinstance(example, list):
        return f"a log of {len(example)} entries that ends with\n{_example_text(example[-1])}"
    if isinstance(example, dict):
        return "\n".join(f"{name}={_value_text(value)}" for name, value in example.items())
    return dedent(getsource(example)).strip() if isinstance(example, Callable) else str(example)


def _value_text(value: object) -> str:
    """A value of an example; a function by its parameters.

    >>> _value_text([lambda completions, answer: None]), _value_text(0.05)
    ('[a function of (completions, answer)]', '0.05')
    """
    if isinstance(value, list):
        return f"[{', '.join(map(_value_text, value))}]"
    return f"a function of {signature(value)}" if isfunction(value) else f"{value!r:.80}"
