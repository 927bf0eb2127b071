"""Check the arguments of `GRPOConfig`: names, types, values, and how they fit together."""

import math
import types
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from numbers import Real
from typing import Union, get_args, get_origin, get_type_hints

from grpo_utils.arguments import check_batch, check_names, group_sizes
from grpo_utils.errors import CourseError, did_you_mean

from .planned import Planned
from .report import Finding

#: What TRL 1.14 accepts where it checks only after the first completions were sampled, or never.
CHOICES = {
    "loss_type": ("grpo", "dr_grpo", "dapo", "bnpo", "cispo", "sapo", "luspo", "vespo"),
    "scale_rewards": ("group", "batch", "none", True, False),
    "importance_sampling_level": ("token", "sequence"),
    "multi_objective_aggregation": ("sum_then_normalize", "normalize_then_sum"),
    "vllm_mode": ("colocate", "server"),
}

#: The least value of a number, whether it may be reached, and what else would happen (run with TRL 1.14).
RANGES = {
    "learning_rate": (0, False, "nothing would be learned; a negative one is refused by the optimizer"),
    "max_completion_length": (1, True, "nothing would be sampled: generate() raises"),
    "per_device_train_batch_size": (1, True, "the data loader raises"),
    "gradient_accumulation_steps": (1, True, "the data loader raises"),
    "steps_per_generation": (1, True, "nothing would be sampled"),
    "per_device_eval_batch_size": (1, True, "the data loader raises"),
    "num_iterations": (1, True, "the run would end at step 0"),
    "beta": (0, True, "the policy would be paid for leaving the model that it started from"),
    "top_p": (0, False, "only the likeliest token is left: all completions of a group would be the same"),
    "top_k": (0, True, "generate() raises"),
    "warmup_steps": (0, True, "GRPOConfig raises"),
    "epsilon": (0, False, "every update would be clipped away"),
    "min_p": (0, True, "generate() raises"),
    "repetition_penalty": (0, False, "generate() raises"),
    "vllm_gpu_memory_utilization": (0, False, "vLLM refuses to start"),
}
#: The largest value of a number, and what else would happen.
MOST = {"min_p": (1, "generate() raises"), "vllm_gpu_memory_utilization": (1, "vLLM refuses to start")}

#: Above this a number is a typing error: no run counts or measures so far.
LARGEST = 10**15
#: Numbers that must be finite; an infinite epsilon or max_grad_norm just clips nothing.
FINITE = ("learning_rate", "beta", "temperature", "top_p", "warmup_steps", "repetition_penalty", "num_train_epochs")

#: Counts for which TRL takes 8.0 as 8; for the others it raises.
TAKES_FLOATS = ("max_completion_length",)

#: Words that argparse, as transformers sets it up, reads as a switch.
SWITCHES = {"true": True, "yes": True, "false": False, "no": False}
#: Loggers that are a package of their name, and what pip calls it where that is another name.
PACKAGES = ("wandb", "trackio", "tensorboard", "mlflow", "swanlab", "comet_ml")
LOGGERS = {"comet_ml": "comet-ml", "azure_ml": "azureml-core"}
#: Below so many generations most groups tie where a reward has few values.
FEWEST_FOR_COARSE = 4
#: Completion lengths below which many completions of a real model are cut off.
SHORT = 256


def names(run: Planned) -> list[Finding]:
    """Every name that `GRPOConfig` does not know."""
    found = []
    if run.constructed:
        return found
    for name in run.given:
        try:
            check_names([name])
        except CourseError as error:
            what, _, mend = str(error).partition(": ") if "is gone" in str(error) else (str(error), "", "")
            hint = did_you_mean(name, run.defaults).strip()
            found.append(
                Finding(
                    "unknown_argument",
                    what,
                    "plain TRL raises a TypeError; Unsloth on a GPU drops it with a printed line and goes on.",
                    _sentence(mend) if mend else f"{hint} Write that name, or take it out.".strip(),
                )
            )
    return found


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "."


def value_types(run: Planned) -> list[Finding]:
    """Numbers and switches that are given as text, words that are given as switches, and None where a value belongs."""
    within = {name: value for name, value in run.given.items() if not _is_beyond(name, value)}
    beyond = [_beyond(name, value) for name, value in run.given.items() if name not in within]
    wanted = field_types()
    if run.constructed:  # it has made objects of words and mappings, and left numbers as they were given
        wanted = {name: kinds for name, kinds in wanted.items() if kinds <= {int, float, bool}}
    return beyond + wrong_types(within, wanted, run.defaults)


