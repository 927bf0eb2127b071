"""Rules about what is worth a word and does no harm."""

from collections.abc import Callable, Iterator, Sequence

from ...findings import Finding
from ...rules import adding_to
from .. import limits
from ..log import Log
from ..statistics import clearest_rise, first, last, sigmas, span
from .rule import LogRule, log_of, seen

RULES: list[LogRule] = []
rule = adding_to(RULES, LogRule)


@rule(
    "note",
    "completions are growing",
    why="if the extra reasoning helps, accuracy rises too; otherwise each step just takes longer",
    fixes=(
        "watch completions/clipped_ratio; completions at the limit lose their answers",
        "if accuracy does not rise, use loss_type='dr_grpo' or 'dapo'; neither favors long wrong answers (lesson 08)",
    ),
    steps=limits.TREND_STEPS,
    example=log_of(20, reward=lambda step: step / 20, completions__mean_length=lambda step: 100.0 + 10 * step),
)
def growing_completions(log: Log) -> Iterator[Finding]:
    """Completions are much longer than at first, often because the policy reasons more."""
    yield from _length_moved(log, lambda times: times >= limits.LONGER)


@rule(
    "note",
    "completions are shrinking",
    why="less rambling is harmless, but less reasoning is not",
    fixes=(
        "compare accuracy on held-out prompts with the base model",
        "read the samples: is reasoning missing, or only padding?",
        "if accuracy falls, remove what rewards brevity, and reward the format only with a correct answer",
    ),
    steps=limits.TREND_STEPS,
    example=log_of(20, reward=lambda step: step / 20, completions__mean_length=lambda step: 300.0 - 10 * step),
)
def shrinking_completions(log: Log) -> Iterator[Finding]:
    """Completions are much shorter than at first, often because the policy rambles less."""
    yield from _length_moved(log, lambda times: times <= limits.SHORTER)


def _length_moved(log: Log, far: Callable[[float], bool]) -> Iterator[Finding]:
    lengths = log.values("completions/mean_length")
    if not first(lengths or [0.0]) or abs(sigmas(lengths)) < limits.SURE:
        return
    curves = {name: log.means(name) for name in log.of_kind("correctness")} or {"reward": log.values("reward")}
    held = ", ".join(f"{name} {_held(values)}" for name, values in curves.items())
    if far(last(lengths) / first(lengths)):
        yield seen(f"mean length {span(lengths)} tokens, while {held}")


def _held(values: Sequence[float]) -> str:
    """How a reward changed from first to last."""
    errors = sigmas(values)
    change = "rose" if errors >= limits.RISEN else "fell" if errors <= -limits.RISEN else "held steady"
    return f"{change} ({span(values)})"


@rule(
    "note",
    "a reward paid nothing in the whole run, while another one rose",
    why="the run learns without it; either nothing ever triggered it, or it cannot be triggered",
    fixes=(
        "call it by hand on a completion that should trigger it",
        "if it scores only some rows (None for the others), check the column that it reads",
        "if nothing triggers it, leave it out",
    ),
    steps=limits.TREND_STEPS,
    example=log_of(
        40,
        reward=lambda step: 0.2 if step < 20 else 0.6,
        rewards__overlong_penalty__mean=0.0,
        rewards__overlong_penalty__std=0.0,
        rewards__accuracy_reward__mean=lambda step: 0.2 if step < 20 else 0.6,
    ),
)
def unpaid_reward(log: Log) -> Iterator[Finding]:
    """A reward gave every completion 0, or None, in a run that learned; `dead_reward` has those that do harm."""
    named = [name for name in log.rewards if log.means(name)]
    zero = [name for name in named if log.means(name)[-1] == 0 and not log.ever_varied(name)]
    risen = [name for name in named if clearest_rise(log.means(name)) >= limits.RISEN]
    said = [f"{name} = 0 for every completion" for name in zero]
    said += [f"{name} scored no completion" for name in log.unscored]
    if said and risen:
        yield seen(f"{', '.join(said)} of {log.steps} steps, while {risen[0]} rose ({span(log.means(risen[0]))})")
