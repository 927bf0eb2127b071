"""Rules about how a run is set up: its memory, columns, prompts and tools, and the weights of what vLLM sampled."""

import math
import re
from collections.abc import Iterator
from statistics import NormalDist, fmean

from ...findings import Finding
from ...logs.log import Log
from ...rule import adding_to, found
from .. import limits
from .rule import ENDLESS, UNPAID, LogRule, log_of

#: The error of vLLM whose share of the GPU is too small, which needs the opposite of the other advice.
_NO_CACHE = "No available memory for the cache blocks"
_MORE_FOR_VLLM = "raise vllm_gpu_memory_utilization (in Unsloth: gpu_memory_utilization), or load a smaller model."
#: Messages of out-of-memory errors: PyTorch on CUDA, ROCm and CPU; cuBLAS; vLLM; Python.
_MEMORY_TEXTS = (
    "out of memory",
    "can't allocate memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    _NO_CACHE,
    "MemoryError",
)
#: A call without some of its arguments, as Python reports it: the function, if it has a name, and the arguments.
MISSING = re.compile(
    r"(?:(?<![\w.<>])([\w.<>]{1,100})\(\) )?missing \d+ required (?:positional|keyword-only) arguments?: (.+)"
)
#: What no column provides: TRL 1.14 passes these to rewards by itself, and the last three are not passed to a reward.
_NOT_COLUMNS = {"prompts", "completions", "completion_ids", "trainer_state", "log_extra", "log_metric", "environments"}
_NOT_COLUMNS |= {"self", "old_hidden_states", "mm_token_type_ids"}


RULES: list[LogRule] = []
rule = adding_to(RULES, LogRule)


@rule(
    "note",
    "the log begins again at its first step, so only what was logged since then is judged",
    why="the run was started again, or the file holds several runs.",
    fixes=("to judge another run, put its rows alone into a file.",),
    harmless=True,
    example=[*log_of(20, reward=lambda step: step / 20), *log_of(20, reward=lambda step: step / 20)],
)
def begun_again(log: Log) -> Iterator[Finding]:
    """A step that comes again later than the first is a run that was resumed there, and is not reported."""
    if log.restarts:
        yield found(seen=f"{log.restarts + 1} times from step {log.entries[0]['step']}")


@rule(
    "error",
    "the run needs more memory than there is",
    why="the run stopped, and the next one will stop at the same place.",
    fixes=(
        "halve per_device_train_batch_size and double gradient_accumulation_steps (as many completions, but slower).",
        "if sampling failed, keep steps_per_generation as it was, so that fewer completions are sampled at once.",
        "turn gradient_checkpointing on, if you turned it off.",
        "reduce max_completion_length.",
        "load the base model in 4 bits.",
        "set optim='adamw_8bit'.",
        "use a smaller model. Where complete groups keep the batch large, reduce num_generations (to 4 at least).",
    ),
    steps=0,
    example="CUDA out of memory. Tried to allocate 2.00 GiB.",
)
def out_of_memory(log: Log) -> Iterator[Finding]:
    """The error comes from PyTorch, cuBLAS, vLLM or Python itself."""
    memory = [line.strip() for line in log.error.splitlines() if any(known in line for known in _MEMORY_TEXTS)]
    if memory:
        yield found("", *([_MORE_FOR_VLLM] if _NO_CACHE in memory[0] else []), seen=memory[0][:160])


@rule(
    "error",
    "a reward parameter that matches no dataset column",
    why="TRL passes columns to a reward by name, so the call raises a TypeError.",
    fixes=(
        "give the column and the parameter the same name: dataset.rename_column(old, new), or rename the parameter.",
        "if the reward can do without it, give the parameter a default value.",
    ),
    steps=0,
    example="TypeError: accuracy_reward() missing 1 required positional argument: 'solution'",
)
def missing_column(log: Log) -> Iterator[Finding]:
    """The call of a reward failed because of an argument that no column provides."""
    call = MISSING.search(log.error)
    if not call:
        return
    name, columns = call[1] or "a reward", re.findall(r"'(\w+)'", call[2])
    # A reward is a function, or an object with __call__.
    is_reward = name != "main" and ("__" not in name or name.endswith("__call__"))
    if is_reward and not _NOT_COLUMNS.intersection(columns):
        needs = f"the column{'s' * (len(columns) > 1)} {', '.join(map(repr, columns))}"
        yield found(f"{name} needs {needs}, which the dataset does not have", seen=call[0][:160])