def wrong_types(given: dict, wanted: dict[str, set], defaults: dict) -> list[Finding]:
    """The values that are of another type than wanted."""
    found = []
    for name, value in given.items():
        kinds = wanted.get(name, {object})
        if isinstance(value, str) and kinds <= {int, float, bool}:
            found.append(_text(name, value, kinds))
        elif value is not None and not isinstance(value, Real) and kinds <= {int, float, bool}:
            found.append(_no_number(name, value, kinds))
        elif isinstance(value, Real) and dict in kinds and not kinds & {int, float, bool, object}:
            why = "transformers takes anything but a mapping for the name or number of a file and opens it."
            found.append(Finding("wrong_type", f"{name}={value!r}, and {name} is a mapping.", why, f"{name}={{…}}."))
        elif isinstance(value, float) and math.isnan(value):
            why = "comparisons with NaN are never true, so no check in TRL catches it; the run then computes NaN."
            mend = f"A number; TRL's default is {defaults.get(name)!r}."
            found.append(Finding("wrong_type", f"{name}={value!r} is not a number.", why, mend))
        elif isinstance(value, float) and kinds == {int} and not (name in TAKES_FLOATS and value.is_integer()):
            why = "range() and torch want a whole number; the run fails later, with a TypeError somewhere else."
            mend = f"{name}={int(value) if math.isfinite(value) else defaults.get(name)!r}."
            found.append(Finding("wrong_type", f"{name}={value!r}, and {name} is {_listed(kinds)}.", why, mend))
        elif isinstance(value, bool) and not kinds & {bool, object} and name != "scale_rewards":
            found.append(_switch(name, value, defaults.get(name)))
        elif value is None and name != "max_steps" and kinds <= {int, float} and defaults.get(name) is not None:
            why = "GRPOConfig does not look; the run fails later, with a TypeError somewhere else."
            mend = f"Leave it out: TRL's default is {defaults[name]!r}."
            found.append(Finding("wrong_type", f"{name}=None, and {name} is {_listed(kinds)}.", why, mend))
    return found


def _no_number(name: str, value: object, kinds: set) -> Finding:
    why = "GRPOConfig does not look; the run fails later, with a TypeError somewhere else."
    first = next(iter(value), None) if isinstance(value, list | tuple | set) and len(value) == 1 else None
    mend = "One value alone." if first is None else f"{name}={first!r}."
    what = f"{name}={value!r} is a {type(value).__name__}, and {name} is {_listed(kinds)}."
    return Finding("wrong_type", what, why, mend)


def _text(name: str, value: str, kinds: set) -> Finding:
    why = "GRPOConfig does not look; the run fails later, with a TypeError somewhere else."
    why += " (YAML reads 1e-5 as text: a number with an exponent needs a dot there.)" if "e" in value.lower() else ""
    what = f"{name}={value!r} is a text, and {name} is {_listed(kinds)}."
    return Finding("wrong_type", what, why, f"{name}={_as_number(value)}.")


def _switch(name: str, value: bool, default: object) -> Finding:
    why = "YAML reads the words no, off, yes and on as False and True; GRPOConfig or the trainer raises."
    mend = f"A value of its own; TRL's default is {default!r}." if value else f"{name}: 'no', in quotes."
    return Finding("wrong_type", f"{name}={value} is a switch, and {name} is none.", why, mend)


def readable(run: Planned) -> dict:
    """The arguments for all further checks: of a wrong type only as what they can be read as."""
    wrong = {finding.what.partition("=")[0] for finding in value_types(run)}
    read, _ = as_argparse(run.given)
    return {name: value for name, value in read.items() if name not in wrong or value is not run.given[name]}


def as_argparse(given: dict, wanted: dict[str, set] | None = None) -> tuple[dict, list[Finding]]:
    """The arguments of a file as ``trl grpo`` reads them: a text that is a number or a switch becomes one.

    ``wanted`` holds the types of each, those of `GRPOConfig` if not given.

    >>> as_argparse({"learning_rate": "1e-5", "use_cpu": "yes"})[0]
    {'learning_rate': 1e-05, 'use_cpu': True}
    """
    wanted, read, found = wanted or field_types(), dict(given), []
    for name, value in given.items():
        number = _read(value, wanted.get(name, {str})) if isinstance(value, str) else None
        if number is None:
            continue
        read[name] = number
        why = (
            "YAML reads it as text (a number with an exponent needs a dot). `trl grpo` turns it into a number; "
            "GRPOConfig(**yaml.safe_load(…)) does not, and the run fails with a TypeError."
        )
        found.append(Finding("text_number", f"{name}: {value!r} is a text.", why, f"{name}: {_as_number(value)}"))
    return read, found


