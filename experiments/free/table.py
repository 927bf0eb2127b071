"""The page of what is free: a row for each arm, and paired tests of those that decide what to try."""

from collections.abc import Sequence
from statistics import fmean

from benches import NOT_YET, filled, versions_text
from grpo_core.training.measuring import wilson_interval

from grpo_utils import paired_change
from grpo_utils.evaluation.statistics import Change, Estimate, paired_difference, t_interval
from grpo_utils.real.measuring import ROWS, SAMPLES, TEMPERATURE, rates

from . import rule
from .arms import ARMS, CAREFUL, CELLS, RATE_AT, RATES, SFT_AS_GRPO, of, sft_name
from .cells import Cell, finished
from .measuring import DEV_ROWS, SAMPLED_ROWS
from .prompts import INSTRUCTIONS
from .whole_runs import IN_FLOAT32, elsewhere, runs

#: What the paired tests compare: the first with the second.
PAIRS = (
    (sft_name(200), "GRPO"),
    (SFT_AS_GRPO, "GRPO"),
    (sft_name(50), "GRPO"),
    (sft_name(200), sft_name(50)),
    ("GRPO", "8 examples"),
    ("self-training", "8 examples"),
    ("GRPO", "self-training"),
    ("8 examples", "3 examples"),
    ("JSON schema, 3 examples", "3 examples"),
)
SLOW = "†"
WITHOUT_GRPO = (
    "**GRPO itself has not been run here yet**, so the table shows what is free, and not yet what GRPO adds.\n\n"
)


def section() -> str:
    """The section of docs/what-to-try-first.md, from the cells that have ended."""
    text = filled(
        "free",
        where=where(),
        not_yet="" if of("GRPO") else WITHOUT_GRPO,
        rows=ROWS,
        sampled_rows=SAMPLED_ROWS,
        samples=SAMPLES,
        temperature=TEMPERATURE,
        dev_rows=DEV_ROWS,
        table="\n".join([without_a_model(), *(row(arm) for arm in ARMS if of(arm))]),
        unmeasured="; ".join(ARMS[arm].what for arm in ARMS if not of(arm)) or "none",
        tests=tests(),
        seeds=seeds(),
        instructions=best_instruction(),
        rates="\n".join(tried(sft_name(RATE_AT), RATES)),
        rate_at=RATE_AT,
        left=sum(finished(cell) is None for cell in CELLS),
        cells=len(CELLS),
        elsewhere=elsewhere(),
        slow=f"{IN_FLOAT32:.3f}",
    )
    return f"\n{text}"


def draws(arm: str, form: str = "{:.3f}") -> str:
    """The greedy accuracy of each seed of an arm that has ended, in words."""
    *others, last = [form.format(rates(each)["greedy"]) for each in runs(arm)] or [NOT_YET]
    return f"{', '.join(others)} and {last}" if others else last


def where() -> str:
    """The machines and packages of all finished cells."""
    stored = [found for found in map(finished, CELLS) if found]
    if not stored:
        return NOT_YET
    kinds = sorted({f"{each['processor']} in {each['format']}" for each in stored})
    days = sorted({each["date"] for each in stored})
    when = " to ".join(dict.fromkeys([days[0], days[-1]]))
    return f"{when}, {'; '.join(kinds)}, {versions_text(stored[-1]['versions'])}."


def without_a_model() -> str:
    """The rule that needs no model, as a row of the table."""
    right = rule.right(ROWS)
    found = [with_interval(fmean(right), ROWS), "", f"{fmean(right[::2]):.3f}", f"{fmean(right[1::2]):.3f}"]
    return f"| {' | '.join(['no model, a few regular expressions', *found, *[''] * 3, '0', '0', ''])} |"


def row(arm: str) -> str:
    """An arm as a row of the table; each rate is the mean of the seeds that have it."""
    stored, whole = of(arm), runs(arm)
    greedy = [rates(each)["greedy"] for each in whole]
    by_seed = (f"{rate:.3f}{mark(each)}" for rate, each in zip(greedy, whole, strict=True))
    cells = [over_seeds(greedy), ", ".join(by_seed)]
    for name, having in (("known sentences", whole), ("new sentences", whole), ("sampled", stored), ("pass@8", stored)):
        cells.append(f"{fmean(rates(each)[name] for each in having):.3f}")
    cells += [count(stored, name) for name in ("imitated", "checked")]
    cells += [f"{fmean(each['prompt_tokens'] for each in stored):.0f}", minutes(stored)]
    return f"| {' | '.join([ARMS[arm].what, *cells])} |"


