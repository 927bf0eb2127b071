"""Run a pilot: check what can be checked without a model, sample, and report."""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from grpo_core.errors import CourseError
from grpo_core.rewards import is_strictly_right, reward_name, split_form
from grpo_core.training.policy import load_base

from ..findings import Finding, Report, in_order
from ..logs.names import kind_of
from ..packages import OF_A_MODEL, require
from ..preflights import machine, memory, thinking
from ..preflights.checking import RULES, walk
from ..preflights.config_file import run_of
from ..preflights.planned import PlannedRun, plan
from ..prompts import asks_for_tags
from .examples import draw
from .figures import Figures, figures, planned_steps
from .sampling import Group, RewardError, forward_seconds, groups, longer
from .verdicts import FEWEST_GROUPS, Basis, decide

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedModel, PreTrainedTokenizerBase
    from trl import GRPOConfig

#: The rules of a preflight that a pilot leaves out: it measures the machine, calls the rewards on real completions
#: instead of those of `probe`, and neither evaluates nor logs anything.
LEFT_OUT = {one.code for one in (*machine.RULES, *memory.RULES)}
LEFT_OUT |= {"reward_broken", "reward_weak", "other_kind", "no_eval_rows", "report_to"}


@dataclass(frozen=True, repr=False)
class PilotReport(Report):
    """The result of `pilot`.

    Attributes:
        findings: the verdict, a `Finding` of one of the ``RULES``, whose severity is ``note`` for go; then the warnings
            of the preflight.
        figures: all figures, or None if nothing was sampled.
        groups: the sampled groups with their texts, scores and lengths.
        minutes, price: of the planned run, None if not known.
        steps: of the planned run, None if nothing was sampled.
        notes: what else was seen.
    """

    figures: Figures | None = None
    groups: tuple[Group, ...] = ()
    minutes: float | None = None
    price: float | None = None
    steps: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> Finding:
        """What to do, and the number that decided it."""
        return self.findings[0]

    def keeping(self, wanted: Callable[[Finding], bool]) -> "PilotReport":
        """The same report with some of its warnings only; the verdict stays."""
        return replace(self, findings=(self.verdict, *filter(wanted, self.findings[1:])))

    def lines(self) -> list[str]:
        """The figures, the notes and the warnings."""
        facts = self._facts() if self.figures else {}
        return [*(labeled(*fact) for fact in facts.items()), *self.notes, *map(str, self.findings[1:])]

    def last_line(self) -> str:
        """The verdict, with its fixes below it."""
        verdict = labeled("verdict", f"{self.verdict.code}: {self.verdict.what}")
        return "\n".join([verdict, *(labeled("", fix) for fix in self.verdict.fixes)])

    def _facts(self) -> dict[str, str]:
        reward, tokens = self.figures.reward, self.figures.tokens
        sampling, scoring, learning = self.figures.seconds
        learns = "learning not measured"
        if learning is not None:
            learns = f"{learning:.3g} learning (measured forward pass x assumed factor)"
        minutes = "" if self.minutes is None else f", about {self.minutes:.3g} minutes"
        price = "" if self.price is None else f", price {self.price:.2f}"
        return {
            "sampled": f"{len(self.groups)} prompt{'s' * (len(self.groups) != 1)} x {self.figures.sampled} completions",
            "tied groups": f"{self.figures.tied} of the groups of {self.figures.size}",
            "truncated": f"{self.figures.truncated} of the completions have no EOS",
            "correct": f"{self.figures.right or 'not known'}",
            "correctly formatted": f"{self.figures.formed or 'not known'}",
            "advantage": f"{self.figures.pull or 'not known'} on average for a correct completion",
            "reward": f"mean {reward.mean:.3g}, from {reward.least:.3g} to {reward.most:.3g}, standard deviation in a "
            f"group {reward.spread:.3g}",
            "tokens": f"mean {tokens.mean:.0f}, 95% up to {tokens.usual}, longest {tokens.longest}",
            "seconds per step": f"{sampling:.3g} sampling, {scoring:.3g} rewards (measured), {learns}",
            "planned run": f"{self.steps} steps{minutes}{price}",
            "first completion": repr(self.groups[0].texts[0][:200]),
        }


def labeled(label: str, text: str) -> str:
    """A line of the report, with its label in a column on the left."""
    return f"{label:20}{text}"


def pilot(
    model: "PreTrainedModel", tokenizer: "PreTrainedTokenizerBase", rewards: Sequence[Callable],
    rows: "Dataset | list[dict]", *, config: "GRPOConfig | dict", prompts: int = 32,
    examples: int = 0, correct: Callable | None = None, price: float | None = None, seed: int = 0,
) -> PilotReport:  # fmt: skip
    """Sample some groups before training, and say whether GRPO has something to learn from.

    Ctrl-C ends the sampling; the report has what there is by then.

    Args:
        model, tokenizer, rewards, rows, config: what you give to `GRPOTrainer`. Rewards must be functions. An adapter
            that the model has is used.
        prompts: how many are drawn from the rows; each gets a group, of 8 completions at least.
        examples: how many other rows are put before each question, with their gold answers as the model's replies. What
            the model does then is free, so a run without them should end above it.
        correct: ``correct(text, row)`` says whether a completion is correct. Without it, the tags around reasoning and
            answer decide where the prompts ask for them, otherwise the best score (at least 1) of a reward whose name
            says that it rates correctness.
        price: of an hour on this machine.
        seed: of the prompts and the sampling.

    Raises:
        CourseError: arguments, rows, template or rewards with which the run could not start.
    """
    require("pilot", OF_A_MODEL)
    check_numbers(prompts, price, examples)
    run = plan(config, model=model.config, tokenizer=tokenizer, train=rows, rewards=rewards)
    how = dict(prompts=prompts, examples=examples, correct=correct, price=price, seed=seed)
    return report_on(run, warnings_of(run), model, **how)


