"""Check the lengths of prompts and completions against the model's context and the chosen limits."""

from collections.abc import Iterator, Sequence

from grpo_core.training.generating import prompt_lengths

from ..findings import Finding
from ..probes.forms import read_tags
from ..rule import Rule, adding_to, found
from .arguments import UNCOUNTED
from .planned import PlannedRun, once
from .rows import column, spread
from .texts import prompts_of, why_unrendered

#: Gold answers, the longest ones, whose tokens are counted.
_LONGEST_GOLDS = 20
#: Above this a tokenizer's ``model_max_length`` means "not set" (transformers writes 1e30).
UNSET = 10**9
_PERCENTILES = (50, 90, 95, 99)

RULES: list[Rule] = []
rule = adding_to(RULES, needs=("tokenizer",))


def why_unknown(run: PlannedRun) -> str:
    """Why the lengths of the prompts are not known, "" if they are."""
    return why_unrendered(run) if run.train else "no training rows given"


@once
def known_lengths(run: PlannedRun) -> list[int]:
    """Tokens of the training prompts as the model will see them; of a large dataset, of a part; none if not known."""
    if why_unknown(run):
        return []
    kind = list if run.chat else str
    prompts = [value for value in prompts_of(run) if isinstance(value, kind)]
    return prompt_lengths({"prompt": prompts}, run.tokenizer, run.options("chat_template_kwargs"))


def notes(run: PlannedRun) -> Iterator[str]:
    """The lengths of the prompts, from which a limit can be chosen."""
    known = known_lengths(run)
    if known:
        part = f" ({len(known)} of {len(run.train)} rows)" if len(known) < len(run.train) else ""
        yield f"prompt lengths in tokens{part}: {_percentiles(known)}"


def _context_of(run: PlannedRun) -> int | None:
    """The model's context in tokens, or None if it is not known."""
    model = run.model.config.get_text_config().to_dict().get("max_position_embeddings") if run.model.config else None
    known = [int(length) for length in (model, run.tokenizer.model_max_length) if length and 0 < length < UNSET]
    return min(known, default=None)


@rule(
    "warning",
    "the completion limit is too short for the requested format",
    why="a completion that is cut off never closes its tags, so its format and answer score 0.",
    fixes=("raise max_completion_length to twice what the format takes or more, with room to reason.",),
    example={"max_completion_length": 4},
)
def short_completions(run: PlannedRun) -> Iterator[Finding]:
    """It counts the tokens of the format around the longest gold answer, without any reasoning."""
    context, asked, needed = _context_of(run), run["max_completion_length"], _clean_length(run)
    if 1 <= asked < needed:
        what = f"max_completion_length={asked}, but the format alone takes {needed} tokens ({read_tags(run.tags)})."
        fix = f"set max_completion_length={2 * needed} or more, with room to reason."
        if context and 2 * needed >= context:
            fix = f"use a shorter format, or a model with a context of more than {context} tokens."
        yield found(what, fix)


@rule(
    "error",
    "prompt and completion together exceed the model's context",
    why="TRL does not truncate prompts, and beyond its context a model writes noise.",
    fixes=("drop the rows with the longest prompts, or lower max_completion_length.",),
    example={"max_completion_length": 1024},
)
def prompt_too_long(run: PlannedRun) -> Iterator[Finding]:
    """It compares the longest prompt; without rows, a prompt of one token is assumed."""
    context, asked, known = _context_of(run), run["max_completion_length"], known_lengths(run)
    if context and asked + max(known, default=1) > context:
        what = f"max_completion_length={asked} leaves {max(context - asked, 0)} of the model's {context} tokens"
        fix = _fitting(known, context, asked, _clean_length(run))
        yield found(f"{what} for the prompt{_exceed(known, context - asked)}.", fix)


