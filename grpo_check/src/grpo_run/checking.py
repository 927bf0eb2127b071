"""What can be known before a model is loaded: whether rows and rewards work, and whether texts fit in the lengths.

`train.py` calls `rows_and_rewards` before anything heavy is imported, and `fitting` after that. ``--check`` stops then.
"""

import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from .folder import check_same, check_writable, identity
from .limits import check_enough, check_rows
from .scoring import rehearse
from .start import Settings

if TYPE_CHECKING:
    from datasets import Dataset

#: Tokens by which a suggested limit is rounded up.
ROUND = 32
#: Bytes that a checkpoint of an adapter takes, with its optimizer, if the model is not tiny.
ADAPTER = 100 << 20


def rows_and_rewards(
    values: dict, load_rows: Callable, rewards: dict, *functions: Callable, **more: object
) -> tuple["Dataset", "Dataset"]:
    """The training and held-out rows, after the output folder was checked, and each function of rewards.py was tried.

    ``functions`` and ``more`` are those of `rehearse`, from ``is_right`` on.
    """
    check_writable(Path(values["output_dir"]))
    check_space(values)
    gold_text = dict(zip(("is_right", "is_in_form", "gold_text"), functions, strict=False)).get("gold_text")
    rows, held_out = both_splits(values, load_rows, gold_text)
    rehearse(rewards, rows[0], *functions, **more)
    return rows, held_out


def both_splits(
    values: dict, load_rows: Callable, gold_text: Callable = lambda row: None
) -> tuple["Dataset", "Dataset"]:
    """The training and held-out rows, if there are enough of them; with ``examples``, each prompt shows some rows."""
    name, seed, share = values["dataset_name"], values["seed"], values["held_out"]
    rows = load_rows(name, "train", values["train_rows"], seed, share)
    held_out = load_rows(name, "test", values["eval_rows"], seed, share)
    check_rows(values, rows, held_out)
    return with_examples(rows, held_out, values["examples"], gold_text) if values["examples"] else (rows, held_out)


def with_examples(rows: "Dataset", held_out: "Dataset", count: int, gold_text: Callable) -> tuple["Dataset", "Dataset"]:
    """The rows after the first ``count``; those stand in every prompt as turns of a chat, with their gold answers."""
    from datasets import Dataset

    first = [rows[place] for place in range(min(count, len(rows) - 1))]
    answers = [(gold_text or (lambda row: None))(row) for row in first]
    if not first or None in answers:
        raise SystemExit(
            f"Error: examples={count}, but there is no gold answer to show: gold_text in rewards.py returns None, or "
            "this template does not use it. Set examples: 0."
        )
    shown = [
        message
        for row, answer in zip(first, answers, strict=True)
        for message in (row["prompt"][-1], {"role": "assistant", "content": answer})
    ]

    def asked(split: "Dataset") -> "Dataset":
        found = [row | {"prompt": [*row["prompt"][:-1], *shown, row["prompt"][-1]]} for row in split]
        return Dataset.from_list(found)

    return asked(rows.select(range(len(first), len(rows)))), asked(held_out)


def check_space(values: dict) -> None:
    """Stop if the disk has no room for the first checkpoint: of all weights, or of an adapter and its optimizer."""
    folder = Path(values["output_dir"]).resolve()
    place = next(path for path in (folder, *folder.parents) if path.exists())
    weights = sum(path.stat().st_size for path in Path(values["model_name_or_path"]).glob("*.safetensors"))
    of_adapter = min(ADAPTER, weights or ADAPTER)  # the weights of a model on the Hub are not known yet
    needed = of_adapter if values["use_peft"] else 4 * weights  # weights, two moments, and the model at the end
    if (free := shutil.disk_usage(place).free) < needed:
        raise SystemExit(
            f"Error: {place} has {free >> 20} MiB free, and this run takes about {max(needed >> 20, 1)} MiB. "
            "Free some space, or choose an output_dir on another disk."
        )