def _read(text: str, kinds: set) -> int | float | bool | None:
    """A text as one of the types, or None."""
    if not kinds <= {int, float, bool}:
        return None
    if bool in kinds:
        return {**SWITCHES, "1": True, "0": False}.get(text.lower())
    try:
        number = float(text)
    except ValueError:
        return None
    if not abs(number) <= LARGEST:  # NaN is not
        return None
    if float in kinds:
        return number
    return int(number) if number == int(number) else None


def field_types(kind: type | None = None) -> dict[str, set]:
    """The types of each field of a dataclass (`GRPOConfig` if not given), None left out.

    From the annotations: a command-line parser of transformers rewrites the types of the fields themselves.
    """
    from trl import GRPOConfig

    return {name: _plain_types(one) for name, one in get_type_hints(kind or GRPOConfig).items()}


def _plain_types(kind: object) -> set:
    """The types of an annotation without None: ``int | None`` is ``{int}``."""
    if get_origin(kind) in (Union, types.UnionType):
        return {one for one in get_args(kind) if one is not type(None)}
    return {kind}


def _listed(kinds: set) -> str:
    said = {int: "a whole number", float: "a number", bool: "True or False"}
    return " or ".join(sorted(said[kind] for kind in kinds))


def _as_number(text: str) -> str:
    """How a text would be written as a value: 1e-5 as 1.0e-05, which YAML reads too."""
    if text.strip().lower() in SWITCHES:
        return str(SWITCHES[text.strip().lower()])
    try:
        number = float(text)
    except ValueError:
        return "a number, without quotes"
    return f"{number:.1e}" if "e" in text.lower() else f"{number:g}"


def steps(run: Planned) -> list[Finding]:
    """max_steps and epochs."""
    value = run["max_steps"]
    if value is None:
        return [
            Finding(
                "max_steps_none",
                "max_steps=None.",
                "the trainer compares it with a number and raises \"'>' not supported between NoneType and int\".",
                "max_steps=-1 for whole epochs (num_train_epochs), or the number of steps.",
            )
        ]
    if isinstance(value, int | float) and value <= 0 and run["num_train_epochs"] <= 0:
        what = f"max_steps={value} and num_train_epochs={run['num_train_epochs']}."
        return [Finding("out_of_range", what, "the run would end at step 0.", "max_steps=100, or num_train_epochs=1.")]
    if isinstance(value, int | float) and value <= 0 and "max_steps" in run.given and value != -1:
        return [
            Finding(
                "steps_ignored",
                f"max_steps={value} counts as not given.",
                f"the run then takes num_train_epochs={run['num_train_epochs']} epochs.",
                "max_steps=1 for a short trial, -1 if whole epochs are meant.",
            )
        ]
    return []


def ranges(run: Planned) -> list[Finding]:
    """Numbers that an argument cannot have."""
    found = []
    for name, (least, reached, why) in RANGES.items():
        value = run[name]
        if name == "top_k" and value == -1 and run["use_vllm"]:
            continue  # vLLM's word for all tokens
        if name.startswith("vllm") and not run["use_vllm"]:
            continue
        if isinstance(value, int | float) and (value < least or (value == least and not reached)):
            bound = f"{least} or more" if reached else f"above {least}"
            mend = f"{name} should be {bound}; TRL's default is {run.defaults[name]}."
            found.append(Finding("out_of_range", f"{name}={value!r}.", f"{why}.", mend))
    return found + _too_large(run)


def _too_large(run: Planned) -> list[Finding]:
    found = []
    for name, (most, why) in MOST.items():
        value = run[name]
        if isinstance(value, int | float) and value > most and (run["use_vllm"] or not name.startswith("vllm")):
            mend = f"{name} should be {most} or less; TRL's default is {run.defaults[name]}."
            found.append(Finding("out_of_range", f"{name}={value!r}.", f"{why}.", mend))
    return found


