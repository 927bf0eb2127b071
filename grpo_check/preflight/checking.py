"""The call itself: which checks run on what was given, and which are skipped for want of something."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from grpo_utils.errors import CourseError
from grpo_utils.profiles import BACKENDS, Gpu, Profile, check_choice

from ..reward_lab.calling import missing_columns, parameters_of
from . import arguments as of_arguments
from . import machine, rewards, rows, texts, thinking
from .estimate import Estimate
from .planned import (
    Check,
    Planned,
    check_counts,
    check_dataset,
    check_given,
    check_machine,
    check_tokenizer,
    check_words,
    dtype_name,
    planned,
)
from .report import Finding, PreflightReport, in_order

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PretrainedConfig, PreTrainedTokenizerBase
    from trl import GRPOConfig

#: Checks of the arguments alone, which always run.
ALWAYS: tuple[Check, ...] = (
    of_arguments.steps,
    of_arguments.ranges,
    of_arguments.weights,
    of_arguments.choices,
    of_arguments.temperature,
    of_arguments.groups,
    of_arguments.evaluation,
    of_arguments.loss,
    of_arguments.learning,
    of_arguments.reporting,
    machine.precision,
    machine.attention,
    machine.vllm,
    machine.four_bits,
)


class _Notebook:
    """What the checks of one preflight found and left out, as they go."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.checked: list[str] = []
        self.skipped: dict[str, str] = {}
        self.notes: list[str] = []

    def run(self, what: str, checks: Sequence[Check], run: Planned) -> None:
        """Run some checks under one heading."""
        self.checked.append(what)
        for check in checks:
            self.findings += check(run)

    def has(self, *codes: str) -> bool:
        """Whether one of these was found."""
        return any(finding.code in codes for finding in self.findings)

    @property
    def has_error(self) -> bool:
        """Whether any error was found so far."""
        return any(finding.severity == "error" for finding in self.findings)


def preflight(
    arguments: "dict | GRPOConfig",
    *,
    model: "str | Path | PretrainedConfig" = "",
    tokenizer: "PreTrainedTokenizerBase | None" = None,
    train: "Dataset | Sequence[dict] | None" = None,
    heldout: "Dataset | Sequence[dict] | None" = None,
    rewards: Callable | str | Sequence[Callable | str] | None = None,
    profile: Profile | None = None,
    gpu: Gpu | str | None = None,
    load_in_4bit: bool | None = None,
    lora_rank: int | None = None,
    dtype: str | None = None,
    backend: str = "unsloth",
    max_prompt_length: int | None = None,
    processes: int = 0,
    tags: Sequence[str] | None = None,
    answer_column: str = "answer",
    lab: bool = True,
) -> PreflightReport:
    """Find in seconds what would fail or waste a run, before any weights are loaded.

    Only what is given is checked; the report says what was skipped.

    Args:
        arguments: for `GRPOConfig`, as `training_arguments` gives them; or a `GRPOConfig`.
        model: its name or folder, or its configuration; for context length, sizes and memory.
        tokenizer: the one that is given to the trainer.
        train, heldout: rows, as a Dataset or a list; ``heldout`` is what you evaluate on.
        rewards: what is given to the trainer as ``reward_funcs``: functions, or names of reward models.
        profile: of the machine; gives what follows where that is not given.
        gpu: the GPU that the run is for: a `Gpu`, or ``t4``, ``l4``, ``a100``, ``h100`` or ``cpu``. If not given, the
            first of this machine; if there is none, the profile's; without a profile a CPU.
        load_in_4bit: whether the base is quantized.
        lora_rank: of the adapter; 0 trains all weights.
        dtype: in which the model is loaded, as a name or as torch's own; ``auto`` counts as not known.
        backend: ``unsloth`` or ``transformers``, which holds larger logits on a GPU.
        max_prompt_length: the limit in tokens to which you filter.
        processes: data-parallel processes; 0 asks the variable ``WORLD_SIZE``.
        tags: the asked form, as for `probe`.
        answer_column: where the gold answers are.
        lab: whether the reward lab tries the rewards; it knows tasks with a gold answer best.

    >>> from grpo_utils import training_arguments
    >>> from grpo_utils.profiles import CPU
    >>> report = preflight({**training_arguments(CPU), "num_generations": 6}, profile=CPU)
    >>> report.ok, report.codes
    (False, {'batch'})

    Raises:
        CourseError: the arguments are neither a dict nor a `GRPOConfig`, rows are neither a Dataset nor a list, or
            a GPU is named that is not known; a count is not a whole number, or the variable ``WORLD_SIZE`` holds none.
    """
    check_given(arguments)
    check_choice("backend", backend, BACKENDS)
    check_machine(profile, gpu)
    check_counts(max_prompt_length=max_prompt_length, processes=processes or None)
    check_counts(0, lora_rank=lora_rank)
    check_words(model, answer_column, tags)
    check_tokenizer(tokenizer)
    check_dataset("train", train)
    check_dataset("heldout", heldout)
    run = planned(
        arguments,
        profile,
        gpu,
        model=str(model) if isinstance(model, Path) else model,
        tokenizer=tokenizer,
        train=train,
        heldout=heldout,
        rewards=rewards,
        load_in_4bit=load_in_4bit,
        lora_rank=lora_rank,
        dtype=dtype_name(dtype),
        backend=backend,
        max_prompt_length=max_prompt_length,
        processes=processes or _world_size(),
        tags=tags,
        answer_column=answer_column,
    )
    return _checked(run, lab)


