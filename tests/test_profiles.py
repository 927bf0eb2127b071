import os
import re

import bench_estimate
import pytest
from grpo_core.errors import CourseError
from grpo_core.gpus import Gpu, find_gpus, parse_gpus, visible_gpus

from grpo_utils.models import fit_model
from grpo_utils.profiles import (
    CPU,
    PREPARED,
    PROFILES,
    T4,
    choose_profile,
    find_profile,
    prepare_machine,
)

CARDS = [
    (Gpu("Tesla T4", 15.0, 7.5), "t4", "float16"),
    (Gpu("NVIDIA L4", 22.5, 8.9), "l4", "bfloat16"),
    (Gpu("NVIDIA A100-SXM4-40GB", 40.0, 8.0), "a100", "bfloat16"),
    (Gpu("NVIDIA A100-SXM4-80GB", 80.0, 8.0), "a100", "bfloat16"),
    (Gpu("NVIDIA H100 80GB HBM3", 79.6, 9.0), "h100", "bfloat16"),
    (Gpu("NVIDIA GeForce RTX 2060", 6.0, 7.5), "cpu", "float32"),
    (Gpu("NVIDIA GeForce RTX 2080 Ti", 11.0, 7.5), "t4", "float16"),
    (Gpu("NVIDIA GeForce RTX 3060", 12.0, 8.6), "t4", "bfloat16"),
    (Gpu("NVIDIA GeForce RTX 4080", 16.0, 8.9), "t4", "bfloat16"),
    (Gpu("NVIDIA GeForce RTX 4090", 24.0, 8.9), "l4", "bfloat16"),
    (Gpu("Tesla P100", 16.0, 6.0), "cpu", "float32"),
    (Gpu("Tesla V100", 16.0, 7.0), "t4", "float16"),
]


@pytest.mark.parametrize(("gpu", "name", "dtype"), CARDS, ids=[gpu.name for gpu, _, _ in CARDS])
def test_a_card_finds_its_profile(gpu, name, dtype):
    profile, reason = choose_profile([gpu])
    assert (profile.name, profile.dtype) == (name, dtype)
    assert gpu.name in reason and f"{gpu.memory_gib:.0f} GiB" in reason


def test_a_smaller_card_learns_from_as_many_completions():
    profile, reason = choose_profile([Gpu("NVIDIA GeForce RTX 3060", 12.0, 8.6)])
    assert profile.completions_per_step == T4.completions_per_step
    assert profile.per_device_train_batch_size < T4.per_device_train_batch_size
    assert "half the batch" in reason


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_every_profile_holds_whole_groups(profile):
    assert profile.completions_per_step % profile.num_generations == 0
    assert profile.num_generations >= 4


def test_what_was_never_run_says_so():
    assert all("never run" in profile.evidence for name, profile in PROFILES.items() if name != "cpu")
    assert "never run" not in CPU.evidence


@pytest.mark.parametrize("name", ["T4", "gpu", "h200", ""])
def test_an_unknown_profile_lists_the_valid_ones(name):
    with pytest.raises(CourseError, match="Valid: auto, cpu, t4, l4, a100, h100"):
        find_profile(name)


@pytest.fixture
def nvidia_smi(tmp_path, monkeypatch):
    """Puts an nvidia-smi on the path that does what a script says."""

    def write(script: str) -> None:
        program = tmp_path / "nvidia-smi"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        monkeypatch.delenv(PREPARED, raising=False)

    return write


@pytest.fixture
def machine_with_gpu(nvidia_smi):
    nvidia_smi("echo 'Tesla T4, 15360, 7.5'\necho 'NVIDIA GeForce RTX 4090, 24564, 8.9'")


@pytest.fixture
def machine_without_gpu(tmp_path, monkeypatch):
    monkeypatch.delenv(PREPARED, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))


def test_auto_asks_nvidia_smi(machine_with_gpu, monkeypatch):
    assert find_profile("auto")[0] is T4
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert find_profile("auto")[0].name == "l4"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert find_profile("auto")[0] is CPU


def test_auto_without_gpu_is_the_cpu(machine_without_gpu):
    assert find_profile("auto") == (CPU, "no NVIDIA GPU found")


