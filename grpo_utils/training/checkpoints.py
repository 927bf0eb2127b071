"""Which checkpoint of a run is whole, and so fit to resume from.

A machine that goes away while it saves leaves half a checkpoint behind, and the half one is the newest.
transformers takes the newest there is (``resume_from_checkpoint=True``) and then fails on it.

    train_or_resume(trainer)    # instead of trainer.train()

A checkpoint that a resumed run is to equal the unbroken one from holds weights, optimizer, schedule, the
state of every random generator, and the log. Left out: checkpoints of FSDP and DeepSpeed.
"""

import json
import re
import zipfile
from collections.abc import Callable
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import CourseError

if TYPE_CHECKING:
    from peft import PeftModel
    from transformers import Trainer, TrainerState

CHECKPOINT = re.compile(r"checkpoint-(\d+)")

ADAPTER = "adapter_model.safetensors"
ADAPTER_CONFIG = "adapter_config.json"
STATE = "trainer_state.json"

#: The parts of a checkpoint, as patterns of file names. `save_only_model=True` keeps the weights and the log alone.
PARTS = {
    "weights": (ADAPTER, "model*.safetensors"),
    "optimizer": ("optimizer.pt",),
    "learning-rate schedule": ("scheduler.pt",),
    "random states": ("rng_state*.pth",),
    "log": (STATE,),
}


def train_or_resume(trainer: "Trainer", say: Callable[[str], None] = print) -> Path | None:
    """Train to the last step, from the newest whole checkpoint in the run's ``output_dir`` if there is one.

    Use it instead of ``trainer.train(resume_from_checkpoint=True)``, which takes the newest checkpoint even if
    it is cut off, and which **loses the adapter** where ``beta`` is above zero: TRL then keeps a second adapter
    ("ref"), which is saved in a folder below the checkpoint, and transformers 5.17 loads what lies in such
    folders and nothing else. Build the trainer with the policy as it was when the run began: the reference is
    copied from it.

    A run whose newest whole checkpoint has reached the last step is loaded and not trained: the policy has that
    checkpoint's weights then, and ``trainer.state`` its log. Where a run counts in epochs, its last step is the one
    that it was begun with, unless ``num_train_epochs`` was raised since.

    Returns:
        The checkpoint that it went on from; None if the run began.
    """
    checkpoint = newest_checkpoint(trainer.args.output_dir, say)
    if checkpoint and (checkpoint / ADAPTER).exists():
        load_adapter(trainer.model, checkpoint)
    if checkpoint and _is_last(checkpoint, trainer):
        say(f"{checkpoint.name}: all steps were done; it is loaded, and nothing is trained.")
        _load_last(trainer, checkpoint)
    else:
        trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    return checkpoint


def _is_last(checkpoint: Path, trainer: "Trainer") -> bool:
    """Whether no step is left; transformers would train one more, and rotate the finished checkpoint away."""
    state, arguments = _read_state(checkpoint), trainer.args
    if arguments.max_steps > 0:
        return state.global_step >= arguments.max_steps
    return state.global_step >= state.max_steps and ceil(arguments.num_train_epochs) <= state.num_train_epochs


def _load_last(trainer: "Trainer", checkpoint: Path) -> None:
    """Leave the trainer as it was after its last step: the weights (an adapter's are loaded before) and the log."""
    if not (checkpoint / ADAPTER).exists():
        trainer._load_from_checkpoint(str(checkpoint))  # knows whole models and those saved in parts
    trainer.state = _read_state(checkpoint)


def _read_state(checkpoint: Path) -> "TrainerState":
    from transformers import TrainerState

    return TrainerState.load_from_json(str(checkpoint / STATE))


def load_adapter(policy: "PeftModel", folder: str | Path) -> None:
    """Put the saved weights of an adapter into the policy's own, of the same shape.

    Raises:
        CourseError: the folder has no whole ``adapter_model.safetensors``. (PEFT would look for it on the Hub.)
    """
    from peft import load_peft_weights, set_peft_model_state_dict

    weights = Path(folder) / ADAPTER
    if not weights.exists() or _is_broken_safetensors(weights):
        raise CourseError(
            f"{str(weights)!r} is {'damaged' if weights.exists() else 'missing'}: not synchronised yet, or lost. On a "
            "synchronised drive wait for it and run again. If it stays so, copy it back from elsewhere; or delete the "
            "folder of this run or stage, and of all stages after it, and they are trained anew."
        )
    set_peft_model_state_dict(policy, load_peft_weights(str(folder), device=str(policy.device)))


def checkpoint_step(folder: str | Path) -> int:
    """The optimizer step of a checkpoint's folder.

    >>> checkpoint_step("outputs/run/checkpoint-250")
    250
    """
    return int(CHECKPOINT.fullmatch(Path(folder).name)[1])


def newest_checkpoint(folder: str | Path, say: Callable[[str], None] = print) -> Path | None:
    """The newest whole ``checkpoint-N`` below ``folder``; None if there is none.

    Newer ones that are not whole are passed over, and ``say`` is told of each, with what is wrong. None of
    them is deleted: the run that resumes writes over it.

    >>> newest_checkpoint("no/such/folder") is None
    True
    """
    found = [path for path in Path(folder).glob("checkpoint-*") if CHECKPOINT.fullmatch(path.name)]
    for checkpoint in sorted(found, key=checkpoint_step, reverse=True):
        problem = checkpoint_problem(checkpoint)
        if not problem:
            return checkpoint
        say(f"{checkpoint.name} is passed over: {problem}.")
    return None


def checkpoint_problem(folder: str | Path) -> str:
    """What is missing or broken in a checkpoint; "" if it is whole.

    Every file that a resumed run reads is opened, since a file that was cut off may well be there. (The trainer
    writes the log last; a synchronised drive keeps no such order.)

    >>> checkpoint_problem("no/such/folder")
    'it has no weights'
    """
    folder = Path(folder)
    for part, patterns in PARTS.items():
        if not any(list(folder.glob(pattern)) for pattern in patterns):
            return f"it has no {part}"
    if any(not weights.with_name(ADAPTER_CONFIG).exists() for weights in folder.rglob(ADAPTER)):
        return f"it has no {ADAPTER_CONFIG}"
    broken = [path for path in sorted(folder.rglob("*")) if path.is_file() and _is_broken(path)]
    return f"{broken[0].name} is cut off or damaged" if broken else ""


def _is_broken(path: Path) -> bool:
    """Whether a file of a checkpoint cannot be read to its end."""
    if path.suffix == ".json":
        return _is_broken_json(path)
    if path.suffix == ".safetensors":
        return _is_broken_safetensors(path)
    return path.suffix in (".pt", ".pth") and _is_broken_archive(path)


def _is_broken_json(path: Path) -> bool:
    try:
        json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return True
    return False


def _is_broken_safetensors(path: Path) -> bool:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy"):  # checks that the file is as long as its header says
            return False
    except SafetensorError:
        return True


def _is_broken_archive(path: Path) -> bool:
    """torch.save writes a zip archive with checksums; its directory stands at the end."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.testzip() is not None
    except (zipfile.BadZipFile, EOFError):
        return True
