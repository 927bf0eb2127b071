"""Check the tokenizer and the lengths: what the model sees, and where its turn ends."""

import json
from collections.abc import Sequence

from grpo_utils.data import prompt_lengths

from ..reward_lab.forms import FORMS, Form, read_tags
from .planned import Planned
from .report import Finding
from .rows import column, first_rows, part_of
from .sizes import read_config

#: What the model says in a conversation that is rendered for a test.
SAID = "The answer is 42"
#: Gold answers, the longest ones, whose tokens are counted.
LONGEST_GOLDS = 20
#: Above this a tokenizer's ``model_max_length`` means "not set" (transformers writes 1e30).
UNSET = 10**9
PERCENTILES = (50, 90, 95, 99)
#: Prompts in which tokens are looked for that the model lacks.
MOST_TRIED = 200


def tokens(run: Planned) -> list[Finding]:
    """End-of-sequence and padding tokens."""
    tokenizer, found = run.tokenizer, []
    if tokenizer.eos_token is None:
        why = "no completion would ever end before its limit, and TRL fails after the first ones."
        mend = "tokenizer.eos_token = the token that ends a turn in the chat template, such as '<|im_end|>'."
        found.append(Finding("no_eos", "the tokenizer has no eos_token.", why, mend))
    elif tokenizer.pad_token is None:
        why = "TRL then pads with the eos token."
        mend = "tokenizer.pad_token = a token of its own, such as '<|endoftext|>' for Qwen, if the vocabulary has one."
        found.append(Finding("no_pad", "the tokenizer has no pad_token.", why, mend))
    elif tokenizer.pad_token_id == tokenizer.eos_token_id:
        why = (
            "TRL masks what follows the first eos itself, so GRPO runs; but a later SFT that masks padding "
            "masks the end of the turn with it, and that model never stops."
        )
        mend = "tokenizer.pad_token = a token of its own, if the vocabulary has one."
        found.append(Finding("pad_is_eos", f"pad_token and eos_token are both {tokenizer.eos_token!r}.", why, mend))
    return found


def template(run: Planned) -> list[Finding]:
    """A chat template: that there is one for messages, and that a turn ends with the eos token."""
    tokenizer = run.tokenizer
    messages = run.train is not None and len(run.train) and isinstance(run.train[0].get("prompt"), list)
    if tokenizer.chat_template is None:
        if not messages:
            return []
        why = 'TRL renders messages with it, and raises: "tokenizer.chat_template is not set".'
        mend = "the instruct version of the model, or tokenizer.chat_template = a template of its family."
        return [Finding("no_chat_template", "message prompts, and a tokenizer without a chat template.", why, mend)]
    talk = [{"role": "user", "content": "What is 40 + 2?"}, {"role": "assistant", "content": SAID}]
    rendered, failure = render(run, talk)
    if failure or SAID not in rendered:
        why = "no prompt can be rendered, or what is said is lost on the way."
        what = f"the chat template fails on a plain conversation: {failure or 'what the model said is not in it'}."
        return [Finding("template_fails", what, why, "The template of the model's family, from its tokenizer.")]
    ending = rendered.rpartition(SAID)[2]
    if tokenizer.eos_token is None or tokenizer.eos_token in ending:
        return []
    why = f"sampling stops at {tokenizer.eos_token!r} alone, so a model that learned this template runs on."
    mend = f"tokenizer.eos_token = the token that ends a turn ({ending.strip() or 'there is none: mend the template'})."
    return [Finding("template_without_eos", f"the chat template ends a turn with {ending!r}.", why, mend)]


def render(run: Planned, messages: list[dict], **options: object) -> tuple[str, str]:
    """Messages in the chat template with the run's ``chat_template_kwargs``, or why that fails."""
    try:
        return run.tokenizer.apply_chat_template(messages, tokenize=False, **{**_template_kwargs(run), **options}), ""
    except Exception as error:  # somebody's own template runs here, on somebody's own rows
        return "", f"{type(error).__name__}: {error}"


