"""Diagrams of the method: the loop, advantages, a reward function, an adapter and its merge."""

from collections.abc import Sequence
from statistics import mean
from typing import TYPE_CHECKING

from grpo_utils.plots.base import new_figure
from grpo_utils.rewards import group_advantages

from .sheet import BLUE, GRAY, GREEN, ORANGE, SIZE, SMALL, WIDTH, Drawn, Place, Sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The answers to "15 + 27 = ?" in the loop, and the reward of each.
ANSWERS, SCORES = ("42", "41", "42", "32"), (1.0, 0.0, 1.0, 0.0)
#: One group of eight rewards as lesson 03's rewards give them, and a group that is tied.
GROUP, TIED = (3.0, 1.0, 0.25, 3.0, 0.0, 1.0, 0.25, 3.0), (1.0,) * 8
#: Inner and outer size of the matrices in the LoRA diagram.
RANK, OUTER = 16, 1024
#: What a reward function gets, and where it comes from.
INPUTS = {
    "prompts": "list of questions",
    "completions": "list of answers",
    "completion_ids": "lists of their tokens",
    "answer, …": "lists: other columns",
    "trainer_state": "step, log so far",
}
#: The two ways to merge: into which base, what it is called, and what it does.
MERGES = (
    ("Unquantized base, fp32", "Merged in fp32", "✓ same answers as\nbase + adapter"),
    ("4-bit base", "Merged into 4 bits", "✗ rounded again:\nnot exact"),
)


def _signed(values: list[float], places: int) -> list[str]:
    return [f"{value:+.{places}f}".replace("-", "−") for value in values]


def loop() -> Drawn:
    """One step of GRPO, with an example of four completions."""
    sheet, advantages = Sheet(WIDTH, 5.5), _signed(group_advantages(SCORES, 4), 1)
    rewards = "   ".join(f"{score:g}" for score in SCORES)
    sheet.text(4.8, 0.5, "One step of GRPO", weight="bold", fontsize=16)
    prompts = sheet.box(Place(0.15, 0.15, 2.6, 0.8), "Prompts", "15 + 27 = ?", GRAY)
    policy = sheet.box(Place(0.15, 1.45, 2.6, 0.9), "Policy", "samples a group", BLUE, round=True)
    group = sheet.box(Place(3.45, 1.45, 2.8, 0.9), "Group of completions", "  ".join(ANSWERS), GRAY)
    scores = sheet.box(Place(3.45, 2.9, 2.8, 0.9), "Reward functions", rewards, ORANGE)
    compared = sheet.box(Place(3.45, 4.3, 2.8, 1.0), "Advantages", " ".join(advantages), GREEN)
    update = sheet.box(Place(0.15, 4.3, 2.6, 1.0), "Update the adapter", "42 more likely,\n41 and 32 less", BLUE)
    sheet.join(prompts, policy, group, scores, compared, update, policy)
    sheet.text(0.75, 3.35, "next\nstep")
    return sheet.figure, (
        "A loop. From a prompt, 15 + 27, the policy samples a group of completions: "
        f"{', '.join(ANSWERS)}. Reward functions score them {rewards.replace('   ', ', ')}. Each score is compared "
        f"with the group's mean, which gives the advantages {', '.join(advantages)}. The update of the adapter makes "
        "42 more likely and the others less, and the next step starts from the updated policy."
    )


def _bars(axes: "Axes", values: Sequence[float], advantages: Sequence[float], texts: Sequence[str], title: str) -> None:
    """One bar for each completion: blue if it is above its group's mean, orange and hatched if it is below."""
    colors = [GRAY if not advantage else BLUE if advantage > 0 else ORANGE for advantage in advantages]
    hatches = ["//" if advantage < 0 else "" for advantage in advantages]
    bars = axes.barh(range(1, 9), values, color=colors, hatch=hatches, edgecolor="white")
    axes.bar_label(bars, texts, padding=3, fontsize=SMALL)
    axes.set_title(title, fontsize=SIZE, fontweight="bold")
    axes.set(yticks=range(1, 9), ylim=(8.6, 0.4))
    axes.tick_params(labelsize=SMALL)
    axes.spines[["top", "right"]].set_visible(False)


def _group(panels: "Sequence[Axes]", group: Sequence[float], kind: str) -> None:
    """The rewards of a group on the left, their advantages on the right."""
    average, advantages = mean(group), group_advantages(group, len(group))
    _bars(panels[0], group, advantages, [f"{reward:g}" for reward in group], f"{kind}: rewards")
    _bars(panels[1], advantages, advantages, _signed(advantages, 2) if any(advantages) else ["0"] * 8, "Advantages")
    panels[0].axvline(average, color="black", linestyle="--")
    panels[0].set(xlim=(0, 3.7), xticks=range(4), ylabel="completion", xlabel=f"dashed: mean {average:.2f}")
    panels[1].axvline(0, color="black", linewidth=1)
    panels[1].set(xlim=(-2.3, 2.3), xticks=range(-2, 3), xlabel="(reward − mean)\n/ (std + 0.0001)")
    for axes in panels:
        axes.xaxis.label.set_size(SMALL)
        axes.yaxis.label.set_size(SMALL)


