"""The section on the stage question: the form first and then everything, compared with everything from the start."""

from math import nan
from statistics import fmean

from benches import NOT_YET, ROOT, filled
from svg import save_svg

from grpo_utils.plots.base import NEUTRAL, WIDTH, new_figure, show_whole_share, step_lines
from grpo_utils.real.measuring import ROWS

from .table import difference, matched
from .training import PROMPTS_PER_STEP, STEPS
from .whole_runs import elsewhere

TITLE = "The form first, or everything at once"
WINDOW = 5  # steps
LOOKS = (WINDOW, STEPS // 4, STEPS // 2, 55, STEPS)  # steps that the figure's text names
FIGURE = ROOT / "docs" / "figures" / "form-first.svg"
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
        figure=f"![{alt_text()}](figures/{FIGURE.name})" if found else NOT_YET,
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


def numbers() -> dict[str, list[float]]:
    """Of the quantities in the samples of the latest few steps, the share of numbers, step by step, seed by seed."""
    return {f"seed {two['seed']}": recent_shares(**two["quantities"]) for _, two in pairs()}


def recent_shares(number: list[int], text: list[int]) -> list[float]:
    """The share of numbers in the steps up to each one, from the counts of both kinds; NaN before the first quantity.

    >>> recent_shares(number=[1, 2, 2, 2, 2, 1], text=[1, 0, 0, 0, 0, 1])
    [0.5, 0.75, 0.8333333333333334, 0.875, 0.9, 0.9]
    """
    parts = [slice(max(0, end - WINDOW), end) for end in range(1, len(number) + 1)]
    counts = [(sum(number[part]), sum(text[part])) for part in parts]
    return [of_number / (of_number + of_text) if of_number or of_text else nan for of_number, of_text in counts]


def alt_text() -> str:
    """The figure in words."""
    told = (f"with {name} {', '.join(f'{shares[end - 1]:.0%}' for end in LOOKS)}" for name, shares in numbers().items())
    steps = ", ".join(map(str, LOOKS))
    return f"The share of numbers among the quantities of {WINDOW} steps, up to steps {steps}: {'; '.join(told)}."


def draw() -> None:
    """Save the share of numbers over the steps of both stages, a line for each seed."""
    figure, axes = new_figure(WIDTH, 2.6)
    step_lines(axes, numbers())
    show_whole_share(axes, numbers().values())
    axes.axvline(STEPS // 2 + 0.5, color=NEUTRAL, linestyle="--")
    axes.set_xlabel("step (from the dashed line on, everything is paid)")
    axes.set_ylabel("quantities as numbers")
    axes.legend(loc="center", bbox_to_anchor=(0.68, 0.5))
    save_svg(figure, FIGURE, alt_text())


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