def _template_kwargs(run: Planned) -> dict:
    """The arguments of the chat template; those of a config file may be a JSON text, which GRPOConfig reads."""
    given = run["chat_template_kwargs"]
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except json.JSONDecodeError:
            return {}
    return given if isinstance(given, dict) else {}


def rendering(run: Planned) -> list[Finding]:
    """Prompts on which the chat template raises."""
    values = [] if run.train is None or not run.tokenizer.chat_template else _prompts(run)
    failed = [(value, render(run, value, add_generation_prompt=True)[1]) for value in values if isinstance(value, list)]
    failed = [(value, failure) for value, failure in failed if failure]
    if not failed:
        return []
    value, failure = failed[0]
    what = f"the chat template fails on {len(failed)} of {len(values)} prompts: {failure}; the first is {value!r:.80}…"
    why = "TRL renders each prompt with it, so the run stops at the first of them."
    return [Finding("template_fails", what, why, "Each content a plain text, and only roles that the template knows.")]


def _prompts(run: Planned) -> list:
    """The training prompts; of a large dataset a part, evenly spread."""
    return column(part_of(run.train)[0], "prompt")


def vocabulary(run: Planned) -> list[Finding]:
    """A tokenizer that belongs to another model: tokens that are used and that the model lacks.

    Gemma 3 1B has a token for images beyond its embeddings, which text never uses.
    """
    there = read_config(run.model).get_text_config().to_dict().get("vocab_size")
    if there is None or len(run.tokenizer) <= there:
        return []
    beyond = sorted(token for token in _used(run) if token >= there)
    if not beyond:
        return []
    what = f"token {beyond[0]} ({run.tokenizer.convert_ids_to_tokens(beyond[0])!r}) is used, and the model has {there}."
    why = "a token beyond the model's embeddings raises an IndexError, or a device-side assert on a GPU."
    return [Finding("tokenizer_mismatch", what, why, "AutoTokenizer.from_pretrained of the same model.")]


def _used(run: Planned) -> set[int]:
    """The end, the padding, and the tokens of some prompts."""
    used = {run.tokenizer.eos_token_id, run.tokenizer.pad_token_id} - {None}
    values = [] if run.train is None else column(first_rows(run.train, MOST_TRIED), "prompt")
    texts = [value if isinstance(value, str) else render(run, value)[0] for value in values if value]
    return used.union(*run.tokenizer(texts, add_special_tokens=False)["input_ids"]) if texts else used


def lengths_of(run: Planned) -> list[int]:
    """Tokens of the training prompts as the model will see them; of a large dataset, of a part."""
    return _lengths(run, _prompts(run))


def _lengths(run: Planned, values: list) -> list[int]:
    if isinstance(values[0], str):
        return [len(ids) for ids in run.tokenizer([v for v in values if isinstance(v, str)])["input_ids"]]
    return prompt_lengths({"prompt": [value for value in values if isinstance(value, list)]}, run.tokenizer)


def context_of(run: Planned) -> int | None:
    """The longest text in tokens that the model was made for, or None if nothing says it."""
    known = []
    if run.model:
        known.append(read_config(run.model).get_text_config().to_dict().get("max_position_embeddings"))
    if run.tokenizer is not None:
        known.append(run.tokenizer.model_max_length)
    known = [int(length) for length in known if length and 0 < length < UNSET]
    return min(known, default=None)


def context_limits(run: Planned, lengths: Sequence[int], needed: int) -> list[Finding]:
    """Prompts and completions against the model's context.

    Args:
        run: its model or tokenizer says how long the context is.
        lengths: of the prompts in tokens; none where they are not known.
        needed: tokens of the shortest completion in the asked form.
    """
    context, asked = context_of(run), run["max_completion_length"]
    if context is None or asked < 1 or asked + max(lengths, default=1) <= context:
        return []
    room = context - asked
    why = "TRL never truncates a prompt; the model was never trained beyond its context and writes noise there."
    if not lengths or room < min(lengths):
        shortest = f", and the shortest of {len(lengths)} prompts has {min(lengths)}" if lengths else ""
        what = f"max_completion_length={asked} leaves {max(room, 0)} of the model's {context} tokens for the prompt"
        return [Finding("prompt_too_long", f"{what}{shortest}.", why, _fitting(lengths, context, needed))]
    what = f"{_exceed(lengths, room)} (the model's {context} less max_completion_length={asked})."
    mend = f"drop_long_prompts(rows, tokenizer, {room}), or a shorter max_completion_length"
    mend += f": {context - max(lengths)} or less." if context - max(lengths) >= needed else "."
    return [Finding("prompt_too_long", what, why, mend)]


