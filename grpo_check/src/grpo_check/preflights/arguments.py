"""Check the arguments of `GRPOConfig`: names, types, values, and how they fit together."""

import math
from collections.abc import Iterator
from importlib.util import find_spec
from operator import ge, gt, le

from grpo_core.errors import did_you_mean

from ..findings import Finding
from ..packages import trl_is_at_least
from ..rule import Rule, adding_to, found
from . import misfits, values
from .planned import KEEPS_INIT_KWARGS, PlannedRun, UnknownArgumentError

RULES: list[Rule] = []
rule = adding_to(RULES)

#: The choices of TRL 1.14 and 1.16 for arguments that it checks late or never.
CHOICES = {
    "loss_type": ("grpo", "dr_grpo", "dapo", "bnpo", "cispo", "sapo", "luspo", "vespo"),
    "scale_rewards": ("group", "batch", "none", True, False),
    "importance_sampling_level": ("token", "sequence"),
    "multi_objective_aggregation": ("sum_then_normalize", "normalize_then_sum"),
    "vllm_mode": ("colocate", "server"),
}

#: Names of methods that are set otherwise in TRL.
_MEANT = {
    ("loss_type", "gspo"): "set importance_sampling_level='sequence' and loss_type='grpo', which is GSPO.",
    ("loss_type", "drgrpo"): "set loss_type='dr_grpo' and scale_rewards='none'.",
    ("loss_type", "rloo"): "use RLOOTrainer, or one of GRPO's losses, such as loss_type='grpo'.",
    ("scale_rewards", "std"): "set scale_rewards='group', the standard deviation of each group.",
}

#: Numbers, their bounds, and what happens outside them (tried with TRL 1.14).
BOUNDS = (
    ("learning_rate", gt, 0, "the policy would not learn; the optimizer rejects a negative rate"),
    ("max_completion_length", ge, 1, "generate() raises because there is nothing to sample"),
    ("num_generations", ge, 2, "GRPO compares the completions of one prompt with each other"),
    ("per_device_train_batch_size", ge, 1, "the data loader raises"),
    ("gradient_accumulation_steps", ge, 1, "the data loader raises"),
    ("steps_per_generation", ge, 1, "no completions would be sampled"),
    ("generation_batch_size", ge, 1, "no completions would be sampled"),
    ("per_device_eval_batch_size", ge, 1, "the data loader raises"),
    ("num_iterations", ge, 1, "the run would end at step 0"),
    ("beta", ge, 0, "the policy would be rewarded for moving away from the reference model"),
    ("top_p", gt, 0, "only the most likely token would remain, so all completions of a group would be equal"),
    ("top_p", le, 1, "no share of the probability is above 1; generate() ignores it, vLLM rejects it"),
    ("top_k", ge, 0, "generate() raises"),
    ("epsilon", gt, 0, "clipping would remove every update"),
    ("min_p", ge, 0, "generate() raises"),
    ("min_p", le, 1, "generate() raises"),
    ("repetition_penalty", gt, 0, "generate() raises"),
    ("vllm_gpu_memory_utilization", gt, 0, "vLLM does not start"),
    ("vllm_gpu_memory_utilization", le, 1, "vLLM does not start"),
    ("vllm_max_model_length", ge, 1, "vLLM does not start"),
)
_IN_WORDS = {gt: "above {}", ge: "of at least {}", le: "of at most {}"}

#: Loggers that are a package of their name.
PACKAGES = ("wandb", "trackio", "tensorboard", "mlflow", "swanlab", "comet_ml")
#: With fewer generations, more groups tie if a reward has few values; pilots with 2 tied in 36% and 59%, and learned.
_FEWEST_FOR_COARSE = 4
#: Completion lengths below which many completions of a real model are cut off.
_SHORT_COMPLETIONS = 256
#: The largest group size that is suggested.
_LARGEST_GROUP = 1024
#: Temperatures below which groups may tie: in pilots of tiny models, 97% did at 0.1, and 16% at 0.3 (docs/results.md).
COLD = 0.3
#: The highest learning rate of the published runs with all weights that we know (open-r1's 1.5B demo), and the hidden
#: size up to which that says nothing, because small models learn at higher rates.
HIGHEST_FOR_ALL_WEIGHTS, TINY = 2e-5, 256
#: Faults of the arguments with which nothing can be computed.
UNCOUNTED = ("wrong_type", "out_of_range")