@rule(
    "warning",
    "prompts longer than the limit that you chose",
    why="TRL 1.x has no max_prompt_length, so it trains on these rows, which takes memory, unless you drop them.",
    fixes=("drop the rows with longer prompts, or choose max_prompt_length from the lengths in the report.",),
    needs=("tokenizer", "lengths"),
    unless=("prompt_too_long",),
    example={"max_prompt_length": 5},
)
def long_prompts(run: PlannedRun) -> Iterator[Finding]:
    """The limit is max_prompt_length, as you pass it to preflight or as a profile has it."""
    known, limit = known_lengths(run), run.max_prompt_length
    if limit and max(known) > limit:
        fix = f"choose max_prompt_length from the lengths: {_percentiles(known)}."
        fix = f"drop the rows whose prompt has more than {limit} tokens, or {fix}" if min(known) <= limit else fix
        yield found(f"max_prompt_length={limit}{_exceed(known, limit)}.", fix)


@rule(
    "error",
    "prompts and completions that do not fit into vllm_max_model_length",
    why="vLLM raises an error for a prompt beyond that limit, and cuts completions off at it.",
    fixes=("raise vllm_max_model_length, or drop the rows with long prompts.",),
    needs=("tokenizer", "lengths"),
    unless=UNCOUNTED,
    example={"gpu": "l4", "use_cpu": False, "use_vllm": True, "vllm_max_model_length": 16},
)
def vllm_length(run: PlannedRun) -> Iterator[Finding]:
    """It is an error if the prompts alone do not fit, and a warning if only the completions are cut.

    It looks only at vLLM in the training process, because a server has a limit of its own. vLLM raises for a prompt
    beyond the limit, and stops a completion at it (`vllm/v1/core/sched/scheduler.py`: `_check_stop`).
    """
    limit, asked, known = run["vllm_max_model_length"], run["max_completion_length"], known_lengths(run)
    if not run["use_vllm"] or run["vllm_mode"] != "colocate" or not limit or max(known) + asked <= limit:
        return
    what = f"vllm_max_model_length={limit}, but the longest prompt has {max(known)} tokens and a completion {asked}."
    why = "vLLM cuts completions off at that limit, and those of long prompts count as truncated."
    if max(known) >= limit:
        why = 'vLLM raises "The decoder prompt … is longer than the maximum model length", and the run stops.'
    fix = f"set vllm_max_model_length={max(known) + asked} or more, or drop the rows with long prompts."
    yield found(what, fix, why=why, severity="" if max(known) >= limit else "warning")


def _fitting(lengths: Sequence[int], context: int, asked: int, needed: int) -> str:
    """How to make prompts and completions fit: change the rows, the completions or the model."""
    if not lengths:
        return f"set max_completion_length below {context}, with room for the prompts."
    ways, left = [], context - max(lengths)
    if min(lengths) <= context - asked:
        ways.append(f"drop the rows whose prompt has more than {context - asked} tokens")
    if left >= needed:
        ways.append(f"set max_completion_length={left} or less")
    return f"{', or '.join(ways) or 'use shorter prompts and completions, or a model with a longer context'}."


def _exceed(lengths: Sequence[int], room: int) -> str:
    over = sum(length > room for length in lengths)
    return f"; {over} of {len(lengths)} prompts are longer (longest: {max(lengths)})" if lengths else ""


def _percentiles(lengths: Sequence[int]) -> str:
    """Percentiles of the prompt lengths, and the longest.

    >>> _percentiles(range(1, 101))
    '50%: 50 or fewer, 90%: 90, 95%: 95, 99%: 99, longest: 100'
    """
    ordered = sorted(lengths)
    at = {p: ordered[max(0, -(-len(ordered) * p // 100) - 1)] for p in _PERCENTILES}
    shares = [f"{p}%: {length}{' or fewer' if p == _PERCENTILES[0] else ''}" for p, length in at.items()]
    return ", ".join([*shares, f"longest: {ordered[-1]}"])


def _clean_length(run: PlannedRun) -> int:
    """Tokens of the format around the longest gold answer, without reasoning, and of the end of the turn."""
    golds = column(run.train, run.answer_column, spread(run.train)) if run.train else []
    longest = sorted((gold for gold in golds if isinstance(gold, str)), key=len)[-_LONGEST_GOLDS:]
    texts = [read_tags(run.tags).write("", gold) for gold in longest or ["42"]]
    return max(len(ids) for ids in run.tokenizer(texts, add_special_tokens=False)["input_ids"]) + 1
