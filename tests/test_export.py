import json

import pytest

from grpo_utils.data import chat_prompt
from grpo_utils.errors import CourseError
from grpo_utils.export import logits, merge_adapter, save_merged
from grpo_utils.models import load_policy
from grpo_utils.profiles import CPU

PROMPTS = [chat_prompt("What is 15 + 27?"), chat_prompt("What is 8 + 1?", system_prompt=None)]


@pytest.fixture(scope="module")
def adapter(tmp_path_factory):
    """An adapter that really changes the model: its second matrices are random, not zero."""
    import torch

    folder = tmp_path_factory.mktemp("adapter")
    policy, _ = load_policy("tiny-qwen3", profile=CPU, backend="transformers", load_in_4bit=False)
    torch.manual_seed(1)
    for name, parameter in policy.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.05)
    policy.save_pretrained(folder)
    return folder


@pytest.mark.slow
def test_the_merge_is_exact_and_changes_the_base(adapter):
    from transformers import AutoModelForCausalLM

    merge = merge_adapter(adapter, "tiny-qwen3", PROMPTS)
    assert merge.largest_difference < 1e-4
    from grpo_utils.models import model_path

    base = AutoModelForCausalLM.from_pretrained(model_path("tiny-qwen3"))
    assert (logits(base, merge.tokenizer, PROMPTS) - logits(merge.model, merge.tokenizer, PROMPTS)).abs().max() > 0.1


@pytest.mark.slow
def test_plain_transformers_loads_the_merged_model(adapter, tmp_path):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    merge = merge_adapter(adapter, "tiny-qwen3", PROMPTS)
    expected = logits(merge.model, merge.tokenizer, PROMPTS)
    save_merged(merge, tmp_path, torch.float32)
    model, tokenizer = AutoModelForCausalLM.from_pretrained(tmp_path), AutoTokenizer.from_pretrained(tmp_path)
    assert not [name for name, _ in model.named_modules() if "lora" in name]
    assert torch.equal(logits(model, tokenizer, PROMPTS), expected)
    assert not (tmp_path / "adapter_config.json").exists()
    assert tokenizer.model_max_length == 1024


@pytest.mark.slow
def test_a_merge_that_is_not_exact_is_refused(adapter, monkeypatch):
    monkeypatch.setattr("grpo_utils.export.LARGEST_DIFFERENCE", 0.0)
    with pytest.raises(CourseError, match="changed a logit by"):
        merge_adapter(adapter, "tiny-qwen3", PROMPTS)


def test_a_folder_without_adapter(tmp_path):
    with pytest.raises(CourseError, match="There is no adapter in"):
        merge_adapter(tmp_path, "tiny-qwen3", PROMPTS)


def write_config(folder, base: str) -> None:
    (folder / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": base}))


def test_an_adapter_of_another_base(tmp_path):
    write_config(tmp_path, "unsloth/gemma-3-1b-it")
    with pytest.raises(CourseError, match="was trained on 'unsloth/gemma-3-1b-it', not on 'tiny-qwen3'"):
        merge_adapter(tmp_path, "tiny-qwen3", PROMPTS)


def test_a_4_bit_copy_of_the_base_counts_as_the_base(tmp_path):
    from grpo_utils.export import _check_adapter

    write_config(tmp_path, "unsloth/qwen2.5-1.5b-instruct-unsloth-bnb-4bit")
    _check_adapter(tmp_path, "unsloth/Qwen2.5-1.5B-Instruct")