@rule(
    "error",
    "a number outside the valid range",
    why="outside its range a number makes the run fail, end at step 0, or learn nothing.",
    fixes=("set a value inside the range that the finding names, or leave the argument out.",),
    example={"max_completion_length": 0},
)
def out_of_range(run: PlannedRun) -> Iterator[Finding]:
    """Besides the bound of each argument, it rejects NaN, numbers that no run needs, and runs without a step."""
    for name in run.values.beyond:
        why = "no run needs a number that large, and a comparison with NaN is never true."
        fix = f"the default is {run.values.defaults.get(name)!r}."
        yield found(f"{name} is NaN or above {values.LARGEST:.0e}.", fix, why=why)
    for name, fits, bound, why in BOUNDS:
        value = None if name in run.unknown else run[name]
        unused = name.startswith("vllm") and not run["use_vllm"]
        all_tokens = name == "top_k" and value == -1 and run["use_vllm"]
        if value is not None and not fits(value, bound) and not unused and not all_tokens:
            fix = f"set {name} to a value {_IN_WORDS[fits].format(bound)}; TRL's default is {run.defaults[name]}."
            yield found(f"{name}={value!r} is out of range.", fix, why=f"{why}.")
    if run["max_steps"] <= 0 and run["num_train_epochs"] <= 0:
        what = f"max_steps={run['max_steps']} and num_train_epochs={run['num_train_epochs']}."
        yield found(what, "set max_steps=100 or num_train_epochs=1.", why="the run would end at step 0.")


@rule(
    "error",
    "a value that is not one of the argument's choices",
    why="GRPOConfig does not check this, so TRL or vLLM raises an error after the model is loaded.",
    fixes=("choose one of the values that the finding lists, or leave the argument out.",),
    example={"loss_type": "gpro"},
)
def unknown_choice(run: PlannedRun) -> Iterator[Finding]:
    """It looks only at arguments that TRL checks late or never, such as loss_type and scale_rewards."""
    for name, valid in CHOICES.items():
        if name not in run.unknown and run[name] not in valid:
            words = [word for word in valid if isinstance(word, str)]
            known = _MEANT.get((name, str(run[name]).lower().replace("-", "_")), "")
            fix = f"choose one of {', '.join(words)}.{did_you_mean(str(run[name]), words, misfits.SIMILAR)}"
            yield found(f"{name}={run[name]!r} is not a valid choice.", known or fix)


@rule(
    "warning",
    "max_steps is 0 or below, so the number of epochs applies",
    why="TRL counts steps only if max_steps is above 0, and otherwise trains for num_train_epochs epochs.",
    fixes=("set max_steps=1 for a short trial, or -1 for whole epochs.",),
    example={"max_steps": 0},
)
def steps_ignored(run: PlannedRun) -> Iterator[Finding]:
    """The value -1, which TRL itself uses for whole epochs, is not reported."""
    if run["max_steps"] <= 0 and run["max_steps"] != -1 and run["num_train_epochs"] > 0:
        why = f"TRL then trains for num_train_epochs={run['num_train_epochs']} epochs."
        yield found(f"max_steps={run['max_steps']} has no effect.", why=why)


@rule(
    "error",
    "greedy sampling, which makes all completions of a group equal",
    why="all completions of a group would be equal and every advantage 0; at temperature 0 generate() fails.",
    fixes=("set temperature=1.0 and top_k=0, TRL's defaults.",),
    example={"temperature": 0.0},
)
def temperature_zero(run: PlannedRun) -> Iterator[Finding]:
    """A temperature of 0 samples greedily, and so does top_k=1, which keeps only the most likely token."""
    if run["temperature"] <= 0 or run["top_k"] == 1:
        setting = "top_k=1" if run["temperature"] > 0 else f"temperature={run['temperature']}"
        yield found(f"{setting} samples greedily.")


@rule(
    "warning",
    "a temperature so low that most groups may tie",
    why="the completions of a group become nearly equal, and a tied group has no gradient.",
    fixes=("set temperature=1.0, TRL's default, or let the pilot measure how many groups tie.",),
    example={"temperature": 0.05},
)
def low_temperature(run: PlannedRun) -> Iterator[Finding]:
    """In pilots of tiny models, 97% of the groups tied at a temperature of 0.1, and 16% at 0.3."""
    if 0 < run["temperature"] < COLD:
        yield found(f"temperature={run['temperature']:g} is low for GRPO.")