def _fitting(lengths: Sequence[int], context: int, needed: int) -> str:
    """What to change so that prompts and completions fit: the completions, else the rows too, else the model."""
    if context <= needed:
        return f"A model with a longer context: the requested form alone takes {needed} tokens."
    if not lengths:
        return f"max_completion_length below {context}, with room for the prompts."
    if context - max(lengths) >= needed:
        return f"max_completion_length={context - max(lengths)} or less."
    kept = [length for length in lengths if length <= context - 2 * needed] or [
        length for length in lengths if length <= context - needed
    ]
    if not kept:
        return f"Prompts of at most {context - needed} tokens, or a model with a longer context."
    return f"drop_long_prompts(rows, tokenizer, {max(kept)}), and max_completion_length={context - max(kept)} or less."


def prompt_limits(run: Planned, lengths: Sequence[int]) -> list[Finding]:
    """Prompts against the limit that was chosen."""
    limit, context = run.max_prompt_length, context_of(run)
    if limit is None or max(lengths) <= limit or (context and limit >= context - run["max_completion_length"]):
        return []
    why = "TRL 1.x has no max_prompt_length: it trains on these rows, and they take memory, unless you drop them."
    mend = f"a max_prompt_length chosen from: {percentiles(lengths)}."
    mend = f"drop_long_prompts(rows, tokenizer, {limit}), or {mend}" if min(lengths) <= limit else mend
    return [Finding("long_prompts", _exceed(lengths, limit) + ".", why, mend)]


def _exceed(lengths: Sequence[int], limit: int) -> str:
    over = sum(length > limit for length in lengths)
    return f"{over} of {len(lengths)} prompts have more than {limit} tokens, the longest {max(lengths)}"


def percentiles(lengths: Sequence[int]) -> str:
    """Lengths that a share of the prompts does not exceed.

    >>> percentiles(range(1, 101))
    '50 % have at most 50, 90 % 90, 95 % 95, 99 % 99, all 100'
    """
    ordered = sorted(lengths)
    at = {p: ordered[max(0, -(-len(ordered) * p // 100) - 1)] for p in PERCENTILES}
    shares = [f"{p} %{' have at most' if p == PERCENTILES[0] else ''} {length}" for p, length in at.items()]
    return ", ".join([*shares, f"all {ordered[-1]}"])


def completion_length(run: Planned, needed: int) -> list[Finding]:
    """Whether the shortest clean completion in the asked form, of so many tokens, fits into the limit."""
    form, limit, context = asked_form(run), run["max_completion_length"], context_of(run)
    if not 1 <= limit < needed:
        return []
    what = f"max_completion_length={limit}, and the form alone takes {needed} tokens ({form})."
    why = "a completion that is cut off never closes its tags, so the format and the answer earn nothing."
    least = 2 * needed if context is None or 2 * needed < context else needed
    mend = f"max_completion_length={least} or more, with room to reason."
    if context and needed >= context:
        mend = f"A shorter form, or a model with a longer context than {context} tokens."
    return [Finding("short_completions", what, why, mend)]


def asked_form(run: Planned) -> Form:
    """The form that is asked for: the course's own if nothing is said."""
    return read_tags(run.tags) if run.tags is not None else FORMS[0]


def clean_length(run: Planned, golds: Sequence[str]) -> int:
    """Tokens of the form around the longest gold answer, with nothing reasoned, and of the end of the turn."""
    longest, form = sorted(golds, key=len)[-LONGEST_GOLDS:], asked_form(run)
    texts = [form.write("", gold) for gold in longest or ["42"]]
    return max(len(ids) for ids in run.tokenizer(texts, add_special_tokens=False)["input_ids"]) + 1
