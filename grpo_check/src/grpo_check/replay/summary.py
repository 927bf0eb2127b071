"""What the page says about the whole run: its curves, its verdicts, the most paid completions, and the weights."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from ..findings import Finding
from ..health.diagnosis import is_early, judge, subjects_of
from ..logs.log import Log
from ..logs.names import kind_of
from .records import Recording, Step, mean_of

#: Points of a curve.
_MOST_POINTS = 1000
#: Moments at which a log is judged again; fewer for a log of more than `LONG` entries, where each takes its time.
MOST_LOOKS, FEWER_LOOKS, LONG = 60, 20, 150
#: The most paid completions that are listed.
_LISTED = 12
#: Totals that differ by less are the same.
SAME = 1e-6
UNKNOWN = (
    "Nothing here shows the weights of the rewards, so a sum counts each once. A curve from a log has TRL's total."
)
Points = list[tuple[int, float]]


@dataclass(frozen=True)
class Curve:
    """A metric over the steps; ``kind`` decides its color."""

    label: str
    kind: str
    points: Points


@dataclass(frozen=True)
class Verdict:
    """A finding and the step at which a log of that length first shows it."""

    step: int
    finding: Finding


@dataclass
class Paid:
    """A text, the most that it earned, and how often and at which steps it earned that."""

    text: str
    reward: float
    times: int = 0
    steps: list[int] = field(default_factory=list)


def weights_of(recording: Recording) -> tuple[tuple[float, ...], str]:
    """The weights of the rewards, and a note on where they come from.

    A template's report has them. TRL logs none, but the mean reward is the weighted sum of the means of the rewards, so
    that a log determines them if its rewards vary independently. Otherwise, or if the sum does not fit, each reward
    counts once.
    """
    names, log = recording.rewards, recording.log
    once = (1.0,) * len(names)
    if recording.held_out or not names:
        return once, ""
    if all(name in recording.weights for name in names):
        return tuple(recording.weights[name] for name in names), ""
    # Older versions of TRL counted a completion that no function scored as 0 in the mean total.
    if log and (found := solved(*_means_of(recording, log)) or solved(*_means_of(recording, log, unscored=True))):
        said = ", ".join(f"{name} {weight:g}" for name, weight in zip(names, found, strict=True))
        return found, "" if found == once else f"The weights of the rewards, worked out from the log: {said}."
    return once, UNKNOWN * (len(names) > 1)


def _means_of(recording: Recording, log: Log, *, unscored: bool = False) -> tuple[list[list[float]], list[float]]:
    """The mean rewards of some steps, one list for each, and the mean total of each.

    The log's own means leave out what a function did not score, where TRL counts nothing in the total. So if there is
    such a completion, the means are those of the completions, each None counted as 0. A completion that no function
    scored has no total, and TRL's mean leaves it out; ``unscored`` counts it as 0.
    """
    if any(None in each.rewards for step in recording.steps for each in step.completions):
        logged = {entry["step"]: entry["reward"] for entry in log.entries}
        paid = {
            step.number: [
                [reward or 0.0 for reward in each.rewards]
                for each in step.completions
                if unscored or set(each.rewards) != {None}
            ]
            for step in recording.steps
            if step.number in logged
        }
        known = {step: rows for step, rows in paid.items() if rows}
        return [list(map(mean_of, zip(*rows, strict=True))) for rows in known.values()], [logged[s] for s in known]
    keys = [f"rewards/{name}/mean" for name in recording.rewards]
    entries = [entry for entry in log.entries if all(key in entry for key in (*keys, "reward"))]
    return [[entry[key] for key in keys] for entry in entries], [entry["reward"] for entry in entries]


def solved(rows: list[list[float]], sums: list[float]) -> tuple[float, ...] | None:
    """The weights with which the means of every step give its total, None if there are none.

    >>> solved([[1.0, 0.0], [0.5, 1.0], [0.25, 0.5]], [2.0, 2.0, 1.0])
    (2.0, 1.0)
    """
    import numpy

    finite = [(row, total) for row, total in zip(rows, sums, strict=True) if all(map(math.isfinite, (*row, total)))]
    if not finite:
        return None
    means, totals = map(numpy.array, zip(*finite, strict=True))
    if numpy.linalg.matrix_rank(means, tol=1e-4) < means.shape[1]:
        return None
    found = numpy.linalg.lstsq(means, totals, rcond=None)[0]
    fits = numpy.allclose(means @ found, totals, rtol=0, atol=1e-6 + 1e-3 * numpy.abs(totals).max())
    return tuple(float(f"{weight:.3g}") + 0.0 if abs(weight) > 1e-4 else 0.0 for weight in found) if fits else None


def curves_of(recording: Recording, weights: tuple[float, ...]) -> list[Curve]:
    """The curves: from the log where it covers the run, otherwise from the completions.

    The curve of a reward that is the total has nothing to add.
    """
    log = recording.log
    covered = log is not None and (log.step >= recording.steps[-1].number or recording.held_out)
    curves = _logged_curves(log, recording.rewards) if covered else _counted_curves(recording, weights)
    total = next((curve.points for curve in curves if curve.kind == "reward"), None)
    return [curve for curve in curves if curve.points and (curve.kind != "part" or curve.points != total)]


def _logged_curves(log: Log, rewards: tuple[str, ...]) -> list[Curve]:
    """The curves of a log."""
    names = [name for name in log.rewards if name in rewards] or list(log.rewards)
    curves = [Curve("reward (total)", "reward", points(log.entries, "reward"))]
    held_out = [
        (int(check["step"]), check["health/heldout_right"] / check["health/heldout_sampled"])
        for check in log.checks
        if check.get("health/heldout_sampled") and "health/heldout_right" in check
        if math.isfinite(check.get("step", math.nan))
    ]
    curves.append(Curve("held-out accuracy", "correctness", held_out))
    named = [Curve(name, _color_of(log.kind(name)), points(log.entries, f"rewards/{name}/mean")) for name in names]
    curves += sorted(named, key=lambda curve: curve.kind != "correctness")
    curves.append(Curve("mean length (tokens)", "length", points(log.entries, "completions/mean_length")))
    curves.append(Curve("tied groups (share)", "tied", points(log.entries, "frac_reward_zero_std")))
    return curves


def points(entries: list[dict], key: str) -> Points:
    """A metric at the steps where it was logged, not more than a page can show."""
    found = [(entry["step"], entry[key]) for entry in entries if abs(entry.get(key, float("inf"))) < float("inf")]
    stride = -(-len(found) // _MOST_POINTS) or 1
    return found[::-1][::stride][::-1]


def _counted_curves(recording: Recording, weights: tuple[float, ...]) -> list[Curve]:
    """The curves that the completions themselves give."""

    def curve(label: str, kind: str, value: Callable[[Step], float | None]) -> Curve:
        found = ((step.number, value(step)) for step in recording.steps)
        return Curve(label, kind, [(step, mean) for step, mean in found if mean is not None])

    def reward(index: int) -> Callable[[Step], float | None]:
        return lambda step: mean_of([each.rewards[index] for each in step.completions])

    named = [curve(name, _color_of(kind_of(name)), reward(index)) for index, name in enumerate(recording.rewards)]
    total = curve("reward (total)", "reward", lambda step: mean_of([each.total(weights) for each in step.completions]))
    length = curve("mean length (characters)", "length", lambda step: mean_of([len(c.text) for c in step.completions]))
    tied = curve("tied groups (share)", "tied", lambda step: mean_of([float(group.is_tied) for group in step.groups]))
    named.sort(key=lambda found: found.kind != "correctness")
    return [*named, length] if recording.held_out else [total, *named, length, tied]


def _color_of(kind: str) -> str:
    """What a reward's curve means: correctness, or another reward."""
    return "correctness" if kind == "correctness" else "part"