@rule(
    "warning",
    "groups so small that many of them may tie",
    why="if a reward has few values, many groups of 2 or 3 tie, and a tied group has no gradient.",
    fixes=("set num_generations=8, or watch frac_reward_zero_std in the first steps.",),
    example={"num_generations": 2},
)
def small_groups(run: PlannedRun) -> Iterator[Finding]:
    """If a reward has many values, groups of 2 or 3 suffice, and you can ignore this."""
    if 2 <= run["num_generations"] < _FEWEST_FOR_COARSE:
        yield found(f"num_generations={run['num_generations']} is small.")


@rule(
    "warning",
    "truncated completions are masked although completions are short",
    why="the loss leaves masked completions out; if most are truncated, the update is empty (see clipped_ratio).",
    fixes=("set mask_truncated_completions=False, or raise max_completion_length.",),
    example={"mask_truncated_completions": True},
)
def truncated_masked(run: PlannedRun) -> Iterator[Finding]:
    """Masking is reported below 256 tokens, because most completions of a real model may be truncated there."""
    length = run["max_completion_length"]
    if run["mask_truncated_completions"] and length < _SHORT_COMPLETIONS:
        yield found(f"mask_truncated_completions=True with max_completion_length={length}.")


@rule(
    "error",
    "evaluation is on, but there are no held-out rows",
    why='the trainer raises "you didn\'t pass an eval_dataset" or "evaluation requires an eval_dataset".',
    fixes=("pass eval_dataset=… to GRPOTrainer and heldout=… to preflight, or turn evaluation off.",),
    example={"eval_strategy": "steps", "heldout": None},
)
def no_eval_rows(run: PlannedRun) -> Iterator[Finding]:
    """It looks only where training rows are given; without them, it is not known what else the run has."""
    if run.heldout is not None or run.train is None:
        return
    for name, off in (("eval_strategy", "no"), ("eval_on_start", False)):
        if run[name] != off:
            fix = f"pass heldout=… to preflight and eval_dataset=… to GRPOTrainer, or set {name}={off!r}."
            if run.values.from_yaml:
                off = "'no'" if off == "no" else "false"
                fix = f"add a split 'test' to the dataset and pass it as --heldout FILE, or write {name}: {off}."
            yield found(f"{name}={run[name]!r}, but there are no held-out rows.", fix)


@rule(
    "warning",
    "the best checkpoint is chosen by the loss",
    why="the checkpoint with the lowest eval_loss is kept, and GRPO's loss does not measure progress.",
    fixes=("set metric_for_best_model='eval_reward' or 'eval_rewards/NAME/mean', and greater_is_better=True.",),
    example={"load_best_model_at_end": True, "eval_strategy": "steps", "save_strategy": "steps"},
)
def best_by_loss(run: PlannedRun) -> Iterator[Finding]:
    """The loss is what transformers chooses by if metric_for_best_model is not set."""
    if run["load_best_model_at_end"] and run["metric_for_best_model"] in (None, "loss", "eval_loss"):
        yield found("load_best_model_at_end=True chooses by the loss.")


@rule(
    "warning",
    "a loss without the setting that its paper uses",
    why="TRL applies loss_type alone, and the method of the paper is the loss together with another setting.",
    fixes=("for dr_grpo set scale_rewards='none'.", "for cispo set epsilon_high=5.0."),
    example={"loss_type": "dr_grpo"},
)
def loss_incomplete(run: PlannedRun) -> Iterator[Finding]:
    """It knows Dr. GRPO and CISPO; for other losses TRL prints a warning of its own."""
    scaled, high = run["scale_rewards"], run["epsilon_high"] or run["epsilon"]
    if run["loss_type"] == "dr_grpo" and scaled not in (False, "none"):
        what = f"loss_type='dr_grpo' with scale_rewards={scaled!r}."
        why = "Dr. GRPO also removes the division by the standard deviation of the group (arXiv:2503.20783)."
        yield found(what, "set scale_rewards='none'.", why=why)
    if run["loss_type"] == "cispo" and high <= 1:
        what = f"loss_type='cispo' with epsilon_high={high!r}."
        why = "CISPO caps the importance weight at epsilon_high, and a cap of 1 cuts every weight (arXiv:2506.13585)."
        yield found(what, "set epsilon_high=5.0.", why=why)


