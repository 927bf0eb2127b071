"""Measure the memory for checking a merged model, with random weights of the T4 profile's size.

    python experiments/bench_merge.py

Free Colab has 12.7 GB of RAM. `check_merged`, as lesson 03 calls it, runs in its own process, here on the CPU. It
merges in fp32, compares logits, loads the saved fp16 model, compares weights, and answers prompts. This script reads
the anonymous memory of that process twenty times a second. It leaves out the pages of the model's files, because the
system frees them when memory is low.
"""

import tempfile
import threading
import time
from pathlib import Path

import psutil
import torch
from benches import refuse_arguments
from grpo_core.training.policy import LORA_TARGETS
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer, Qwen2Config

from grpo_utils import load_rows
from grpo_utils.export.merging import check_merged
from grpo_utils.models import model_path, torch_dtype
from grpo_utils.profiles import T4

#: Qwen2.5-1.5B, from its config.json.
SIZES = dict(hidden_size=1536, num_hidden_layers=28, num_attention_heads=12, num_key_value_heads=2)
SIZES |= dict(intermediate_size=8960, vocab_size=151936, tie_word_embeddings=True)


def make_base(folder: Path) -> int:
    """Write a model with random weights in bf16 and the tiny tokenizer; return its number of weights."""
    torch.set_default_dtype(torch.bfloat16)
    model = AutoModelForCausalLM.from_config(Qwen2Config(**SIZES))
    torch.set_default_dtype(torch.float32)
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(model_path("tiny-qwen3")).save_pretrained(folder)
    return model.num_parameters()


def make_adapter(base: Path, folder: Path) -> None:
    """An adapter with the T4 profile's rank that changes every projection."""
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.bfloat16)
    lora = LoraConfig(
        r=T4.lora_rank, lora_alpha=T4.lora_alpha, target_modules=list(LORA_TARGETS), init_lora_weights=False
    )
    get_peft_model(model, lora).save_pretrained(folder)


def merge(base: Path, adapter: Path, folder: Path) -> None:
    """Merge as lesson 03 does, and save in the T4 profile's dtype."""
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    merged = PeftModel.from_pretrained(model, str(adapter)).merge_and_unload()
    merged.to(torch_dtype(T4)).save_pretrained(folder)
    AutoTokenizer.from_pretrained(base).save_pretrained(folder)


def anonymous(process: psutil.Process) -> int:
    """Bytes of a process's anonymous memory."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))


class Peak(threading.Thread):
    """The peak anonymous memory of this process's children, until it is stopped."""

    def __init__(self):
        super().__init__(daemon=True)
        self.peak, self.done = 0, threading.Event()

    def run(self):
        while not self.done.wait(0.05):
            for child in psutil.Process().children(recursive=True):
                try:
                    self.peak = max(self.peak, anonymous(child))
                except (FileNotFoundError, ProcessLookupError, StopIteration):  # it has just ended
                    continue


def main() -> None:
    """Check one merged model, and print the peak memory, the seconds, and the largest logit difference."""
    refuse_arguments(__doc__)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        weights = make_base(folder / "base")
        base, adapter, merged = folder / "base", folder / "adapter", folder / "merged"
        make_adapter(base, adapter)
        merge(base, adapter, merged)
        rows, decoding = load_rows("addition", "test", 4), dict(max_new_tokens=4, batch_size=4, temperature=1.0, seed=0)
        peak, started = Peak(), time.perf_counter()
        peak.start()
        difference, _ = check_merged(adapter, str(base), merged, T4, rows, decoding)
        peak.done.set()
    print(f"{weights:,} weights: at most {peak.peak / 1e9:.1f} GB in {time.perf_counter() - started:.0f} s;", end=" ")
    print(f"the merge changed a logit by at most {difference:.1e}")


if __name__ == "__main__":
    main()
