"""Check the tokenizer, the chat template and the lengths."""

from collections.abc import Iterator, Sequence

from grpo_utils.data.filters import prompt_lengths

from ..findings import Finding
from ..reward_lab.forms import FORMS, Form, read_tags
from ..rules import Rule, adding_to, found
from .arguments import UNCOUNTED
from .rows import bad_prompt, column, first, no_prompt, spread
from .run import Run, once

#: The model's reply in a test conversation.
SAID = "The answer is 42"
#: Gold answers, the longest ones, whose tokens are counted.
LONGEST_GOLDS = 20
#: Above this a tokenizer's ``model_max_length`` means "not set" (transformers writes 1e30).
UNSET = 10**9
PERCENTILES = (50, 90, 95, 99)
#: Prompts in which tokens are looked for that the model lacks.
MOST_TRIED = 200


#: Faults with which no prompt can be rendered.
UNRENDERED = ("no_prompt", "bad_prompt", "no_chat_template", "template_fails")

RULES: list[Rule] = []
rule = adding_to(RULES)


@rule(
    "error",
    "no completion can end, so every completion is cut off at the limit",
    needs=("tokenizer",),
    example={"tokenizer": {"eos_token": None}},
)
def no_eos(run: Run) -> Iterator[Finding]:
    """The tokenizer has no end-of-sequence token."""
    if run.tokenizer.eos_token is None:
        why = "no completion would end before its limit, and TRL fails after the first batch."
        fix = "set tokenizer.eos_token = the token that ends a turn in the chat template, such as '<|im_end|>'."
        yield found("the tokenizer has no eos_token.", why, fix)


@rule(
    "warning",
    "a tokenizer without a padding token",
    needs=("tokenizer",),
    unless=("no_eos",),
    example={"tokenizer": {"pad_token": None}},
)
def no_pad(run: Run) -> Iterator[Finding]:
    """TRL then takes the token that ends a turn."""
    if run.tokenizer.pad_token is None:
        fix = "set tokenizer.pad_token to a separate token, if the vocabulary has one ('<|endoftext|>' for Qwen)."
        yield found("the tokenizer has no pad_token.", "TRL then pads with the EOS token.", fix)


@rule(
    "warning",
    "the padding token is the end-of-sequence token",
    needs=("tokenizer",),
    unless=("no_eos", "no_pad"),
    example={"tokenizer": {"pad_token": "<|im_end|>"}},
)
def pad_is_eos(run: Run) -> Iterator[Finding]:
    """GRPO works, SFT may not."""
    if run.tokenizer.pad_token_id == run.tokenizer.eos_token_id:
        why = (
            "GRPO works, because TRL itself masks what follows the first EOS. But SFT that masks padding would also "
            "mask the end of each turn, and such a model never stops."
        )
        fix = "set tokenizer.pad_token to a separate token, if the vocabulary has one."
        yield found(f"pad_token and eos_token are both {run.tokenizer.eos_token!r}.", why, fix)


@rule(
    "error",
    "message prompts, but a tokenizer without a chat template",
    needs=("tokenizer",),
    example={"tokenizer": {"chat_template": None}},
)
def no_chat_template(run: Run) -> Iterator[Finding]:
    """TRL renders messages with it."""
    if run.tokenizer.chat_template is None and run.train and run.chat:
        why = 'TRL needs it to render messages, and raises "tokenizer.chat_template is not set".'
        fix = "use the instruct version of the model, or set tokenizer.chat_template to one of its family."
        yield found("the prompts are messages, but the tokenizer has no chat template.", why, fix)


def _turn(run: Run) -> tuple[str, str]:
    """A simple conversation in the chat template, and why that fails; two empty texts without a template."""
    if run.tokenizer.chat_template is None:
        return "", ""
    return render(run, [{"role": "user", "content": "What is 40 + 2?"}, {"role": "assistant", "content": SAID}])


