"""Run a pilot: check what can be checked without a model, sample, and report."""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from grpo_utils import model_path
from grpo_utils.errors import CourseError
from grpo_utils.rewards import TAGS, is_strictly_right, reward_name, split_form
from grpo_utils.run.policy import load_base

from ..findings import Finding, Report
from ..health.names import kind_of
from ..preflight import arguments as of_arguments
from ..preflight import rewards as of_rewards
from ..preflight import rows as of_rows
from ..preflight import texts, thinking
from ..preflight.config_file import answer_column, load_tokenizer, project
from ..preflight.run import Run, plan
from ..preflight.sizes import read_config
from ..preflight.values import read
from .figures import Figures, figures, planned_steps
from .sampling import Group, RewardError, forward_seconds, groups, longer
from .verdicts import decide, signed, stop, without_template

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedModel, PreTrainedTokenizerBase
    from trl import GRPOConfig

#: The verdicts that a model which sees no question in its own format explains.
NO_QUESTION = ("sft_first", "check_golds", "easier_rows", "fix_eos", "raise_limit")
#: The checks of a preflight that need rows, rewards and tokenizer.
RUN_CHECKS = (
    of_arguments.groups, of_arguments.refused, of_rewards.weights, of_rewards.signatures, of_rows.prompts,
    texts.tokens, texts.template, texts.rendering,
)  # fmt: skip
#: Groups below which an interrupted pilot does not decide.
FEWEST = 8


@dataclass(frozen=True, repr=False)
class PilotReport(Report):
    """The result of `pilot`.

    Attributes:
        findings: the verdict, a `Finding` with one of the ``CODES``, whose severity is ``note`` for go; then the
            warnings of the checks that need no model.
        figures: all figures, or None if nothing was sampled.
        groups: the sampled groups with their texts, scores and lengths.
        minutes, price: of the planned run, None if not known.
        steps: of the planned run.
        notes: what else was seen.
    """

    figures: Figures | None = None
    groups: tuple[Group, ...] = ()
    minutes: float | None = None
    price: float | None = None
    steps: int = 0
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> Finding:
        """What to do, and the number that decided it."""
        return self.findings[0]

    def __str__(self) -> str:
        """The figures, the notes and the verdict."""
        facts = self._facts() if self.figures else {}
        lines = [f"{name:20}{value}" for name, value in facts.items()]
        advice = [f"{'':20}{fix}" for fix in self.verdict.fixes]
        verdict = f"{'verdict':20}{self.verdict.code}: {self.verdict.what}"
        return "\n".join([*lines, *self.notes, *map(str, self.findings[1:]), verdict, *advice])

    __repr__ = __str__

    def _facts(self) -> dict[str, str]:
        seen, (mean, least, most, spread) = self.figures, self.figures.reward
        sampling, scoring, learning = seen.seconds
        learns = "learning not measured"
        if learning is not None:
            learns = f"{learning:.3g} learning (measured forward pass x assumed factor)"
        minutes = "" if self.minutes is None else f", about {self.minutes:.3g} minutes"
        price = "" if self.price is None else f", price {self.price:.2f}"
        return {
            "sampled": f"{len(self.groups)} prompt{'s' * (len(self.groups) != 1)} x {seen.sampled} completions",
            "tied groups": f"{seen.tied} of the groups of {seen.size}",
            "truncated": f"{seen.truncated} of the completions have no EOS",
            "correct": f"{seen.right or 'not known'}",
            "correctly formatted": f"{seen.formed or 'not known'}",
            "advantage": f"{signed(seen.pull)} on average for a correct completion",
            "reward": f"mean {mean:.3g}, from {least:.3g} to {most:.3g}, standard deviation in a group {spread:.3g}",
            "tokens": f"mean {seen.tokens[0]:.0f}, 95% up to {seen.tokens[1]}, longest {seen.tokens[2]}",
            "seconds per step": f"{sampling:.3g} sampling, {scoring:.3g} rewards (measured), {learns}",
            "planned run": f"{self.steps} steps{minutes}{price}",
            "first completion": repr(self.groups[0].texts[0][:200]),
        }


