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
from .report import read_report
from .trained import base_of, model_in, of_a_run, trained_in


def main(arguments: list[str] | None = None) -> None:
    """Merge in fp32 on the CPU, check the merge, and save it in the dtype of training with its tokenizer and a card."""
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
    check_unquantized(base)
    of_a_run(given.run)
    prompts = [answer["prompt"] for answer in read_answers(adapter.parent)[:8]]
    dtype = trained_in(read_report(adapter.parent))
    try:
        merged, tokenizer, difference = merge_adapter(adapter, base, prompts)
    except ValueError as error:
        raise SystemExit(f"Error: {error}") from error
    merged.to(dtype).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    write_card(folder, adapter.parent)
    rounded = "" if dtype.itemsize > 2 else ", whose rounding can change single answers"
    checked = f"in fp32, the merge changed no logit by more than {difference:.1g}"
    print(f"written: {folder} ({checked}; saved in {dtype}, as it was trained{rounded})")


def check_unquantized(base: str) -> None:
    """Stop if the base's weights are quantized, because a merge would round the adapter away."""
    from transformers import AutoConfig

    if "quantization_config" in AutoConfig.from_pretrained(base).to_dict():
        raise SystemExit(
            f"Error: {base} is quantized, and a merge into it would round the adapter away. Write the hub id of the "
            "unquantized model as base_model_name_or_path into adapter_config.json, and merge again."
        )


if __name__ == "__main__":
    main(sys.argv[1:])