def advantages() -> Drawn:
    """A group of rewards and its advantages, above; a tied group, below."""
    figure, panels = new_figure(WIDTH, 7.2, 2, 2, sharey=True)
    figure.set_facecolor("white")
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.1)
    for row, group, kind in zip(panels, (GROUP, TIED), ("Group of 8", "Tied group"), strict=True):
        _group(row, group, kind)
    advantages = _signed(group_advantages(GROUP, 8), 2)
    return figure, (
        f"Bar charts of two groups of 8 completions. The first group has rewards {', '.join(f'{r:g}' for r in GROUP)} "
        f"with mean {sum(GROUP) / 8:.2f}; its advantages are {', '.join(advantages)}. They are positive above the "
        f"mean and negative below. In the tied group every reward is {TIED[0]:g} and every advantage is 0, so it "
        "teaches nothing."
    )


def reward() -> Drawn:
    """What TRL gives to a reward function, and what it takes back."""
    sheet = Sheet(WIDTH, 6.2)
    sheet.text(1.45, 0.25, "TRL passes", weight="bold")
    for row, (name, meaning) in enumerate(INPUTS.items()):
        sheet.box(Place(0.15, 0.5 + row * 0.8, 2.6, 0.7), name, meaning, GRAY)
    sheet.bracket(2.85, (0.55, 4.35))
    signature = "reward(completions,\n  answer, **kwargs)"
    call = sheet.box(Place(3.55, 1.7, 2.7, 1.4), "Your reward function", signature, ORANGE, mono=True)
    scores = sheet.box(Place(3.55, 3.65, 2.7, 0.9), "One per completion", "1.0   0.0   None", GREEN, round=True)
    total = sheet.box(Place(0.15, 5.1, 6.1, 0.95), "TRL", "weight × score, summed over the functions", BLUE)
    sheet.arrow((2.97, call.middle[1]), (call.left, call.middle[1]))
    sheet.join(call, scores, total)
    return sheet.figure, (
        "TRL calls your reward function with prompts, completions and completion_ids, with every other column of the "
        "dataset, such as answer, and with trainer_state, which holds the step and the log so far. The function gives "
        "one score for each completion. A score is a number, or None where the reward "
        "does not apply. TRL multiplies each score by the "
        "function's weight and sums over the functions."
    )


def _matrix(sheet: Sheet, place: Place, name: str, color: str, shape: str, frozen: bool = False) -> None:
    sheet.box(place, name, "", color, line="--" if frozen else "-")
    sheet.text(place.middle[0], place.top - 0.2, shape, fontsize=SMALL)
    sheet.text(place.middle[0], place.bottom + 0.2, "frozen" if frozen else "trained", fontsize=SMALL)


def lora() -> Drawn:
    """The frozen matrix and the adapter's two small ones, with their shapes."""
    sheet = Sheet(WIDTH, 4.3)
    full, small = OUTER * OUTER, 2 * OUTER * RANK
    sheet.text(3.2, 0.35, "W' = W + (α / r) · B · A", weight="bold", fontsize=17)
    _matrix(sheet, Place(0.2, 1.1, 1.8, 1.8), "W", GRAY, f"{OUTER} × {OUTER}", frozen=True)
    sheet.text(2.6, 2.0, "+  α / r  ·", weight="bold")
    _matrix(sheet, Place(3.45, 1.1, 0.42, 1.8), "B", BLUE, f"{OUTER} × {RANK}")
    sheet.text(4.15, 2.0, "·", weight="bold")
    _matrix(sheet, Place(4.4, 1.79, 1.8, 0.42), "A", ORANGE, f"{RANK} × {OUTER}")
    sheet.text(3.2, 3.55, f"{full:,} weights frozen, {small:,} trained: {small / full:.1%}")
    sheet.text(3.2, 3.95, "B starts at zero, so W' = W before training.")
    return sheet.figure, (
        f"LoRA, W' = W + (alpha / r) B A. The matrix W, {OUTER} by {OUTER}, is frozen. Next to it are two thin trained "
        f"matrices: B, {OUTER} by {RANK}, and A, {RANK} by {OUTER}; the rank r is {RANK}. Together they have {small:,} "
        f"weights, {small / full:.1%} of the {full:,} in W. B starts at zero, so W' equals W before training."
    )


def merge() -> Drawn:
    """An adapter merged into the unquantized base, and into the 4-bit base."""
    sheet = Sheet(WIDTH, 5.6)
    policy = sheet.box(Place(1.4, 0.15, 3.6, 0.9), "Policy in training", "4-bit base + adapter", BLUE, round=True)
    for left, (base, merged, said), color, line in zip((0.15, 3.3), MERGES, (GREEN, ORANGE), ("-", "--"), strict=True):
        parts = sheet.box(Place(left, 1.7, 2.95, 0.9), base, "+ adapter", GRAY)
        result = sheet.box(Place(left, 3.3, 2.95, 1.2), merged, said, color, line=line)
        sheet.join(policy, parts, result)
        sheet.text(parts.middle[0] + 0.6, 2.95, "merge")
    sheet.text(3.2, 5.05, "Neither is quite the policy that you trained.\nEvaluate the model that you release.")
    return sheet.figure, (
        "Two ways to merge an adapter that was trained on a 4-bit base. Merged into the unquantized base in fp32, the "
        "model gives the same answers as that base with the adapter. Merged into the 4-bit base, the sum is rounded to "
        "4 bits again, so the merge is not exact. Neither is quite the policy that was trained, so evaluate the "
        "model that you release."
    )