@rule(
    "warning",
    "a learning rate far from the usual values for GRPO",
    why="far above the usual rate the policy can collapse, and far below it hardly learns.",
    fixes=("start with learning_rate=5e-5 for an adapter.", "start with learning_rate=1e-6 for all weights."),
    example={"learning_rate": 0.05},
)
def learning_rate(run: PlannedRun) -> Iterator[Finding]:
    """An adapter takes about ten times the rate of all weights, and a tiny model more than that."""
    rate = run["learning_rate"]
    if rate >= 1e-2:
        why = (
            "published GRPO runs use 1e-6 (all weights) to 1e-4 (adapters), and models of half a million weights 2e-3."
        )
        fix = "start with learning_rate=5e-5 for an adapter."
        yield found(f"learning_rate={rate} is very high.", fix, why=why)
    elif rate > HIGHEST_FOR_ALL_WEIGHTS and run.lora_rank == 0 and not _is_tiny(run):
        why = "GRPO with all weights usually takes about 1e-6, and far above that the policy can collapse."
        fix = "set learning_rate=1e-6, or train an adapter, for which 1e-5 to 2e-4 is usual."
        yield found(f"learning_rate={rate} is high for training all weights.", fix, why=why)
    elif 0 < rate < 2e-6 and run.lora_rank:
        default = "" if "learning_rate" in run.given else " (TRL's default)"
        why = "an adapter needs about 10x the learning rate of full fine-tuning (LoRA Without Regret, 2025)."
        what = f"learning_rate={rate} is low for an adapter{default}."
        yield found(what, "set learning_rate=1e-5.", why=why)


def _is_tiny(run: PlannedRun) -> bool:
    """Whether the model is known, and much smaller than any that is published."""
    width = run.model.config.get_text_config().to_dict().get("hidden_size") if run.model.config else None
    return width is not None and width <= TINY


@rule(
    "error",
    "a logger that is unknown or not installed",
    why="the trainer raises an error when it is created, after the model is loaded.",
    fixes=("install the logger's package, or set report_to='none'.",),
    example={"report_to": "wandbd"},
)
def report_to(run: PlannedRun) -> Iterator[Finding]:
    """For a GPU that is not on this machine, it does not look at what is installed here."""
    from transformers.integrations import get_reporting_integration_callbacks

    names = run["report_to"] if isinstance(run["report_to"], list | tuple) else [run["report_to"]]
    for name in names:
        try:
            get_reporting_integration_callbacks([] if name in ("none", "all") else [name])
        except ValueError as error:
            fix = f"write the name of a logger, or set report_to='none'.{did_you_mean(str(name), PACKAGES)}"
            yield found(f"report_to={name!r}: {error}", fix, why="the trainer raises this error.")
            continue
        if name in PACKAGES and not run.elsewhere and find_spec(name) is None:
            fix = f"run pip install {name}, or set report_to='none'."
            yield found(f"report_to={name!r} needs a package that is not installed.", fix)


@rule(
    "warning",
    "adapter settings without an adapter",
    why="without use_peft, TRL trains all weights instead of an adapter, which takes many times the memory.",
    fixes=("set use_peft: true.",),
    example={"keys": {"lora_r": 32, "use_peft": False}},
)
def peft_off(run: PlannedRun) -> Iterator[Finding]:
    """It looks only at a config file, because a script of your own makes the adapter itself."""
    lora = [name for name in run.values.usable if name.startswith("lora_")]
    if lora and not run.values.usable.get("use_peft") and run.lora_rank == 0:
        yield found(f"{lora[0]} is set, but use_peft is not.")


@rule(
    "warning",
    "model_init_kwargs in a config file, which trl grpo discards before TRL 1.15",
    why="this trl grpo replaces model_init_kwargs with the keys model_revision, attn_implementation and dtype.",
    fixes=("write what is in it as keys of the file, such as dtype: bfloat16; or update TRL to 1.15 or newer.",),
    example={"keys": {"model_init_kwargs": {"dtype": "bfloat16"}}},
)
def init_kwargs_discarded(run: PlannedRun) -> Iterator[Finding]:
    """The other rules see only the keys too, because they are what the model is loaded with."""
    given = run.values.usable.get("model_init_kwargs")
    if run.values.from_yaml and given and not trl_is_at_least(KEEPS_INIT_KWARGS):
        yield found(f"model_init_kwargs={given!r:.80} has no effect.")


