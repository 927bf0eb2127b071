"""Leave out groups, steps and the middle of long texts until the page is small enough, and say so."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

from .read import spread
from .records import Completion, Group, Recording, Step

#: Bytes of the completions in a page; the whole page stays below 10 MB.
_BUDGET = 8_000_000
#: Characters of a longer text that are kept, from its start and from its end.
HEAD, TAIL = 3000, 1000
#: Bytes of a row without its texts and rewards, of each reward and of each further value, at most.
ROW, REWARD, EXTRA = 48, 10, 8
FEWEST_GROUPS = 2


@dataclass(frozen=True)
class Cut(Completion):
    """A completion without its middle; ``length`` is that of the whole."""

    length: int = 0


def fitted(recording: Recording, budget: int = _BUDGET) -> Recording:
    """The recording, or as much of it as fits: shorter texts first, then fewer groups in a step, then fewer steps."""
    shorter = replace(recording, steps=tuple(map(shortened, recording.steps)))
    most = max(len(step.groups) for step in recording.steps)
    sizes: dict[str, int] = {}  # each text is measured once
    for groups, steps in plans(most, len(recording.steps)):
        smaller = _thinned(shorter, groups, steps)
        if _size_of(smaller, sizes) <= budget:
            break
    return smaller.noting(*left_out(recording, smaller, groups))


def plans(groups: int, steps: int) -> Iterator[tuple[int, int]]:
    """How many groups of a step and how many steps to keep, from all of them to a single one."""
    while groups > FEWEST_GROUPS:
        yield groups, steps
        groups = max(FEWEST_GROUPS, groups * 2 // 3)
    while steps > 1:
        yield groups, steps
        steps = max(1, steps * 3 // 4)
    yield 1, 1


def _thinned(recording: Recording, groups: int, steps: int) -> Recording:
    """A recording with fewer steps, and fewer groups in each."""
    kept = spread(list(recording.steps), steps)
    fewer = tuple(replace(step, groups=tuple(spread(list(step.groups), groups))) for step in kept)
    return replace(recording, steps=fewer)


def shortened(step: Step) -> Step:
    """A step without the middle of its long texts."""
    groups = (Group(without_middle(group.prompt), tuple(map(cut, group.completions))) for group in step.groups)
    return Step(step.number, tuple(groups))


def cut(completion: Completion) -> Completion:
    """A completion without the middle of a long text."""
    if len(completion.text) <= HEAD + TAIL:
        return completion
    fields = completion.rewards, completion.advantage, completion.extras
    return Cut(without_middle(completion.text), *fields, length=len(completion.text))


def without_middle(text: str) -> str:
    """A text without its middle, if it is long.

    >>> without_middle("a" * 100_000)[2990:3050]
    'aaaaaaaaaa\\n[… 96,000 characters are left out here …]\\naaaaaaa'
    """
    gone = len(text) - HEAD - TAIL
    return text if gone <= 0 else f"{text[:HEAD]}\n[… {gone:,} characters are left out here …]\n{text[-TAIL:]}"


def _size_of(recording: Recording, sizes: dict[str, int]) -> int:
    """The bytes that the completions of a recording need in the page; equal texts are stored once."""
    rows = [each for step in recording.steps for each in step.completions]
    texts = {group.prompt for step in recording.steps for group in step.groups}
    texts |= {text for each in rows for text in (each.text, *each.extras)}
    sizes |= {text: _stored_size(text) for text in texts - sizes.keys()}
    row = ROW + REWARD * len(recording.rewards) + EXTRA * len(recording.extras)
    return sum(map(sizes.get, texts)) + row * len(rows)


def _stored_size(text: str) -> int:
    """The bytes of a text as the page stores it; ``<``, ``>`` and ``&`` need six each."""
    written = json.dumps(text, ensure_ascii=False)
    return len(written.encode(errors="replace")) + 5 * sum(map(written.count, "<>&"))


def left_out(whole: Recording, kept: Recording, groups: int) -> list[str]:
    """What the page says about it."""
    lines = []
    if any(len(each.text) > HEAD + TAIL for step in whole.steps for each in step.completions):
        lines.append(f"Texts longer than {HEAD + TAIL:,} characters are shown without their middle.")
    if any(len(step.groups) > groups for step in whole.steps):
        lines.append(f"To keep this file small, it has {groups} group(s) of each step; the curves are those of all.")
    if len(kept.steps) < len(whole.steps):
        lines.append(f"To keep this file small, it has {len(kept.steps):,} of {len(whole.steps):,} recorded steps.")
    return lines
