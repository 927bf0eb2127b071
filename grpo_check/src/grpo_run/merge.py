"""Merge the adapter of a finished run into its base, for programs that load whole models.

python -m grpo_run.merge outputs/basic                 writes outputs/basic/merged
python -m grpo_run.merge outputs/basic my-model        writes my-model
"""

import argparse
import sys
from pathlib import Path

from grpo_core.training.merging import merge_adapter

from .cards import write_card
from .held_out import read_answers
from .trained import base_of, model_in


def main(arguments: list[str] | None = None) -> None:
    """Merge in fp32 on the CPU, check the merge, and save it in the base's own dtype with its tokenizer and a card."""
    parser = argparse.ArgumentParser(
        prog="python -m grpo_run.merge", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, help="the output_dir of a finished run")
    parser.add_argument("folder", type=Path, nargs="?", help="a new folder (default: merged, in the run's folder)")
    given = parser.parse_args(arguments)
    adapter = model_in(given.run)
    base, folder = base_of(adapter), given.folder or adapter.parent / "merged"
    if base is None:
        raise SystemExit(f"Error: {adapter} is a whole model already, so there is nothing to merge.")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise SystemExit(f"Error: {folder} is not an empty folder. Delete it, or name another one.")
    prompts = [answer["prompt"] for answer in read_answers(adapter.parent)[:8]]
    dtype = own_dtype(base)
    try:
        merged, tokenizer, difference = merge_adapter(adapter, base, prompts)
    except ValueError as error:
        raise SystemExit(f"Error: {error}") from error
    merged.to(dtype).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    write_card(folder, adapter.parent)
    print(f"written: {folder} (the merge changed no logit by more than {difference:.1g} in fp32; saved in {dtype})")


def own_dtype(base: str) -> object:
    """The dtype of the base's weights; stop if they are quantized, because a merge would round the adapter away."""
    import torch
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(base)
    if "quantization_config" in config.to_dict():
        raise SystemExit(
            f"Error: {base} is quantized, and a merge into it would round the adapter away. Write the hub id of the "
            "unquantized model as base_model_name_or_path into adapter_config.json, and merge again."
        )
    return config.dtype or torch.float32


if __name__ == "__main__":
    main(sys.argv[1:])