def _world_size() -> int:
    text = os.environ.get("WORLD_SIZE", "1")
    if not text.strip().isdecimal() or int(text) < 1:
        raise CourseError(f"The variable WORLD_SIZE is {text!r}; it should be the number of processes, or not be set.")
    return int(text)


def _checked(run: Planned, lab: bool) -> PreflightReport:
    seen = _Notebook()
    seen.run("names and types", [of_arguments.names, of_arguments.value_types], run)
    run = replace(run, given=of_arguments.readable(run))
    seen.run("arguments", ALWAYS, run)
    if not seen.has_error:
        seen.run("what GRPOConfig says", [of_arguments.refused], run)
    _check_model(run, seen)
    _check_rows(run, seen)
    _check_texts(run, seen)
    untried = _check_rewards(run, seen, lab)
    _check_thinking(run, seen, untried)
    estimate = _check_memory(run, seen)
    return PreflightReport(in_order(seen.findings), estimate, tuple(seen.checked), seen.skipped, tuple(seen.notes))


def _check_model(run: Planned, seen: _Notebook) -> None:
    if not run.model:
        seen.skipped["model"] = "no model given"
        return
    seen.run("model", [machine.model], run)


def _check_rows(run: Planned, seen: _Notebook) -> None:
    if run.train is None and run.heldout is None:
        seen.skipped["rows"] = "no train or heldout given"
        return
    sizes_known = not seen.has("wrong_type", "out_of_range", "group_too_small", "batch", "generation_batch")
    seen.run("rows", [rows.counts] if sizes_known else [], run)
    seen.run("prompts and answers", [rows.prompts, rows.answers, rows.duplicates], run)
    seen.notes += rows.left_out(run)
    if run.train is None or run.heldout is None:
        seen.skipped["train against held-out"] = "one of them was not given"


def _check_texts(run: Planned, seen: _Notebook) -> None:
    if run.tokenizer is None:
        seen.skipped["chat template, tokens and lengths"] = "no tokenizer given"
        return
    seen.run("tokenizer", [texts.tokens, texts.template], run)
    if not seen.has("no_prompt", "bad_prompt", "no_chat_template"):
        seen.run("the template on every prompt", [texts.rendering], run)
    if run.model and not seen.has("model_missing"):
        seen.run("vocabulary", [texts.vocabulary], run)
    needed, usable = texts.clean_length(run, _golds(run)), replace(run, model="") if seen.has("model_missing") else run
    seen.run("completion length", [lambda planned: texts.completion_length(planned, needed)], usable)
    lengths = _lengths(run, seen)
    seen.run("context", [lambda planned: texts.context_limits(planned, lengths, needed)], usable)
    if lengths:
        seen.run("prompt lengths", [lambda planned: texts.prompt_limits(planned, lengths)], usable)
        part = f" (of {len(lengths)} of {len(run.train)} rows)" if len(lengths) < len(run.train) else ""
        seen.notes.append(f"prompt lengths in tokens{part}: {texts.percentiles(lengths)}.")


