import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from grpo_core.errors import CourseError

from grpo_utils import models
from grpo_utils.models import check_model, choose_model, load_policy, model_path
from grpo_utils.profiles import CPU, PROFILES


@pytest.mark.parametrize("family", ["qwen", "gemma"])
def test_the_tiny_models_travel_with_the_package(family):
    name = choose_model(CPU, family)
    check_model(name)
    files = set(os.listdir(model_path(name)))
    assert {"config.json", "model.safetensors", "tokenizer.json", "chat_template.jinja", "README.md"} <= files


def test_an_unknown_family_suggests_one():
    with pytest.raises(CourseError, match="FAMILY='gema' is unknown. Did you mean 'gemma'"):
        choose_model(CPU, "gema")


def test_a_model_of_your_own_wins():
    assert choose_model(CPU, "qwen", "./mine") == "./mine"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("./nowhere", "neither a folder that exists nor a hub id"),
        ("~/no/such/folder", "neither a folder that exists nor a hub id"),
        ("a/b/c", "neither a folder that exists nor a hub id"),
        (str(Path(__file__).parent), "without a config.json"),
        ("owner/na me", "neither a folder that exists nor a hub id"),
        ("free/model", "not in the cache and HF_HUB_OFFLINE=1 forbids"),
    ],
)
def test_a_name_without_a_model_behind_it(name, said):
    with pytest.raises(CourseError, match=said):
        check_model(name)


#: By name, how the Hub answers to a request for its config, and what is said of that. Others do not exist.
HUB = {
    "gated/model": (403, {"X-Error-Code": "GatedRepo"}, "is gated: accept its license .* HF_TOKEN .* mirror"),
    "no/model": (404, {"X-Error-Code": "RepoNotFound"}, "'no/model' does not exist on the hub"),
    "empty/model": (404, {"X-Error-Code": "EntryNotFound"}, "has no config.json on the hub"),
    "refused/model": (401, {"X-Error-Message": "Invalid credentials in Authorization header"},
                      "MODEL='refused/model': the hub answered 401; HF_TOKEN was rejected"),
    "broken/model": (500, {}, "MODEL='broken/model'.*(could not be downloaded|answered 500)"),
    "unplugged/model": (None, {}, "MODEL='unplugged/model' could not be downloaded.*HF_HUB_OFFLINE=1"),
}  # fmt: skip


@pytest.fixture
def hub(fake_hub):
    """A Hub that answers as in `HUB`."""
    import httpx

    def answer(request: httpx.Request) -> httpx.Response:
        status, headers, _ = HUB.get(request.url.path[1:].split("/resolve")[0], (200, {}, ""))
        if status is None:
            raise httpx.ConnectError("no route to host", request=request)
        known = {"ETag": '"1"', "X-Repo-Commit": "0" * 40}
        return httpx.Response(status, headers=known | headers, content=b"{}", request=request)

    fake_hub(answer)


@pytest.mark.parametrize("name", HUB)
def test_what_the_hub_answers_becomes_one_sentence_with_the_fix(hub, name):
    with pytest.raises(CourseError, match=HUB[name][2]):
        check_model(name)


def test_a_model_on_the_hub_is_found(hub):
    check_model("free/model")


def test_an_unknown_backend_suggests_one():
    with pytest.raises(CourseError, match="BACKEND='unslot' is unknown. Did you mean 'unsloth'"):
        load_policy("tiny-qwen3", profile=CPU, backend="unslot")


@pytest.mark.parametrize(
    ("profile", "asked", "loaded"),
    [("t4", None, True), ("a100", None, False), ("a100", True, True), ("t4", False, False)],
)
def test_the_base_has_the_bits_of_the_profile_unless_others_are_asked_for(monkeypatch, profile, asked, loaded):
    """The fault: a base was loaded in 4 bits for a profile that says 16, unless the caller repeated it."""
    monkeypatch.setattr(models, "load_with_transformers", lambda name, **how: how["load_in_4bit"])
    how = dict(profile=PROFILES[profile], backend="transformers")
    assert load_policy("tiny-qwen3", **how, load_in_4bit=asked) == loaded


WAYS = {
    "4-bit": {"load_in_4bit": True},
    "LoRA on full precision": {"load_in_4bit": False},
}

LOAD = """
from grpo_utils.profiles import CPU, prepare_machine
prepare_machine(CPU)
import json, sys
if {backend!r} == "unsloth":
    import unsloth
from grpo_utils import load_policy
import bitsandbytes, torch
for name, way in {ways!r}.items():
    model, tokenizer = load_policy("tiny-qwen3", profile=CPU, backend={backend!r}, **way)
    trainable = [n for n, p in model.named_parameters() if p.requires_grad]
    layers = [m for m in model.modules() if isinstance(m, bitsandbytes.nn.Linear4bit)]
    print("RESULT" + json.dumps(dict(
        way=name,
        four_bit=len(layers),
        packed=sum(m.support_avx512bf16_for_cpu for m in layers),
        adapters=sum("lora_" in n for n in trainable),
        others=sum("lora_" not in n for n in trainable),
        dtypes=sorted({{str(p.dtype) for p in model.parameters() if p.is_floating_point()}}),
        template=tokenizer.chat_template is not None,
    )))
"""


@pytest.fixture(scope="module", params=["unsloth", "transformers"])
def loaded(request) -> dict[str, dict]:
    """What a backend loads in each way; in a process of its own, since Unsloth changes the one that imports it."""
    code = LOAD.format(backend=request.param, ways=WAYS)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300)
    assert run.returncode == 0, run.stderr
    lines = [line.removeprefix("RESULT") for line in run.stdout.splitlines() if line.startswith("RESULT")]
    return {found.pop("way"): found for found in map(json.loads, lines)}


@pytest.mark.slow
@pytest.mark.parametrize("name", WAYS)
def test_both_backends_load_the_same_policy(loaded, name):
    found, way = loaded[name], WAYS[name]
    assert found["four_bit"] == (14 if way["load_in_4bit"] else 0)  # 2 layers of 7 projections
    assert found["packed"] == 0
    assert found["adapters"] == 28  # two matrices for each projection
    assert found["others"] == 0
    assert found["dtypes"] == ["torch.float32"]
    assert found["template"]
