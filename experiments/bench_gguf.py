"""Convert a trained tiny model to GGUF, run it in llama.cpp, and compare every token with transformers.

    make bench-gguf

The packages are not part of the course. `make bench-gguf` builds llama.cpp from the source package of
llama-cpp-python 0.3.36 (about 15 minutes on one core) and installs it into .gguf/. That package also holds
llama.cpp's own converter. The converter identifies a tokenizer by a checksum and does not know the tiny model's, so
this script tells it to write the name of Qwen2's. llama.cpp then splits a prompt into other tokens, and the last two
figures show what that costs. All other figures come from the token IDs of transformers.
"""

import argparse
import runpy
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from peft import PeftModel
from tiny_runs import train_tiny
from transformers import AutoModelForCausalLM, AutoTokenizer

from grpo_utils import correctness_reward, load_rows, model_path
from grpo_utils.profiles import CPU

TOKENS = 32
#: What llama.cpp calls the formats: the name of its file type, and its number in llama.h.
QUANTIZED = {"q8_0": 7, "q4_0": 2}


def train(folder: Path, steps: int) -> None:
    """Train an adapter with GRPO, merge it into the base in fp32, and save the model and its tokenizer."""
    changes = dict(output_dir=str(folder / "run"), lr_scheduler_type="linear")
    (policy, tokenizer), _ = train_tiny(changes, 0, steps)
    policy.save_pretrained(folder / "adapter")
    base = AutoModelForCausalLM.from_pretrained(model_path(CPU.models["qwen"]), dtype=torch.float32)
    PeftModel.from_pretrained(base, folder / "adapter").merge_and_unload().save_pretrained(folder / "merged")
    tokenizer.save_pretrained(folder / "merged")


def convert(source: Path, merged: Path, file: Path, kind: str) -> None:
    """Run llama.cpp's converter, which writes ``file`` in fp32 or bf16."""
    sys.path[:0] = [str(source), str(source / "gguf-py")]
    from conversion.base import TextModel

    TextModel.get_vocab_base_pre = lambda self, tokenizer: "qwen2"
    sys.argv = ["convert_hf_to_gguf.py", str(merged), "--outfile", str(file), "--outtype", kind]
    try:
        runpy.run_path(str(source / "convert_hf_to_gguf.py"), run_name="__main__")
    except SystemExit as finished:
        if finished.code:
            raise


def quantize(file: Path, target: Path, number: int) -> None:
    """Write ``target`` from a GGUF in fp32, with llama.cpp's own function."""
    import llama_cpp

    settings = llama_cpp.llama_model_quantize_default_params()
    settings.ftype = number
    if llama_cpp.llama_model_quantize(str(file).encode(), str(target).encode(), settings):
        raise SystemExit(f"llama.cpp could not quantize {file}")


def greedy_in_llama(model, prompt: list[int], end: int) -> tuple[list[int], np.ndarray]:
    """The greedy completion of a prompt given in token IDs, and the logits of its first token."""
    model.reset()
    model.eval(prompt)
    first, answer = model.scores[model.n_tokens - 1].copy(), []
    while len(answer) < TOKENS:
        token = int(model.scores[model.n_tokens - 1].argmax())
        answer.append(token)
        if token == end:
            break
        model.eval([token])
    return answer, first


def greedy_in_transformers(model, prompt: list[int], end: int) -> tuple[list[int], np.ndarray]:
    """The same, with the saved model in fp32."""
    ids = torch.tensor([prompt])
    with torch.no_grad():
        first = model(ids).logits[0, -1].numpy()
        answer = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=TOKENS)
    return answer[0, len(prompt) :].tolist(), first


def compare(file: Path, prompts: list[list[int]], texts: list[str], expected: list, end: int) -> dict:
    """What llama.cpp makes of a file: equal prompts, equal completions, largest difference of a logit, completions."""
    from llama_cpp import Llama

    model = Llama(str(file), n_ctx=512, logits_all=True, n_threads=1, verbose=False)
    found = [greedy_in_llama(model, prompt, end) for prompt in prompts]
    pairs = list(zip(found, expected, strict=True))
    tokens = [model.tokenize(text.encode(), add_bos=False, special=True) for text in texts]
    return {
        "prompts": sum(mine == theirs for mine, theirs in zip(tokens, prompts, strict=True)),
        "completions": sum(mine[0] == theirs[0] for mine, theirs in pairs),
        "logit": max(float(np.abs(mine[1] - theirs[1]).max()) for mine, theirs in pairs),
        "answers": [answer for answer, _ in found],
        "own": [greedy_in_llama(model, prompt, end)[0] for prompt in tokens],
    }


def accuracy(tokenizer, answers: list[list[int]], rows) -> float:
    texts = [[{"role": "assistant", "content": tokenizer.decode(a, skip_special_tokens=True)}] for a in answers]
    return sum(score == 1.0 for score in correctness_reward(texts, rows["answer"])) / len(rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], epilog="Packages: llama-cpp-python==0.3.36 (see `make bench-gguf`)."
    )
    parser.add_argument("source", type=Path, help="the folder vendor/llama.cpp of llama-cpp-python's source package")
    parser.add_argument("--steps", type=int, default=40, help="training steps before the export")
    parser.add_argument("--rows", type=int, default=200, help="held-out prompts")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    train(folder, options.steps)
    tokenizer = AutoTokenizer.from_pretrained(folder / "merged")
    model = AutoModelForCausalLM.from_pretrained(folder / "merged", dtype=torch.float32).eval()
    rows = load_rows("addition", "test", options.rows)
    texts = [tokenizer.apply_chat_template(p, add_generation_prompt=True, tokenize=False) for p in rows["prompt"]]
    prompts = [tokenizer(text, add_special_tokens=False).input_ids for text in texts]
    expected = [greedy_in_transformers(model, prompt, tokenizer.eos_token_id) for prompt in prompts]
    lines = [f"transformers, fp32: accuracy {accuracy(tokenizer, [a for a, _ in expected], rows):.3f}"]
    for kind in ("f32", "bf16", *QUANTIZED):
        file = folder / f"{kind}.gguf"
        if kind in QUANTIZED:
            quantize(folder / "f32.gguf", file, QUANTIZED[kind])
        else:
            convert(options.source, folder / "merged", file, kind)
        result = compare(file, prompts, texts, expected, tokenizer.eos_token_id)
        lines.append(
            f"llama.cpp, {kind}: accuracy {accuracy(tokenizer, result['answers'], rows):.3f}, "
            f"completions equal {result['completions']} of {len(rows)}, largest difference of a logit "
            f"{result['logit']:.2g}, {file.stat().st_size / 2**20:.2f} MiB; prompts tokenized the same: "
            f"{result['prompts']}, "
            f"accuracy with llama.cpp's own tokens {accuracy(tokenizer, result['own'], rows):.3f}"
        )
    print("\n".join(lines))


if __name__ == "__main__":
    main()