@rule(
    "error",
    "a chat template that raises an error or drops a message",
    needs=("tokenizer",),
    unless=("no_chat_template",),
    example={"tokenizer": {"chat_template": "{{ raise_exception('no') }}"}},
)
def template_fails(run: Run) -> Iterator[Finding]:
    """On a simple conversation, or on some of the prompts."""
    rendered, failure = _turn(run)
    if run.tokenizer.chat_template is not None and (failure or SAID not in rendered):
        why = "prompts cannot be rendered, or lose their content."
        what = f"the chat template fails on a simple conversation: {failure or 'it drops the reply of the model'}."
        yield found(what, why, "use the template of the model's family, from its tokenizer.")
    failed = _failures(run)
    if failed:
        value, failure = failed[0]
        shown = f"{len(failed)} of {len(prompts_of(run))} prompts: {failure}; the first: {value!r:.80}"
        why = "TRL renders each prompt with the template, so the run stops at the first failure."
        fix = "make each content plain text, and use only roles that the template knows."
        yield found(f"the chat template fails on {shown}", why, fix)


@rule(
    "error",
    "the chat template ends a turn with a token that does not stop generation",
    needs=("tokenizer",),
    unless=("template_fails",),
    example={"tokenizer": {"eos_token": "<|endoftext|>"}},
)
def template_without_eos(run: Run) -> Iterator[Finding]:
    """A turn must end with the EOS token."""
    eos, ending = run.tokenizer.eos_token, _turn(run)[0].rpartition(SAID)[2]
    if run.tokenizer.chat_template is not None and eos is not None and eos not in ending:
        why = f"generation stops only at {eos!r}, so a model that learned this template does not stop."
        fix = f"set tokenizer.eos_token = the token that ends a turn ({ending.strip() or 'missing'})."
        yield found(f"the chat template ends a turn with {ending!r}.", why, fix)


def render(run: Run, messages: list[dict], **options: object) -> tuple[str, str]:
    """Messages in the chat template with the run's ``chat_template_kwargs``, or why that fails."""
    options = {**run.options("chat_template_kwargs"), **options}
    try:
        return run.tokenizer.apply_chat_template(messages, tokenize=False, **options), ""
    except Exception as error:  # this runs a user's template on a user's rows
        return "", f"{type(error).__name__}: {error}"


@once
def _failures(run: Run) -> list[tuple[list, str]]:
    """The messages on which the chat template raises, each with the error."""
    messages = prompts_of(run) if run.train and run.tokenizer.chat_template and not _unreadable(run) else []
    rendered = [(one, render(run, one, add_generation_prompt=True)[1]) for one in messages if isinstance(one, list)]
    return [(one, failure) for one, failure in rendered if failure]


def _unreadable(run: Run) -> bool:
    """Whether there are prompts that are not even text or messages."""
    return any(one(run) for one in (no_prompt, bad_prompt))


def why_unrendered(run: Run) -> str:
    """Why no prompt can be rendered, "" if they can."""
    faulty = run.tokenizer is None or _unreadable(run) or any(one(run) for one in (no_chat_template, template_fails))
    return "the prompts cannot be rendered" if faulty else ""


@once
def prompts_of(run: Run) -> list:
    """The training prompts; for a large dataset an evenly spread part."""
    return column(run.train, "prompt", spread(run.train))


@rule(
    "error",
    "the rows use a token that the model does not have",
    needs=("tokenizer", "model"),
    unless=("model_missing",),
    example={"vocabulary": 300},
)
def tokenizer_mismatch(run: Run) -> Iterator[Finding]:
    """A tokenizer that belongs to another model.

    A token that no text uses does not count: Gemma 3 1B has one for images beyond its embeddings.
    """
    size = run.config.get_text_config().to_dict().get("vocab_size")
    beyond = [] if size is None or len(run.tokenizer) <= size else [token for token in _used(run) if token >= size]
    if beyond:
        token = min(beyond)
        what = f"token {token} ({run.tokenizer.convert_ids_to_tokens(token)!r}) is in use; the model has {size} tokens."
        why = "a token without an embedding raises an IndexError, or a device-side assert on a GPU."
        fix = "load the tokenizer with AutoTokenizer.from_pretrained of the same model."
        yield found(what, why, fix)


