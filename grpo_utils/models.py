"""Load a policy and its tokenizer, from Unsloth or from plain transformers and PEFT.

    policy, tokenizer = load_policy("tiny-qwen3", profile=CPU, backend="transformers")

Both backends give the same thing: a PEFT model whose frozen base is in 4 bits (QLoRA), in
16 bits (LoRA) or, with ``full_finetuning``, a plain model that trains all its weights. On
a CPU everything computes in fp32, since bf16 exists on some processors only and figures
would differ between machines; TRL's trainer needs `keep_trainable_fp32` for that to stay so.
"""

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import CourseError
from .profiles import BACKENDS, FAMILIES, Profile, check_choice
from .run.policy import LORA_TARGETS, load_with_transformers, load_with_unsloth

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

TINY_MODELS = Path(__file__).parent / "tiny"


def choose_model(profile: Profile, family: str, model: str = "") -> str:
    """The name of the model to train: ``model`` where given, else the profile's of that family.

    >>> from grpo_utils.profiles import CPU
    >>> choose_model(CPU, "gemma"), choose_model(CPU, "gemma", "Qwen/Qwen3-0.6B")
    ('tiny-gemma3', 'Qwen/Qwen3-0.6B')
    """
    check_choice("FAMILY", family, FAMILIES)
    return model or profile.models[family]


def fit_model(profile: Profile, model: str) -> tuple[Profile, str]:
    """The profile in a type that the model can compute in, and what to know about that ("" if nothing).

    >>> from grpo_utils.profiles import T4
    >>> fitted, warning = fit_model(T4, "unsloth/gemma-3-1b-it")
    >>> fitted.dtype, warning
    ('float32', 'Gemma 3 overflows fp16, so it computes in fp32 here, which is slow: Qwen is the choice on this card.')
    """
    if profile.dtype != "float16" or "gemma" not in model.lower():
        return profile, ""
    return replace(profile, dtype="float32"), (
        "Gemma 3 overflows fp16, so it computes in fp32 here, which is slow: Qwen is the choice on this card."
    )


def model_path(name: str) -> str:
    """Where to load a model from: the folder of a tiny model, else the name itself.

    >>> Path(model_path("tiny-qwen3")).is_dir(), model_path("Qwen/Qwen3-0.6B")
    (True, 'Qwen/Qwen3-0.6B')
    """
    return str(TINY_MODELS / name) if name in {"tiny-qwen3", "tiny-gemma3"} else name


def check_model(name: str) -> None:
    """Find out in a second, before any weights are loaded, whether a model can be had.

    Raises:
        CourseError: a local folder without a model; a hub id that does not exist, is gated
            and you have no access, is not in the cache while offline, or no network.
    """
    path = Path(model_path(name))
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
    """Why a model cannot be had from the hub, and what to do about it; goes on after its name."""
    from huggingface_hub import errors

    match error:
        case errors.HFValidationError():
            return " is neither a folder that exists nor a hub id like 'owner/name'."
        case errors.GatedRepoError():
            return (
                " is gated: accept its license on its hub page, then set HF_TOKEN to a token of that account; or take "
                "an ungated mirror, such as those of 'unsloth/'."
            )
        case errors.RepositoryNotFoundError():
            return " does not exist on the hub (or is private and HF_TOKEN is not set). Check the spelling."
        case errors.LocalEntryNotFoundError() if os.environ.get("HF_HUB_OFFLINE") == "1":
            return (
                " is not in the cache and HF_HUB_OFFLINE=1 forbids downloads. Unset it (in a notebook that ran the cpu "
                "profile before: restart the kernel), or fetch the model once with a network; PROFILE='cpu' without "
                "MODEL needs no download."
            )
        case errors.LocalEntryNotFoundError():
            return (
                " could not be downloaded: the hub did not answer. Check the network; or fetch it once with one and "
                "set HF_HUB_OFFLINE=1; or set PROFILE='cpu', which downloads nothing."
            )
        case errors.EntryNotFoundError():
            return " has no config.json on the hub, so transformers cannot load it."
    status = error.response.status_code
    why = "HF_TOKEN is not accepted: renew or unset it" if status == 401 else "try again later"
    return f": the hub answered {status}; {why}."


def load_policy(
    name: str,
    *,
    profile: Profile,
    backend: str = "unsloth",
    load_in_4bit: bool = True,
    full_finetuning: bool = False,
    seed: int = 0,
) -> tuple["PreTrainedModel", "PreTrainedTokenizerBase"]:
    """A policy ready for `GRPOTrainer`, and its tokenizer.

    ``load_in_4bit`` quantizes the frozen base (NF4, double quantization); without it the base
    stays in the profile's 16-bit (on CPU: fp32) type. ``full_finetuning`` trains all weights
    and needs ``load_in_4bit=False``.

    Raises:
        CourseError: an unknown backend, or 4-bit together with full fine-tuning.
    """
    check_choice("BACKEND", backend, BACKENDS)
    if full_finetuning and profile.dtype == "float16":
        profile = replace(profile, dtype="float32")  # fp16 weights cannot be trained, only autocast to
    if load_in_4bit and full_finetuning:
        raise CourseError(
            "load_in_4bit=True and full_finetuning=True exclude each other: 4-bit weights cannot be trained. "
            "Set load_in_4bit=False, or train an adapter."
        )
    lora = lora_arguments(profile)
    lora.pop("use_gradient_checkpointing")  # the loaders and the trainer have an argument of their own for it
    how = dict(dtype=torch_dtype(profile), load_in_4bit=load_in_4bit, seed=seed)
    how["lora"] = None if full_finetuning else lora
    if backend == "unsloth":
        sizes = dict(max_seq_length=profile.max_seq_length, checkpointing=profile.name != "cpu")
        return load_with_unsloth(model_path(name), **how, **sizes)
    return load_with_transformers(model_path(name), **how, device_map=_device_map(profile))


def _device_map(profile: Profile) -> str:
    return "cpu" if profile.name == "cpu" else "auto"


def lora_arguments(profile: Profile) -> dict:
    """The arguments of `FastLanguageModel.get_peft_model` that a profile decides."""
    return {
        "r": profile.lora_rank,
        "lora_alpha": profile.lora_alpha,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": list(LORA_TARGETS),
        "use_gradient_checkpointing": gradient_checkpointing(profile),
    }


def gradient_checkpointing(profile: Profile) -> str | bool:
    """Unsloth's own way to save memory on a GPU; nothing on a CPU, where it only costs time."""
    return False if profile.name == "cpu" else "unsloth"


def torch_dtype(profile: Profile) -> "torch.dtype":
    """The profile's type as torch's own object."""
    import torch

    return getattr(torch, profile.dtype)
