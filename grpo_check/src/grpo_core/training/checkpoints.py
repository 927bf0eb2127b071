"""The checkpoints of a run: the newest complete one, and what is missing or broken in another."""

import json
import re
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

CHECKPOINT = re.compile(r"checkpoint-(\d+)")
#: What a checkpoint needs, as file patterns; DeepSpeed keeps weights and optimizer in one folder.
PARTS = {
    "weights": ("adapter_model.safetensors", "model*.safetensors", "pytorch_model*", "global_step*"),
    "optimizer": ("optimizer*", "global_step*"),
    "learning-rate schedule": ("scheduler.pt", "global_step*"),
    "random states": ("rng_state*.pth",),
    "log": ("trainer_state.json",),
}


def checkpoint_step(checkpoint: str | Path) -> int:
    """The optimizer step in a checkpoint's name.

    >>> checkpoint_step("outputs/run/checkpoint-250")
    250
    """
    return int(CHECKPOINT.fullmatch(Path(checkpoint).name)[1])


def newest_checkpoint(folder: str | Path, say: Callable[[str], None] = print) -> Path | None:
    """The newest complete ``checkpoint-N`` in ``folder``; None if there is none.

    With ``resume_from_checkpoint=True``, transformers takes the newest checkpoint, and fails if a full disk or a lost
    machine cut it off. This function skips such a checkpoint and calls ``say`` with the reason. It deletes nothing;
    the resumed run overwrites the checkpoint.

    >>> newest_checkpoint("no/such/folder") is None
    True
    """
    found = [path for path in Path(folder).glob("checkpoint-*") if CHECKPOINT.fullmatch(path.name)]
    for checkpoint in sorted(found, key=checkpoint_step, reverse=True):
        problem = checkpoint_problem(checkpoint)
        if not problem:
            return checkpoint
        say(f"{checkpoint.name} is skipped: {problem}.")
    return None


def checkpoint_problem(checkpoint: str | Path) -> str:
    """What is missing or broken in a checkpoint; "" if it is complete.

    It opens every file that a resumed run reads, because a file can exist and still be cut off. (The trainer writes the
    log last, but a synchronized drive may not keep that order.)

    >>> checkpoint_problem("no/such/folder")
    'it has no weights'
    """
    checkpoint = Path(checkpoint)
    for part, patterns in PARTS.items():
        if not any(list(checkpoint.glob(pattern)) for pattern in patterns):
            return f"it has no {part}"
    if any(
        not path.with_name("adapter_config.json").exists() for path in checkpoint.rglob("adapter_model.safetensors")
    ):
        return "it has no adapter_config.json"
    broken = [path for path in sorted(checkpoint.rglob("*")) if path.is_file() and is_broken(path)]
    return f"{broken[0].name} is cut off or damaged" if broken else ""


def is_broken(path: Path) -> bool:
    """Whether a checkpoint's file is incomplete or damaged."""
    from safetensors import SafetensorError, safe_open

    try:
        if path.suffix == ".json":
            json.loads(path.read_text(encoding="utf-8"))
        elif path.suffix == ".safetensors":
            with safe_open(path, framework="numpy"):  # compares the file's length with its header
                return False
        elif path.suffix in (".pt", ".pth"):  # torch.save writes a zip archive with checksums
            with path.open("rb") as file:
                return is_broken_archive(file)
    except (ValueError, SafetensorError):
        return True
    return False


def is_broken_archive(file: BinaryIO) -> bool:
    """Whether an open zip archive is incomplete or damaged.

    A flipped bit may make it look encrypted or compressed (RuntimeError, zlib.error), or put its table of contents
    before its beginning (OSError). The file is open already, so an OSError does not say that it may not be read.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            return archive.testzip() is not None
    except (ValueError, zipfile.BadZipFile, EOFError, RuntimeError, zlib.error, OSError):
        return True