def with_interval(rate: float, count: int) -> str:
    """A rate of so many prompts with its 95% Wilson interval."""
    low, high = wilson_interval(round(rate * count), count)
    return f"{rate:.3f} ({low:.3f} to {high:.3f})"


def over_seeds(shares: Sequence[float]) -> str:
    """The mean of a share with its 95% interval: over the prompts for one seed, and over the seeds for several.

    >>> over_seeds([0.7]), over_seeds([0.7, 0.72, 0.77])
    ('0.700 (0.653 to 0.743)', '0.730 (0.640 to 0.820)')
    """
    if len(shares) == 1:
        return with_interval(*shares, ROWS)
    of_prompts = fmean(shares) * (1 - fmean(shares)) / (ROWS * len(shares))
    mean, low, high = t_interval(shares, 1 / ROWS, of_prompts**0.5)
    return f"{mean:.3f} ({max(low, 0):.3f} to {min(high, 1):.3f})"


def count(stored: Sequence[dict], name: str) -> str:
    """A number of gold answers; it is the same for all seeds."""
    return f"{stored[0][name]:,}"


def minutes(stored: Sequence[dict]) -> str:
    """The minutes of one core before the measurement, of the first seed.

    It is processor time, which hardly depends on other work.
    """
    return f"{stored[0]['making_time']['processor'] / 60:.0f}{mark(stored[0])}" if stored else NOT_YET


def mark(stored: dict) -> str:
    """What marks a run in float32; the others, those of `make real` too, ran in bfloat16."""
    return SLOW * (stored.get("format") == "float32")


def tests() -> str:
    """How much higher one arm's greedy accuracy is than another's on the same prompts, as rows of a table."""
    lines = []
    for arm, other in PAIRS:
        if pairs := matched(arm, other):
            shown = [change.estimate.value for pair in pairs if (change := changed(*pair)).shown]
            higher = sum(value > 0 for value in shown)
            counts = f"{higher} higher, {len(shown) - higher} lower, of {len(pairs)}"
            lines.append(f"| {arm} | {other} | {mean_difference(pairs).signed()} | {counts} |")
    return "\n".join(lines)


def seeds() -> str:
    """The same differences seed by seed, with an interval and a test over the prompts."""
    lines = []
    for arm, other in PAIRS:
        told = [f"seed {ours['seed']}: {difference(ours, theirs)}" for ours, theirs in matched(arm, other)]
        lines += [f"- {arm}, compared with {other}: {'; '.join(told)}"] * bool(told)
    return "\n".join(lines) or f"- {NOT_YET}"


def matched(arm: str, other: str) -> list[tuple[dict, dict]]:
    """The runs of two arms with the same seeds."""
    theirs = {each["seed"]: each for each in runs(other)}
    return [(each, theirs[each["seed"]]) for each in runs(arm) if each["seed"] in theirs]


def mean_difference(pairs: Sequence[tuple[dict, dict]]) -> Estimate:
    """The mean difference in greedy accuracy: over the seeds, or for one seed over its prompts."""
    if len(pairs) == 1:
        return changed(*pairs[0]).estimate
    ours, theirs = ([rates(each)["greedy"] for each in side] for side in zip(*pairs, strict=True))
    return paired_difference(ours, theirs, ROWS)


def changed(ours: dict, theirs: dict) -> Change:
    """The paired difference of two runs in greedy accuracy."""
    return paired_change(*([int(digit) for digit in each["greedy"]] for each in (theirs, ours)))


def difference(ours: dict, theirs: dict) -> str:
    """The same in words."""
    change = changed(ours, theirs)
    named = {"improved": "higher", "got worse": "lower"}.get(change.verdict, "no difference shown")
    return str(change).replace(change.verdict, named)


def best_instruction() -> str:
    """How many answers to development rows were correct with the best instruction."""
    tried_ones = [found for name in INSTRUCTIONS if (found := finished(Cell(CAREFUL, choice=name)))]
    return str(max((found["greedy"].count("1") for found in tried_ones), default=NOT_YET))


def tried(arm: str, choices: Sequence[str]) -> list[str]:
    """What development rows said of each choice."""
    lines = []
    for choice in choices:
        found = finished(Cell(arm, choice=choice))
        right = f"{found['greedy'].count('1')} of {len(found['greedy'])}, fields {found['fields']:.2f}" if found else ""
        lines.append(f"- {choice}: {right or NOT_YET}")
    return lines
