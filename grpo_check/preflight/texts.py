"""Check the tokenizer, the chat template and the lengths."""

from collections.abc import Iterator, Sequence

from grpo_utils.data.filters import prompt_lengths

from ..findings import Finding
from ..reward_lab.forms import FORMS, Form, read_tags
from .report import finding
from .rows import column, first, spread
from .run import Run
from .sizes import read_config

#: The model's reply in a test conversation.
SAID = "The answer is 42"
#: Gold answers, the longest ones, whose tokens are counted.
LONGEST_GOLDS = 20
#: Above this a tokenizer's ``model_max_length`` means "not set" (transformers writes 1e30).
UNSET = 10**9
PERCENTILES = (50, 90, 95, 99)
#: Prompts in which tokens are looked for that the model lacks.
MOST_TRIED = 200


def tokens(run: Run) -> Iterator[Finding]:
    """End-of-sequence and padding tokens."""
    tokenizer = run.tokenizer
    if tokenizer.eos_token is None:
        why = "no completion would end before its limit, and TRL fails after the first batch."
        fix = "set tokenizer.eos_token = the token that ends a turn in the chat template, such as '<|im_end|>'."
        yield finding("no_eos", "the tokenizer has no eos_token.", why, fix)
    elif tokenizer.pad_token is None:
        fix = "set tokenizer.pad_token to a separate token, if the vocabulary has one ('<|endoftext|>' for Qwen)."
        yield finding("no_pad", "the tokenizer has no pad_token.", "TRL then pads with the EOS token.", fix)
    elif tokenizer.pad_token_id == tokenizer.eos_token_id:
        why = (
            "GRPO works, because TRL itself masks what follows the first EOS. But SFT that masks padding would also "
            "mask the end of each turn, and such a model never stops."
        )
        fix = "set tokenizer.pad_token to a separate token, if the vocabulary has one."
        yield finding("pad_is_eos", f"pad_token and eos_token are both {tokenizer.eos_token!r}.", why, fix)


def template(run: Run) -> Iterator[Finding]:
    """The chat template: messages need one, and a turn must end with the EOS token."""
    eos = run.tokenizer.eos_token
    if run.tokenizer.chat_template is None:
        if run.train and run.chat:
            why = 'TRL needs it to render messages, and raises "tokenizer.chat_template is not set".'
            fix = "use the instruct version of the model, or set tokenizer.chat_template to one of its family."
            yield finding(
                "no_chat_template", "the prompts are messages, but the tokenizer has no chat template.", why, fix
            )
        return
    talk = [{"role": "user", "content": "What is 40 + 2?"}, {"role": "assistant", "content": SAID}]
    rendered, failure = render(run, talk)
    ending = rendered.rpartition(SAID)[2]
    if failure or SAID not in rendered:
        why = "prompts cannot be rendered, or lose their content."
        what = f"the chat template fails on a simple conversation: {failure or 'it drops the reply of the model'}."
        yield finding("template_fails", what, why, "use the template of the model's family, from its tokenizer.")
    elif eos is not None and eos not in ending:
        why = f"generation stops only at {eos!r}, so a model that learned this template does not stop."
        fix = f"set tokenizer.eos_token = the token that ends a turn ({ending.strip() or 'missing'})."
        yield finding("template_without_eos", f"the chat template ends a turn with {ending!r}.", why, fix)


def render(run: Run, messages: list[dict], **options: object) -> tuple[str, str]:
    """Messages in the chat template with the run's ``chat_template_kwargs``, or why that fails."""
    options = {**run.options("chat_template_kwargs"), **options}
    try:
        return run.tokenizer.apply_chat_template(messages, tokenize=False, **options), ""
    except Exception as error:  # this runs a user's template on a user's rows
        return "", f"{type(error).__name__}: {error}"


def rendering(run: Run) -> Iterator[Finding]:
    """Prompts on which the chat template raises."""
    values = prompts_of(run) if run.train and run.tokenizer.chat_template else []
    failures = [(one, render(run, one, add_generation_prompt=True)[1]) for one in values if isinstance(one, list)]
    failed = [(value, failure) for value, failure in failures if failure]
    if failed:
        value, failure = failed[0]
        what = f"the chat template fails on {len(failed)} of {len(values)} prompts: {failure}; the first: {value!r:.80}"
        why = "TRL renders each prompt with the template, so the run stops at the first failure."
        fix = "make each content plain text, and use only roles that the template knows."
        yield finding("template_fails", what, why, fix)


