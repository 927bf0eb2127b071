"""What other programs need to run a merged model: llama.cpp, Ollama and vLLM.

The commands are made here. Whether they were run is told where they are shown: without llama.cpp,
Ollama or a GPU at hand they are *never run*.
"""

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import CourseError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

CONVERTER = "convert_hf_to_gguf.py"
MARKS = "<<the system prompt>>", "<<the question>>", "<<the answer>>"


def ollama_template(tokenizer: "PreTrainedTokenizerBase") -> str:
    """The tokenizer's chat template for one question, in the template language of Ollama (Go's).

    It is not translated from Jinja but read off: the template is rendered with marks for system prompt,
    question and answer, and the marks become ``.System``, ``.Prompt`` and ``.Response``. So it is right for
    every template, for a system prompt and text; tools and images are left out. The token that begins a text
    is left out too, since llama.cpp puts it there by itself.

    Raises:
        CourseError: there is no chat template, or it does not keep the three texts in this order.
    """
    if not tokenizer.chat_template:
        raise CourseError("The tokenizer has no chat template: take the one of the model that was trained.")
    system, question, answer = MARKS
    before, between, opening = _pieces(_render(tokenizer, system, question), MARKS[:2])
    plain_start, plain_opening = _pieces(_render(tokenizer, "", question), MARKS[1:2])
    *_, closing = _pieces(_render(tokenizer, system, question, answer), MARKS)
    if opening != plain_opening or "{{" in before + between + opening + closing + plain_start:
        raise CourseError("This chat template cannot be read off: write the TEMPLATE of the Modelfile by hand.")
    start = f"{{{{ if .System }}}}{before}{{{{ .System }}}}{between}{{{{ else }}}}{plain_start}{{{{ end }}}}"
    return f"{start}{{{{ .Prompt }}}}{opening}{{{{ .Response }}}}{closing}"


def _render(tokenizer: "PreTrainedTokenizerBase", system: str, question: str, answer: str = "") -> str:
    """One turn in the chat template, up to where the answer begins or with it, less the token that begins a text."""
    messages = [{"role": "system", "content": system}] if system else []
    messages += [{"role": "user", "content": question}]
    messages += [{"role": "assistant", "content": answer}] if answer else []
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=not answer)
    return text.removeprefix(tokenizer.bos_token or "")


def _pieces(text: str, marks: tuple[str, ...]) -> list[str]:
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
    """The command that serves a merged model with vLLM, which brings an OpenAI-like API; it needs a GPU.

    ``name`` is what clients ask for, ``max_tokens`` the longest prompt and completion together. The chat
    template is the one saved beside the model.

    >>> vllm_command("outputs/run/merged", name="mine", max_tokens=512)
    'vllm serve outputs/run/merged --served-model-name mine --max-model-len 512 --chat-template outputs/run/merged/chat_template.jinja'
    """  # noqa: E501
    return (
        f"vllm serve {folder} --served-model-name {name} --max-model-len {max_tokens} "
        f"--chat-template {folder}/chat_template.jinja"
    )
