"""Merge an adapter into its base, and check that a saved model is that merge.

`check_merged` runs in a fresh process. On a GPU, Unsloth replaces parts of transformers in the process that trains,
so only another process can show that *plain* transformers loads and runs the saved model.
"""

import gc
import json
import re
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

from grpo_core.errors import CourseError
from grpo_core.training import merging
from grpo_core.training.publishing import public_name

from ..evaluation.judging import Evaluation, answer_twice, judge
from ..models import model_path, torch_dtype
from ..profiles import Profile, prepare_machine

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedModel


def in_fresh_process(function: Callable, *args: object, **kwargs: object) -> object:
    """Call a function of a module in a new Python process, and return or raise what it does.

    This process first releases the memory that it holds and does not use.

    >>> in_fresh_process(max, 3, 5)
    5
    """
    gc.collect()
    if "torch" in sys.modules:
        sys.modules["torch"].cuda.empty_cache()
    try:
        with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as pool:
            return pool.submit(function, *args, **kwargs).result()
    except BrokenProcessPool as error:
        raise CourseError(
            f"The process that ran {function.__name__} was killed, most likely because memory ran out. What was saved "
            "before it (the adapter, the report) is still there; run it again on a machine with more memory."
        ) from error


def check_merged(
    adapter: str | Path, base: str, folder: str | Path, profile: Profile, rows: "Dataset", decoding: dict
) -> tuple[float, Evaluation]:
    """Check that ``folder`` holds ``base`` with its adapter merged, and evaluate it as plain transformers loads it.

    A new process, where nothing is patched, merges once more and compares the weights with the saved ones.

    Returns:
        The largest difference of a logit that a merge in fp32 makes, and the evaluation of the saved model on
        ``rows`` with the settings ``decoding`` of `evaluate`.

    Raises:
        CourseError: as `merge_adapter`; or the saved weights are not those of the merge.
    """
    prompts = list(rows["prompt"])
    difference, sampled, greedy = in_fresh_process(_check_merged, adapter, base, folder, profile, prompts, decoding)
    return difference, judge(sampled, greedy, rows)


def _check_merged(
    adapter: str | Path, base: str, folder: str | Path, profile: Profile, prompts: list[list[dict]], decoding: dict
) -> tuple[float, list[str], list[str]]:
    """The part of `check_merged` that needs a model: the logits' difference, sampled and greedy texts."""
    prepare_machine(profile)
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    (merged, difference), dtype = merge_adapter(adapter, base, prompts[:8]), torch_dtype(profile)
    expected = merged.to(dtype).state_dict()  # before the next model takes memory
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, device_map=device)
    saved = model.state_dict()
    off = [name for name in expected if not torch.allclose(expected[name].cpu(), saved[name].cpu(), 1e-2, 1e-5)]
    if off:
        raise CourseError(
            f"{str(folder)!r} is not {base!r} with the adapter in {str(adapter)!r}: {len(off)} of {len(expected)} "
            f"weights differ, the first is {off[0]!r}. Merge again, in a process that did not train."
        )
    del merged, expected  # sampling needs memory, too
    tokenizer = AutoTokenizer.from_pretrained(folder)
    _check_template(Path(adapter), Path(folder), tokenizer.chat_template)
    return difference, *answer_twice(model, tokenizer, prompts, **decoding)


def _check_template(adapter: Path, folder: Path, template: str) -> None:
    """Raise a CourseError if the model was trained with another chat template than the one saved with it."""
    from transformers import AutoTokenizer

    if not (adapter / "tokenizer_config.json").exists():
        return
    if AutoTokenizer.from_pretrained(adapter).chat_template != template:
        raise CourseError(
            f"the tokenizer in {str(folder)!r} has another chat template than the one in {str(adapter)!r}, which the "
            f"model was trained with. Save that one: AutoTokenizer.from_pretrained({str(adapter)!r}).save_pretrained("
            f"{str(folder)!r})."
        )


def merge_adapter(adapter: str | Path, base: str, prompts: list[list[dict]]) -> tuple["PreTrainedModel", float]:
    """Merge the adapter in folder ``adapter`` into the unquantized ``base``, in fp32 on the CPU.

    Returns:
        The merged model, and the largest difference that merging made to a logit. The logits are those after
        ``prompts``, a few lists of messages, in the chat template of the tokenizer next to the adapter (the base's
        if there is none).

    Raises:
        CourseError: the folder holds no adapter, the adapter names another base, its tokenizer has tokens that the
            base does not have, or the merge changed a logit by more than rounding does.
    """
    _check_adapter(Path(adapter), base)
    try:
        merged, _, difference = merging.merge_adapter(Path(adapter), model_path(base), prompts)
    except ValueError as error:
        raise CourseError(str(error)) from error
    return merged, difference


def _check_adapter(adapter: Path, base: str) -> None:
    config = adapter / "adapter_config.json"
    if not config.is_file():
        raise CourseError(f"There is no adapter in {str(adapter)!r}: it has no adapter_config.json.")
    trained_on = json.loads(config.read_text())["base_model_name_or_path"]
    if not _same_base(trained_on, base):
        raise CourseError(f"The adapter in {str(adapter)!r} was trained on {trained_on!r}, not on {base!r}.")


def _same_base(one: str, other: str) -> bool:
    """Whether two names mean one base: hub ids by owner and name, a folder by its own name without the path.

    Unsloth loads 4-bit copies of its own models; they count as the model.

    >>> _same_base("unsloth/qwen2.5-1.5b-instruct-unsloth-bnb-4bit", "unsloth/Qwen2.5-1.5B-Instruct")
    True
    >>> _same_base("evil/Qwen2.5-1.5B-Instruct", "unsloth/Qwen2.5-1.5B-Instruct")
    False
    """
    names = [re.sub(r"(-unsloth)?-bnb-4bit$", "", public_name(name).lower()) for name in (one, other)]
    if all("/" in name for name in names):
        return names[0] == names[1]
    return names[0].split("/")[-1] == names[1].split("/")[-1]