def _is_beyond(name: str, value: object) -> bool:
    """Whether a number, or one of a list of them, is larger than any run needs."""
    if isinstance(value, list | tuple):
        return any(_is_beyond(name, one) for one in value)
    if isinstance(value, float) and math.isinf(value):
        return name in FINITE
    return isinstance(value, int) and abs(value) > LARGEST


def _beyond(name: str, value: object) -> Finding:
    shown = repr(value) if isinstance(value, float) else f"a number of more than {len(str(LARGEST)) - 1} digits"
    why = "no run counts or measures that far; Python itself does not print a number of 4,300 digits."
    return Finding("out_of_range", f"{name}={shown}.", why, f"{name} within {LARGEST:.0e}.")


def weights(run: Planned) -> list[Finding]:
    """Weights of rewards that are no numbers."""
    value = run["reward_weights"]
    odd = [one for one in value if not isinstance(one, int | float)] if isinstance(value, list | tuple) else []
    if not odd:
        return []
    what = f"reward_weights={list(value)!r}: {odd[0]!r} is no number."
    return [Finding("reward_weights", what, "torch makes a tensor of them, and raises.", "reward_weights=[1.0, …].")]


def choices(run: Planned) -> list[Finding]:
    """Words that TRL does not know and notices late or never."""
    found = []
    for name, valid in CHOICES.items():
        if run[name] not in valid:
            words = [str(word) for word in valid if isinstance(word, str)]
            hint = did_you_mean(str(run[name]), words).strip()
            late = "TRL takes it for 'colocate' or fails in vLLM." if name == "vllm_mode" else (
                "GRPOConfig does not look; TRL raises after the first completions were sampled."
            )  # fmt: skip
            mend = f"{hint} Valid: {', '.join(words)}.".strip()
            found.append(Finding("unknown_choice", f"{name}={run[name]!r} is unknown.", late, mend))
    return found


def temperature(run: Planned) -> list[Finding]:
    """A temperature at which a group has nothing to compare."""
    value = run["temperature"]
    if not isinstance(value, int | float) or (value > 0 and run["top_k"] != 1):
        return []
    setting = "top_k=1" if value > 0 else f"temperature={value}"
    return [
        Finding(
            "temperature_zero",
            f"{setting} samples greedily.",
            "all completions of a group would be the same, every advantage zero; at temperature 0 generate() raises.",
            "temperature=1.0 and top_k=0, which are TRL's defaults.",
        )
    ]


def groups(run: Planned) -> list[Finding]:
    """Group size and training batch."""
    size, batch = run["num_generations"], run["per_device_train_batch_size"]
    if _whole(size) and size < 2:
        why = "GRPO compares the completions of one prompt with each other; TRL raises a ValueError."
        return [Finding("group_too_small", f"num_generations={size}.", why, "num_generations=8 (4 at least).")]
    at_once = 1 if run["steps_per_generation"] is None else run["steps_per_generation"]
    sizes = batch, run["gradient_accumulation_steps"], at_once
    if not _whole(size, *sizes) or min(sizes) < 1:
        return []
    problem = _generation_batch(run)
    if problem:
        return problem
    return _whole_groups("batch", run.processes * batch, run.steps_per_generation, size, run.processes)


def _whole(*values: object) -> bool:
    return all(isinstance(value, int) and not isinstance(value, bool) for value in values)


def _generation_batch(run: Planned) -> list[Finding]:
    """generation_batch_size against the other sizes."""
    wanted, each = run["generation_batch_size"], run["per_device_train_batch_size"] * run.processes
    if wanted is None:
        return []
    if run["steps_per_generation"] is not None:
        what = f"generation_batch_size={wanted} and steps_per_generation={run['steps_per_generation']} are both given."
        return [
            Finding("generation_batch", what, "TRL derives one from the other and raises.", "Leave one of them out.")
        ]
    if not _whole(wanted) or (wanted % each == 0 and wanted >= each):
        return []
    whole = math.lcm(each, run["num_generations"])  # whole steps and whole groups
    valid = ", ".join(str(whole * number) for number in (1, 2, 4))
    what = f"generation_batch_size={wanted} is no multiple of the {each} completions of one step on all devices."
    return [Finding("generation_batch", what, "TRL raises a ValueError.", f"generation_batch_size={valid}.")]


