"""The page of what is free: a row for each arm, and paired tests against two of them."""

from collections.abc import Sequence
from statistics import fmean

from benches import NOT_YET, filled, versions_text
from grpo_core.training.measuring import wilson_interval

from grpo_utils import paired_change
from grpo_utils.real.measuring import ROWS, SAMPLES, TEMPERATURE, rates

from .arms import ARMS, CAREFUL, CELLS, RATE_AT, RATES, SEEDS, sft_name
from .cells import Cell, finished
from .measuring import DEV_ROWS, SAMPLED_ROWS
from .prompts import INSTRUCTIONS

AGAINST = ("3 examples", "GRPO")
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
        table="\n".join(row(arm) for arm in ARMS if of(arm)),
        unmeasured="; ".join(ARMS[arm].what for arm in ARMS if not of(arm)) or "none",
        tests=tests() or f"- {NOT_YET}",
        instructions="\n".join(tried(CAREFUL, INSTRUCTIONS)),
        rates="\n".join(tried(sft_name(RATE_AT), RATES)),
        rate_at=RATE_AT,
        left=sum(finished(cell) is None for cell in CELLS),
        cells=len(CELLS),
        draws_8=draws("8 examples"),
        draws_3=draws(AGAINST[0]),
    )
    return f"\n{text}"


def draws(arm: str, form: str = "{:.3f}") -> str:
    """The greedy accuracy of each seed of an arm that has ended."""
    return " and ".join(form.format(rates(each)["greedy"]) for each in of(arm)) or NOT_YET


def of(arm: str) -> list[dict]:
    """What the finished cells of an arm stored, by seed."""
    found = (finished(Cell(arm, seed)) for seed in SEEDS)
    return [each for each in found if each]


def where() -> str:
    """The machines and packages of all finished cells."""
    stored = [found for found in map(finished, CELLS) if found]
    if not stored:
        return NOT_YET
    kinds = sorted({f"{each['processor']} in {each['format']}" for each in stored})
    days = sorted({each["date"] for each in stored})
    when = " to ".join(dict.fromkeys([days[0], days[-1]]))
    return f"{when}, {'; '.join(kinds)}, {versions_text(stored[-1]['versions'])}."


def row(arm: str) -> str:
    """An arm as a row of the table; each rate is the mean of the seeds.

    The interval of greedy accuracy is Wilson's for one seed's prompts, because all seeds have the same prompts.
    """
    stored = of(arm)
    found = [rates(each) for each in stored]
    mean = {name: fmean(each[name] for each in found) for name in found[0]}
    low, high = wilson_interval(round(mean["greedy"] * ROWS), ROWS)
    names = ("known sentences", "new sentences", "sampled", "pass@8")
    cells = [f"{mean['greedy']:.3f} ({low:.3f} to {high:.3f})", *(f"{mean[name]:.3f}" for name in names)]
    cells += [count(stored, name) for name in ("imitated", "checked")]
    cells += [f"{fmean(each['prompt_tokens'] for each in stored):.0f}", minutes(stored)]
    return f"| {' | '.join([ARMS[arm].what, str(len(stored)), *cells])} |"


def count(stored: Sequence[dict], name: str) -> str:
    """A number of gold answers; it is the same for all seeds."""
    return f"{stored[0][name]:,}"


def minutes(stored: Sequence[dict]) -> str:
    """The mean minutes of one core before the measurement: processor time, which hardly depends on other work."""
    return f"{fmean(each['making_time']['processor'] for each in stored) / 60:.0f}" if stored else NOT_YET


def tests() -> str:
    """How the greedy accuracy of each arm differs from that of two others on the same prompts, seed by seed."""
    lines = []
    for other in AGAINST:
        theirs = {each["seed"]: each for each in of(other)}
        for arm in ARMS:
            told = arm == other or (arm in AGAINST and AGAINST.index(arm) < AGAINST.index(other))
            pairs = [(each, theirs[each["seed"]]) for each in of(arm) if each["seed"] in theirs and not told]
            changes = "; ".join(f"seed {ours['seed']}: {difference(ours, base)}" for ours, base in pairs)
            lines += [f"- {arm}, compared with {other}: {changes}"] * bool(changes)
    return "\n".join(lines)


def difference(ours: dict, theirs: dict) -> str:
    """The paired difference of two cells in greedy accuracy."""
    digits = ([int(digit) for digit in each["greedy"]] for each in (theirs, ours))
    change = paired_change(*digits)
    named = {"improved": "higher", "got worse": "lower"}.get(change.verdict, "no difference shown")
    return str(change).replace(change.verdict, named)


def tried(arm: str, choices: Sequence[str]) -> list[str]:
    """What development rows said of each choice."""
    lines = []
    for choice in choices:
        found = finished(Cell(arm, choice=choice))
        right = f"{found['greedy'].count('1')} of {len(found['greedy'])}, fields {found['fields']:.2f}" if found else ""
        lines.append(f"- {choice}: {right or NOT_YET}")
    return lines
