"""A chat template for Ollama, whose templates are written in Go's language and not in Jinja."""

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from grpo_core.errors import CourseError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

#: Marks in place of texts: the system prompt, and question, answer, question, answer, question.
SYSTEM = "<<the system prompt>>"
TALK = [f"<<text {number} of the conversation>>" for number in range(1, 6)]


def ollama_template(tokenizer: "PreTrainedTokenizerBase") -> str:
    """The tokenizer's chat template for a conversation, in the template language of Ollama (Go's).

    It is not translated from Jinja. The function renders a conversation of three questions with marks for all texts,
    and turns what is between the marks into a loop over ``.Messages``. The result works with or without a system
    prompt, as long as a user's message is the last one. It leaves out tools, images, and the token that begins a text,
    which llama.cpp adds itself.

    Raises:
        CourseError: there is no chat template, it does not keep the texts in this order, or it writes a later
            turn differently from an earlier one.
    """
    if not tokenizer.chat_template:
        raise CourseError("The tokenizer has no chat template: use the tokenizer of the model that was trained.")
    before, between, *turns = _pieces(_render(tokenizer, SYSTEM, *TALK), [SYSTEM, *TALK])
    plain, *plain_turns = _pieces(_render(tokenizer, "", *TALK), TALK)
    single = _pieces(_render(tokenizer, SYSTEM, TALK[0]), [SYSTEM, TALK[0]])
    answer_start, answer_end, *_, opening = turns
    regular = turns == plain_turns == [answer_start, answer_end] * 2 + [opening]
    if not regular or single != [before, between, opening] or "{{" in "".join([before, between, plain, *turns]):
        raise CourseError("This chat template cannot be converted: write the TEMPLATE of the Modelfile by hand.")
    return (
        f"{{{{ if .System }}}}{before}{{{{ .System }}}}{between}{{{{ else }}}}{plain}{{{{ end }}}}"
        '{{ range .Messages }}{{ if eq .Role "user" }}{{ .Content }}'
        f'{{{{ else if eq .Role "assistant" }}}}{answer_start}{{{{ .Content }}}}{answer_end}'
        f"{{{{ end }}}}{{{{ end }}}}{opening}"
    )


def _render(tokenizer: "PreTrainedTokenizerBase", system: str, *talk: str) -> str:
    """Questions and answers in turn, up to where the next answer begins, without the token that begins a text."""
    messages = [{"role": "system", "content": system}] if system else []
    roles = itertools.cycle(["user", "assistant"])
    messages += [{"role": role, "content": text} for role, text in zip(roles, talk, strict=False)]
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    return text.removeprefix(tokenizer.bos_token or "")


def _pieces(text: str, marks: Sequence[str]) -> list[str]:
    """The text before, between and after the marks.

    >>> _pieces("a<<x>>b<<y>>c", ("<<x>>", "<<y>>"))
    ['a', 'b', 'c']
    """
    pieces = []
    for mark in marks:
        piece, found, text = text.partition(mark)
        if not found:
            raise CourseError(f"The chat template leaves out {mark.strip('<>')}, or puts it elsewhere.")
        pieces.append(piece)
    return [*pieces, text]