def warnings_of(run: PlannedRun, wanted: Callable[[Finding], bool] | None = None) -> tuple[Finding, ...]:
    """The warnings of a preflight on what the pilot needs, without the findings that are not wanted.

    Raises:
        CourseError: something with which the run could not start.
    """
    if not run.train:
        raise CourseError("there are no rows to sample from. Check the file or the filter that produced them.")
    found, _ = walk(run, [rule for rule in RULES if rule.code not in LEFT_OUT])
    findings = tuple(filter(wanted or bool, found))
    Report(in_order(findings)).stop_on_errors()
    if len(run.functions) < len(run.rewards or []):
        raise CourseError("pilot calls functions only, so it cannot try a reward model; wrap it in a function.")
    return findings


def check_numbers(prompts: int, price: float | None, examples: int) -> None:
    """Raise a `CourseError` for a number of prompts or examples, or a price, that makes no sense."""
    if examples < 0:
        raise CourseError(f"examples={examples} should be 0 or more.")
    if prompts < 1:
        raise CourseError(f"prompts={prompts} should be 1 or more.")
    if price is not None and not 0 <= price < math.inf:
        raise CourseError(f"price={price} should be 0 or more.")


def report_on(
    run: PlannedRun, warnings: tuple[Finding, ...], model: "PreTrainedModel", *, prompts: int, examples: int,
    correct: Callable | None, price: float | None, seed: int,
) -> PilotReport:  # fmt: skip
    """The report on a planned run, what a preflight found in it, and its model."""
    run.tokenizer.pad_token = run.tokenizer.pad_token or run.tokenizer.eos_token  # as TRL does
    chosen = draw(run, prompts, examples, seed)
    samples = _sample(run, model, chosen, seed)
    notes = [labeled("prompt", text) for text in thinking.notes(run)]
    notes += [labeled("examples", f"{examples} rows in each prompt; the planned run has none")] if examples else []
    if samples.interrupted:
        notes.append(labeled("interrupted", f"after {len(samples.groups)} of {len(chosen)} prompts"))
    warned, count = frozenset(one.code for one in warnings), len(samples.groups)
    basis = Basis(None, samples.longer, run["temperature"], warned, samples.failure, count)
    if samples.failure or count < min(FEWEST_GROUPS, len(chosen)):
        return PilotReport((decide(basis), *warnings), groups=tuple(samples.groups), notes=tuple(notes))
    some, unjudged = judged(run, samples.groups, correct)
    basis, steps = replace(basis, figures=figures(run, some, samples.forward)), planned_steps(run)
    minutes = None if samples.forward is None else sum(basis.figures.seconds) * steps / 60
    cost = None if price is None or minutes is None else price * minutes / 60
    verdict = decide(basis)
    notes += [*unjudged, *(compared(run, some) if verdict.code == "check_golds" else [])]
    return PilotReport((verdict, *warnings), basis.figures, tuple(some), minutes, cost, steps, tuple(notes))


class Samples(NamedTuple):
    """The sampled groups and what was measured with them.

    Attributes:
        groups: all that were sampled.
        forward: seconds per completion of a forward pass; None if it was not measured.
        longer: lengths and ends of completions with a higher limit, if that was tried.
        failure: how a reward failed.
        interrupted: whether Ctrl-C ended the sampling.
    """

    groups: list[Group]
    forward: float | None = None
    longer: Sequence[tuple[int, bool]] = ()
    failure: str = ""
    interrupted: bool = False


def _sample(run: PlannedRun, model: "PreTrainedModel", chosen: Sequence[dict], seed: int) -> Samples:
    """Sample a group for each of some rows, then measure."""
    from torch import OutOfMemoryError

    some, forward = [], None
    try:
        for one in groups(run, model, chosen, seed):
            some.append(one)
        if all(score is None for one in some for column in one.scores for score in column):
            raise RewardError("the rewards returned None for every completion, so nothing can be learned.")
        forward = forward_seconds(run, model, some)
        cut = [one for one in some if not all(one.ended)]
        return Samples(some, forward, longer(run, model, cut) if len(cut) > len(some) / 2 else [])
    except RewardError as error:
        return Samples(some, failure=str(error))
    except OutOfMemoryError as error:
        fix = "lower per_device_train_batch_size or max_completion_length; training would run out as well"
        raise CourseError(f"out of GPU memory while sampling {run.completions_at_once} completions: {fix}.") from error
    except KeyboardInterrupt:
        return Samples(some, forward, interrupted=True)


