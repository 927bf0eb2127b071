"""Check that the installed packages are the versions that this course was tested with."""

import os
import re
from importlib import metadata

from grpo_core.errors import CourseError
from grpo_core.training.measuring import installed_version

from .profiles import Profile, offered_gpu

#: Not in the metadata of this package, or pip would install Unsloth's dependencies too: requirements-unsloth.txt.
UNSLOTH = {"unsloth": "2026.10.9", "unsloth_zoo": "2026.10.9"}

#: ``name==version`` in the metadata of this package, with or without an extra behind it.
_PIN = re.compile(r"^([\w.-]+)==([\w.]+)")


def pins() -> dict[str, str]:
    """The exact versions that this package's extra ``colab`` requires.

    >>> pins()["trl"]
    '1.14.0'
    """
    lines = [line for line in metadata.requires("grpo_utils") if 'extra == "colab"' in line]
    return dict(match.groups() for line in lines if (match := _PIN.match(line)))


def check_versions(backend: str = "unsloth", wanted: dict[str, str] | None = None) -> str:
    """A line with the installed versions, which all match the pins; Unsloth is checked only if it is the backend.

    Raises:
        CourseError: a package is missing or has another version.
    """
    wanted = pins() | UNSLOTH if wanted is None else wanted
    used = [name for name in wanted if backend == "unsloth" or not name.startswith("unsloth")]
    installed = {name: installed_version(name) for name in used}
    wrong = [
        f"{name} {version or 'is missing'} (tested with {wanted[name]})"
        for name, version in installed.items()
        if version != wanted[name]
    ]
    if wrong:
        raise CourseError(
            f"Not the tested versions: {', '.join(wrong)}. On Colab or Kaggle, run the install cell; if it ran, "
            "restart the session once. On your own machine, run `make setup`."
        )
    return ", ".join(f"{name} {version}" for name, version in installed.items())


def check_gpu(profile: Profile) -> str:
    """The device that torch will use, in words.

    Raises:
        CourseError: a GPU profile, and torch was built without CUDA or sees no GPU.
    """
    import torch

    if profile.name == "cpu":
        return f"CPU, {torch.get_num_threads()} thread(s)"
    if not torch.cuda.is_available():
        fix = offered_gpu(os.environ) or ". On your own machine, delete .venv and run `make setup` again"
        raise CourseError(f"PROFILE={profile.name!r} needs a GPU, and torch {torch.__version__} sees none{fix}.")
    return torch.cuda.get_device_name(0)
