"""The Modelfile says the same as the chat template; llama.cpp's converter is run or its absence told."""

import re
import sys

import pytest

from grpo_utils.data import SYSTEM_PROMPT, chat_prompt
from grpo_utils.errors import CourseError
from grpo_utils.export import convert_to_gguf, modelfile, ollama_template
from grpo_utils.models import model_path

MODELS = ["tiny-qwen3", "tiny-gemma3"]
QUESTION = "What is 15 + 27?"


@pytest.fixture(params=MODELS)
def tokenizer(request):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(model_path(request.param))


def render_go(template: str, system: str, prompt: str) -> str:
    """Go's text/template for the constructs in use: one if/else on .System, two fields, cut at .Response.

    Ollama itself cuts a template at .Response for the turn that is to be answered.
    """
    choice = re.match(r"\{\{ if \.System \}\}(.*?)\{\{ else \}\}(.*?)\{\{ end \}\}(.*)", template, re.DOTALL)
    text = (choice[1] if system else choice[2]) + choice[3]
    text = text[: text.index("{{ .Response }}")]
    text = text.replace("{{ .System }}", system).replace("{{ .Prompt }}", prompt)
    assert "{{" not in text, "a construct that this renderer does not know"
    return text


@pytest.mark.parametrize("system", [SYSTEM_PROMPT, ""])
def test_ollama_sees_the_text_that_the_model_was_trained_on(tokenizer, system):
    expected = tokenizer.apply_chat_template(
        chat_prompt(QUESTION, system or None), tokenize=False, add_generation_prompt=True
    )
    rendered = render_go(ollama_template(tokenizer), system, QUESTION)
    assert (tokenizer.bos_token or "") + rendered == expected  # llama.cpp adds the first token itself


def test_the_answer_is_closed_as_in_training(tokenizer):
    closing = ollama_template(tokenizer).split("{{ .Response }}")[1]
    assert closing == f"{tokenizer.eos_token}\n"


def test_the_modelfile_has_all_that_ollama_needs(tokenizer):
    text = modelfile(tokenizer, system_prompt=SYSTEM_PROMPT, weights="./model.gguf")
    assert text.startswith("FROM ./model.gguf\n")
    assert f'SYSTEM """{SYSTEM_PROMPT}"""' in text
    assert f'PARAMETER stop "{tokenizer.eos_token}"' in text and text.endswith("PARAMETER temperature 0\n")
    assert f'TEMPLATE """{ollama_template(tokenizer)}"""' in text


def test_a_thinking_template_whose_history_differs_from_its_generation_prompt():
    """Qwen3 puts an empty thought before an old answer, and none before a new one: the new one counts."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model_path("tiny-qwen3"))
    tokenizer.chat_template = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n"
        "{% if m.role == 'assistant' %}<think>\n\n</think>\n\n{% endif %}{{ m.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    assert "<think>" not in ollama_template(tokenizer)


BAD_TEMPLATES = {
    "no chat template": None,
    "leaves out the system prompt": "{% for m in messages if m.role != 'system' %}{{ m.content }}{% endfor %}",
    "cannot be read off": "{% for m in messages %}{{ '{{' }}{{ m.content }}{% endfor %}",
}


@pytest.mark.parametrize("said", BAD_TEMPLATES)
def test_a_template_that_cannot_be_read_off_is_refused(said):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model_path("tiny-qwen3"))
    tokenizer.chat_template = BAD_TEMPLATES[said]
    with pytest.raises(CourseError, match=said):
        ollama_template(tokenizer)


def test_three_quotes_in_a_system_prompt_would_end_it(tokenizer):
    with pytest.raises(CourseError, match="three quotes"):
        modelfile(tokenizer, system_prompt='Say """', weights="./model.gguf")


def test_a_folder_without_the_converter_says_where_to_get_it(tmp_path):
    with pytest.raises(CourseError, match="has no convert_hf_to_gguf.py.*git clone"):
        convert_to_gguf("merged", tmp_path / "model.gguf", tmp_path)


#: A stand-in that takes the converter's arguments: how it is called and how its failure is told is tested.
STAND_IN = """
import argparse, sys
parser = argparse.ArgumentParser()
parser.add_argument("model"), parser.add_argument("--outfile"), parser.add_argument("--outtype")
asked = parser.parse_args()
if asked.model == "unknown":
    sys.exit("NotImplementedError: BPE pre-tokenizer was not recognized")
open(asked.outfile, "wb").write(b"GGUF")
"""


def test_the_converter_is_called_and_its_failure_is_told(tmp_path):
    (tmp_path / "convert_hf_to_gguf.py").write_text(STAND_IN)
    assert convert_to_gguf("merged", tmp_path / "model.gguf", tmp_path).read_bytes() == b"GGUF"
    with pytest.raises(CourseError, match="could not convert 'unknown'. It says: .*pre-tokenizer was not recognized"):
        convert_to_gguf("unknown", tmp_path / "other.gguf", tmp_path)


def test_the_converter_runs_in_this_python(tmp_path):
    from grpo_utils.export import gguf_command

    assert gguf_command("merged", "model.gguf", "llama.cpp")[0] == sys.executable