def compared(run: PlannedRun, some: list[Group], most: int = 3) -> list[str]:
    """Some correctly formatted completions next to their gold answers."""
    pairs = [(text, one.row) for one in some for text, formed in zip(one.texts, one.formed, strict=True) if formed]
    pairs = random.Random(0).sample(pairs, min(most, len(pairs)))
    gold = run.answer_column
    return [labeled("compare", f"{text[-80:]!r} with the gold answer {row.get(gold)!r:.80}") for text, row in pairs]


def judged(run: PlannedRun, some: list[Group], correct: Callable | None) -> tuple[list[Group], list[str]]:
    """The groups with what is known about their completions: by ``correct``, by tags, or by a reward.

    The second result is a note if ``correct`` failed.
    """
    asked = asks_for_tags([one.row["prompt"] for one in some])
    names, gold, right = [kind_of(reward_name(reward)) for reward in run.rewards], run.answer_column, [None] * len(some)
    notes = []
    if correct is None and asked and gold in some[0].row:
        correct = lambda text, row: is_strictly_right(text, row[gold])  # noqa: E731
    if correct is not None:
        right, notes = _by(correct, some)
    elif "correctness" in names:
        columns = [one.scores[names.index("correctness")] for one in some]
        best = max(1.0, *(score for column in columns for score in column if score is not None))
        right = [[score == best for score in column] for column in columns]
    formed = [[split_form(text) is not None for text in one.texts] if asked else None for one in some]
    return [replace(one, right=r, formed=f) for one, r, f in zip(some, right, formed, strict=True)], notes


def _by(correct: Callable, some: list[Group]) -> tuple[list, list[str]]:
    """What ``correct`` says about each completion; nothing is known, and a note says why, if it fails or is stopped."""
    try:
        return [[bool(correct(text, one.row)) for text in one.texts] for one in some], []
    except (Exception, SystemExit) as error:  # this runs a user's function, after all the sampling
        why = f"because correct() failed: {type(error).__name__}: {error}"
    except KeyboardInterrupt:
        why = "because correct() was interrupted"
    return [None] * len(some), [labeled("note", f"which completions are correct is not known, {why}")]


def pilot_file(
    path: Path, *, model: str = "", adapter: str = "", train: str = "", rewards: Sequence[str] = (),
    changes: dict | None = None, wanted: Callable[[Finding], bool] | None = None, prompts: int = 32,
    examples: int = 0, price: float | None = None, seed: int = 0,
) -> PilotReport:  # fmt: skip
    """`pilot` on the file that ``trl grpo --config`` reads, and what it names. The model is loaded last.

    Args:
        path: the file.
        model, train, rewards: in place of the file's model, dataset and ``reward_funcs``.
        adapter: a folder or hub id of a LoRA adapter for the model.
        changes: arguments of `GRPOConfig` in place of the file's; None leaves one as it is.
        wanted: which findings of the preflight count; by default all.
        prompts, examples, price, seed: as for `pilot`.

    Raises:
        CourseError: a file cannot be read, or the run could not start.
    """
    require("pilot", OF_A_MODEL)
    check_numbers(prompts, price, examples)
    changed = {name: value for name, value in (changes or {}).items() if value is not None}
    with run_of(path, model=model, train=train, rewards=rewards, changes=changed) as run:
        if run.train is None:
            raise CourseError(f"there are no rows: {'; '.join(run.bad_rows) or run.unread['rows']}.")
        if not (run.model.name or run.model.config):
            raise CourseError("there is no model: pass --model, or set model_name_or_path in the file.")
        if run.tokenizer is None:
            raise CourseError(f"{run.model.fault or run.model.unseen or run.unread['tokenizer']}.")
        warnings = warnings_of(run, wanted)
        policy = _policy(run, adapter)
        how = dict(prompts=prompts, examples=examples, correct=None, price=price, seed=seed)
        return report_on(run, warnings, policy, **how)


def _policy(run: PlannedRun, adapter: str) -> "PreTrainedModel":
    """The model of a config file, on the GPU if there is one, with its adapter if one is given."""
    import torch
    from peft import PeftConfig, PeftModel

    place = "cpu" if run["use_cpu"] or not torch.cuda.is_available() else "cuda"
    keys = run.values.usable
    dtype, four_bits = keys.get("dtype") or "float32", bool(keys.get("load_in_4bit"))
    if four_bits and dtype == "auto":  # bitsandbytes has to know in which dtype it computes
        dtype = "bfloat16" if place == "cuda" and torch.cuda.is_bf16_supported() else "float32"
    how = dict(dtype=dtype, load_in_4bit=four_bits, device_map=place)
    try:
        if adapter:
            PeftConfig.from_pretrained(adapter)  # fails before the model is loaded
        policy = load_base(run.model.name, **how)
        return PeftModel.from_pretrained(policy, adapter) if adapter else policy
    except (OSError, ValueError, ImportError) as error:
        raise CourseError(
            f"{adapter or run.model.name!r} cannot be loaded: {str(error).strip().splitlines()[0]}"
        ) from error
