"""What to try before GRPO, in order of cost, with what each step reached in the two benches."""

from collections.abc import Sequence
from statistics import fmean

from benches import FIRST, NOT_YET, filled, put
from checked.arms import OWN_SAMPLES, WRITTEN
from checked.learned import cities, followed, letter_run, query_without_a_model, repeated_letters
from checked.reading import minutes_on_task, on_task, percent, right_samples, row_of
from checked.tasks import HELD_OUT

from grpo_utils.real.measuring import ROWS, rates

from . import rule
from .arms import CAREFUL, FEW, PASSES, RATE_AT, SFT_AS_GRPO, of, sft_name
from .table import draws, matched, mean_difference, minutes
from .training import STEPS, steps_of_sft
from .whole_runs import runs, span

TITLE = "In this order"
SHOWN = {
    "examples_3": "3 examples",
    "examples_8": "8 examples",
    "instruction": CAREFUL,
    "schema_0": "JSON schema, 0 examples",
    "self_training": "self-training",
    "sft_50": sft_name(50),
    "sft_200": sft_name(200),
    "grpo": "GRPO",
}
EARLY = 60  # steps, of the 70 of GRPO on *letter*
CHECKED = dict(few="3 examples", eight="8 examples", self="self-training", own=WRITTEN, grpo="GRPO")


def section(checked: Sequence[dict]) -> str:
    """The order to try things in, from the cells that have ended and the rows of `bench_checked`."""
    text = filled(
        "first",
        **{name: shown(arm, "greedy") for name, arm in SHOWN.items()},
        tokens_0=tokens("0 examples"),
        tokens_3=tokens(f"{FEW} examples"),
        tokens_8=tokens("8 examples"),
        minutes_50=minutes(of(sft_name(50))),
        minutes_200=minutes(of(sft_name(200))),
        minutes_grpo=minutes(of("GRPO")),
        minutes_self=minutes(of("self-training")),
        draws_8=draws("8 examples", "{:.0%}"),
        sft_minus_grpo=in_points(sft_name(RATE_AT), "GRPO"),
        sft_seeds=draws(sft_name(RATE_AT), "{:.1%}"),
        sft_as_grpo_seeds=draws(SFT_AS_GRPO, "{:.1%}"),
        **by_rule(),
        **with_a_schema(),
        sampled_8=shown("8 examples", "sampled"),
        sampled_200=shown(sft_name(200), "sampled"),
        sampled_grpo=shown("GRPO", "sampled"),
        **on_tasks(checked),
        **letter_run(checked, EARLY),
        **query_without_a_model(),
        query_followed=followed(checked),
        letter_line=percent(repeated_letters()),
        letter_right=right_samples(checked, "letter"),
        query_right=right_samples(checked, "query"),
        early=EARLY,
        late=STEPS - EARLY,
        steps=STEPS,
        own=f"{OWN_SAMPLES:,}",
        held_out=HELD_OUT,
        query_cities=cities(checked),
        **span(),
    )
    return f"\n{text}"


def on_tasks(checked: Sequence[dict]) -> dict[str, str]:
    """What the arms reached on the two tasks that have no answers to imitate, by name."""
    values = {}
    for task in ("query", "letter"):
        for name, arm in CHECKED.items():
            values[f"{task}_{name}"] = on_task(checked, task, arm)
        for name in ("few", "self", "own", "grpo"):
            values[f"{task}_pass_{name}"] = on_task(checked, task, CHECKED[name], eight=True)
        for name in ("self", "own", "grpo"):
            values[f"{task}_{name}_minutes"] = minutes_on_task(checked, task, CHECKED[name])
        values[f"{task}_self_steps"] = steps_on_task(checked, task)
    return values


def steps_on_task(checked: Sequence[dict], task: str) -> str:
    """How many steps self-training took, on the correct samples that it kept."""
    found = row_of(checked, task, "self-training")
    return str(steps_of_sft(found["kept"], PASSES[RATE_AT])) if found else NOT_YET


def write(checked: Sequence[dict]) -> None:
    """Write the section into its page."""
    put(TITLE, section(checked), FIRST)


def mean(arm: str, rate: str) -> float:
    """The mean of a rate over the seeds of an arm that have ended."""
    return fmean(rates(each)[rate] for each in (runs(arm) if rate == "greedy" else of(arm)))


def shown(arm: str, rate: str) -> str:
    """The mean of a rate in percent, if a seed has ended."""
    return percent(mean(arm, rate)) if of(arm) else NOT_YET


def by_rule() -> dict[str, str]:
    """What needs no model answers of the known and of the new sentences, by name."""
    right = rule.right(ROWS)
    return dict(rule_known=percent(fmean(right[::2])), rule_new=percent(fmean(right[1::2])))


def with_a_schema() -> dict[str, str]:
    """The sampled accuracy with the same three examples, without and with a schema, by name."""
    pairs = zip(*matched("JSON schema, 3 examples", "3 examples"), strict=True)
    both = [percent(round(fmean(rates(each)["sampled"] for each in side), 2)) for side in pairs] or [NOT_YET] * 2
    return dict(zip(("sampled_schema", "sampled_no_schema"), both, strict=True))


def in_points(arm: str, other: str) -> str:
    """The mean difference of two arms in greedy accuracy and its interval, in percentage points."""
    if not (pairs := matched(arm, other)):
        return NOT_YET
    value, low, high = (100 * end for end in mean_difference(pairs))
    return f"{value:+.1f} points, with a 95% interval from {low:+.0f} to {high:+.0f}"


def tokens(arm: str) -> str:
    """How many tokens the prompt of an arm has."""
    stored = of(arm)
    return f"{fmean(each['prompt_tokens'] for each in stored):.0f}" if stored else NOT_YET
