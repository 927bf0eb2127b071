"""Check the model's configuration, the tokenizer and the chat template."""

from collections.abc import Iterator

from ..findings import Finding
from ..rule import Rule, adding_to, found
from .planned import PlannedRun, once
from .rows import bad_prompt, column, first, no_prompt, spread

#: The model's reply in a test conversation.
REPLY = "The answer is 42"
#: Prompts in which tokens are looked for that the model lacks.
_MOST_TRIED = 200
#: Faults with which no prompt can be rendered.
UNRENDERED = ("no_prompt", "bad_prompt", "no_chat_template", "template_fails")

RULES: list[Rule] = []
rule = adding_to(RULES, needs=("tokenizer",))


@rule(
    "error",
    "a model that cannot be loaded",
    why="training could not load it. Context length, sizes and memory were not checked either.",
    fixes=("pass a Hub id 'owner/name' that is cached or can be downloaded, or a folder with a config.json.",),
    needs=("model",),
    example={"model": "./nothing"},
)
def model_missing(run: PlannedRun) -> Iterator[Finding]:
    """Only the model's configuration is read, from a folder, the cache or the Hub; no weights are loaded.

    If the Hub cannot be asked, the model is skipped instead.
    """
    if run.model.fault:
        yield found(f"{run.model.fault}.")


def why_unseen(run: PlannedRun) -> str:
    """Why the model could not be looked up, "" if it was; a folder can be on another machine, where the run will be."""
    if run.model.fault and run.model.is_folder and run.elsewhere:
        return f"there is no folder {run.model.name!r} on this machine"
    return run.model.unseen or ("" if run.model.config or run.model.fault else "no model given")


@rule(
    "error",
    "no completion can end, so every completion is cut off at the limit",
    why="no completion would end before its limit, and TRL fails after the first batch.",
    fixes=("set tokenizer.eos_token = the token that ends a turn in the chat template, such as '<|im_end|>'.",),
    example={"tokenizer": {"eos_token": None}},
)
def no_eos(run: PlannedRun) -> Iterator[Finding]:
    """The tokenizer has no end-of-sequence token."""
    if run.tokenizer.eos_token is None:
        yield found("the tokenizer has no eos_token.")


@rule(
    "warning",
    "a tokenizer without a padding token",
    why="TRL then pads with the EOS token.",
    fixes=("set tokenizer.pad_token to a separate token, if the vocabulary has one ('<|endoftext|>' for Qwen).",),
    unless=("no_eos",),
    example={"tokenizer": {"pad_token": None}},
)
def no_pad(run: PlannedRun) -> Iterator[Finding]:
    """GRPO works with EOS as padding, but SFT may not: see ``pad_is_eos``."""
    if run.tokenizer.pad_token is None:
        yield found("the tokenizer has no pad_token.")


@rule(
    "warning",
    "the padding token is the end-of-sequence token",
    why="GRPO works, because TRL itself masks what follows the first EOS. But SFT that masks padding would also "
    "mask the end of each turn, and such a model never stops.",
    fixes=("set tokenizer.pad_token to a separate token, if the vocabulary has one.",),
    unless=("no_eos", "no_pad"),
    example={"tokenizer": {"pad_token": "<|im_end|>"}},
)
def pad_is_eos(run: PlannedRun) -> Iterator[Finding]:
    """If you train with GRPO alone, you can ignore this."""
    if run.tokenizer.pad_token_id == run.tokenizer.eos_token_id:
        yield found(f"pad_token and eos_token are both {run.tokenizer.eos_token!r}.")


@rule(
    "error",
    "message prompts, but a tokenizer without a chat template",
    why='TRL needs it to render messages, and raises "tokenizer.chat_template is not set".',
    fixes=("use the instruct version of the model, or set tokenizer.chat_template to one of its family.",),
    example={"tokenizer": {"chat_template": None}},
)
def no_chat_template(run: PlannedRun) -> Iterator[Finding]:
    """Prompts of plain text need no chat template."""
    if run.tokenizer.chat_template is None and run.train and run.chat:
        yield found("the prompts are messages, but the tokenizer has no chat template.")


def _turn(run: PlannedRun) -> tuple[str, str]:
    """A simple conversation in the chat template, and why that fails; two empty texts without a template."""
    if run.tokenizer.chat_template is None:
        return "", ""
    return render(run, [{"role": "user", "content": "What is 40 + 2?"}, {"role": "assistant", "content": REPLY}])