def _golds(run: Planned) -> list[str]:
    """The gold answers that are text; of a large dataset, of a part."""
    if run.train is None:
        return []
    return [gold for gold in rows.column(rows.part_of(run.train)[0], run.answer_column) if isinstance(gold, str)]


def _lengths(run: Planned, seen: _Notebook) -> list[int]:
    """Tokens of the training prompts, where they can be rendered."""
    if run.train is None or not len(run.train):
        seen.skipped["prompt lengths"] = "no training rows given"
        return []
    if seen.has("no_prompt", "bad_prompt", "no_chat_template", "template_fails"):
        seen.skipped["prompt lengths"] = "the prompts cannot be rendered"
        return []
    lengths = texts.lengths_of(run)
    run.found["longest"] = max(lengths)
    return lengths


def _check_rewards(run: Planned, seen: _Notebook, lab: bool) -> str:
    """Check the rewards; why they cannot be tried, or "" if they can."""
    if run.rewards is None:
        seen.skipped["rewards"] = "none given"
        return "no rewards were given"
    seen.run("rewards", [rewards.there, rewards.callable_by_trl], run)
    if rewards.models(run):
        seen.skipped["the reward lab on models"] = (
            f"{', '.join(rewards.models(run))}: a model is loaded by TRL and not tried here"
        )
    if not rewards.functions(run):
        return "none of them is a function"
    reason = _why_no_lab(run, seen, lab)
    if reason:
        seen.skipped["the reward lab"] = reason
        return reason
    try:
        found, note = rewards.in_the_lab(run)
    except rewards.OutOfBudgetError:
        seen.skipped["the reward lab"] = f"it took over {rewards.LAB_SECONDS:g} s; {rewards.TOO_SLOW}"
        return ""
    seen.checked.append("the reward lab")
    seen.findings += found
    seen.notes.append(f"{note}.")
    return ""


def _check_thinking(run: Planned, seen: _Notebook, untried: str) -> None:
    """What the prompt's end has written of the thinking, where prompts can be rendered."""
    if run.tokenizer is None or seen.has("no_prompt", "bad_prompt", "no_chat_template", "template_fails"):
        return
    found, notes = thinking.prefilled(run, untried)
    seen.checked.append("thinking in the prompt")
    seen.findings += found
    seen.notes += notes


def _why_no_lab(run: Planned, seen: _Notebook, lab: bool) -> str:
    """Why the lab cannot try the rewards, or should not; "" if it can."""
    if not lab:
        return "lab=False"
    if seen.has("reward_weights", "not_a_reward", "reward_takes_no_more", "missing_column"):
        return "TRL could not call the rewards as they are"
    rest = [missing_columns(parameters_of(r), [run.answer_column]) for r in rewards.functions(run)]
    if run.train is None and any(rest):
        return "a reward asks for columns, and no training rows were given"
    slow = rewards.too_slow(run)
    return f"{', '.join(slow)} took over {rewards.SECONDS_FOR_ONE} s a completion; {rewards.TOO_SLOW}" if slow else ""


def _check_memory(run: Planned, seen: _Notebook) -> Estimate | None:
    """The estimate, if all that it needs is known and sound."""
    missing = [] if run.model else ["the model"]
    missing += [] if run.lora_rank is not None else ["lora_rank (0: all weights), or a profile"]
    if missing or seen.has("model_missing"):
        seen.skipped["memory and minutes"] = f"not known: {', '.join(missing) or 'the model'}"
        return None
    if seen.has("wrong_type", "out_of_range", "max_steps_none", "generation_batch"):
        seen.skipped["memory and minutes"] = "the arguments have to be mended first"
        return None
    try:
        estimate = machine.estimate(run, _prompt_tokens(run))
    except CourseError as error:
        seen.skipped["memory and minutes"] = str(error)
        return None
    seen.checked.append("memory and minutes")
    seen.findings += machine.memory(run, estimate)
    return estimate


def _prompt_tokens(run: Planned) -> int:
    """The longest prompt that will be seen: of the rows, within the limit; else the limit; else a guess."""
    limit = run.max_prompt_length
    longest = run.found.get("longest")
    if longest is None:
        return limit or 256
    return min(longest, limit) if limit else longest