def verdicts_of(log: Log | None) -> list[Verdict]:
    """What the health check says, at the step where it first says it, and at the last step its final word.

    The log is judged as `HealthCallback` does while the run trains, at so many lengths.
    """
    if log is None:
        return []
    told: set[str] = set()
    verdicts = []
    for length in looks(len(log.entries))[:-1]:
        early = Log(log.entries[:length], _checks_until(log, log.entries[length - 1]["step"]), log.correctness)
        early.rewards, early.unscored = log.rewards, log.unscored
        for finding in judge(early):
            subjects = subjects_of(finding, early)
            if finding.severity == "note" or is_early(finding) or subjects <= told:
                continue
            told |= subjects
            verdicts.append(Verdict(early.step, finding))
    final = [Verdict(log.step, finding) for finding in judge(log) if not subjects_of(finding, log) <= told]
    return [*verdicts, *final]


def looks(entries: int) -> list[int]:
    """The lengths at which a log is judged.

    >>> looks(3), len(looks(5000)), looks(5000)[-1]
    ([1, 2, 3], 20, 5000)
    """
    few = min(entries, MOST_LOOKS if entries <= LONG else FEWER_LOOKS)
    return [round((i + 1) * entries / few) for i in range(few)]


def _checks_until(log: Log, step: int) -> list[dict]:
    """The callback's checks up to a step."""
    return [check for check in log.checks if check.get("step", 0) <= step]


def most_paid(recording: Recording, weights: tuple[float, ...]) -> list[Paid]:
    """The texts that earned the most, of these first those that earned it most often, and then those that did last."""
    found: dict[str, Paid] = {}
    for step in recording.steps:
        for each in step.completions:
            total, paid = each.total(weights), found.get(each.text)
            if total is None or (paid and total < paid.reward - SAME):
                continue
            if paid is None or total > paid.reward + SAME:
                found[each.text] = paid = Paid(each.text, total)
            paid.times += 1
            paid.steps.append(step.number)
    return sorted(found.values(), key=lambda paid: (-round(paid.reward, 4), -paid.times, -paid.steps[-1]))[:_LISTED]