@rule(
    "error",
    "a chat template that raises an error or drops a message",
    why="prompts cannot be rendered, or lose their content.",
    fixes=(
        "use the template of the model's family, from its tokenizer.",
        "make each content plain text, and use only roles that the template knows.",
    ),
    unless=("no_chat_template",),
    example={"tokenizer": {"chat_template": "{{ raise_exception('no') }}"}},
)
def template_fails(run: PlannedRun) -> Iterator[Finding]:
    """It renders a simple conversation and the prompts; of a large dataset, an evenly spread part."""
    rendered, failure = _turn(run)
    if run.tokenizer.chat_template is not None and (failure or REPLY not in rendered):
        what = f"the chat template fails on a simple conversation: {failure or 'it drops the reply of the model'}."
        yield found(what, "use the template of the model's family, from its tokenizer.")
    failed = _failures(run)
    if failed:
        value, failure = failed[0]
        shown = f"{len(failed)} of {len(prompts_of(run))} prompts: {failure}; the first: {value!r:.80}"
        why = "TRL renders each prompt with the template, so the run stops at the first failure."
        fix = "make each content plain text, and use only roles that the template knows."
        yield found(f"the chat template fails on {shown}", fix, why=why)


@rule(
    "error",
    "the chat template ends a turn with a token that does not stop generation",
    why="generation stops only at the EOS token, so a model that learned this template does not stop.",
    fixes=("set tokenizer.eos_token = the token that ends a turn in the chat template.",),
    example={"tokenizer": {"eos_token": "<|endoftext|>"}},
)
def template_without_eos(run: PlannedRun) -> Iterator[Finding]:
    """It renders a simple conversation, and looks for the EOS token after the model's reply."""
    eos, (_, said, ending) = run.tokenizer.eos_token, _turn(run)[0].rpartition(REPLY)
    if said and eos is not None and eos not in ending:  # without the reply, template_fails
        why = f"generation stops only at {eos!r}, so a model that learned this template does not stop."
        fix = f"set tokenizer.eos_token = the token that ends a turn ({ending.strip() or 'missing'})."
        yield found(f"the chat template ends a turn with {ending!r}.", fix, why=why)


def render(run: PlannedRun, messages: list[dict], **options: object) -> tuple[str, str]:
    """Messages in the chat template with the run's ``chat_template_kwargs``, or why that fails."""
    options = {**run.options("chat_template_kwargs"), **options}
    try:
        return run.tokenizer.apply_chat_template(messages, tokenize=False, **options), ""
    except Exception as error:  # this runs a user's template on a user's rows
        return "", f"{type(error).__name__}: {error}"


def prompt_text(run: PlannedRun, prompt: "str | list[dict]") -> str:
    """What the model reads of a prompt: text as it is, messages in the chat template; "" if that fails."""
    return prompt if isinstance(prompt, str) else render(run, prompt, add_generation_prompt=True)[0]


@once
def _failures(run: PlannedRun) -> list[tuple[list, str]]:
    """The messages on which the chat template raises, each with the error."""
    messages = prompts_of(run) if run.train and run.tokenizer.chat_template and not _unreadable(run) else []
    rendered = [(one, render(run, one, add_generation_prompt=True)[1]) for one in messages if isinstance(one, list)]
    return [(one, failure) for one, failure in rendered if failure]


def _unreadable(run: PlannedRun) -> bool:
    """Whether there are prompts that are not even text or messages."""
    return run.fails(no_prompt, bad_prompt)


def why_unrendered(run: PlannedRun) -> str:
    """Why no prompt can be rendered, "" if they can."""
    faulty = run.tokenizer is None or _unreadable(run) or run.fails(no_chat_template, template_fails)
    return "the prompts cannot be rendered" if faulty else ""


@once
def prompts_of(run: PlannedRun) -> list:
    """The training prompts; for a large dataset an evenly spread part."""
    return column(run.train, "prompt", spread(run.train))


@rule(
    "error",
    "the rows use a token that the model does not have",
    why="a token without an embedding raises an IndexError, or a device-side assert on a GPU.",
    fixes=("load the tokenizer with AutoTokenizer.from_pretrained of the same model.",),
    needs=("tokenizer", "model"),
    unless=("model_missing",),
    example={"vocabulary": 300},
)
def tokenizer_mismatch(run: PlannedRun) -> Iterator[Finding]:
    """The tokenizer probably belongs to another model.

    A token that no text uses does not count: Gemma 3 1B has one for images beyond its embeddings.
    """
    size = run.model.config.get_text_config().to_dict().get("vocab_size")
    beyond = [] if size is None or len(run.tokenizer) <= size else [token for token in _used(run) if token >= size]
    if beyond:
        token = min(beyond)
        what = f"token {token} ({run.tokenizer.convert_ids_to_tokens(token)!r}) is in use; the model has {size} tokens."
        yield found(what)


def _used(run: PlannedRun) -> set[int]:
    """The end, the padding, and the tokens of some prompts."""
    used = {run.tokenizer.eos_token_id, run.tokenizer.pad_token_id} - {None}
    values = column(run.train, "prompt", first(run.train, _MOST_TRIED)) if run.train else []
    texts = [prompt_text(run, value) for value in values if value]
    return used.union(*run.tokenizer(texts, add_special_tokens=False)["input_ids"]) if texts else used
