"""How much memory each GPU needs, and which engines fit. ESTIMATED: sums of bytes, not measurements.

python estimate_memory.py --billions 7.6 --gpus 8 --gib 80           which engines fit
python estimate_memory.py --billions 1.5 --gpus 2 --gib 14.5 --vocabulary 152000 --batch 8 --tokens 256
"""

import argparse
from dataclasses import dataclass

GIB = 2**30
#: Bytes per weight. Trained: fp32 weight 4, gradient 4, AdamW's two moments 8. ZeRO-3 has the same sum: bf16 weight and
#: gradient 2 + 2, fp32 copy 4, moments 8. NF4 has 4.13 bits, and embeddings and norms stay in 16 bits.
TRAINED, HALF, FOUR_BITS = 16.0, 2.0, 0.75
ADAPTER = 0.02  # weights of a rank-32 LoRA on all linear layers, as a share of the base; it grows with the rank


@dataclass(frozen=True)
class Engine:
    """A way to train: bytes per base weight that each GPU holds in full, shards, and gathers to sample."""

    name: str
    whole: float
    cut: float
    gathered: float
    how: str


ENGINES = [
    Engine("DDP, 4-bit LoRA", FOUR_BITS + ADAPTER * TRAINED, 0, 0, "ddp.yaml, load_in_4bit: true"),
    Engine("DDP, 16-bit LoRA", HALF + ADAPTER * TRAINED, 0, 0, "ddp.yaml, load_in_4bit: false, use_peft: true"),
    Engine("DDP, all weights", TRAINED, 0, 0, "ddp.yaml, use_peft: false"),
    Engine("FSDP2, 16-bit LoRA", 0, HALF + ADAPTER * TRAINED, 0, "fsdp2.yaml, use_peft: true"),
    Engine("FSDP2, all weights", 0, TRAINED, 0, "fsdp2.yaml, use_peft: false"),
    Engine("ZeRO-3, 16-bit LoRA", 0, HALF + ADAPTER * TRAINED, HALF, "zero3.yaml, use_peft: true"),
    Engine("ZeRO-3, all weights", 0, TRAINED, HALF, "zero3.yaml, use_peft: false"),
]


def held(engine: Engine, billions: float, gpus: int) -> float:
    """GiB per GPU for weights, gradients and optimizer.

    >>> round(held(ENGINES[2], billions=7.6, gpus=8)), round(held(ENGINES[4], billions=7.6, gpus=8))
    (113, 14)
    """
    return billions * 1e9 * (engine.whole + engine.cut / gpus) / GIB


def logits(batch: int, tokens: int, vocabulary: int) -> float:
    """GiB for the logits of every token over the vocabulary, in fp32, and for their gradient.

    >>> round(logits(batch=8, tokens=256, vocabulary=152_000), 1)
    2.3
    """
    return 2 * 4 * batch * tokens * vocabulary / GIB


def gathered(engine: Engine, billions: float, vllm: bool) -> float:
    """GiB that sampling adds without vLLM: ZeRO-3 gathers all 16-bit weights, FSDP2 only one layer at a time."""
    return 0.0 if vllm else billions * 1e9 * engine.gathered / GIB


def table(options: argparse.Namespace) -> str:
    """A line for each engine: GiB per GPU, and whether a tenth of the memory stays free for activations."""
    lines = [f"{'estimated GiB per GPU':22}{'held':>8}{'logits':>8}{'sampling':>10}{'sum':>8}"]
    for engine in ENGINES:
        parts = [held(engine, options.billions, options.gpus)]
        parts += [logits(options.batch, options.tokens, options.vocabulary)]
        parts += [gathered(engine, options.billions, options.vllm)]
        fits = sum(parts) <= 0.9 * options.gib
        verdict = f"fits: {engine.how}" if fits else f"more than 0.9 x {options.gib:g}"
        lines.append(f"{engine.name:22}{parts[0]:8.1f}{parts[1]:8.1f}{parts[2]:10.1f}{sum(parts):8.1f}  {verdict}")
    given = f"For {options.batch} completions of {options.tokens} tokens and a vocabulary of {options.vocabulary}."
    return "\n".join([*lines, f'{given} "fits" leaves a tenth free. Activations are not included, so measure.'])


class Shown(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Keep the line breaks of the description, and show defaults."""


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=Shown)
    parser.add_argument("--billions", type=float, required=True, help="weights of the model, in billions")
    parser.add_argument("--gpus", type=int, default=8, help="GPUs that train (without those of a vLLM server)")
    parser.add_argument("--gib", type=float, default=80, help="memory of one GPU")
    parser.add_argument("--batch", type=int, default=8, help="per_device_train_batch_size")
    parser.add_argument("--tokens", type=int, default=1024, help="max_completion_length")
    parser.add_argument("--vocabulary", type=int, default=152_000, help="size of the tokenizer's vocabulary")
    parser.add_argument("--vllm", action="store_true", help="a vLLM server samples on its own GPUs")
    return parser.parse_args(argv)


if __name__ == "__main__":
    print(table(parse()))
