"""Say what a code means: its rule's meaning, reason, fixes, details and example; or what a pasted error text means."""

import re
from collections.abc import Callable
from inspect import getsource, isfunction, signature
from textwrap import dedent, indent

from grpo_core.errors import CourseError, did_you_mean

from .error_texts import find
from .findings import advice
from .pasted import errors, other_trainer, plain, traceback
from .rule import Rule
from .sections import nearest, quoting

#: Where the pages say how to narrow down an error that is in none of them.
_NARROW = "docs/troubleshooting.md#your-error-is-not-here in the repository of grpo-check says how to narrow it down."
_CODE = re.compile(r"[a-z][a-z0-9_]*")


def rules_of() -> dict[str, list[Rule]]:
    """The rules of each check, in the order in which it lists them. They are not needed for an error text."""
    from .attacks.rules import RULES as OF_ATTACK
    from .health.rules import RULES as OF_HEALTH
    from .pilots.verdicts import RULES as OF_PILOT
    from .preflights.checking import RULES as OF_PREFLIGHT
    from .probes.judging.rules import RULES as OF_PROBE

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
    text, codes = " ".join(asked), _codes_in(asked)
    words = codes and (codes >= set(asked) or not find(text))
    return "\n\n".join(map(explain, asked if words else [text]))


def _codes_in(asked: list[str]) -> set[str]:
    """The codes among what was asked. What does not look like a code needs no rules."""
    like_codes = {one for one in asked if _CODE.fullmatch(one)}
    return like_codes & _all_codes() if like_codes else set()


def explain(asked: str) -> str:
    """All that is known about a code, for each check that has it, or about an error text or a whole traceback.

    Raises:
        CourseError: nothing is known about it.
    """
    if _codes_in([asked]):
        return "\n\n".join(page(check, rule) for check, rule in rules_with(asked))
    return _explain_text(asked)


def _explain_text(asked: str) -> str:
    """The known error texts in what was pasted, or else the parts of the pages that quote it or are nearest to it.

    The last exception of a traceback counts first, and then those that led to it.

    Raises:
        CourseError: there is none of these.
    """
    shown = plain(asked)
    if known := find(traceback(shown)):
        other = other_trainer(shown)
        if other and {record.library for record in known} == {"TRL"}:
            known = [f"This traceback is of {other}, whose reason may be another one. In TRL, the text means:", *known]
        return "\n\n".join(map(str, known))
    texts = errors(shown) or [shown]
    name = f"{' '.join(texts[0].split())!r:.120}"
    before = find(shown)
    if before and (texts == [shown] or ":" not in texts[0]):  # no exception, or one without a message, says nothing
        return "\n\n".join(map(str, before))
    if quoted := next(filter(None, map(quoting, texts)), []):
        said = ["The documentation quotes this text:", *quoted]
    elif hint := did_you_mean(asked, _all_codes()) if _CODE.fullmatch(asked) else "":
        raise CourseError(f"{name} is not the code of a finding.{hint} grpo-check explain lists all codes.")
    elif near := next(filter(None, map(nearest, texts)), []):
        said = [f"{name} is not a known error text. By its words, nearest is:", *near, f"If none fits: {_NARROW}"]
    else:
        said = [f"{name} is not a known error text. {_NARROW}"]
    if before:
        said += ["Earlier in what you pasted:", *before]
    if len(said) == 1:
        raise CourseError(said[0])
    return "\n\n".join(map(str, said))


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
