import json
import shutil
from pathlib import Path

import pytest
from grpo_core.errors import CourseError
from grpo_core.training.merging import logits
from grpo_core.training.publishing import public_name

from grpo_utils import chat_prompt
from grpo_utils.export.adapters import _readme, save_adapter
from grpo_utils.export.merging import (
    _check_template,
    _same_base,
    check_merged,
    in_fresh_process,
    merge_adapter,
)
from grpo_utils.models import load_policy, model_path
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


@pytest.fixture
def merged(adapter, tmp_path):
    """The folder of a merged model, as lesson 03 saves it."""
    from transformers import AutoTokenizer

    model, _ = merge_adapter(adapter, "tiny-qwen3", PROMPTS)
    model.save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(model_path("tiny-qwen3")).save_pretrained(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_the_merge_is_exact_and_changes_the_base(adapter):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model, difference = merge_adapter(adapter, "tiny-qwen3", PROMPTS)
    assert difference < 1e-4
    path = model_path("tiny-qwen3")
    base, tokenizer = AutoModelForCausalLM.from_pretrained(path), AutoTokenizer.from_pretrained(path)
    assert (logits(base, tokenizer, PROMPTS) - logits(model, tokenizer, PROMPTS)).abs().max() > 0.1
    assert not [name for name, _ in model.named_modules() if "lora" in name]


def loaded_by_the_check(*arguments) -> list[str]:
    """Of the packages that the process that checks a merge does not need, those that it imports; run there."""
    import sys

    from grpo_utils.export.merging import _check_merged

    _check_merged(*arguments)
    return sorted({"unsloth", "trl", "datasets", "pandas", "matplotlib", "math_verify"} & set(sys.modules))


@pytest.mark.slow
def test_the_process_that_checks_a_merge_imports_only_what_it_needs(adapter, merged):
    decoding = dict(max_new_tokens=4, seed=0)
    assert in_fresh_process(loaded_by_the_check, adapter, "tiny-qwen3", merged, CPU, PROMPTS, decoding) == []


def copy_with_tokenizer(adapter, folder, change):
    """The adapter in another folder, with the base's tokenizer beside it after a change."""
    from transformers import AutoTokenizer

    shutil.copytree(adapter, folder, dirs_exist_ok=True)
    tokenizer = AutoTokenizer.from_pretrained(model_path("tiny-qwen3"))
    change(tokenizer)
    tokenizer.save_pretrained(folder)


@pytest.mark.slow
def test_a_tokenizer_with_tokens_that_the_base_has_not_is_refused(adapter, tmp_path):
    copy_with_tokenizer(adapter, tmp_path, lambda t: t.add_tokens([f"<new {i}>" for i in range(500)]))
    with pytest.raises(CourseError, match="tokens, and '.*tiny-qwen3' has embeddings for"):
        merge_adapter(tmp_path, "tiny-qwen3", PROMPTS)


@pytest.mark.slow
def test_a_merge_that_is_not_exact_is_refused(adapter, monkeypatch):
    monkeypatch.setattr("grpo_core.training.merging.LARGEST_DIFFERENCE", 0.0)
    with pytest.raises(CourseError, match="changed a logit by"):
        merge_adapter(adapter, "tiny-qwen3", PROMPTS)


def test_a_folder_without_adapter_or_with_one_of_another_base(tmp_path):
    with pytest.raises(CourseError, match="There is no adapter in"):
        merge_adapter(tmp_path, "tiny-qwen3", PROMPTS)
    (tmp_path / "adapter_config.json").write_text('{"base_model_name_or_path": "unsloth/gemma-3-1b-it"}')
    with pytest.raises(CourseError, match="was trained on 'unsloth/gemma-3-1b-it', not on 'tiny-qwen3'"):
        merge_adapter(tmp_path, "tiny-qwen3", PROMPTS)


IN_THE_CACHE = "/cache/hub/models--Qwen--Qwen3-0.6B/snapshots/"


@pytest.mark.parametrize(
    ("trained_on", "base", "same"),
    [
        ("evil/Qwen2.5-1.5B-Instruct", "unsloth/Qwen2.5-1.5B-Instruct", False),  # the fault: only names were compared
        ("unsloth/Qwen2.5-1.5B-Instruct", "unsloth/qwen2.5-1.5b-instruct", True),
        ("unsloth/qwen2.5-1.5b-instruct-unsloth-bnb-4bit", "unsloth/Qwen2.5-1.5B-Instruct", True),
        (IN_THE_CACHE + "c1899d", "Qwen/Qwen3-0.6B", True),
        (IN_THE_CACHE + "c1899d", IN_THE_CACHE + "b2fe4a", True),
        (IN_THE_CACHE + "c1899d", "Qwen/Qwen3-1.7B", False),
        ("my-qwen", "models/of/mine/my-qwen", True),
        ("Qwen/Qwen3-0.6B", "D:\\models\\Qwen3-0.6B", True),
    ],
)
def test_which_names_mean_one_base(trained_on, base, same):
    assert _same_base(trained_on, base) == _same_base(base, trained_on) == same


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """An adapter as `save_adapter` leaves it; its base was loaded from a folder of this machine."""
    folder = tmp_path_factory.mktemp("saved")
    policy, tokenizer = load_policy("tiny-qwen3", profile=CPU, backend="transformers", load_in_4bit=False)
    return save_adapter(policy, tokenizer, folder, "tiny-qwen3")


@pytest.mark.slow
def test_the_adapter_names_a_path_of_the_machine_that_trained_it(saved):
    """The fault: PEFT wrote where the base was loaded from into adapter_config.json and README.md."""
    config = json.loads((saved / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == "tiny-qwen3"
    texts = [file.read_text() for file in saved.iterdir() if file.suffix in (".json", ".md", ".jinja")]
    assert len(texts) >= 4 and not [text for text in texts if str(Path(model_path("tiny-qwen3")).parent) in text]


@pytest.mark.slow
def test_the_readme_of_an_adapter_says_how_to_load_it_and_it_loads(saved):
    readme = (saved / "README.md").read_text()
    assert 'from_pretrained(model_path("tiny-qwen3"))' in readme and "ships with the course" in readme
    code = readme.split("```python\n")[1].split("```")[0].replace("FOLDER_OR_ID_OF_THIS_ADAPTER", str(saved))
    names = {}
    exec("from grpo_utils import model_path\n" + code, names)
    assert type(names["model"]).__name__ == "PeftModelForCausalLM" and names["tokenizer"].chat_template


@pytest.mark.slow
def test_a_saved_adapter_still_merges(saved):
    assert merge_adapter(saved, "tiny-qwen3", PROMPTS)[1] < 1e-4


@pytest.mark.parametrize(
    ("base", "name", "header"),
    [
        ("unsloth/Qwen2.5-1.5B-Instruct", "unsloth/Qwen2.5-1.5B-Instruct", "base_model: unsloth/Qwen2.5-1.5B-Instruct"),
        ("tiny-gemma3", "tiny-gemma3", ""),
        ("/data/private/my-qwen", "my-qwen", ""),
        ("./models/my-qwen/", "my-qwen", ""),
        ("C:\\models\\my-qwen", "my-qwen", ""),
    ],
)
def test_a_base_is_named_as_others_know_it(base, name, header):
    assert public_name(base) == name
    readme = _readme(base)
    assert header in readme and ("base_model:" in readme) == bool(header)
    assert "private" not in readme and "models" not in readme.replace("AutoModel", "")


def test_a_base_in_an_existing_folder_is_not_taken_for_a_tiny_model(tmp_path):
    """The fault: the folder of the tiny models, joined with an absolute path, is that path."""
    (tmp_path / "my-qwen").mkdir()
    readme = _readme(str(tmp_path / "my-qwen"))
    assert 'from_pretrained("my-qwen")' in readme and "The base `my-qwen` was a local folder" in readme
    assert str(tmp_path) not in readme and "ships with the course" not in readme


def test_a_folder_that_looks_like_a_hub_id_is_a_folder(tmp_path, monkeypatch):
    (tmp_path / "models/my-qwen").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert public_name("models/my-qwen") == "my-qwen"


@pytest.mark.slow
def test_a_whole_model_is_no_adapter(tmp_path):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    policy = AutoModelForCausalLM.from_pretrained(model_path("tiny-qwen3"))
    tokenizer = AutoTokenizer.from_pretrained(model_path("tiny-qwen3"))
    with pytest.raises(CourseError, match="Qwen3ForCausalLM has no adapter to save"):
        save_adapter(policy, tokenizer, tmp_path, "tiny-qwen3")


@pytest.mark.slow
def test_a_merged_folder_is_checked_in_a_fresh_process_and_another_model_is_refused(adapter, merged):
    from datasets import Dataset
    from transformers import AutoModelForCausalLM

    rows = Dataset.from_dict({"prompt": PROMPTS, "answer": ["42", "9"]})
    arguments = adapter, "tiny-qwen3", merged, CPU, rows, dict(max_new_tokens=2)
    difference, evaluation = check_merged(*arguments)
    assert difference < 1e-4 and evaluation.n == 2
    AutoModelForCausalLM.from_pretrained(model_path("tiny-qwen3")).save_pretrained(merged)  # the base alone
    with pytest.raises(CourseError, match=r"is not 'tiny-qwen3' with the adapter in .*: \d+ of \d+ weights differ"):
        check_merged(*arguments)


def test_a_merged_model_keeps_the_chat_template_of_the_training(tmp_path):
    """A merged model was once saved with the base's own template, and then answered in another format."""
    from transformers import AutoTokenizer

    tokenizer, (adapter, merged) = AutoTokenizer.from_pretrained(model_path("tiny-qwen3")), (tmp_path / "a", tmp_path)
    _check_template(adapter, merged, tokenizer.chat_template)  # no tokenizer next to the adapter
    tokenizer.save_pretrained(adapter)
    _check_template(adapter, merged, tokenizer.chat_template)
    with pytest.raises(CourseError, match="another chat template"):
        _check_template(adapter, merged, tokenizer.chat_template.replace("user", "human") + "\n")