def pilot(
    model: "PreTrainedModel", tokenizer: "PreTrainedTokenizerBase", rewards: Sequence[Callable],
    rows: "Dataset | list[dict]", *, config: "GRPOConfig | dict", **how: object,
) -> PilotReport:  # fmt: skip
    """Sample some groups before training, and say whether GRPO has something to learn from.

    Ctrl-C ends the sampling; the report has what there is by then.

    Args:
        model, tokenizer, rewards, rows, config: what you give to `GRPOTrainer`. Rewards must be functions. An adapter
            that the model has is used.
        how: any of the following.

            - ``prompts``: drawn from the rows, 32 by default; each gets a group, of 8 completions at least.
            - ``correct``: ``correct(text, row)`` says whether a completion is correct. Without it, the course's format
              decides where the prompts ask for it, otherwise the best score (at least 1) of a reward whose name says
              that it rates correctness.
            - ``price``: of an hour on this machine.
            - ``seed``: of the prompts and the sampling; 0 by default.

    Raises:
        CourseError: arguments, rows, template or rewards with which the run could not start.
    """
    check_how(**how)
    return sampled(planned(config, tokenizer, rewards, rows), model, **how)


def planned(config: object, tokenizer: object, rewards: object, rows: object, **settings: object) -> Run:
    """The planned run, after the checks of arguments, rows, template and rewards.

    Raises:
        CourseError: something with which the run could not start.
    """
    from trl import GRPOConfig

    run = plan(config, None, dict(tokenizer=tokenizer, train=rows, rewards=rewards, **settings))
    given, found = read(run.given, GRPOConfig)
    Report(tuple(found)).stop_on_errors()
    run = replace(run, given=given)
    stop_on_errors(run, of_arguments.bounds, of_arguments.choices, of_arguments.sampling)
    if not run.train:
        raise CourseError("there are no rows to sample from. Check the file or the filter that produced them.")
    if len(of_rewards.functions(run)) < len(run.rewards):
        raise CourseError("pilot calls functions only, so it cannot try a reward model; wrap it in a function.")
    stop_on_errors(run, *RUN_CHECKS)
    run.tokenizer.pad_token = run.tokenizer.pad_token or run.tokenizer.eos_token  # as TRL does
    return run


def stop_on_errors(run: Run, *checks: Callable) -> None:
    """Raise a `CourseError` with all errors that some checks of a preflight find."""
    Report(found_in(run, *checks)).stop_on_errors()


def found_in(run: Run, *checks: Callable) -> tuple[Finding, ...]:
    """What some checks of a preflight find."""
    return tuple(chain.from_iterable(check(run) for check in checks))


def check_how(prompts: int = 32, price: float | None = None, **others: object) -> None:
    """Raise a `CourseError` for a number of prompts or a price that makes no sense."""
    if prompts < 1:
        raise CourseError(f"prompts={prompts} should be 1 or more.")
    if price is not None and not 0 <= price < math.inf:
        raise CourseError(f"price={price} should be 0 or more.")


def sampled(
    run: Run, model: "PreTrainedModel", *, prompts: int = 32, correct: Callable | None = None,
    price: float | None = None, seed: int = 0,
) -> PilotReport:  # fmt: skip
    """The report on a planned run and its model."""
    from torch import OutOfMemoryError

    found, texts_seen = thinking.prefilled(run, "")
    notes = [f"{'prompt':20}{text}" for text in [*(f"{one.what} {one.why}" for one in found), *texts_seen]]
    warnings = found_in(run, *RUN_CHECKS, of_rows.golds_in_prompts)
    some, forward, more = [], None, []
    chosen = [run.train[n] for n in random.Random(seed).sample(range(len(run.train)), min(prompts, len(run.train)))]
    try:
        for one in groups(run, model, chosen, seed):
            some.append(one)
        if all(score is None for one in some for column in one.scores for score in column):
            raise RewardError("the rewards returned None for every completion, so nothing can be learned.")
        forward = forward_seconds(run, model, some)
        cut = [one for one in some if not all(one.ended)]
        more = longer(run, model, cut) if len(cut) > len(some) / 2 else []
    except RewardError as error:
        verdict = stop("fix_reward", str(error), "fix the reward.")
        return PilotReport((verdict, *warnings), groups=tuple(some), notes=tuple(notes))
    except OutOfMemoryError as error:
        fix = "lower per_device_train_batch_size or max_completion_length; training would run out as well"
        raise CourseError(f"out of GPU memory while sampling {run.completions_at_once} completions: {fix}.") from error
    except KeyboardInterrupt:
        notes.append(f"{'interrupted':20}after {len(some)} of {len(chosen)} prompts")
    if len(some) < min(FEWEST, len(chosen)):
        count = {0: "no group was", 1: "only 1 group was"}.get(len(some), f"only {len(some)} groups were")
        verdict = stop("stopped", f"{count} sampled", f"sample {FEWEST} or more.")
        return PilotReport((verdict, *warnings), groups=tuple(some), notes=tuple(notes))
    some, unjudged = judged(run, some, correct)
    seen, steps = figures(run, some, forward), planned_steps(run)
    minutes = None if forward is None else sum(seen.seconds) * steps / 60
    cost = None if price is None or minutes is None else price * minutes / 60
    notes += unjudged
    verdict = decide(seen, more, temperature=run["temperature"])
    if verdict.code == "check_golds":
        notes += compared(run, some)
    if verdict.code in NO_QUESTION and any(one.code == "string_prompt" for one in warnings):
        verdict = without_template(verdict)
    return PilotReport((verdict, *warnings), seen, tuple(some), minutes, cost, steps, tuple(notes))


