import json
import os
import re
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import ClassVar

import pytest

from grpo_utils.errors import CourseError
from grpo_utils.models import check_model, choose_model, load_policy, model_path
from grpo_utils.profiles import CPU


@pytest.mark.parametrize("family", ["qwen", "gemma"])
def test_the_tiny_models_are_there(family):
    check_model(choose_model(CPU, family))


def test_an_unknown_family_suggests_one():
    with pytest.raises(CourseError, match="FAMILY='gema' is unknown. Did you mean 'gemma'"):
        choose_model(CPU, "gema")


def test_a_model_of_your_own_wins():
    assert choose_model(CPU, "qwen", "./mine") == "./mine"


@pytest.mark.parametrize("name", ["./nowhere", "/no/such/folder", "a/b/c"])
def test_a_folder_that_is_not_there(name):
    with pytest.raises(CourseError, match="looks like a folder, and there is none"):
        check_model(name)


def test_a_folder_without_a_model(tmp_path):
    with pytest.raises(CourseError, match="without a config.json"):
        check_model(str(tmp_path))


def test_a_name_that_is_no_hub_id():
    with pytest.raises(CourseError, match="neither a folder nor a hub id"):
        check_model("owner/na me")


class FakeHub(BaseHTTPRequestHandler):
    """A hub with one model, one gated model, one without config, and no others."""

    ANSWERS: ClassVar = {
        "/free/model/": (200, {}),
        "/gated/model/": (403, {"X-Error-Code": "GatedRepo"}),
        "/refused/model/": (401, {"X-Error-Message": "Invalid credentials in Authorization header"}),
        "/broken/model/": (500, {}),
        "/empty/model/": (404, {"X-Error-Code": "EntryNotFound"}),
    }

    def do_HEAD(self):
        self.answer()

    def do_GET(self):
        self.answer()
        self.wfile.write(b"{}")

    def answer(self):
        missing = (404, {"X-Error-Code": "RepoNotFound"})
        status, headers = next((a for path, a in self.ANSWERS.items() if self.path.startswith(path)), missing)
        self.send_response(status)
        extra = {"ETag": '"1"', "X-Repo-Commit": "0" * 40, "Content-Length": "2"}
        for name, value in {**headers, **extra}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def hub():
    server = ThreadingHTTPServer(("127.0.0.1", 0), FakeHub)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


ASK = """
from grpo_utils import CourseError, check_model
for name in {names!r}:
    try:
        print(check_model(name))
    except CourseError as error:
        print(error)
"""


def ask(tmp_path, *names: str, **environment: str) -> list[str]:
    """What check_model says of each name, in a process of its own with this environment."""
    keep = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
    run = subprocess.run(
        [sys.executable, "-c", ASK.format(names=names)],
        env={**keep, "HF_HOME": str(tmp_path), "HF_HUB_DISABLE_TELEMETRY": "1", **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=180,
    )
    return run.stdout.strip().splitlines()


HUB_ANSWERS = {
    "free/model": "None",
    "gated/model": "'gated/model' is gated: accept its licence .* HF_TOKEN .* mirror",
    "no/model": "'no/model' does not exist on the hub",
    "empty/model": "has no config.json on the hub",
    "refused/model": "MODEL='refused/model': the hub answered 401; HF_TOKEN is not accepted",
    "broken/model": "MODEL='broken/model'.*(could not be downloaded|answered 500)",
}


@pytest.fixture(scope="module")
def hub_says(hub, tmp_path_factory):
    said = ask(tmp_path_factory.mktemp("hub"), *HUB_ANSWERS, HF_ENDPOINT=hub, HF_TOKEN="hf_expired")
    return dict(zip(HUB_ANSWERS, said, strict=True))


@pytest.mark.parametrize(("name", "sentence"), HUB_ANSWERS.items(), ids=HUB_ANSWERS)
@pytest.mark.slow
def test_what_the_hub_answers_becomes_one_sentence_with_the_mend(hub_says, name, sentence):
    assert re.search(sentence, hub_says[name])


@pytest.mark.slow
def test_no_network_says_which_download_and_how_to_go_offline(tmp_path):
    (said,) = ask(tmp_path, "free/model", HF_ENDPOINT="http://127.0.0.1:9")
    assert "MODEL='free/model' could not be downloaded" in said and "HF_HUB_OFFLINE=1" in said


def test_offline_and_not_in_the_cache(tmp_path):
    (said,) = ask(tmp_path, "free/model", HF_HUB_OFFLINE="1")
    assert "not in the cache and HF_HUB_OFFLINE=1 forbids" in said


def test_an_unknown_backend_suggests_one():
    with pytest.raises(CourseError, match="BACKEND='unslot' is unknown. Did you mean 'unsloth'"):
        load_policy("tiny-qwen3", profile=CPU, backend="unslot")


def test_four_bits_cannot_be_trained_in_full():
    with pytest.raises(CourseError, match="exclude each other"):
        load_policy("tiny-qwen3", profile=CPU, full_finetuning=True)


WAYS = {
    "4-bit": {"load_in_4bit": True},
    "LoRA on full precision": {"load_in_4bit": False},
    "full fine-tuning": {"load_in_4bit": False, "full_finetuning": True},
}

LOAD = """
from grpo_utils.profiles import CPU, prepare_machine
prepare_machine(CPU)
import json, sys
if {backend!r} == "unsloth":
    import unsloth
from grpo_utils import load_policy
model, tokenizer = load_policy({name!r}, profile=CPU, backend={backend!r}, **{way!r})
import bitsandbytes, torch
trainable = [n for n, p in model.named_parameters() if p.requires_grad]
layers = [m for m in model.modules() if isinstance(m, bitsandbytes.nn.Linear4bit)]
print("RESULT" + json.dumps(dict(
    four_bit=len(layers),
    packed=sum(m.support_avx512bf16_for_cpu for m in layers),
    adapters=sum("lora_" in n for n in trainable),
    others=sum("lora_" not in n for n in trainable),
    dtypes=sorted({{str(p.dtype) for p in model.parameters() if p.is_floating_point()}}),
    template=tokenizer.chat_template is not None,
)))
"""


def load_in_a_process(**parts: object) -> dict:
    run = subprocess.run(
        [sys.executable, "-c", LOAD.format(**parts)], capture_output=True, text=True, check=False, timeout=300
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.split("RESULT")[1])


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["unsloth", "transformers"])
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_both_backends_load_the_same_policy(backend, way):
    found = load_in_a_process(name="tiny-qwen3", backend=backend, way=way)
    full = "full_finetuning" in way
    assert found["four_bit"] == (14 if way["load_in_4bit"] else 0)  # 2 layers of 7 projections
    assert found["packed"] == 0
    assert found["adapters"] == (0 if full else 28)  # two matrices for each projection
    assert (found["others"] > 0) is full
    assert found["dtypes"] == ["torch.float32"]
    assert found["template"]


def test_the_folder_of_a_tiny_model_travels_with_the_package():
    files = set(os.listdir(model_path("tiny-gemma3")))
    assert {"config.json", "model.safetensors", "tokenizer.json", "chat_template.jinja", "README.md"} <= files
