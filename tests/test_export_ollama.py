"""Ollama's template says the same as the chat template."""

import re

import pytest
from grpo_core.errors import CourseError
from jinja2 import Environment

from grpo_utils.data.prompts import SYSTEM_PROMPT
from grpo_utils.export.ollama import ollama_template
from grpo_utils.models import model_path

MODELS = ["tiny-qwen3", "tiny-gemma3"]


@pytest.fixture(params=MODELS)
def tokenizer(request):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(model_path(request.param))


#: What of Go's text/template is in use, in Jinja's words.
IN_JINJA = {
    "if .System": "{% if system %}",
    "else": "{% else %}",
    "range .Messages": "{% for m in messages %}",
    'if eq .Role "user"': '{% if m.role == "user" %}',
    'else if eq .Role "assistant"': '{% elif m.role == "assistant" %}',
    ".System": "{{ system }}",
    ".Content": "{{ m.content }}",
}


def render_go(template: str, messages: list[dict]) -> str:
    """As Ollama does it: ``.System`` is what the system messages say, and they are among ``.Messages`` too."""
    open_blocks = []

    def in_jinja(tag: re.Match) -> str:
        if tag[1].startswith(("if", "range")):
            open_blocks.append("{% endif %}" if tag[1].startswith("if") else "{% endfor %}")
        return open_blocks.pop() if tag[1] == "end" else IN_JINJA[tag[1]]

    translated = re.sub(r"\{\{ (.*?) \}\}", in_jinja, template)
    system = "\n\n".join(message["content"] for message in messages if message["role"] == "system")
    return Environment(keep_trailing_newline=True).from_string(translated).render(system=system, messages=messages)


def conversation(turns: int, system: str) -> list[dict]:
    talk = [
        ("user", "What is 15 + 27?"),
        ("assistant", "It is 42."),
        ("user", "And 8 + 1?"),
        ("assistant", "9"),
        ("user", "2 + 2?"),
    ]
    start = [{"role": "system", "content": system}] if system else []
    return start + [{"role": role, "content": text} for role, text in talk[: 2 * turns - 1]]


#: As in Qwen2.5: a system prompt of its own where none is given.
WITH_A_DEFAULT = (
    "{% if messages[0].role != 'system' %}<|im_start|>system\nYou are Qwen.<|im_end|>\n{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
#: As in Qwen3: an empty thought before the new answer, none before the old ones.
THINKING = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n\n</think>\n\n{% endif %}"
)


@pytest.mark.parametrize("template", ["its own", WITH_A_DEFAULT, THINKING], ids=["own", "default", "thinking"])
@pytest.mark.parametrize("system", [SYSTEM_PROMPT, ""], ids=["system", "none"])
@pytest.mark.parametrize("turns", [1, 2, 3])
def test_ollama_sees_the_text_that_the_model_was_trained_on(tokenizer, template, system, turns):
    """The fault: from the second turn on, a default system prompt was written into the conversation."""
    if template != "its own":
        tokenizer.chat_template = template
    messages = conversation(turns, system)
    expected = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    rendered = render_go(ollama_template(tokenizer), messages)
    bos = tokenizer.bos_token or ""  # llama.cpp adds the first token itself
    assert rendered == expected.removeprefix(bos)


def test_the_answer_is_closed_as_in_training(tokenizer):
    closing = ollama_template(tokenizer).split('"assistant" }}')[1].split("{{ .Content }}")[1]
    assert closing.startswith(f"{tokenizer.eos_token}\n")


BAD_TEMPLATES = {
    "no chat template": None,
    "leaves out the system prompt": "{% for m in messages if m.role != 'system' %}{{ m.content }}{% endfor %}",
    "be converted: write": "{% for m in messages %}{{ loop.index }}{{ m.content }}{% endfor %}",
    "cannot be converted": "{% for m in messages %}{{ '{{' }}{{ m.content }}{% endfor %}",
}


@pytest.mark.parametrize("said", BAD_TEMPLATES)
def test_a_template_that_cannot_be_read_off_is_refused(said):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model_path("tiny-qwen3"))
    tokenizer.chat_template = BAD_TEMPLATES[said]
    with pytest.raises(CourseError, match=said):
        ollama_template(tokenizer)