@pytest.mark.parametrize(
    ("variable", "menu"),
    [
        ("", "Use PROFILE='cpu'"),
        ("COLAB_RELEASE_TAG", "choose Runtime > Change runtime type > T4 GPU"),
        ("KAGGLE_KERNEL_RUN_TYPE", "choose Settings > Accelerator > GPU T4 x2"),
    ],
)
def test_a_machine_without_gpu_says_where_to_get_one(machine_without_gpu, monkeypatch, variable, menu):
    if variable:
        monkeypatch.setenv(variable, "x")
        assert find_profile("auto")[0] is CPU and menu in find_profile("auto")[1]
    with pytest.raises(CourseError, match="PROFILE='t4' needs an NVIDIA GPU.*") as error:
        find_profile("t4")
    assert menu in str(error.value)


def test_the_time_of_lesson_03_on_a_t4_follows_from_the_formula():
    """An hour is enough: what a person is told, and the limit of 30 minutes, fit to the estimate of a step."""
    from grpo_check.preflights.estimate import MINUTES_FACTOR, estimate_minutes
    from grpo_check.preflights.sizes import model_sizes

    sizes = model_sizes(bench_estimate.known_config(T4.models["qwen"]))
    one = estimate_minutes(
        sizes, hardware="t4", steps=T4.steps, completions_per_step=T4.completions_per_step,
        generated_at_once=T4.completions_per_step, prompt_tokens=T4.max_prompt_length,
        completion_tokens=T4.max_completion_length, dtype=T4.dtype, load_in_4bit=T4.load_in_4bit,
        lora_rank=T4.lora_rank,
    )  # fmt: skip
    evaluations = 4 * one.generating / T4.steps  # before and after, sampled and greedy, each one batch
    shortest, longest = map(int, re.findall(r"\d+", T4.expected)[:2])
    assert 30 + evaluations / MINUTES_FACTOR["gpu"] < shortest and one.total >= 30
    assert 30 + evaluations * MINUTES_FACTOR["gpu"] <= longest - 10 < 60


def test_an_nvidia_smi_without_driver_counts_as_no_gpu(nvidia_smi):
    nvidia_smi("echo 'NVIDIA-SMI has failed'\nexit 9")
    assert find_gpus() == []


def test_memory_that_nvidia_smi_cannot_tell_names_the_way_out():
    with pytest.raises(CourseError, match=r"does not show memory and capability. Name the machine: PROFILE"):
        parse_gpus("NVIDIA GB10, [N/A], 12.1")


def test_a_process_prepared_for_the_cpu_says_restart(machine_with_gpu, monkeypatch):
    monkeypatch.setenv(PREPARED, "cpu")
    with pytest.raises(CourseError, match="Restart the kernel"):
        find_profile("t4")


def test_gemma_is_kept_out_of_fp16():
    assert fit_model(T4, "unsloth/gemma-3-1b-it")[0].dtype == "float32"
    assert fit_model(T4, "unsloth/Qwen2.5-1.5B-Instruct") == (T4, "")
    assert fit_model(CPU, "tiny-gemma3") == (CPU, "")


def test_uuids_in_cuda_visible_devices_are_left_alone():
    gpus = parse_gpus("A, 16384, 7.5\nB, 24576, 8.9")
    assert visible_gpus(gpus, "GPU-8932f937") == gpus
    assert visible_gpus(gpus, "-1") == []


def test_a_gpu_profile_uses_the_first_card_unless_you_chose_one(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "FASTEST_FIRST")
    prepare_machine(T4)
    assert (os.environ["CUDA_VISIBLE_DEVICES"], os.environ["CUDA_DEVICE_ORDER"]) == ("1", "FASTEST_FIRST")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    prepare_machine(T4)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "0"


def test_the_card_that_the_profile_was_chosen_for_is_the_one_that_is_used(monkeypatch):
    """nvidia-smi lists by slot; CUDA, unless told otherwise, by speed."""
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "x")
    monkeypatch.delenv("CUDA_DEVICE_ORDER")
    prepare_machine(T4)
    assert os.environ["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"


def test_the_cpu_profile_hides_a_card_that_a_cluster_or_a_gpu_profile_named(monkeypatch):
    """The lessons train on the CPU then; a merge would go to the card, and its logits could not be compared."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    prepare_machine(T4)
    prepare_machine(CPU)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "-1"


def test_prepare_machine_leaves_what_you_set(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    prepare_machine(CPU)
    assert (os.environ["OMP_NUM_THREADS"], os.environ["HF_HUB_OFFLINE"]) == ("3", "1")
