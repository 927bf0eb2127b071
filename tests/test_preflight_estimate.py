"""The estimate for a GPU: what Unsloth and fp32 change in it, and what the pages say of it."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from importlib import metadata

import bench_estimate
import pytest
from conftest import ROOT
from test_preflight import SMALL, check, minutes, on

from grpo_check.preflight import estimate_memory, estimate_minutes, model_sizes
from grpo_check.preflight.estimate import MINUTES_FACTOR, one_chunk
from grpo_utils.errors import CourseError
from grpo_utils.models import fit_model
from grpo_utils.profiles import PROFILES, T4


@pytest.mark.parametrize("hardware", [name for name in PROFILES if name != "cpu"])
def test_fp32_products_do_not_use_tensor_cores(hardware):
    slow, fast = (minutes(hardware=hardware, dtype="float32", products=kind) for kind in ("float32", "float16"))
    assert minutes(hardware=hardware, dtype="float32") == slow > 1.2 * fast


def test_on_a_cpu_the_type_of_the_products_changes_nothing():
    assert minutes(hardware="cpu", products="float32") == minutes(hardware="cpu", products="bfloat16")


def test_an_unknown_type_of_products_is_an_error():
    with pytest.raises(CourseError, match="products='fp16' is unknown"):
        minutes(products="fp16")


def learning(gpu, backend, **precision):
    """Minutes of learning that a report shows for Gemma, loaded in fp32."""
    planned = {"model": "tiny-gemma3", "backend": backend, "dtype": "float32"}
    return check(**{**on(gpu, max_steps=100, **precision), **planned}).estimate.minutes.learning


def test_a_report_counts_the_products_in_the_type_they_have():
    in_fp16 = learning("t4", "transformers", fp16=True)
    assert learning("t4", "transformers", fp16=False) > in_fp16
    assert learning("t4", "unsloth", fp16=False) == in_fp16
    assert learning("l4", "unsloth", fp16=False) > learning("l4", "unsloth", fp16=False, bf16=True)


def test_unsloths_chunk_of_logits_is_as_large_as_its_own_source_makes_it():
    """In a process of its own, because its file registers operations of torch."""
    asked = [(2056, 1536, 151_936), (2056, 1152, 262_144), (100, 1024, 50_000), (65_600, 4096, 32_000), (9000, 64, 512)]
    source = metadata.distribution("unsloth_zoo").locate_file("unsloth_zoo/fused_losses/fused_linear.py")
    code = f"""
import importlib.util
spec = importlib.util.spec_from_file_location("fused_linear", {str(source)!r})
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print([module.fused_linear_rows(*one) * one[2] * 4 for one in {asked}])
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for (scored, hidden, vocabulary), real in zip(asked, json.loads(run.stdout), strict=True):
        estimated = one_chunk(replace(SMALL, hidden=hidden, vocabulary=vocabulary), scored)
        assert real <= estimated < 2 * real, (scored, hidden, vocabulary)


def test_the_page_shows_what_the_formulas_say_of_gpus():
    assert (ROOT / "docs" / "preflight.md").read_text(encoding="utf-8").endswith(f"\n\n{bench_estimate.on_gpus()}")


@pytest.mark.parametrize(("column", "family"), enumerate(("qwen", "gemma")))
def test_the_range_of_lesson_03_on_a_t4_includes_what_its_page_says(column, family):
    page = (ROOT / "docs" / "t4.md").read_text(encoding="utf-8")
    seconds, gib = (
        re.findall(r"([\d.]+) to ([\d.]+)", re.search(rf"^\| {row} .*$", page, re.MULTILINE)[0])[column]
        for row in ("one training step", "GPU memory at the peak")
    )
    sizes = model_sizes(bench_estimate.known_config(T4.models[family]))
    loaded = {"dtype": fit_model(T4, T4.models[family])[0].dtype, "lora_rank": T4.lora_rank}
    loaded |= {"prompt_tokens": T4.max_prompt_length, "completion_tokens": T4.max_completion_length}
    sampled = {"generated_at_once": T4.completions_per_step}
    several = sampled | {"completions_per_step": T4.completions_per_step, "products": "float16"}
    time = estimate_minutes(sizes, hardware="t4", steps=1, **several, **loaded)
    batch = T4.per_device_train_batch_size
    peak = estimate_memory(sizes, batch=batch, optim=T4.optim, backend="unsloth", **sampled, **loaded)
    assert time.total * 60 / MINUTES_FACTOR["gpu"] <= float(seconds[0])
    assert float(seconds[1]) <= time.total * 60 * MINUTES_FACTOR["gpu"]
    assert round(peak.low) <= int(gib[0]) and int(gib[1]) <= round(peak.high)