def _used(run: Run) -> set[int]:
    """The end, the padding, and the tokens of some prompts."""
    used = {run.tokenizer.eos_token_id, run.tokenizer.pad_token_id} - {None}
    values = column(run.train, "prompt", first(run.train, MOST_TRIED)) if run.train else []
    texts = [value if isinstance(value, str) else render(run, value)[0] for value in values if value]
    return used.union(*run.tokenizer(texts, add_special_tokens=False)["input_ids"]) if texts else used


def why_no_lengths(run: Run) -> str:
    """Why the lengths of the prompts are not known, "" if they are."""
    return why_unrendered(run) if run.train else "no training rows given"


@once
def lengths(run: Run) -> list[int]:
    """Tokens of the training prompts as the model will see them; of a large dataset, of a part; none if not known."""
    if why_no_lengths(run):
        return []
    kind = list if run.chat else str
    return prompt_lengths({"prompt": [value for value in prompts_of(run) if isinstance(value, kind)]}, run.tokenizer)


def notes(run: Run) -> Iterator[str]:
    """The lengths of the prompts, from which a limit can be chosen."""
    known = lengths(run)
    if known:
        part = f" ({len(known)} of {len(run.train)} rows)" if len(known) < len(run.train) else ""
        yield f"prompt lengths in tokens{part}: {percentiles(known)}"


def context_of(run: Run) -> int | None:
    """The model's context in tokens, or None if it is not known."""
    model = run.config.get_text_config().to_dict().get("max_position_embeddings") if run.config else None
    known = [int(length) for length in (model, run.tokenizer.model_max_length) if length and 0 < length < UNSET]
    return min(known, default=None)


@rule(
    "warning",
    "the completion limit is too short for the requested format",
    needs=("tokenizer",),
    example={"max_completion_length": 4},
)
def short_completions(run: Run) -> Iterator[Finding]:
    """The format alone takes more tokens than a completion may have."""
    context, asked, needed = context_of(run), run["max_completion_length"], clean_length(run)
    if 1 <= asked < needed:
        what = f"max_completion_length={asked}, but the format alone takes {needed} tokens ({asked_form(run)})."
        why = "a completion that is cut off never closes its tags, so its format and answer score 0."
        fix = f"set max_completion_length={2 * needed} or more, with room to reason."
        if context and 2 * needed >= context:
            fix = f"use a shorter format, or a model with a context of more than {context} tokens."
        yield found(what, why, fix)


@rule(
    "error",
    "prompt and completion together exceed the model's context",
    needs=("tokenizer",),
    example={"max_completion_length": 1024},
)
def prompt_too_long(run: Run) -> Iterator[Finding]:
    """Without rows, a prompt of one token is assumed."""
    context, asked, known = context_of(run), run["max_completion_length"], lengths(run)
    if context and asked + max(known, default=1) > context:
        what = f"max_completion_length={asked} leaves {max(context - asked, 0)} of the model's {context} tokens"
        why = "TRL does not truncate prompts, and beyond its context a model writes noise."
        fix = _fitting(known, context, asked, clean_length(run))
        yield found(f"{what} for the prompt{_exceed(known, context - asked)}.", why, fix)


@rule(
    "warning",
    "prompts longer than the limit that you chose",
    needs=("tokenizer", "lengths"),
    unless=("prompt_too_long",),
    example={"max_prompt_length": 5},
)
def long_prompts(run: Run) -> Iterator[Finding]:
    """The limit of `max_prompt_length`, which TRL does not have."""
    known, limit = lengths(run), run.max_prompt_length
    if limit and max(known) > limit:
        why = "TRL 1.x has no max_prompt_length, so it trains on these rows, which takes memory, unless you drop them."
        fix = f"choose max_prompt_length from the lengths: {percentiles(known)}."
        fix = f"use drop_long_prompts(rows, tokenizer, {limit}), or {fix}" if min(known) <= limit else fix
        yield found(f"max_prompt_length={limit}{_exceed(known, limit)}.", why, fix)