def _whole_groups(code: str, completions: int, times: int, size: int, processes: int) -> list[Finding]:
    """Whether whole groups fit, with the valid alternatives of `check_batch`."""
    try:
        check_batch(completions, times, size)
    except CourseError as error:
        what, _, mend = str(error).partition(". Valid ")
        if processes > 1:
            what += f" (per_device_train_batch_size counts {processes} processes together here)"
            mend = _for_processes(completions * times, times, size, processes)
        return [Finding(code, f"{what}.", "TRL raises a ValueError: a group must not be cut.", f"Valid {mend}")]
    return []


def _for_processes(completions: int, times: int, size: int, processes: int) -> str:
    """Group sizes and batches of one process with which whole groups fit into all processes together."""
    sizes = ", ".join(map(str, group_sizes(completions))) or "none"
    each = size // math.gcd(size, processes * times)
    return f"num_generations here: {sizes}. Valid per_device_train_batch_size: {each}, or a multiple of it."


def evaluation(run: Planned) -> list[Finding]:
    """The evaluation batch, and whether there is something to evaluate on."""
    off = str(run["eval_strategy"]).rpartition(".")[2].lower() in ("no", "false")
    found = [] if off and not run["eval_on_start"] else _no_eval_rows(run, off)
    if off:
        return found
    size, batch = run["num_generations_eval"] or run["num_generations"], run["per_device_eval_batch_size"]
    if _whole(size, batch) and size >= 2 and batch >= 1 and (batch * run.processes) % size:
        what = f"per_device_eval_batch_size={batch} x {run.processes} processes cannot be cut into groups of {size}."
        smaller = [number for number in group_sizes(batch * run.processes) if number < size]
        mend = f"per_device_eval_batch_size={size}, or a multiple" + (
            f"; or num_generations_eval={smaller[-1]}." if smaller else "."
        )
        why = "TRL raises a ValueError; gradient accumulation does not count here."
        found.append(Finding("eval_batch", what, why, mend))
    return found


def _no_eval_rows(run: Planned, off: bool) -> list[Finding]:
    """Evaluation at steps or at the start, and nothing to evaluate on."""
    if run.heldout is not None or run.train is None:
        return []
    said, mend = ("eval_on_start=True", "eval_on_start=False") if off else (
        f"eval_strategy={run['eval_strategy']!r}", "eval_strategy='no'"
    )  # fmt: skip
    why = 'the trainer raises: "you didn\'t pass an eval_dataset", or "evaluation requires an eval_dataset".'
    mend = f"give heldout=… here and eval_dataset=… to GRPOTrainer, or {mend}."
    return [Finding("no_eval_rows", f"{said} and no held-out rows.", why, mend)]


def loss(run: Planned) -> list[Finding]:
    """Losses without the settings that belong to them."""
    kind, level, found = run["loss_type"], run["importance_sampling_level"], []

    def warn(what: str, why: str, mend: str) -> None:
        found.append(Finding("loss_incomplete", what, why, mend))

    if kind == "dr_grpo" and run["scale_rewards"] not in (False, "none"):
        warn(
            f"loss_type='dr_grpo' with scale_rewards={run['scale_rewards']!r}.",
            "Dr. GRPO takes out the division by the group's standard deviation too (arXiv:2503.20783).",
            "scale_rewards='none'.",
        )
    if kind == "cispo" and (run["epsilon_high"] or run["epsilon"]) <= 1:
        warn(
            f"loss_type='cispo' with epsilon_high={run['epsilon_high']!r}.",
            "CISPO caps the importance weight at epsilon_high: at 1 or below every weight is cut (arXiv:2506.13585).",
            "epsilon_high=5.0.",
        )
    if kind == "luspo" and level != "sequence":
        warn(
            f"loss_type='luspo' with importance_sampling_level={level!r}.",
            "its paper weights whole sequences, and TRL warns.",
            "importance_sampling_level='sequence'.",
        )
    if kind == "vespo" and level != "token":
        warn(
            f"loss_type='vespo' with importance_sampling_level={level!r}.",
            "it computes sequence weights itself, and TRL warns.",
            "importance_sampling_level='token'.",
        )
    if level == "sequence" and kind in ("bnpo", "dr_grpo", "dapo", "cispo"):
        warn(
            f"importance_sampling_level='sequence' with loss_type={kind!r}.",
            "that loss sums over tokens, so each sequence would count by its length, and TRL warns.",
            "loss_type='grpo', which with it is GSPO (arXiv:2507.18071).",
        )
    return found


