"""A sound run that preflight accepts, and the ways in which tests change it."""

import json
from functools import cache

from grpo_check.preflights.checking import preflight

from grpo_utils import chat_prompt, load_rows, math_rewards, model_path
from grpo_utils.arguments import training_arguments
from grpo_utils.profiles import CPU

REWARDS, WEIGHTS = math_rewards()
ROWS = [{"prompt": chat_prompt(f"What is {n} + 1?"), "answer": str(n + 1)} for n in range(40)]
#: A tiny model of the course.
TINY = model_path("tiny-qwen3")
HELDOUT = [{"prompt": chat_prompt(f"What is {n} + 2?"), "answer": str(n + 2)} for n in range(50, 58)]


def load_tokenizer(name="tiny-qwen3"):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(model_path(name))


sound_tokenizer = cache(load_tokenizer)


def check(tokenizer=None, arguments=None, without=(), **changes):
    """A preflight of the sound run with something changed, without `probe` unless it is asked for."""
    given = training_arguments(CPU, reward_weights=[1.0], per_device_train_batch_size=16)
    given = {name: value for name, value in given.items() if name not in without} | (arguments or {})
    sound = {"model": TINY, "train": ROWS, "heldout": HELDOUT, "rewards": REWARDS[:1]}
    sound["backend"] = "unsloth"
    sound["tokenizer"] = tokenizer or sound_tokenizer()
    return preflight(given, **{**sound, "profile": CPU, "try_rewards": False, **changes})


def changed(rows, index=3, **columns):
    """The rows with something else in one of them."""
    return [{**row, **columns} if i == index else row for i, row in enumerate(rows)]


def on(gpu, **arguments):
    """A run on a GPU, in fp16 unless told otherwise."""
    given = {"use_cpu": False, "bf16": False, "fp16": True, **arguments}
    return {"arguments": given, "gpu": gpu, "profile": None, "lora_rank": 16, "load_in_4bit": True, "dtype": None}


def seven_billion():
    from transformers import Qwen2Config

    return Qwen2Config(
        vocab_size=152_064, hidden_size=3584, intermediate_size=18_944, num_hidden_layers=28, num_attention_heads=28,
        num_key_value_heads=4, tie_word_embeddings=False,
    )  # fmt: skip


def write_addition(folder):
    """A file of addition problems, as `SOUND` names it."""
    path = folder / "addition.jsonl"
    path.write_text("\n".join(map(json.dumps, load_rows("addition", "train", 64))), encoding="utf-8")
    return path


#: The config file of a sound run; `write_addition` writes its rows.
SOUND = f"""
model_name_or_path: {TINY}
dataset_name: addition.jsonl
reward_funcs: ["mine.py:right"]
use_peft: true
learning_rate: 2.0e-3
max_steps: 150
per_device_train_batch_size: 64
max_completion_length: 32
use_cpu: true
bf16: false
"""
