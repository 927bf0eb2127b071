"""A filter by how often the policy solves a prompt: a group of equal rewards teaches nothing."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import CourseError

if TYPE_CHECKING:
    from datasets import Dataset


def drop_tied(rows: "Dataset", rates: Sequence[float], low: float = 0.0, high: float = 1.0) -> "Dataset":
    """The rows that the policy solves sometimes: those with ``low`` < rate < ``high``.

    Where all completions of a group earn the same, their advantages are all 0. DAPO (Yu et al. 2025,
    arXiv 2503.14476) leaves such groups out while it trains; this does it once, beforehand, for the
    policy that the rates come from (`grpo_utils.pass_rates`) and for no later one.

    Args:
        rows: the dataset.
        rates: for each row the share of its samples that is right, from 0 to 1.
        low, high: the bounds, both left out themselves.

    Raises:
        CourseError: there are not as many rates as rows, one is no share, or no row is left.
    """
    if len(rates) != len(rows):
        raise CourseError(f"{len(rates)} rates for {len(rows)} rows. Give the rates of these very rows.")
    odd = [rate for rate in rates if not 0 <= rate <= 1]
    if odd:
        raise CourseError(f"{odd[0]} is no pass rate: it should be from 0 to 1, the share of samples that is right.")
    kept = [index for index, rate in enumerate(rates) if low < rate < high]
    if not kept:
        raise CourseError(
            f"No row has a pass rate between {low} and {high}; the lowest is {min(rates)}, the highest {max(rates)}. "
            "Take easier or harder rows, or more samples a prompt."
        )
    return rows.select(kept)
