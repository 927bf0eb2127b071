"""Complete and damaged checkpoints: which one is chosen, and what is said of the others."""

import errno
import io
import json
import shutil

import pytest
from grpo_core.training.checkpoints import checkpoint_problem, is_broken, newest_checkpoint


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """What a trainer saves, in small."""
    import numpy
    import torch
    from safetensors.numpy import save_file

    folder = tmp_path_factory.mktemp("run") / "checkpoint-2"
    folder.mkdir()
    save_file({"a": numpy.zeros(64, numpy.float32)}, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text("{}")
    for name in ("optimizer.pt", "scheduler.pt", "rng_state.pth"):
        torch.save({"state": torch.zeros(64)}, folder / name)
    (folder / "trainer_state.json").write_text(json.dumps({"global_step": 2, "log_history": []}))
    return folder


@pytest.fixture
def run(saved, tmp_path):
    """A run with two whole checkpoints."""
    for step in (2, 10):
        shutil.copytree(saved, tmp_path / f"checkpoint-{step}")
    return tmp_path


FILES = (
    "adapter_model.safetensors",
    "adapter_config.json",
    "optimizer.pt",
    "scheduler.pt",
    "rng_state.pth",
    "trainer_state.json",
)


def test_the_newest_is_by_number_and_not_by_name(run):
    shutil.copytree(run / "checkpoint-2", run / "checkpoint-9")
    (run / "checkpoint-x").mkdir()
    assert newest_checkpoint(run).name == "checkpoint-10"


@pytest.mark.parametrize("name", FILES)
def test_a_checkpoint_with_a_missing_file_is_passed_over(run, name):
    (run / "checkpoint-10" / name).unlink()
    said = []
    assert newest_checkpoint(run, said.append).name == "checkpoint-2"
    assert len(said) == 1 and said[0].startswith("checkpoint-10 is skipped: it has no ")


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("name", FILES)
def test_a_checkpoint_with_a_file_cut_off_is_passed_over(run, name, share):
    path = run / "checkpoint-10" / name
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    said = []
    assert newest_checkpoint(run, said.append).name == "checkpoint-2"
    assert said == [f"checkpoint-10 is skipped: {name} is cut off or damaged."]


def test_a_flipped_byte_in_the_optimizer_is_seen(run):
    path = run / "checkpoint-10" / "optimizer.pt"
    content = bytearray(path.read_bytes())
    place = content.index(bytes(200))  # within the tensor's zeros
    content[place + 100] = 7
    path.write_bytes(content)
    assert checkpoint_problem(run / "checkpoint-10") == "optimizer.pt is cut off or damaged"


@pytest.mark.parametrize(
    ("mark", "offset", "bit"),
    [(b"PK\1\2", 6, 6), (b"PK\1\2", 8, 0), (b"PK\1\2", 10, 0), (b"PK\1\2", 10, 3), (b"PK\6\6", 48, 0)],
    ids=["newer version", "encrypted", "unknown compression", "compressed", "contents before the beginning"],
)
def test_a_flipped_bit_in_the_archive_of_an_optimizer_is_seen(run, mark, offset, bit):
    """The errors of these bits ended the resume: NotImplementedError, RuntimeError, zlib.error and OSError."""
    path = run / "checkpoint-10" / "optimizer.pt"
    content = bytearray(path.read_bytes())
    content[content.index(mark) + offset] ^= 1 << bit
    path.write_bytes(content)
    assert newest_checkpoint(run, lambda said: None).name == "checkpoint-2"
    assert checkpoint_problem(run / "checkpoint-10") == "optimizer.pt is cut off or damaged"


def test_a_file_that_may_not_be_read_is_not_called_damaged(run, monkeypatch):
    def forbidden(path, *args, **kwargs):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(io, "open", forbidden)
    with pytest.raises(PermissionError):
        is_broken(run / "checkpoint-10" / "optimizer.pt")


def test_no_whole_checkpoint_is_none_and_not_an_error(run):
    for step in (2, 10):
        (run / f"checkpoint-{step}" / "trainer_state.json").unlink()
    said = []
    assert newest_checkpoint(run, said.append) is None and len(said) == 2


def test_an_adapter_without_its_config_is_not_lost_silently(run):
    """Beside TRL's copy for the reference, transformers would load that one alone."""
    newest = run / "checkpoint-10"
    (newest / "ref").mkdir()
    for name in ("adapter_model.safetensors", "adapter_config.json"):
        shutil.copy(newest / name, newest / "ref" / name)
    (newest / "adapter_config.json").unlink()
    assert checkpoint_problem(newest) == "it has no adapter_config.json"


def test_a_checkpoint_of_a_whole_model_needs_no_adapter_config(run):
    newest = run / "checkpoint-10"
    (newest / "adapter_model.safetensors").rename(newest / "model.safetensors")
    (newest / "adapter_config.json").unlink()
    assert checkpoint_problem(newest) == ""
