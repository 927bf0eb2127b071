"""Measure a model on a task in three ways, to tell apart what training can change.

Greedy accuracy is what a user of the model sees, sampled accuracy what training sees, and pass@8 whether the model
finds a right answer in eight tries. Right means that the whole text is the gold JSON value (`same_json`).
"""

import gc
import json
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import fmean

from grpo_core.rewards.structured import same_json
from grpo_core.training.generating import generate
from grpo_core.training.measuring import mcnemar_p_value, p_text, wilson_interval

from .. import smollm2
from ..data.extraction import extraction_rows
from ..evaluation.judging import generate_samples
from ..evaluation.statistics import paired_change
from ..export.merging import merge_adapter
from ..profiles import CPU, Profile

ROWS, SAMPLED_ROWS, SAMPLES = 400, 50, 8
EXAMPLES = 3  # training rows in the prompt of the untrained model
TEMPERATURE = 1.0  # of the samples, as in training
DECODING = dict(max_new_tokens=64, batch_size=100, seed=0)


def sampled_of(rows: int) -> int:
    """Of how many held-out prompts samples are drawn: an eighth, because each gets eight samples.

    >>> sampled_of(ROWS) == SAMPLED_ROWS
    True
    """
    return -(-rows // SAMPLES)


def base_result(
    model: Path, task: str, folder: Path, split: str = "test", rows: int = ROWS, machine: Profile = CPU
) -> dict:
    """The model before training, measured once for each task and split, and kept in ``folder``.

    It is measured again when the held-out rows or the sampling change.
    """
    sizes = rows, sampled_of(rows)
    what = [extraction_rows(task, rows, split), sizes[1], SAMPLES, TEMPERATURE, DECODING]
    named = f"{smollm2.NAME} on {task} before training"
    measured = partial(measure, model, task, split, *sizes, machine)
    return _kept_result(folder / f"base-{task}-{split}-{machine.name}", what, named, measured)


def examples_result(
    model: Path, task: str, folder: Path, split: str = "test", rows: int = ROWS, machine: Profile = CPU
) -> dict:
    """The untrained model with examples in its prompt, on a quarter of the rows; kept like `base_result`.

    With three examples, a prompt is five times as long, and so is the time that it takes.
    """
    what = [extraction_rows(task, count := -(-rows // 4), split), extraction_rows(task, EXAMPLES, "train"), DECODING]
    named = f"{smollm2.NAME} on {task}, untrained, with {EXAMPLES} examples in the prompt"
    measured = partial(_measure_examples, model, task, split, count, machine)
    return _kept_result(folder / f"examples-{task}-{split}-{machine.name}", what, named, measured)


def _kept_result(stem: Path, what: list, named: str, measured: Callable[[], dict]) -> dict:
    """A measurement that is kept in a file; ``what`` is measured decides the file's name."""
    kept = stem.with_name(f"{stem.name}-{zlib.crc32(json.dumps(what).encode()):08x}.json")
    if not kept.exists():
        print(f"Measuring {named}, once for all runs:")
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(measured(), indent=1) + "\n", encoding="utf-8")
        _free_memory()  # the training is another process, which needs it
    return json.loads(kept.read_text(encoding="utf-8"))


def _free_memory() -> None:
    """Return the memory of models that are not used any more, also that of a GPU."""
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def measure_merged(model: Path, adapter: Path, to: Path, task: str, *how: object, **options: object) -> dict:
    """Merge an adapter into the 16-bit model, save it, and measure the saved model.

    ``how`` and ``options`` are for `measure`.
    """
    import torch
    from transformers import AutoTokenizer

    merged, _ = merge_adapter(adapter, str(model), [extraction_rows(task, 1, "dev")[0]["prompt"]])
    merged.to(torch.bfloat16).save_pretrained(to)
    AutoTokenizer.from_pretrained(model).save_pretrained(to)
    del merged
    _free_memory()
    return measure(to, task, *how, **options)


def loaded(model: Path, machine: Profile) -> tuple:
    """The model on a machine, in the number format in which it trains there, and its tokenizer."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    policy = AutoModelForCausalLM.from_pretrained(model, dtype=smollm2.dtype_on(machine))
    return policy.to("cpu" if machine.name == "cpu" else "cuda"), AutoTokenizer.from_pretrained(model)


def measure(
    model: Path,
    task: str,
    split: str = "test",
    prompts_greedy: int = ROWS,
    prompts_sampled: int = SAMPLED_ROWS,
    machine: Profile = CPU,
) -> dict:
    """Which held-out prompts are answered correctly: greedily, and of eight samples; and the first texts of both.

    For the task *older*, ``wrong_person`` says which greedy answers describe the other person without an error.
    """
    policy, tokenizer = loaded(model, machine)
    rows = extraction_rows(task, prompts_greedy, split)
    prompts = [row["prompt"] for row in rows]
    greedy = generate(policy, tokenizer, prompts, temperature=0.0, **DECODING)
    how = dict(samples=SAMPLES, temperature=TEMPERATURE, **DECODING)
    sampled = generate_samples(policy, tokenizer, prompts[:prompts_sampled], **how)
    result = dict(
        greedy=[same_json(text, row["answer"]) for text, row in zip(greedy, rows, strict=True)],
        sampled=[[same_json(text, row["answer"]) for text in said] for said, row in zip(sampled, rows, strict=False)],
        kinds=[row["kind"] for row in rows],
        asked=[prompt[-1]["content"].rpartition("\n")[2] for prompt in prompts[:20]],
        texts=greedy[:20],
        sampled_texts=[text for said in sampled for text in said][:20],
    )
    if task == "older":
        result["wrong_person"] = [same_json(text, row["other"]) for text, row in zip(greedy, rows, strict=True)]
    return result


def _measure_examples(model: Path, task: str, split: str, count: int, machine: Profile = CPU) -> dict:
    """Which held-out prompts the model answers correctly if training rows are earlier turns of the chat; greedily.

    The examples are the first training rows, not chosen.
    """
    policy, tokenizer = loaded(model, machine)
    turns = []
    for row in extraction_rows(task, EXAMPLES, "train"):
        turns += [row["prompt"][-1], {"role": "assistant", "content": row["answer"]}]
    rows = extraction_rows(task, count, split)
    prompts = [[*row["prompt"][:-1], *turns, row["prompt"][-1]] for row in rows]
    texts = generate(policy, tokenizer, prompts, temperature=0.0, **DECODING | dict(batch_size=20))  # long prompts
    right = [same_json(text, row["answer"]) for text, row in zip(texts, rows, strict=True)]
    return dict(greedy=right, kinds=[row["kind"] for row in rows], texts=texts[:20])


#: What `rates` returns, in its order.
MEASURES = ("greedy", "known sentences", "new sentences", "greedy, fewer prompts", "sampled", "pass@8")


def rates(packed: dict) -> dict[str, float]:
    """The `MEASURES`, from the digits that bench_real.py stores. Every second held-out row has a new sentence.

    Only some of the prompts are sampled, so the fourth measure is the greedy accuracy on those.

    >>> list(rates(dict(greedy="1011", sampled=[8, 4])).values())
    [0.75, 1.0, 0.5, 0.5, 0.75, 1.0]
    """
    right, sampled = [int(digit) for digit in packed["greedy"]], packed["sampled"]
    groups = [right, right[::2], right[1::2], right[: len(sampled)]]
    groups += [[count / SAMPLES for count in sampled], [count > 0 for count in sampled]]
    return dict(zip(MEASURES, map(fmean, groups), strict=True))


def compare_results(before: dict, after: dict) -> str:
    """A table of the three rates before and after, each with an interval and a paired test."""
    lines = [f"{'':28}{'n':>5}   {'before':24}{'after':24}"]
    for name in ("all", *dict.fromkeys(before["kinds"])):
        chosen = [name in ("all", kind) for kind in before["kinds"]]
        pair = [[right for right, take in zip(of["greedy"], chosen, strict=True) if take] for of in (before, after)]
        shown = "".join(f"{_rate(right):24}" for right in pair)
        lines.append(f"{'greedy, ' + name:28}{len(pair[0]):>5}   {shown}{p_text(mcnemar_p_value(*pair))} (McNemar)")
    some = len(before["sampled"])
    pairs = {"greedy, the same prompts": [[float(right) for right in of["greedy"][:some]] for of in (before, after)]}
    for name, reduce in (("sampled", fmean), ("pass@8", max)):
        pairs[name] = [[float(reduce(right)) for right in of["sampled"]] for of in (before, after)]
    for name, pair in pairs.items():
        shown = "".join(f"{fmean(values):<24.3f}" for values in pair)
        lines.append(f"{name:28}{some:>5}   {shown}change {paired_change(*pair).estimate.signed()}")
    return "\n".join(lines)


def rates_line(result: dict) -> str:
    """The three rates of one model, in a line.

    >>> print(rates_line(dict(greedy=[True, False], sampled=[[True] * 4 + [False] * 4])))
    greedy 0.500 (0.095 to 0.905) of 2 prompts, sampled 0.500 and pass@8 1.000 of 1
    """
    sampled = result["sampled"]
    found = f"sampled {fmean(map(fmean, sampled)):.3f} and pass@8 {fmean(map(any, sampled)):.3f} of {len(sampled)}"
    return f"greedy {_rate(result['greedy'])} of {len(result['greedy'])} prompts, {found}"


def examples_line(result: dict, after: dict) -> str:
    """What examples in the prompt give without training, next to what training gives on the same prompts.

    >>> print(examples_line(dict(greedy=[True, False]), dict(greedy=[True] * 3)))
    3 examples in the prompt, untrained: greedy 0.500 (0.095 to 0.905) of 2 prompts; trained, without examples: 1.000
    """
    right = result["greedy"]
    trained = fmean(after["greedy"][: len(right)])
    untrained = f"{EXAMPLES} examples in the prompt, untrained: greedy {_rate(right)} of {len(right)} prompts"
    return f"{untrained}; trained, without examples: {trained:.3f}"


def transcripts(before: dict, after: dict, count: int = 4) -> str:
    """What the model answered greedily to the first held-out prompts, before and after training."""
    shown = zip(after["kinds"], after["asked"], before["texts"], after["texts"], strict=False)
    parts = [f"{asked} ({kind})\n  before: {old!r}\n  after:  {new!r}" for kind, asked, old, new in shown]
    return "\n".join(parts[:count])


def _rate(right: list[bool]) -> str:
    low, high = wilson_interval(sum(right), len(right))
    return f"{fmean(right):.3f} ({low:.3f} to {high:.3f})"
