"""Ollama's template says the same as the chat template."""

import re

import pytest

from grpo_utils import SYSTEM_PROMPT
from grpo_utils.errors import CourseError
from grpo_utils.export.ollama import ollama_template
from grpo_utils.models import model_path

MODELS = ["tiny-qwen3", "tiny-gemma3"]


@pytest.fixture(params=MODELS)
def tokenizer(request):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(model_path(request.param))


TAG = re.compile(r"(\{\{ .*? \}\})")


def render_go(template: str, messages: list[dict]) -> str:
    """Go's text/template for what is in use: if on .System, range over .Messages, if on .Role, fields.

    As Ollama does it: ``.System`` is what the system messages say, and they are among ``.Messages`` too.
    """
    system = "\n\n".join(message["content"] for message in messages if message["role"] == "system")
    parts = TAG.split(template)
    text, _ = render_block(parts, 0, {"System": system, "Messages": messages}, True)
    return text


def render_block(parts: list[str], at: int, dot: dict, shown: bool) -> tuple[str, int]:
    """The text from one part on, up to the {{ else }} or {{ end }} that closes it, and where that is."""
    text = ""
    while at < len(parts):
        part = parts[at]
        if part.startswith(("{{ else", "{{ end")):
            return text, at
        if part == "{{ range .Messages }}":
            rounds = [render_block(parts, at + 1, message, shown) for message in dot["Messages"]]
            text, at = text + "".join(said for said, _ in rounds), rounds[0][1]
        elif part.startswith("{{ if "):
            said, at = render_choice(parts, at, dot)
            text += said
        elif part.startswith("{{ ."):
            text += {key.capitalize(): value for key, value in dot.items()}[part[4:-3]]
        else:
            assert "{{" not in part, "a construct that this renderer does not know"
            text += part
        at += 1
    return text, at


def render_choice(parts: list[str], at: int, dot: dict) -> tuple[str, int]:
    """The first branch of an if whose condition holds, and where its {{ end }} is."""
    chosen = None
    while parts[at] != "{{ end }}":
        condition = parts[at][3:-3].removeprefix("else").strip().removeprefix("if ")
        role = re.fullmatch(r'eq \.Role "(\w+)"', condition)
        assert role or condition in ("", ".System")
        holds = dot["role"] == role[1] if role else not condition or bool(dot["System"])
        said, at = render_block(parts, at + 1, dot, holds)
        if holds and chosen is None:
            chosen = said
    return chosen or "", at


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
    "be read off: write": "{% for m in messages %}{{ loop.index }}{{ m.content }}{% endfor %}",
    "cannot be read off": "{% for m in messages %}{{ '{{' }}{{ m.content }}{% endfor %}",
}


@pytest.mark.parametrize("said", BAD_TEMPLATES)
def test_a_template_that_cannot_be_read_off_is_refused(said):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model_path("tiny-qwen3"))
    tokenizer.chat_template = BAD_TEMPLATES[said]
    with pytest.raises(CourseError, match=said):
        ollama_template(tokenizer)
