"""Run the checks that are possible with the given arguments, and report which ones were skipped."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from grpo_utils.errors import CourseError
from grpo_utils.profiles import Profile

from ..findings import Finding, in_order
from ..reward_lab.calling import OutOfTimeError, missing_columns, parameters_of, time_limit
from . import arguments as of_arguments
from . import machine, rewards, rows, texts, thinking
from .estimate import Estimate
from .report import PreflightReport, finding
from .run import Run, plan
from .sizes import read_config
from .values import read

if TYPE_CHECKING:
    from trl import GRPOConfig

#: Faults of the prompts or the template with which no prompt can be rendered.
UNRENDERED = ("no_prompt", "bad_prompt", "no_chat_template", "template_fails")
#: Faults of the arguments with which nothing can be computed.
UNCOUNTED = ("wrong_type", "out_of_range")


def preflight(arguments: "dict | GRPOConfig", *, profile: Profile | None = None, **settings: object) -> PreflightReport:
    """Find in seconds what would make a run fail or waste it, before any weights are loaded.

    Only the given arguments are checked; the report says what was skipped.

    Args:
        arguments: for `GRPOConfig`, as `training_arguments` gives them; or a `GRPOConfig`.
        profile: of the machine; fills in ``load_in_4bit``, ``lora_rank``, ``dtype`` and ``max_prompt_length``.
        settings: any of the following.

            - ``model``: its name or folder, or its configuration; for context length, sizes and memory.
            - ``tokenizer``: the one that you pass to the trainer.
            - ``train``, ``heldout``: rows, as a Dataset or a list; ``heldout`` is what you evaluate on.
            - ``rewards``: the ``reward_funcs`` of the trainer: functions, or names of reward models.
            - ``gpu``: the GPU of the run: a `Gpu`, or ``t4``, ``l4``, ``a100``, ``h100`` or ``cpu``. The default is
              the first GPU of this machine, otherwise that of the profile, otherwise a CPU.
            - ``load_in_4bit``: whether the base model is quantized.
            - ``lora_rank``: of the adapter; 0 trains all weights.
            - ``dtype``: in which the model is loaded, as a name or as torch's own; ``auto`` counts as not known.
            - ``backend``: ``unsloth`` (the default) or ``transformers``, which keeps larger logits on a GPU.
            - ``max_prompt_length``: the limit in tokens to which you filter.
            - ``processes``: data-parallel processes; by default the variable ``WORLD_SIZE``.
            - ``tags``: the requested format, as for `probe`.
            - ``answer_column``: the column of the gold answers; ``answer`` by default.
            - ``lab``: whether to try the rewards in the reward lab, which works best with gold answers.

    >>> from grpo_utils import training_arguments
    >>> from grpo_utils.profiles import CPU
    >>> report = preflight({**training_arguments(CPU), "num_generations": 6}, profile=CPU)
    >>> report.ok, report.codes
    (False, {'batch'})

    Raises:
        CourseError: an argument cannot be checked, such as rows that are neither a Dataset nor a list.
    """
    return checked(plan(arguments, profile, settings))


@dataclass
class _Seen:
    """The findings and skipped checks of a preflight while it runs."""

    findings: list[Finding] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, *found: Iterable[Finding]) -> None:
        """Add what some checks found."""
        self.findings += [one for some in found for one in some]

    def has(self, *codes: str) -> bool:
        """Whether one of these was found; without a code, whether any error was."""
        return any(one.code in codes or (not codes and one.severity == "error") for one in self.findings)


def checked(run: Run) -> PreflightReport:
    """The report on a run."""
    from trl import GRPOConfig

    seen = _Seen()
    given, found = read(run.given, GRPOConfig)
    seen.add(found)
    run = replace(run, given=given)
    seen.add(*(check(run) for check in (*of_arguments.CHECKS, *machine.CHECKS)))
    if not seen.has(*UNCOUNTED):
        seen.add(of_arguments.groups(run))
    if not seen.has():
        seen.add(of_arguments.refused(run))
    run = _check_model(run, seen)
    _check_rows(run, seen)
    longest = _check_texts(run, seen)
    untried = _check_rewards(run, seen)
    if run.tokenizer is not None and not seen.has(*UNRENDERED):
        found, notes = thinking.prefilled(run, untried)
        seen.add(found, thinking.room(run))
        seen.notes += notes
    estimate = _check_memory(run, seen, longest)
    return PreflightReport(in_order(seen.findings), estimate, seen.skipped, tuple(seen.notes))


def _check_model(run: Run, seen: _Seen) -> Run:
    """The run without its model if that cannot be loaded."""
    if not run.model:
        seen.skipped["model"] = "no model given"
        return run
    try:
        read_config(run.model)
    except CourseError as error:
        why = "training could not load it. Context length, sizes and memory were not checked either."
        fix = "Pass a Hub id 'owner/name' that is cached or can be downloaded, or a folder with a config.json."
        seen.findings.append(finding("model_missing", str(error), why, fix))
        return replace(run, model="")
    return run


def _check_rows(run: Run, seen: _Seen) -> None:
    if run.train is None and run.heldout is None:
        seen.skipped["rows"] = "no train or heldout rows given"
        return
    if not seen.has(*UNCOUNTED, "batch", "refused"):
        seen.add(rows.counts(run))
    is_read = run.rewards is None or rewards.reads_answers(run, rewards.functions(run))
    seen.add(rows.prompts(run), rows.answers(run, is_read), rows.golds_in_prompts(run))
    seen.add(rows.duplicates(run), rows.leaks(run))
    seen.notes += rows.left_out(run)
    if run.train is None or run.heldout is None:
        seen.skipped["leaks into the held-out rows"] = "train and heldout were not both given"


def _check_texts(run: Run, seen: _Seen) -> int:
    """Check the tokenized rows. Returns the longest prompt in tokens, 0 if not known."""
    if run.tokenizer is None:
        seen.skipped["chat template, tokens and lengths"] = "no tokenizer given"
        return 0
    seen.add(texts.tokens(run), texts.template(run))
    if not seen.has("no_prompt", "bad_prompt", "no_chat_template"):
        seen.add(texts.rendering(run))
    if run.model:
        seen.add(texts.vocabulary(run))
    lengths = []
    if not run.train:
        seen.skipped["prompt lengths"] = "no training rows given"
    elif seen.has(*UNRENDERED):
        seen.skipped["prompt lengths"] = "the prompts cannot be rendered"
    else:
        lengths = texts.lengths_of(run)
        part = f" ({len(lengths)} of {len(run.train)} rows)" if len(lengths) < len(run.train) else ""
        seen.notes.append(f"prompt lengths in tokens{part}: {texts.percentiles(lengths)}")
    seen.add(texts.limits(run, lengths, texts.clean_length(run)))
    return max(lengths, default=0)


def _check_rewards(run: Run, seen: _Seen) -> str:
    """Check the rewards. Returns why they cannot be tried, or "" if they can."""
    if run.rewards is None:
        seen.skipped["rewards"] = "none given"
        return "no rewards were given"
    seen.add(rewards.weights(run), rewards.signatures(run))
    models = [one if isinstance(one, str) else type(one).__name__ for one in run.rewards if rewards.is_model(one)]
    if models:
        seen.skipped["reward lab for models"] = f"TRL loads {', '.join(models)}, so the lab cannot try it"
    if not rewards.functions(run):
        return "none of them is a function"
    reason = _why_no_lab(run, seen) or _try_in_the_lab(run, seen)
    if reason:
        seen.skipped["reward lab"] = reason
    return reason


def _why_no_lab(run: Run, seen: _Seen) -> str:
    """Why the lab cannot try the rewards, or should not; "" if it can."""
    if not run.lab:
        return "lab=False"
    if seen.has("reward_weights", "not_a_reward", "reward_takes_no_more", "missing_column"):
        return "TRL could not call the rewards"
    rest = [missing_columns(parameters_of(reward), [run.answer_column]) for reward in rewards.functions(run)]
    return "a reward needs dataset columns, but no training rows were given" if run.train is None and any(rest) else ""


def _try_in_the_lab(run: Run, seen: _Seen) -> str:
    """Try the rewards in the lab. Returns why that stopped, or ""."""
    try:
        with time_limit(rewards.LAB_SECONDS):
            found, note = rewards.in_the_lab(run)
    except OutOfTimeError:
        return f"it took over {rewards.LAB_SECONDS:g} s; python -m grpo_check probe FILE.py:function has no such limit"
    seen.add(found)
    seen.notes.append(note)
    return ""


def _check_memory(run: Run, seen: _Seen, longest: int) -> Estimate | None:
    """The estimate for the longest prompt, if all its inputs are known and valid."""
    problem = _why_no_estimate(run, seen)
    limit = run.max_prompt_length
    try:
        estimate = None if problem else machine.estimate(run, min(longest or limit or 256, limit or longest or 256))
    except CourseError as error:
        problem = str(error)
    if problem:
        seen.skipped["memory and minutes"] = problem
        return None
    seen.add(machine.memory(run, estimate))
    return estimate


def _why_no_estimate(run: Run, seen: _Seen) -> str:
    """What an estimate is missing, "" if nothing."""
    missing = [] if run.model else ["model"]
    missing += [] if run.lora_rank is not None else ["lora_rank (0: all weights) or a profile"]
    fixed_first = "fix the arguments first" if seen.has(*UNCOUNTED) else ""
    return f"missing: {', '.join(missing)}" if missing else fixed_first
