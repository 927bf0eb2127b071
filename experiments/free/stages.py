"""The section on the stage question: the form first and then everything, compared with everything from the start."""

from collections.abc import Sequence
from statistics import fmean

from benches import NOT_YET, filled
from grpo_core.rewards.structured import parse_json

from grpo_utils.real.measuring import ROWS

from .table import difference, matched, mean_difference
from .training import PROMPTS_PER_STEP, STEPS
from .whole_runs import elsewhere

TITLE = "The form first, or everything at once"
WINDOW = 5  # steps
ENDS = (STEPS // 2 + WINDOW, 55, STEPS)  # of the windows; the first stage has no reward that counts correct samples


def section() -> str:
    """The section, from the cells that have ended."""
    found = pairs()
    text = filled(
        "stages",
        first_stage=STEPS // 2,
        second_stage=STEPS - STEPS // 2,
        steps=STEPS,
        format=" and ".join(sorted({two["format"] for _, two in found})) or NOT_YET,
        rows=ROWS,
        by_seed=by_seed(),
        elsewhere=elsewhere(),
        window=WINDOW,
        ends=" | ".join(f"step {end}" for end in ENDS),
        rules="|".join(["---"] * len(ENDS)),
        by_step=by_step(),
        quoted=quoted(),
        fields=fields_at_the_end(),
        checked_two=(STEPS - STEPS // 2) * PROMPTS_PER_STEP,
        checked_one=STEPS * PROMPTS_PER_STEP,
        one_early=share([one for one, _ in found], STEPS // 2),
    )
    return f"\n{text}"


def pairs() -> list[tuple[dict, dict]]:
    """The run in one stage and the run in two, of each seed whose two-stage run has ended."""
    return [(one, two) for two, one in matched("form first, then GRPO", "GRPO")]


def by_seed() -> str:
    """The greedy accuracy of both plans, and their paired difference, seed by seed and over the seeds."""
    lines = [
        f"- seed {two['seed']}: one stage {greedy(one):.3f}, two stages {greedy(two):.3f}; "
        f"difference {difference(two, one)}"
        for one, two in pairs()
    ]
    if len(lines) > 1:
        lines.append(f"- mean over the seeds: {mean_difference([(two, one) for one, two in pairs()]).signed()}")
    return "\n".join(lines) or f"- {NOT_YET}"


def quoted() -> str:
    """In how many of the stored greedy answers of two stages the quantity is a text, seed by seed."""
    found = ((two["seed"], two["texts"]) for _, two in pairs())
    counts = (f"{sum(is_quoted(text) for text in texts)} of {len(texts)} with seed {seed}" for seed, texts in found)
    return ", ".join(counts) or NOT_YET


def fields_at_the_end() -> str:
    """The share of correct fields in the last training steps of two stages, seed by seed."""
    ended = (f"{fmean(two['curves']['fields'][-WINDOW:]):.2f} with seed {two['seed']}" for _, two in pairs())
    return ", ".join(ended) or NOT_YET


def is_quoted(answer: str) -> bool:
    """Whether the quantity in an answer is a text, which the check does not accept.

    >>> is_quoted('{"quantity": "12"}'), is_quoted('{"quantity": 12}'), is_quoted("12 loaves")
    (True, False, False)
    """
    try:
        found = parse_json(answer)
    except ValueError:
        return False
    return isinstance(found, dict) and isinstance(found.get("quantity"), str)


def greedy(measured: dict) -> float:
    """The share of prompts that a greedy answer solved."""
    return measured["greedy"].count("1") / len(measured["greedy"])


def by_step() -> str:
    """Rows of a table: the share of correct samples in a few training steps of each plan, the mean of the seeds."""
    plans = zip(*pairs(), strict=True) if pairs() else ([], [])
    return "\n".join(
        f"| {name} | {' | '.join(share(runs, end) for end in ENDS)} |"
        for name, runs in zip(("one stage", "two stages"), plans, strict=True)
    )


def share(runs: Sequence[dict], end: int) -> str:
    """The share of correct samples in the steps up to ``end``, from logs that end with the last step."""
    logs = [run.get("curves", run)["correct"] for run in runs]
    shares = [fmean(log[end - WINDOW - STEPS : end - STEPS or None]) for log in logs]
    return f"{fmean(shares):.2f}" if shares else NOT_YET
