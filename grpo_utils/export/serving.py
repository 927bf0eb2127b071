"""What other programs need to run a merged model: llama.cpp, Ollama and vLLM.

The commands are made here. Whether they were run is told where they are shown: without llama.cpp,
Ollama or vLLM at hand they are *never run*. (`server` serves a model with transformers itself.)
"""

import itertools
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import CourseError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

CONVERTER = "convert_hf_to_gguf.py"
#: Marks in place of texts: the system prompt, and question, answer, question, answer, question.
SYSTEM = "<<the system prompt>>"
TALK = (
    "<<a first question>>",
    "<<its answer>>",
    "<<a second question>>",
    "<<an answer again>>",
    "<<a third question>>",
)


def ollama_template(tokenizer: "PreTrainedTokenizerBase") -> str:
    """The tokenizer's chat template for a conversation, in the template language of Ollama (Go's).

    It is not translated from Jinja but read off: a conversation of three questions is rendered with marks for all
    texts, and what stands between them becomes a loop over ``.Messages``. It holds for text with or without a
    system prompt, as long as a user's message is the last one; tools and images are left out. The token that begins
    a text is left out too, since llama.cpp puts it there by itself.

    Raises:
        CourseError: there is no chat template, it does not keep the texts in this order, or it writes a later
            turn in another way than an earlier one.
    """
    if not tokenizer.chat_template:
        raise CourseError("The tokenizer has no chat template: take the one of the model that was trained.")
    before, between, *turns = _pieces(_render(tokenizer, SYSTEM, *TALK), [SYSTEM, *TALK])
    plain, *plain_turns = _pieces(_render(tokenizer, "", *TALK), TALK)
    single = _pieces(_render(tokenizer, SYSTEM, TALK[0]), [SYSTEM, TALK[0]])
    answer_start, answer_end, *_, opening = turns
    regular = turns == plain_turns == [answer_start, answer_end] * 2 + [opening]
    if not regular or single != [before, between, opening] or "{{" in "".join([before, between, plain, *turns]):
        raise CourseError("This chat template cannot be read off: write the TEMPLATE of the Modelfile by hand.")
    return (
        f"{{{{ if .System }}}}{before}{{{{ .System }}}}{between}{{{{ else }}}}{plain}{{{{ end }}}}"
        '{{ range .Messages }}{{ if eq .Role "user" }}{{ .Content }}'
        f'{{{{ else if eq .Role "assistant" }}}}{answer_start}{{{{ .Content }}}}{answer_end}'
        f"{{{{ end }}}}{{{{ end }}}}{opening}"
    )


def _render(tokenizer: "PreTrainedTokenizerBase", system: str, *talk: str) -> str:
    """Questions and answers by turns, up to where the next answer begins, less the token that begins a text."""
    messages = [{"role": "system", "content": system}] if system else []
    roles = itertools.cycle(["user", "assistant"])
    messages += [{"role": role, "content": text} for role, text in zip(roles, talk, strict=False)]
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    return text.removeprefix(tokenizer.bos_token or "")


def _pieces(text: str, marks: Sequence[str]) -> list[str]:
    """What stands before, between and after the marks.

    >>> _pieces("a<<x>>b<<y>>c", ("<<x>>", "<<y>>"))
    ['a', 'b', 'c']
    """
    pieces = []
    for mark in marks:
        piece, found, text = text.partition(mark)
        if not found:
            raise CourseError(f"The chat template leaves out {mark.strip('<>')}, or puts it in another place.")
        pieces.append(piece)
    return [*pieces, text]


def modelfile(
    tokenizer: "PreTrainedTokenizerBase", *, system_prompt: str, weights: str, temperature: float = 0.0
) -> str:
    """An Ollama ``Modelfile``: the weights, the template and system prompt of the training, where to stop.

    ``weights`` is the path of a GGUF file (or of a folder of safetensors) as seen from the Modelfile;
    ``temperature`` 0.0 decodes greedily.

    Raises:
        CourseError: as `ollama_template`; or a text that a Modelfile cannot hold.
    """
    template = ollama_template(tokenizer)
    if '"""' in template + system_prompt:
        raise CourseError("A Modelfile ends a text at three quotes, and there are three in it. Take them out.")
    return (
        f"FROM {weights}\n\n"
        f'TEMPLATE """{template}"""\n\n'
        f'SYSTEM """{system_prompt}"""\n\n'
        f'PARAMETER stop "{tokenizer.eos_token}"\n'
        f"PARAMETER temperature {temperature:g}\n"
    )


def gguf_command(folder: str | Path, file: str | Path, llama_cpp: str | Path, outtype: str = "f16") -> list[str]:
    """The command that makes a GGUF file of a merged model, with the converter of a llama.cpp folder.

    ``outtype`` is ``f16`` or ``bf16``, which Gemma 3 needs: it exceeds what fp16 can hold (65,504).

    >>> gguf_command("outputs/run/merged", "model.gguf", "llama.cpp")[1:]
    ['llama.cpp/convert_hf_to_gguf.py', 'outputs/run/merged', '--outfile', 'model.gguf', '--outtype', 'f16']
    """
    return [sys.executable, f"{llama_cpp}/{CONVERTER}", str(folder), "--outfile", str(file), "--outtype", outtype]


def convert_to_gguf(folder: str | Path, file: str | Path, llama_cpp: str | Path, outtype: str = "f16") -> Path:
    """Run llama.cpp's converter on the merged model in ``folder``; gives the GGUF file.

    Raises:
        CourseError: there is no converter in ``llama_cpp``, or it failed; with its last words.
    """
    if not (Path(llama_cpp) / CONVERTER).is_file():
        raise CourseError(
            f"LLAMA_CPP={str(llama_cpp)!r} has no {CONVERTER}. Give the folder of llama.cpp's source: "
            "git clone --depth 1 https://github.com/ggml-org/llama.cpp"
        )
    run = subprocess.run(gguf_command(folder, file, llama_cpp, outtype), capture_output=True, text=True)
    if run.returncode or not Path(file).is_file():
        raise CourseError(f"llama.cpp could not convert {str(folder)!r}. It says: {_last_words(run.stderr)}")
    return Path(file)


def _last_words(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return " / ".join(lines[-3:]) or "nothing"


def vllm_command(folder: str | Path, *, name: str, max_tokens: int) -> str:
    """The command that serves a merged model with vLLM, which brings an OpenAI-like API; meant for a GPU.

    ``name`` is what clients ask for, ``max_tokens`` the longest prompt and completion together. The chat
    template is the one saved beside the model. The folder has to be read by transformers 5, which wrote it.

    >>> vllm_command("outputs/run/merged", name="mine", max_tokens=512)
    'vllm serve outputs/run/merged --served-model-name mine --max-model-len 512 --chat-template outputs/run/merged/chat_template.jinja'
    """  # noqa: E501
    return (
        f"vllm serve {folder} --served-model-name {name} --max-model-len {max_tokens} "
        f"--chat-template {folder}/chat_template.jinja"
    )
