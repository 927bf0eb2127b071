"""The estimates of memory and minutes: what changes them, and what the pages say of them."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from importlib import metadata

import bench_estimate
import pytest
from grpo_check.preflights.estimate import (
    HARDWARE,
    MEMORY_FACTOR,
    MINUTES_FACTOR,
    estimate_memory,
    estimate_minutes,
    one_chunk,
)
from grpo_check.preflights.sizes import Sizes, model_sizes
from grpo_core.errors import CourseError
from hypothesis import given, settings
from hypothesis import strategies as st
from places import ROOT
from preflight_runs import check, on, seven_billion

from grpo_utils.models import fit_model, model_path
from grpo_utils.profiles import CPU, PROFILES, T4

SMALL = Sizes(10**9, 10**8, 10**5, 20, 1024, 4096, 16, 4, 64, 50_000)
FOUR_BIT_LORA = {"dtype": "bfloat16", "load_in_4bit": True, "lora_rank": 16}
counts = st.integers(1, 64)
lengths = st.integers(1, 4096)


def memory(sizes=SMALL, **other):
    given = {"batch": 8, "generated_at_once": 32, "prompt_tokens": 128, "completion_tokens": 256}
    return estimate_memory(sizes, **{**given, **FOUR_BIT_LORA, **other}).gib


def minutes(sizes=SMALL, **other):
    given = {"hardware": "t4", "steps": 10, "completions_per_step": 32, "generated_at_once": 32}
    lengths = {"prompt_tokens": 128, "completion_tokens": 256}
    return estimate_minutes(sizes, **{**given, **lengths, **FOUR_BIT_LORA, **other}).total


@settings(max_examples=50, deadline=None)
@given(
    st.sampled_from(["batch", "generated_at_once", "completion_tokens", "prompt_tokens", "lora_rank"]), counts, counts
)
def test_memory_grows_with_every_size(name, small, more):
    assert memory(**{name: small}) <= memory(**{name: small + more})


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(["linear", "other", "layers", "hidden", "intermediate", "kv_heads", "vocabulary"]), counts)
def test_memory_and_minutes_grow_with_the_model(name, times):
    larger = replace(SMALL, **{name: vars(SMALL)[name] * (1 + times)})
    assert memory(larger) >= memory() and minutes(larger) >= minutes()


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(["steps", "completions_per_step", "completion_tokens", "prompt_tokens"]), lengths, counts)
def test_minutes_grow_with_every_size(name, small, more):
    assert minutes(**{name: small}) < minutes(**{name: small + more})


def test_each_way_to_save_memory_saves_some():
    plain = {
        "load_in_4bit": False, "gradient_checkpointing": False, "optim": "adamw_torch", "lora_rank": 0, "beta": 0.1,
    }  # fmt: skip
    saving = {"load_in_4bit": True, "gradient_checkpointing": True, "optim": "adamw_8bit", "lora_rank": 16, "beta": 0.0}
    for name, value in saving.items():
        assert memory(**{**plain, name: value}) < memory(**plain), name
    assert memory(backend="unsloth") < memory(backend="transformers")


def test_a_reference_model_is_counted_only_without_an_adapter():
    assert memory(beta=0.1, lora_rank=16) == memory(lora_rank=16)
    assert memory(beta=0.1, lora_rank=0) > memory(lora_rank=0)


def test_an_unknown_type_is_an_error():
    with pytest.raises(CourseError, match="dtype='fp16' is unknown"):
        memory(dtype="fp16")


def test_the_parameters_are_those_of_the_published_models():
    assert model_sizes(seven_billion()).parameters == pytest.approx(7.6156e9, rel=1e-3)
    for name in CPU.models.values():
        assert model_sizes(model_path(name)).parameters == parameters_on_disk(name)


def parameters_on_disk(name):
    from safetensors.torch import load_file

    return sum(weights.numel() for weights in load_file(f"{model_path(name)}/model.safetensors").values())


def test_an_adapter_has_as_many_parameters_as_peft_makes():
    # 28 matrices of rank 16, printed by lesson 03: trainable params of tiny-qwen3
    assert model_sizes(model_path("tiny-qwen3")).lora_per_rank == 2 * (256 + 192 + 192 + 256 + 3 * 512)


def test_every_profile_has_its_hardware():
    assert set(HARDWARE) == set(PROFILES)
    assert T4.name in HARDWARE and HARDWARE["t4"].gpu.capability == 7.5


def test_the_measured_error_is_within_the_range_that_is_shown():
    page = (ROOT / "grpo_check" / "docs" / "checks.md").read_text(encoding="utf-8")
    worst = re.search(r"a factor of (\d+\.\d+) for memory\s+and\s+(\d+\.\d+) for time", page)
    assert float(worst[1]) <= MEMORY_FACTOR["cpu"] and float(worst[2]) <= MINUTES_FACTOR["cpu"]


def configs():
    from transformers import BloomConfig, GPT2Config, T5Config, ViTConfig

    small = {"n_layer": 2, "n_head": 2}
    return [GPT2Config(n_embd=32, **small), BloomConfig(hidden_size=32, **small), T5Config(d_model=32), ViTConfig()]


@pytest.mark.parametrize("number", range(4), ids=["GPT-2", "Bloom", "T5", "ViT"])
def test_a_family_whose_sizes_are_not_known_is_skipped_and_told(number):
    report = check(model=configs()[number])
    assert report.estimate is not None or "are not known" in report.skipped["memory and minutes"], str(report)
    if report.estimate is None:
        with pytest.raises(CourseError, match="are not known"):
            model_sizes(configs()[number])


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
    planned = {"model": model_path("tiny-gemma3"), "backend": backend, "dtype": "float32"}
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
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert f"\n## {bench_estimate.GPUS}\n{bench_estimate.on_gpus()}" in page


PAGE = (ROOT / "docs" / "gpu.md").read_text(encoding="utf-8")
GSM8K = {"prompt_tokens": T4.max_prompt_length, "completion_tokens": T4.max_completion_length, "optim": T4.optim}
ORDERS = {"prompt_tokens": 90, "completion_tokens": 64}  # lesson 05's
GEMMA = T4.models["gemma"]
#: The columns of the page's table of one step: a model, and how it trains on a T4.
ON_A_T4 = [
    (T4.models["qwen"], GSM8K | {"dtype": "float16"}),
    (T4.models["qwen"], GSM8K | {"dtype": "float16", "load_in_4bit": False}),
    (GEMMA, GSM8K | {"dtype": fit_model(T4, GEMMA)[0].dtype, "products": "float16"}),
    ("SmolLM2-135M-Instruct", ORDERS | {"dtype": "float32", "load_in_4bit": False}),
]


def cells(row: str) -> list[str]:
    """The cells of a row of docs/gpu.md, without its name."""
    [line] = re.findall(rf"^\| {re.escape(row)}[^|]*\|(.*)\|$", PAGE, re.MULTILINE)
    return [cell.strip() for cell in line.split("|")]


def one_step(model: str, completions: int = T4.completions_per_step, hardware: str = "t4", **how: object):
    """The seconds of one step by the formula: of sampling, and of learning."""
    sizes, how = model_sizes(bench_estimate.known_config(model)), {**FOUR_BIT_LORA, **how, "lora_rank": T4.lora_rank}
    how.pop("optim", None)
    counts = {"steps": 1, "completions_per_step": completions, "generated_at_once": completions}
    minutes = estimate_minutes(sizes, hardware=hardware, **counts, **how)
    return 60 * minutes.generating, 60 * minutes.learning


def peak_of_evaluation(model: str, **how: object):
    """The memory by the formula while all held-out prompts are answered at once."""
    sizes, how = model_sizes(bench_estimate.known_config(model)), {**FOUR_BIT_LORA, **how, "lora_rank": T4.lora_rank}
    how.pop("products", None)
    sampled = {"batch": T4.per_device_train_batch_size, "generated_at_once": T4.eval_batch_size}
    return estimate_memory(sizes, backend="unsloth", **sampled, **how)


def test_the_page_of_gpus_has_the_formulas_figures_for_a_t4():
    steps = [one_step(model, **how) for model, how in ON_A_T4]
    peaks = [peak_of_evaluation(model, **how) for model, how in ON_A_T4]
    assert cells("sampling + learning, s") == [f"{sampling:.1f} + {learning:.1f}" for sampling, learning in steps]
    assert cells("one step, s") == [f"{sum(step):.1f}" for step in steps]
    assert cells("half to twice") == [f"{sum(step) / 2:.0f} to {sum(step) * 2:.0f}" for step in steps]
    assert cells("memory, with 100 prompts") == [f"{peak.low:.1f} to {peak.high:.1f}" for peak in peaks]
    assert MINUTES_FACTOR["gpu"] == 2 and T4.eval_batch_size == T4.eval_rows == 100


def test_the_sentences_of_the_page_of_gpus_have_the_formulas_figures():
    (qwen, how), (_, in_16_bits), (gemma, gemmas), _ = ON_A_T4
    step = sum(one_step(qwen, **how))
    longer = sum(one_step(qwen, **how | {"completion_tokens": 512}))
    in_fp32 = sum(one_step(gemma, **gemmas | {"products": "float32"}))
    assert f"({sum(one_step(qwen, **in_16_bits)):.1f} instead of {step:.1f} s per step" in PAGE
    assert f"takes {longer / step:.2f} times as long" in PAGE
    assert f"a step takes {in_fp32:.0f} s by formula" in PAGE
    shares, minutes = [], []
    for profile in (PROFILES["l4"], PROFILES["a100"], PROFILES["h100"]):
        how = {"dtype": profile.dtype, "load_in_4bit": profile.load_in_4bit}
        how |= {"prompt_tokens": profile.max_prompt_length, "completion_tokens": profile.max_completion_length}
        seconds = one_step(qwen, profile.completions_per_step, profile.name, **how)
        shares.append(seconds[0] / sum(seconds))
        minutes.append(profile.steps * sum(seconds) / 60)
    assert f"{100 * min(shares):.0f} to {max(shares):.0%} of a step by formula" in PAGE
    assert 20 <= min(minutes) and max(minutes) <= 30 and "60 steps take 20 to 30 minutes on each" in PAGE


def test_the_sum_of_lesson_03_on_a_t4_adds_up():
    (qwen, how), *_ = ON_A_T4
    groups = one_step(qwen, 64, **how)[0]
    evaluations = 4 * one_step(qwen, T4.eval_rows, **how)[0]  # before and after, each sampled and greedy
    formula = (groups + evaluations) / 60
    assert cells("groups before training")[:2] == [f"{formula / 2:.1f}", f"{formula * 2:.1f}"]
    rows = (
        "install the course",
        "download and load",
        "groups before",
        "training, with compilation",
        "merge, check",
        "sum",
    )
    for column in (0, 1):
        *parts, total = [float(cells(row)[column]) for row in rows]
        assert round(sum(parts)) == total
    assert float(cells("training, with compilation")[0]) <= T4.steps * sum(one_step(qwen, **how)) / 60
    assert T4.expected.startswith("40 to 50 minutes")


def test_the_sum_of_lesson_05_on_a_t4_adds_up_to_what_is_told():
    rows = ("install, fetch", "samples,", "compile", "70 steps", "merge and", "lesson 05 in all")
    for column in (0, 1):
        *parts, total = [int(cells(row)[column]) for row in rows]
        assert sum(parts) == total
    low, high = map(int, cells("first [lesson 05]")[-1].split(" minutes")[0].split(" to "))
    assert abs(int(cells(rows[-1])[0]) - low) <= 1 and abs(int(cells(rows[-1])[1]) - high) <= 1


def test_the_public_runs_are_compared_with_the_formula():
    seven = {"prompt_tokens": 256, "completion_tokens": 256, "products": "float16"}
    in_fp16, in_fp32 = (
        sum(one_step("unsloth/Qwen2.5-7B-Instruct", 8, dtype=dtype, **seven)) for dtype in ("float16", "float32")
    )
    assert cells("TRL's")[-1].startswith(f"{in_fp16:.0f} (") and f"to {in_fp32:.0f} (" in cells("TRL's")[-1]
    how = {"prompt_tokens": 256, "products": "float16", "load_in_4bit": False}
    short = sum(one_step(GEMMA, 4, completion_tokens=504, dtype="float16", **how))
    long = sum(one_step(GEMMA, 4, completion_tokens=768, dtype="float32", **how))
    found = cells("`nb/Gemma3_(1B)-GRPO.ipynb`")
    assert found[-1].startswith(f"{short:.0f} (") and f"to {long:.0f} (" in found[-1]
    slowest, fastest = float(found[-2]) / short, float(cells("TRL's")[-2]) / in_fp32
    assert f"took {fastest:.1f} to {slowest:.1f} times as long" in PAGE