@rule(
    "error",
    "prompts and completions that do not fit into vllm_max_model_length",
    needs=("tokenizer", "lengths"),
    unless=UNCOUNTED,
    example={"gpu": "l4", "use_cpu": False, "use_vllm": True, "vllm_max_model_length": 16},
)
def vllm_length(run: Run) -> Iterator[Finding]:
    """An error if the prompts alone do not fit, and a warning if only the completions are cut.

    Only in the training process: a server has a limit of its own. vLLM raises for a prompt beyond the limit, and stops
    a completion at it (`vllm/v1/core/sched/scheduler.py`: `_check_stop`).
    """
    limit, asked, known = run["vllm_max_model_length"], run["max_completion_length"], lengths(run)
    if not run["use_vllm"] or run["vllm_mode"] != "colocate" or not limit or max(known) + asked <= limit:
        return
    what = f"vllm_max_model_length={limit}, but the longest prompt has {max(known)} tokens and a completion {asked}."
    why = "vLLM cuts completions off at that limit, and those of long prompts count as truncated."
    if max(known) >= limit:
        why = 'vLLM raises "The decoder prompt … is longer than the maximum model length", and the run stops.'
    fix = f"set vllm_max_model_length={max(known) + asked} or more, or drop long prompts with drop_long_prompts."
    yield found(what, why, fix, severity="" if max(known) >= limit else "warning")


def _fitting(lengths: Sequence[int], context: int, asked: int, needed: int) -> str:
    """How to make prompts and completions fit: change the rows, the completions or the model."""
    if not lengths:
        return f"set max_completion_length below {context}, with room for the prompts."
    ways, left = [], context - max(lengths)
    if min(lengths) <= context - asked:
        ways.append(f"use drop_long_prompts(rows, tokenizer, {context - asked})")
    if left >= needed:
        ways.append(f"set max_completion_length={left} or less")
    return f"{', or '.join(ways) or 'use shorter prompts and completions, or a model with a longer context'}."


def _exceed(lengths: Sequence[int], room: int) -> str:
    over = sum(length > room for length in lengths)
    return f"; {over} of {len(lengths)} prompts are longer (longest: {max(lengths)})" if lengths else ""


def percentiles(lengths: Sequence[int]) -> str:
    """Percentiles of the prompt lengths, and the longest.

    >>> percentiles(range(1, 101))
    '50%: 50 or fewer, 90%: 90, 95%: 95, 99%: 99, longest: 100'
    """
    ordered = sorted(lengths)
    at = {p: ordered[max(0, -(-len(ordered) * p // 100) - 1)] for p in PERCENTILES}
    shares = [f"{p}%: {length}{' or fewer' if p == PERCENTILES[0] else ''}" for p, length in at.items()]
    return ", ".join([*shares, f"longest: {ordered[-1]}"])


def asked_form(run: Run) -> Form:
    """The requested format; by default the one of this course."""
    return read_tags(run.tags) if run.tags is not None else FORMS[0]


def clean_length(run: Run) -> int:
    """Tokens of the format around the longest gold answer, without reasoning, and of the end of the turn."""
    golds = column(run.train, run.answer_column, spread(run.train)) if run.train else []
    longest = sorted((gold for gold in golds if isinstance(gold, str)), key=len)[-LONGEST_GOLDS:]
    texts = [asked_form(run).write("", gold) for gold in longest or ["42"]]
    return max(len(ids) for ids in run.tokenizer(texts, add_special_tokens=False)["input_ids"]) + 1
