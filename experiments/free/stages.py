"""The section on the stage question: the form first and then everything, compared with everything from the start."""

from statistics import fmean

from benches import NOT_YET, filled

from grpo_utils.real.measuring import ROWS

from .table import difference, matched
from .training import PROMPTS_PER_STEP, STEPS
from .whole_runs import elsewhere

TITLE = "The form first, or everything at once"
WINDOW = 5  # steps
LOOKS = (WINDOW, STEPS // 4, STEPS // 2, STEPS // 2 + WINDOW, STEPS)  # ends of the windows in which quantities are read
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
        numbers=numbers(),
        looks=" | ".join(f"steps {end - WINDOW + 1} to {end}" for end in LOOKS),
        look_rules="|".join(["---"] * len(LOOKS)),
        fields=fields_at_the_end(),
        checked_two=(STEPS - STEPS // 2) * PROMPTS_PER_STEP,
        checked_one=STEPS * PROMPTS_PER_STEP,
        one_early=", ".join(f"{share(one, STEPS // 2)} with seed {one['seed']}" for one, _ in found),
    )
    return f"\n{text}"


def pairs() -> list[tuple[dict, dict]]:
    """The run in one stage and the run in two, of each seed whose two-stage run has ended."""
    return [(one, two) for two, one in matched("form first, then GRPO", "GRPO")]


def by_seed() -> str:
    """The greedy accuracy of both plans, and their paired difference, seed by seed."""
    lines = [
        f"- seed {two['seed']}: one stage {greedy(one):.3f}, two stages {greedy(two):.3f}; "
        f"difference {difference(two, one)}"
        for one, two in pairs()
    ]
    return "\n".join(lines) or f"- {NOT_YET}"


def numbers() -> str:
    """Rows of a table: in how many samples of a few steps of two stages the quantity is a number, seed by seed."""
    return "\n".join(
        f"| seed {two['seed']} | {' | '.join(as_numbers(two['quantities'], end) for end in LOOKS)} |"
        for _, two in pairs()
    )


def as_numbers(kinds: dict[str, list[int]], end: int) -> str:
    """Of the samples with a quantity in the steps up to ``end``, how many have a number there.

    >>> as_numbers(dict(number=[0, 2, 2, 0, 1, 0], text=[9, 0, 1, 2, 1, 1]), 6)
    '5 of 10'
    """
    number, text = (sum(kinds[kind][end - WINDOW : end]) for kind in ("number", "text"))
    return f"{number} of {number + text}"


def fields_at_the_end() -> str:
    """The share of correct fields in the last training steps of two stages, seed by seed."""
    ended = (f"{fmean(two['curves']['fields'][-WINDOW:]):.2f} with seed {two['seed']}" for _, two in pairs())
    return ", ".join(ended) or NOT_YET


def greedy(measured: dict) -> float:
    """The share of prompts that a greedy answer solved."""
    return measured["greedy"].count("1") / len(measured["greedy"])


def by_step() -> str:
    """Rows of a table: the share of correct samples in a few training steps of each run."""
    lines = []
    for one, two in pairs():
        for name, run in (("one stage", one), ("two stages", two)):
            lines.append(f"| {name}, seed {two['seed']} | {' | '.join(share(run, end) for end in ENDS)} |")
    return "\n".join(lines)


def share(run: dict, end: int) -> str:
    """The share of correct samples in the steps up to ``end``, from a log that ends with the last step."""
    log = run.get("curves", run)["correct"]
    return f"{fmean(log[end - WINDOW - STEPS : end - STEPS or None]):.2f}"
