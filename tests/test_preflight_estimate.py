"""The estimates of memory and minutes: what changes them, and what the pages say of them."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from importlib import metadata

import bench_estimate
import pytest
from conftest import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st
from preflight_runs import check, on, seven_billion

from grpo_check.preflight import HARDWARE, Sizes, estimate_memory, estimate_minutes, model_sizes
from grpo_check.preflight.estimate import MEMORY_FACTOR, MINUTES_FACTOR, one_chunk
from grpo_utils.errors import CourseError
from grpo_utils.models import fit_model, model_path
from grpo_utils.profiles import CPU, PROFILES, T4

SMALL = Sizes(10**9, 10**8, 10**5, 20, 1024, 4096, 16, 4, 64, 50_000)
counts = st.integers(1, 64)
lengths = st.integers(1, 4096)


def memory(sizes=SMALL, **other):
    given = {"batch": 8, "generated_at_once": 32, "prompt_tokens": 128, "completion_tokens": 256}
    return estimate_memory(sizes, **{**given, **other}).gib


def minutes(sizes=SMALL, **other):
    given = {"hardware": "t4", "steps": 10, "completions_per_step": 32, "generated_at_once": 32}
    return estimate_minutes(sizes, **{**given, "prompt_tokens": 128, "completion_tokens": 256, **other}).total


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
        assert model_sizes(name).parameters == parameters_on_disk(name)


def parameters_on_disk(name):
    from safetensors.torch import load_file

    return sum(weights.numel() for weights in load_file(f"{model_path(name)}/model.safetensors").values())


def test_an_adapter_has_as_many_parameters_as_peft_makes():
    # 28 matrices of rank 16, printed by lesson 03: trainable params of tiny-qwen3
    assert model_sizes("tiny-qwen3").lora_per_rank == 2 * (256 + 192 + 192 + 256 + 3 * 512)


def test_every_profile_has_its_hardware():
    assert set(HARDWARE) == set(PROFILES)
    assert T4.name in HARDWARE and HARDWARE["t4"].gpu.capability == 7.5


def test_the_measured_error_is_within_the_range_that_is_shown():
    page = (ROOT / "docs" / "preflight.md").read_text(encoding="utf-8")
    worst = re.search(r"a factor of (\d+\.\d+) for memory and (\d+\.\d+) for time", page)
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
