"""Load a policy and its tokenizer, from Unsloth or from plain transformers and PEFT.

    policy, tokenizer = load_policy("tiny-qwen3", profile=CPU, backend="transformers")

Both backends return a PEFT model whose frozen base is in 4 bits (QLoRA) or 16 bits (LoRA). On a CPU everything
computes in fp32, because only some processors have bf16 and results would differ between
machines. TRL's trainer changes that; `keep_trainable_fp32` changes it back.
"""

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from grpo_core.errors import CourseError, check_choice
from grpo_core.training.policy import BACKENDS, LORA_TARGETS, load_with_transformers, load_with_unsloth

from . import smollm2
from .profiles import FAMILIES, Profile

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

#: The models that ship with the course, in `TINY_MODELS`.
TINY = ("tiny-qwen3", "tiny-gemma3")
TINY_MODELS = Path(__file__).parent / "tiny"


def choose_model(profile: Profile, family: str, model: str = "") -> str:
    """The name of the model to train: ``model`` if given, else the profile's model of that family.

    >>> from grpo_utils.profiles import CPU
    >>> choose_model(CPU, "gemma"), choose_model(CPU, "gemma", "Qwen/Qwen3-0.6B")
    ('tiny-gemma3', 'Qwen/Qwen3-0.6B')
    """
    check_choice("FAMILY", family, FAMILIES)
    return model or profile.models[family]


def fit_model(profile: Profile, model: str) -> tuple[Profile, str]:
    """The profile with a dtype that works for the model, and a warning ("" if there is none).

    >>> from grpo_utils.profiles import T4
    >>> fitted, warning = fit_model(T4, "unsloth/gemma-3-1b-it")
    >>> fitted.dtype, warning
    ('float32', 'Gemma 3 overflows in fp16, so it runs in fp32 here, which is slow. On this GPU, prefer Qwen.')
    """
    if profile.dtype != "float16" or "gemma" not in Path(model).name.lower():
        return profile, ""
    return replace(profile, dtype="float32"), (
        "Gemma 3 overflows in fp16, so it runs in fp32 here, which is slow. On this GPU, prefer Qwen."
    )


def model_path(name: str) -> str:
    """The path to load a model from: the folder of a tiny model or of SmolLM2, else the name itself.

    >>> Path(model_path("tiny-qwen3")).is_dir(), model_path("Qwen/Qwen3-0.6B")
    (True, 'Qwen/Qwen3-0.6B')
    >>> Path(model_path("smollm2-135m-instruct")).name
    'smollm2-135m-instruct'
    """
    if name == smollm2.NAME:
        return str(smollm2.folder())
    return str(TINY_MODELS / name) if name in TINY else name


def check_model(name: str) -> None:
    """Check within a second, before any weights are loaded, that a model is available.

    Raises:
        CourseError: SmolLM2 was not fetched; a local folder has no model; or a hub id does not exist, is gated, is not
            in the cache while offline, or cannot be reached.
    """
    path = Path(model_path(name))
    if name == smollm2.NAME and not path.is_dir():
        raise CourseError(f"MODEL={name!r} is not on this machine. Fetch it once: python -m grpo_utils.smollm2")
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise CourseError(f"MODEL={name!r} is a folder without a config.json, so it holds no model.")
        return
    _check_hub_model(name)


def _check_hub_model(name: str) -> None:
    from huggingface_hub import errors, hf_hub_download

    try:
        hf_hub_download(name, "config.json")
    except (errors.HFValidationError, errors.EntryNotFoundError, errors.HfHubHTTPError) as error:
        raise CourseError(f"MODEL={name!r}{_hub_problem(error)}") from error


def _hub_problem(error: Exception) -> str:
    """Why a model is not available from the hub, and what to do about it; the text follows its name."""
    from huggingface_hub import errors

    match error:
        case errors.HFValidationError():
            return " is neither a folder that exists nor a hub id like 'owner/name'."
        case errors.GatedRepoError():
            return (
                " is gated: accept its license on its hub page, then set HF_TOKEN to a token of that account; or use "
                "an ungated mirror, such as those of 'unsloth/'."
            )
        case errors.RepositoryNotFoundError():
            return " does not exist on the hub (or is private and HF_TOKEN is not set). Check the spelling."
        case errors.LocalEntryNotFoundError() if os.environ.get("HF_HUB_OFFLINE") == "1":
            return (
                " is not in the cache and HF_HUB_OFFLINE=1 forbids downloads. Unset it (in a notebook that ran the cpu "
                "profile before: restart the kernel), or download the model once; PROFILE='cpu' without MODEL needs "
                "no download."
            )
        case errors.LocalEntryNotFoundError():
            return (
                " could not be downloaded: the hub did not answer. Check the network, or set PROFILE='cpu', which "
                "downloads nothing. After one download, HF_HUB_OFFLINE=1 uses the cache."
            )
        case errors.EntryNotFoundError():
            return " has no config.json on the hub, so transformers cannot load it."
    status = error.response.status_code
    why = "HF_TOKEN was rejected, so renew or unset it" if status == 401 else "try again later"
    return f": the hub answered {status}; {why}."


def load_policy(
    name: str,
    *,
    profile: Profile,
    backend: str = "unsloth",
    load_in_4bit: bool | None = None,
    seed: int = 0,
) -> tuple["PreTrainedModel", "PreTrainedTokenizerBase"]:
    """A policy ready for `GRPOTrainer`, and its tokenizer.

    ``load_in_4bit`` quantizes the frozen base (NF4, double quantization); otherwise the base
    keeps the profile's dtype. None means as the profile says.

    Raises:
        CourseError: an unknown backend.
    """
    check_choice("BACKEND", backend, BACKENDS)
    lora = lora_arguments(profile)
    lora.pop("use_gradient_checkpointing")  # the loaders and the trainer have their own argument for it
    in_4bit = profile.load_in_4bit if load_in_4bit is None else load_in_4bit
    options = dict(dtype=torch_dtype(profile), load_in_4bit=in_4bit, seed=seed, lora=lora)
    if backend == "unsloth":
        sizes = dict(max_seq_length=profile.max_seq_length, checkpointing=profile.name != "cpu")
        return load_with_unsloth(model_path(name), **options, **sizes)
    return load_with_transformers(model_path(name), **options, device_map="cpu" if profile.name == "cpu" else "auto")


def lora_arguments(profile: Profile) -> dict:
    """The arguments of `FastLanguageModel.get_peft_model` that a profile determines."""
    return {
        "r": profile.lora_rank,
        "lora_alpha": profile.lora_alpha,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": list(LORA_TARGETS),
        "use_gradient_checkpointing": False if profile.name == "cpu" else "unsloth",  # on a CPU, it only costs time
    }


def torch_dtype(profile: Profile) -> "torch.dtype":
    """The profile's dtype as a torch object."""
    import torch

    return getattr(torch, profile.dtype)