def compared(run: Run, some: list[Group], most: int = 3) -> list[str]:
    """Some correctly formatted completions next to their gold answers."""
    pairs = [(text, one.row) for one in some for text, formed in zip(one.texts, one.formed, strict=True) if formed]
    pairs = random.Random(0).sample(pairs, min(most, len(pairs)))
    gold = run.answer_column
    return [f"{'compare':20}{text[-80:]!r} with the gold answer {row.get(gold)!r:.80}" for text, row in pairs]


def judged(run: Run, some: list[Group], correct: Callable | None) -> tuple[list[Group], list[str]]:
    """The groups with what is known about their completions: by ``correct``, in the course's format, or by a reward.

    The second result is a note if ``correct`` failed.
    """
    asked = all(tag in str(one.row["prompt"]) for one in some for tag in TAGS)
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
    return [None] * len(some), [f"{'note':20}which completions are correct is not known, {why}"]


def pilot_file(
    path: Path, *, model: str = "", adapter: str = "", train: str = "", rewards: Sequence[str] = (),
    changes: dict | None = None, **how: object,
) -> PilotReport:  # fmt: skip
    """`pilot` on the file that ``trl grpo --config`` reads, and what it names. The model is loaded last.

    Args:
        path: the file.
        model, train, rewards: in place of the file's model, dataset and ``reward_funcs``.
        adapter: a folder or hub id of a LoRA adapter for the model.
        changes: arguments of `GRPOConfig` in place of the file's; None leaves one as it is.
        how: ``prompts``, ``price`` and ``seed``, as for `pilot`.

    Raises:
        CourseError: a file cannot be read, or the run could not start.
    """
    check_how(**how)
    with project(path, model=model, train=train, heldout="", rewards=rewards) as of:
        Report(tuple(of.found)).stop_on_errors()
        if of.train is None:
            raise CourseError(f"there are no rows: {of.skipped['dataset']}.")
        if not of.model:
            raise CourseError("there is no model: pass --model, or set model_name_or_path in the file.")
        read_config(of.model)
        training = of.training | {name: value for name, value in (changes or {}).items() if value is not None}
        tokenizer = load_tokenizer(of.model, of.skipped)
        if tokenizer is None:
            raise CourseError(f"{of.skipped['tokenizer']}.")
        settings = dict(model=of.model, answer_column=answer_column(of.train))
        run = planned(training, tokenizer, of.rewards or [], of.train, **settings)
        return sampled(run, _policy(run, of.keys, adapter), **how)


def _policy(run: Run, keys: dict, adapter: str) -> "PreTrainedModel":
    """The model of a config file, on the GPU if there is one, with its adapter if one is given."""
    import torch
    from peft import PeftConfig, PeftModel

    place = "cpu" if run["use_cpu"] or not torch.cuda.is_available() else "cuda"
    how = dict(dtype=keys.get("dtype") or "float32", load_in_4bit=bool(keys.get("load_in_4bit")), device_map=place)
    try:
        if adapter:
            PeftConfig.from_pretrained(adapter)  # fails before the model is loaded
        policy = load_base(model_path(run.name), **how)
        return PeftModel.from_pretrained(policy, adapter) if adapter else policy
    except (OSError, ValueError, ImportError) as error:
        raise CourseError(f"{adapter or run.name!r} cannot be loaded: {str(error).strip().splitlines()[0]}") from error