def fitting(
    settings: Settings, rows: "Dataset", held_out: "Dataset", gold_text: Callable = lambda row: None, **more: object
) -> tuple:
    """The rows whose prompt has at most ``max_prompt_tokens`` tokens, of both splits: TRL never truncates a prompt.

    It stops if too few are left, or if no gold answer fits in ``max_completion_length``. ``more`` has further
    arguments for the chat template, such as tools.
    """
    tokenizer, longest = tokenizer_of(settings.model.model_name_or_path), settings.run.max_prompt_tokens
    template = (settings.training.chat_template_kwargs or {}) | more

    def tokens_of(row: dict) -> int:
        options = dict(add_generation_prompt=True, return_dict=True)
        return len(tokenizer.apply_chat_template(row["prompt"], **options, **template)["input_ids"])

    lengths, others = [tokens_of(row) for row in rows], [tokens_of(row) for row in held_out]
    kept = rows.select([place for place, length in enumerate(lengths) if length <= longest])
    tested = held_out.select([place for place, length in enumerate(others) if length <= longest])
    found = f"{len(kept)} of {len(rows)} prompts, and {len(tested)} of {len(held_out)} held-out ones, have at most "
    found += f"max_prompt_tokens={longest} tokens"
    most = max(lengths + others)
    if most > longest:
        found += f"; yours have {median(lengths + others):.0f} (median) to {most}. To keep all, set max_prompt_tokens: "
        found += f"{rounded_up(most)}"
    if not tested:
        raise SystemExit(f"Error: only {found}.")
    check_enough(settings.values, len(kept), f"only {found}")
    print(f"{found}.")
    check_gold(settings, [gold_text(row) for row in kept], tokenizer)
    return kept, tested


def check_gold(settings: Settings, texts: Iterable[str | None], tokenizer: object) -> None:
    """Note gold answers that are longer than the model may write; stop if all of them are."""
    lengths = [len(tokenizer(text)["input_ids"]) + 1 for text in texts if text is not None]  # one ends the completion
    most = settings.training.max_completion_length
    if not (cut := [length for length in lengths if length > most]):
        return
    found = f"{len(cut)} of {len(lengths)} gold answers, as gold_text in rewards.py writes them, have more than "
    found += f"max_completion_length={most} tokens; set max_completion_length: {rounded_up(max(lengths))} or more."
    if len(cut) == len(lengths):
        raise SystemExit(f"Error: {found}")
    print(f"Note: {found}")


def rounded_up(tokens: int) -> int:
    """A round limit that is at least this many tokens."""
    return -(-tokens // ROUND) * ROUND


def tokenizer_of(name: str) -> object:
    """The tokenizer of a model, or of an adapter's folder: its own, or that of its base."""
    from transformers import AutoTokenizer

    adapter = Path(name, "adapter_config.json")
    if adapter.is_file() and not adapter.with_name("tokenizer_config.json").is_file():
        name = json.loads(adapter.read_text(encoding="utf-8"))["base_model_name_or_path"]
    try:
        tokenizer = AutoTokenizer.from_pretrained(name)
    except OSError as error:
        raise SystemExit(f"Error: {name} could not be loaded: {str(error).strip().splitlines()[0]}") from error
    if tokenizer.chat_template is None:
        raise SystemExit(f"Error: {name} has no chat template. Use its instruct version.")
    return tokenizer


def stop_if_only_checked(settings: Settings, **more: object) -> None:
    """With ``--check``, stop here; before that, ask whether a run in the output folder could be resumed.

    ``more`` has what must stay the same for a run to resume, as for `begin`.
    """
    if not settings.run.check:
        return
    folder = Path(settings.training.output_dir)
    if not (folder / "report.json").exists():  # a finished run is renamed, and not resumed
        check_same(folder, identity(settings.values | more), settings.run.accept_changes)
    print("Checked all that can be known before a model is loaded; nothing was trained.")
    raise SystemExit(0)
