"""What to try before GRPO, in order of cost, with what each step reached in the two benches."""

from collections.abc import Sequence
from statistics import fmean

from benches import FIRST, NOT_YET, filled, put
from checked.reading import minutes_on_task, on_task, percent

from grpo_utils.real.measuring import rates

from .arms import CAREFUL, FEW, sft_name
from .table import minutes, of

TITLE = "In this order"
SHOWN = {
    "untrained": "0 examples",
    "examples_3": "3 examples",
    "examples_8": "8 examples",
    "instruction": CAREFUL,
    "schema_0": "JSON schema, 0 examples",
    "schema_3": "JSON schema, 3 examples",
    "sft_50": sft_name(50),
    "sft_200": sft_name(200),
    "grpo": "GRPO",
}


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
        orders_self=shown("self-training", "greedy"),
        sampled_8=shown("8 examples", "sampled"),
        sampled_200=shown(sft_name(200), "sampled"),
        sampled_grpo=shown("GRPO", "sampled"),
        pass_8=shown("8 examples", "pass@8"),
        pass_200=shown(sft_name(200), "pass@8"),
        pass_grpo=shown("GRPO", "pass@8"),
        query_self_minutes=minutes_on_task(checked, "self-training"),
        query_grpo_minutes=minutes_on_task(checked, "GRPO"),
        query_pass_few=on_task(checked, "3 examples", eight=True),
        query_few=on_task(checked, "3 examples"),
        query_self=on_task(checked, "self-training"),
        query_grpo=on_task(checked, "GRPO"),
        query_pass_self=on_task(checked, "self-training", eight=True),
        query_pass_grpo=on_task(checked, "GRPO", eight=True),
    )
    return f"\n{text}"


def write(checked: Sequence[dict]) -> None:
    """Write the section into its page."""
    put(TITLE, section(checked), FIRST)


def mean(arm: str, rate: str) -> float:
    """The mean of a rate over the seeds of an arm that have ended."""
    return fmean(rates(each)[rate] for each in of(arm))


def shown(arm: str, rate: str) -> str:
    """The mean of a rate in percent, if a seed has ended."""
    return percent(mean(arm, rate)) if of(arm) else NOT_YET


def tokens(arm: str) -> str:
    """How many tokens the prompt of an arm has."""
    stored = of(arm)
    return f"{fmean(each['prompt_tokens'] for each in stored):.0f}" if stored else NOT_YET