@rule(
    "error",
    "plain text prompts for a chat model",
    why="TRL applies the chat template only to lists of messages, so the model never sees a question in its format.",
    fixes=("make each prompt a list of messages: [{'role': 'user', 'content': question}].",),
    hides=(UNPAID, ENDLESS),
    steps=1,
    example=[*log_of(1), {"step": 1, "health/string_prompts": 1.0}],
)
def string_prompt(log: Log) -> Iterator[Finding]:
    """The callback saw plain string prompts although the tokenizer has a chat template."""
    if 1.0 in log.checked("string_prompts"):
        what = "the prompts are plain strings, but the model is a chat model"
        yield found(what, seen=f"the prompts are plain strings; reward {log.entries[-1]['reward']:.3g}")


@rule(
    "error",
    "the run has tools, but no completion calls one",
    why="GRPO can only reinforce calls that are sampled, so the policy does not learn to use the tools.",
    fixes=(
        "read a completion as text (log_completions=True): does the prompt show the tools, and in which format?",
        "use a model whose chat template supports tools.",
        "say in the system prompt that the tool must be called, or teach some calls with SFT first.",
        "with thinking on, check that completions do not end at the limit before a call.",
    ),
    early=lambda log: log.steps < limits.TREND_STEPS,
    example=log_of(20, tools__call_frequency=0.0),
)
def tools_not_called(log: Log) -> Iterator[Finding]:
    """TRL logs ``tools/call_frequency``, calls per completion, in runs with tools."""
    frequencies = log.values("tools/call_frequency")
    if frequencies and max(frequencies) == 0:
        yield found(seen=f"tools/call_frequency was 0 in all of the {log.steps} steps")


@rule(
    "error",
    "the importance sampling correction leaves completions little weight",
    why="completions whose probabilities differ between vLLM and the trainer hardly count, so a step learns from few.",
    fixes=(
        "set top_p=1.0 and top_k=0; otherwise vLLM's probabilities are higher than the trainer's for every token.",
        "use the same dtype, weights and adapter in vLLM and in the trainer.",
        "if sampling/sampling_logp_difference/mean is near 0 and completions are long, set "
        "vllm_importance_sampling_mode='token_truncate', which weights each token by itself.",
    ),
    early=lambda log: _weight(log) >= limits.WEIGHT_GONE,
    example=log_of(10, sampling__importance_sampling_ratio__mean=0.05),
)
def low_importance_weight(log: Log) -> Iterator[Finding]:
    """TRL logs the ratios of vLLM's correction after masking or truncation, which are the weights in the loss.

    Before masking, the mean ratio of completions is 1 if vLLM samples from the probabilities that it reports. In
    ``sequence_mask``, what is missing to 1 was masked: it is the share of those completions under the trainer's policy.
    """
    if (weight := _weight(log)) > limits.WEIGHT_LOW:
        return
    said = f"mean importance ratio {weight:.2g} over the last {limits.FEWEST_STEPS} steps (without any mismatch: 1)"
    yield found(seen="; ".join(filter(None, [said, _by_chance(log)])))


def _weight(log: Log) -> float:
    """The mean weight of recent completions; 1.0 if it is not logged, or 0 for want of vLLM, as Unsloth logs it."""
    ratios = log.values("sampling/importance_sampling_ratio/mean", limits.FEWEST_STEPS)
    differences = log.values("sampling/sampling_logp_difference/mean", limits.FEWEST_STEPS)
    absent = not any(ratios) and bool(differences) and not any(differences)
    return fmean(ratios) if ratios and not absent else 1.0


def _by_chance(log: Log) -> str:
    """The ratio that the lengths and the differences of the same steps let expect."""
    differences = log.values("sampling/sampling_logp_difference/mean", limits.FEWEST_STEPS)
    lengths = log.values("completions/mean_length", limits.FEWEST_STEPS)
    if not differences or not lengths:
        return ""
    apart, tokens = fmean(differences), fmean(lengths)
    expected = expected_weight(max(apart, 0.0), max(tokens, 0.0))
    return f"random differences of {apart:.2g} nats per token over {tokens:.0f} tokens would leave {expected:.2g}"


def expected_weight(difference: float, tokens: float, most: float = 3.0) -> float:
    """The mean ratio that ``sequence_mask``, TRL's default, leaves if vLLM and the trainer differ only by chance.

    Normal differences with this mean size per token add up to a log-ratio with a standard deviation ``spread``, and to
    ratios with the mean 1. Ratios above ``most`` (``vllm_importance_sampling_clip_max``) are then set to 0.

    >>> [round(expected_weight(0.02, tokens), 2) for tokens in (100, 1000, 4000)]
    [1.0, 0.84, 0.46]
    """
    spread = difference * math.sqrt(math.pi / 2 * tokens)
    return NormalDist(spread**2 / 2, spread).cdf(math.log(most)) if spread else 1.0