def learning(run: Planned) -> list[Finding]:
    """Settings that rarely learn anything."""
    rate, found = run["learning_rate"], []
    why_low = (
        "an adapter needs about ten times the rate of full fine-tuning (LoRA Without Regret, Thinking Machines, 2025)."
    )
    if isinstance(rate, int | float) and rate >= 1e-2:
        why = "published GRPO runs take 1e-6 (all weights) to 1e-4 (adapters); the tiny models of this course 2e-3."
        found.append(
            Finding("learning_rate", f"learning_rate={rate:g} is very high.", why, "1e-5 for an adapter to begin with.")
        )
    elif isinstance(rate, int | float) and 0 < rate < 2e-6 and run.lora_rank:
        what = f"learning_rate={rate:g} is low for an adapter" + (
            "; it is TRL's default." if "learning_rate" not in run.given else "."
        )
        found.append(Finding("learning_rate", what, why_low, "learning_rate=1e-5."))
    size = run["num_generations"]
    if _whole(size) and 2 <= size < FEWEST_FOR_COARSE:
        why = "with a reward of few values most groups of 2 or 3 score alike, and such a group teaches nothing."
        found.append(Finding("small_groups", f"num_generations={size}.", why, "num_generations=8 (4 at least)."))
    length = run["max_completion_length"]
    if run["mask_truncated_completions"] and _whole(length) and length < SHORT:
        why = "what reaches the limit teaches nothing then; if most do, the update is empty (see clipped_ratio)."
        what = f"mask_truncated_completions=True with max_completion_length={length}."
        found.append(Finding("truncated_masked", what, why, "mask_truncated_completions=False, or longer completions."))
    return found


def reporting(run: Planned) -> list[Finding]:
    """Loggers that are unknown or not installed."""
    from transformers.integrations.integration_utils import INTEGRATION_TO_CALLBACK

    value, found = run["report_to"], []
    if value is None and "report_to" in run.given and not run.constructed:
        why = "transformers takes None for the name of a logger, and the trainer raises a ValueError."
        return [Finding("report_to", "report_to=None.", why, "report_to='none', the word, or leave it out.")]
    for name in value if isinstance(value, list | tuple) else [value or "none"]:
        if name in ("none", "all"):
            continue
        if not isinstance(name, str) or name not in INTEGRATION_TO_CALLBACK:
            hint = did_you_mean(str(name), INTEGRATION_TO_CALLBACK).strip()
            mend = f"{hint} Or report_to='none'.".strip()
            found.append(
                Finding("report_to", f"report_to={name!r} is unknown.", "the trainer raises a ValueError.", mend)
            )
        elif not run.elsewhere and name in PACKAGES and find_spec(name) is None:
            mend = f"pip install {LOGGERS.get(name, name)}, or report_to='none'."
            why = "the trainer raises when it is built, after the model was loaded."
            found.append(Finding("report_to", f"report_to={name!r} needs the package {name!r}.", why, mend))
    return found


def refused(run: Planned) -> list[Finding]:
    """What `GRPOConfig` itself says, asked on the CPU; only where no other check has found an error."""
    from trl import GRPOConfig

    if run.processes > 1 or run.constructed:
        return []
    # On the CPU, so that a run meant for a GPU can be checked without one; the rest is looked at elsewhere.
    own = {"use_cpu": True, "bf16": False, "fp16": False, "report_to": "none", "tf32": None, "use_vllm": False}
    try:
        with device_state_kept():
            GRPOConfig(**{**run.given, **own, "output_dir": run.given.get("output_dir") or "outputs"})
    except Exception as error:  # transformers' own code runs here on whatever was given: what it raises, the run raises
        mend = "Change what it names; each argument is described in TRL's documentation of GRPOConfig."
        return [Finding("refused", f"GRPOConfig refuses these arguments: {error}", "it raises at once.", mend)]
    return []


@contextmanager
def device_state_kept() -> Iterator[None]:
    """Leave accelerate's state as it was, whatever the block builds.

    All `TrainingArguments` of a process share it, the newest wins: a config built here for the CPU would send a
    trainer whose config was built before to the CPU as well.
    """
    from accelerate.state import AcceleratorState, PartialState

    shared = (PartialState._shared_state, AcceleratorState._shared_state)
    before = [dict(state) for state in shared]
    try:
        yield
    finally:
        for state, values in zip(shared, before, strict=True):
            state.clear()
            state.update(values)