def prompts_of(run: Run) -> list:
    """The training prompts; for a large dataset an evenly spread part."""
    return column(run.train, "prompt", spread(run.train))


def vocabulary(run: Run) -> Iterator[Finding]:
    """A tokenizer that belongs to another model: tokens that are used and that the model lacks.

    Gemma 3 1B has a token for images beyond its embeddings, which text never uses.
    """
    size = read_config(run.model).get_text_config().to_dict().get("vocab_size")
    beyond = [] if size is None or len(run.tokenizer) <= size else [token for token in _used(run) if token >= size]
    if beyond:
        token = min(beyond)
        what = f"token {token} ({run.tokenizer.convert_ids_to_tokens(token)!r}) is in use; the model has {size} tokens."
        why = "a token without an embedding raises an IndexError, or a device-side assert on a GPU."
        yield finding(
            "tokenizer_mismatch", what, why, "load the tokenizer with AutoTokenizer.from_pretrained of the same model."
        )


def _used(run: Run) -> set[int]:
    """The end, the padding, and the tokens of some prompts."""
    used = {run.tokenizer.eos_token_id, run.tokenizer.pad_token_id} - {None}
    values = column(run.train, "prompt", first(run.train, MOST_TRIED)) if run.train else []
    texts = [value if isinstance(value, str) else render(run, value)[0] for value in values if value]
    return used.union(*run.tokenizer(texts, add_special_tokens=False)["input_ids"]) if texts else used


def lengths_of(run: Run) -> list[int]:
    """Tokens of the training prompts as the model will see them; of a large dataset, of a part."""
    kind = list if run.chat else str
    return prompt_lengths({"prompt": [value for value in prompts_of(run) if isinstance(value, kind)]}, run.tokenizer)


def context_of(run: Run) -> int | None:
    """The model's context in tokens, or None if it is not known."""
    model = read_config(run.model).get_text_config().to_dict().get("max_position_embeddings") if run.model else None
    known = [int(length) for length in (model, run.tokenizer.model_max_length) if length and 0 < length < UNSET]
    return min(known, default=None)


def limits(run: Run, lengths: Sequence[int], needed: int) -> Iterator[Finding]:
    """Compare prompts and completions with the model's context and the chosen limits.

    Args:
        run: its model or tokenizer says how long the context is.
        lengths: of the prompts in tokens; none where they are not known.
        needed: tokens of the shortest completion in the requested form.
    """
    context, asked, limit = context_of(run), run["max_completion_length"], run.max_prompt_length
    if 1 <= asked < needed:
        what = f"max_completion_length={asked}, but the format alone takes {needed} tokens ({asked_form(run)})."
        why = "a completion that is cut off never closes its tags, so its format and answer score 0."
        fix = f"set max_completion_length={2 * needed} or more, with room to reason."
        if context and 2 * needed >= context:
            fix = f"use a shorter format, or a model with a context of more than {context} tokens."
        yield finding("short_completions", what, why, fix)
    if context and asked + max(lengths, default=1) > context:
        what = f"max_completion_length={asked} leaves {max(context - asked, 0)} of the model's {context} tokens"
        why = "TRL does not truncate prompts, and beyond its context a model writes noise."
        fix = _fitting(lengths, context, asked, needed)
        yield finding("prompt_too_long", f"{what} for the prompt{_exceed(lengths, context - asked)}.", why, fix)
    elif lengths and limit and max(lengths) > limit:
        why = "TRL 1.x has no max_prompt_length, so it trains on these rows, which takes memory, unless you drop them."
        fix = f"choose max_prompt_length from the lengths: {percentiles(lengths)}."
        fix = f"use drop_long_prompts(rows, tokenizer, {limit}), or {fix}" if min(lengths) <= limit else fix
        yield finding("long_prompts", f"max_prompt_length={limit}{_exceed(lengths, limit)}.", why, fix)


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