@rule(
    "error",
    "the completions sampled at once are not a multiple of num_generations",
    why="every group must be complete, so TRL raises a ValueError.",
    fixes=(
        "set num_generations to a number that divides the completions sampled at once.",
        "set per_device_train_batch_size to a multiple of num_generations.",
    ),
    unless=UNCOUNTED,
    example={"num_generations": 6},
)
def batch(run: PlannedRun) -> Iterator[Finding]:
    """Sampled at once are per_device_train_batch_size x steps_per_generation x processes completions.

    Where generation_batch_size is set, `GRPOConfig` checks it itself.
    """
    size, each, steps = run["num_generations"], run["per_device_train_batch_size"], run.steps_per_generation
    completions = each * steps * run.known_processes()
    if run["generation_batch_size"] is not None or completions % size == 0:
        return
    sizes = [str(number) for number in range(2, min(completions, _LARGEST_GROUP) + 1) if completions % number == 0]
    least = size // math.gcd(size, steps * run.processes)
    on = f" x {run.processes} processes" if run.processes > 1 else ", on one process"
    what = (
        f"{completions} completions (per_device_train_batch_size {each} x steps_per_generation {steps}{on}) "
        f"are not divisible by num_generations={size}."
    )
    fixes = [f"set num_generations to one of {', '.join(sizes)}."] if sizes else []
    fixes.append(f"set per_device_train_batch_size={least} or a multiple of it.")
    if several := size // math.gcd(size, each * steps) if run.processes == 1 else 0:
        fixes.append(f"or train on {several} processes, or a multiple of {several}.")
    if run.backend == "unsloth" and run["steps_per_generation"] is None:
        why = f"Unsloth then sets per_device_train_batch_size to num_generations ({size}), which takes more memory."
        yield found(what, *fixes, why=why, severity="warning")
    else:
        yield found(what, *fixes)


@rule(
    "error",
    "ModelConfig itself rejects the keys of a config file",
    why="TRL raises this error at the start.",
    fixes=("change the key that it names.",),
    example={"keys": {"load_in_4bit": True, "load_in_8bit": True}},
)
def model_refused(run: PlannedRun) -> Iterator[Finding]:
    """It makes a `ModelConfig` of the keys, without those of the wrong type, which ``wrong_type`` reports."""
    from trl import ModelConfig

    of_model = values.hints_of(ModelConfig) if ModelConfig in run.values.kinds else {}
    try:
        ModelConfig(**{name: value for name, value in run.values.usable.items() if name in of_model})
    except ValueError as error:
        yield found(f"ModelConfig rejects these keys: {error}")


#: After any other error of the arguments, TRL's own message would only repeat it. `refused` is the last rule of this
#: module, so that none is missing here; what `ModelConfig` rejects is something else.
_OTHER_ERRORS = tuple(
    one.code
    for one in (*misfits.RULES, *RULES)
    if one.severity == "error" and one not in (model_refused, misfits.unknown_argument)
)


@rule(
    "error",
    "GRPOConfig itself rejects the arguments",
    why="GRPOConfig raises this error.",
    fixes=("change the argument that it names; TRL's documentation of GRPOConfig describes each one.",),
    unless=_OTHER_ERRORS,
    example={"auto_find_batch_size": True},
)
def refused(run: PlannedRun) -> Iterator[Finding]:
    """It makes a `GRPOConfig` as for a CPU without DeepSpeed, so an error that only these cause is not seen."""
    if run.unknown:
        raise UnknownArgumentError(run.unknown[0])
    import torch
    from trl import GRPOConfig

    class OnCpu(GRPOConfig):
        """Leaves accelerate's state alone, which all trainers of a process share."""

        device = torch.device("cpu")  # newer releases of TRL read its type
        world_size = run.processes

    try:
        OnCpu(**{**run.given, "use_cpu": True, "report_to": "none", "tf32": None, "deepspeed": None})
    except Exception as error:  # transformers' own code: what it raises, the run raises too
        yield found(f"GRPOConfig rejects these arguments: {error}")
