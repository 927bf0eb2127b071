"""Walk over all rules that can look at what is given, and report what they found and which of them could not."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from grpo_core.gpus import Gpu

from ..findings import Finding, in_order
from ..packages import OF_A_RUN, require
from ..rule import Rule
from . import arguments as of_arguments
from . import lengths, machine, memory, misfits, rewards, rows, texts, thinking
from .planned import PlannedRun, Profile, UnknownArgumentError, plan
from .report import PreflightReport
from .words import in_yaml

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerBase
    from trl import GRPOConfig

    from .planned import Rows

#: All rules, in the order in which they look and are listed.
RULES: list[Rule] = [
    *misfits.RULES,
    *of_arguments.RULES,
    *machine.RULES,
    *rows.RULES,
    *texts.RULES,
    *lengths.RULES,
    *rewards.RULES,
    *thinking.RULES,
    *memory.RULES,
]
#: What rules need: what a report says was not checked without it, and why it is not there, "" if it is. What a config
#: file names and could not be looked at has a reason of its own, in `PlannedRun.unread`.
_NEEDS: dict[str, tuple[str, Callable[[PlannedRun], str]]] = {
    "model": ("model", texts.why_unseen),
    "rows": ("rows", lambda run: "no train or heldout rows given" if run.train is None and run.heldout is None else ""),
    "both splits": (
        "leaks into the held-out rows",
        lambda run: "train and heldout were not both given" if run.train is None or run.heldout is None else "",
    ),
    "tokenizer": (
        "chat template, tokens and lengths",
        lambda run: "no tokenizer given" if run.tokenizer is None else "",
    ),
    "lengths": ("prompt lengths", lengths.why_unknown),
    "rewards": ("rewards", lambda run: "none given" if run.rewards is None else ""),
    "try_rewards": ("the rewards", rewards.why_not_tried),
    "estimate": ("memory and minutes", memory.why_no_estimate),
}


def preflight(
    arguments: "dict | GRPOConfig", *, profile: Profile | None = None, model: "str | Path | PretrainedConfig" = "",
    tokenizer: "PreTrainedTokenizerBase | None" = None, train: "Rows | None" = None, heldout: "Rows | None" = None,
    rewards: Callable | Sequence | None = None, gpu: Gpu | str | None = None, load_in_4bit: bool | None = None,
    lora_rank: int | None = None, dtype: object = None, backend: str = "transformers",
    max_prompt_length: int | None = None, processes: int | None = None, tags: Sequence[str] | None = None,
    answer_column: str = "answer", try_rewards: bool = True,
) -> PreflightReport:  # fmt: skip
    """Find in seconds what would make a run fail or waste it, before any weights are loaded.

    Only the given arguments are checked; the report says what was skipped.

    Args:
        arguments: for `GRPOConfig`, as a dict; or a `GRPOConfig`.
        profile: an object whose attributes fill in ``load_in_4bit``, ``lora_rank``, ``dtype`` and
            ``max_prompt_length``; its ``name`` is a value of ``gpu``.
        model: its name or folder, or its configuration; for context length, sizes and memory.
        tokenizer: the one that you pass to the trainer.
        train, heldout: rows, as a Dataset or a list; ``heldout`` is what you evaluate on.
        rewards: the ``reward_funcs`` of the trainer: functions, or names of reward models.
        gpu: the GPU of the run: a `Gpu`, or ``t4``, ``l4``, ``a100``, ``h100`` or ``cpu``. The default is the first
            GPU of this machine, otherwise that of the profile. Without any, arguments in bf16 or fp16 are taken to be
            for a GPU elsewhere, and all others for a CPU.
        load_in_4bit: whether the base model is quantized.
        lora_rank: of the adapter; 0 trains all weights.
        dtype: in which the model is loaded, as a name or as torch's own; ``auto`` counts as not known.
        backend: what loads the model: ``transformers``, as plain TRL, or ``unsloth``, which keeps smaller logits on a
            GPU.
        max_prompt_length: the limit in tokens to which you filter.
        processes: data-parallel processes; by default the variable ``WORLD_SIZE``.
        tags: the requested format, as for `probe`.
        answer_column: the column of the gold answers.
        try_rewards: whether to try the rewards with `probe`, which works best with gold answers.

    >>> report = preflight({"per_device_train_batch_size": 64, "num_generations": 6}, gpu="l4")
    >>> report.ok, report.codes
    (False, {'batch'})

    Raises:
        CourseError: an argument cannot be checked, such as rows that are neither a Dataset nor a list.
    """
    require("preflight", OF_A_RUN)
    run = plan(
        arguments, profile, model=model, tokenizer=tokenizer, train=train, heldout=heldout, rewards=rewards, gpu=gpu,
        load_in_4bit=load_in_4bit, lora_rank=lora_rank, dtype=dtype, backend=backend,
        max_prompt_length=max_prompt_length, processes=processes, tags=tags, answer_column=answer_column,
        try_rewards=try_rewards,
    )  # fmt: skip
    return report_on(run)


def report_on(run: PlannedRun) -> PreflightReport:
    """The report on a planned run."""
    findings, skipped = walk(run, RULES)
    if run.values.from_yaml:
        findings = [in_yaml(finding, run.values.hints) for finding in findings]
    parts = (rows, lengths, rewards, thinking)
    notes = [note for part in parts for note in _notes(run, part.notes)]
    skipped |= rewards.models(run) | rewards.not_judged(run)
    return PreflightReport(in_order(findings), memory.estimate(run), skipped, (*run.notes, *notes))


def _notes(run: PlannedRun, notes: Callable[[PlannedRun], Iterator[str]]) -> list[str]:
    """The notes of a module on a run; none if they need an argument that is unknown."""
    try:
        return list(notes(run))
    except UnknownArgumentError:
        return []


def walk(run: PlannedRun, rules: Sequence[Rule]) -> tuple[list[Finding], dict[str, str]]:
    """What some rules find, and what was not checked because something that they need is not there.

    >>> walk(plan({"temperature": 0.05}), of_arguments.RULES)[0][0].code
    'low_temperature'
    >>> walk(plan({}), rows.RULES)
    ([], {'rows': 'no train or heldout rows given'})
    """
    findings: list[Finding] = []
    skipped: dict[str, str] = {}
    for rule in rules:
        try:
            missing = _missing(run, rule)
            if missing:
                skipped.setdefault(*missing)
            elif not {one.code for one in findings} & {*rule.unless}:
                findings += run.findings_of(rule)
        except UnknownArgumentError:
            skipped["what depends on values that the script does not show"] = ", ".join(run.unknown)
    return findings, skipped


def _missing(run: PlannedRun, rule: Rule) -> tuple[str, str] | None:
    """The first thing that a rule needs and that is not there: what is not checked without it, and why."""
    for need in rule.needs:
        part, why = _NEEDS[need]
        reason = why(run)
        if reason:
            return part, run.unread.get(need) or reason
    return None
