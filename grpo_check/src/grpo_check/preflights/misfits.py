"""Rules on the names and types of arguments: which does `GRPOConfig` not know, and which values are of another type?"""

from collections.abc import Iterator

from grpo_core.errors import did_you_mean

from ..findings import Finding
from ..rule import Rule, adding_to, found
from .foreign import OF_OPEN_R1, REMOVED, SYNONYMS, in_trl
from .planned import PlannedRun
from .values import Values, kinds_of

RULES: list[Rule] = []
rule = adding_to(RULES)

#: As many names without a known origin are the settings of a script of your own, not typos.
_FEWEST_OF_A_SCRIPT = 3
#: How similar a name must be to one of TRL's for a typo: 'micro_batch_size' is none of 'generation_batch_size'.
SIMILAR = 0.82
#: How similar it must be in a file of another script.
_CLOSE = 0.93
#: Where settings of a key of a config file are in Python, whose GRPOConfig does not have them.
_IN_LORA = {
    "lora_r": "pass LoraConfig(r=…) to GRPOTrainer as peft_config.",
    "lora_target_modules": "pass LoraConfig(target_modules=…) to GRPOTrainer as peft_config.",
    "use_peft": "pass LoraConfig(…) to GRPOTrainer as peft_config.",
    "load_in_4bit": "pass quantization_config=BitsAndBytesConfig(load_in_4bit=True) where the model is loaded.",
    "dtype": "write 'dtype' where the model is loaded.",
}
_UNKNOWN_KEY = "trl grpo passes it to accelerate launch, which stops with a usage message."
_UNKNOWN_KEYS = "trl grpo passes them to accelerate launch, which stops with a usage message."
#: What to do about names for which writing another one is not enough.
_ADVICE = {
    "max_prompt_length": "filter the dataset, because TRL no longer truncates prompts.",
    "warmup_ratio": "write 'warmup_steps'; a value below 1 is a share of the steps, such as warmup_steps=0.1.",
    "overwrite_output_dir": "give each run its own output_dir.",
    "vllm_device": "remove it: TRL runs vLLM in the training process, or uses a server (vllm_mode).",
    "wandb_project": "set the environment variable WANDB_PROJECT.",
    "wandb_entity": "set the environment variable WANDB_ENTITY.",
    "wandb_run_name": "write 'run_name'.",
    "tokenizer": "pass processing_class=tokenizer to GRPOTrainer.",
    **dict.fromkeys(
        ("max_seq_length", "max_seq_len", "sequence_len", "max_length", "max_model_len"),
        "remove it: TRL limits completions alone, with max_completion_length. Unsloth's loader has such an argument.",
    ),
}
#: The arguments of GRPOTrainer in TRL 1.14 to 1.16. A list, because importing the trainer takes seconds.
OF_THE_TRAINER = (
    "model", "reward_funcs", "args", "train_dataset", "eval_dataset", "processing_class", "reward_processing_classes",
    "callbacks", "optimizers", "quantization_config", "peft_config", "tools", "rollout_func", "environment_factory",
)  # fmt: skip


@rule(
    "error",
    "a name that GRPOConfig does not know, such as a typo, a removed argument or one of GRPOTrainer",
    why="plain TRL raises a TypeError; Unsloth on a GPU prints a line, drops the argument and continues.",
    fixes=("correct the name, pass the argument to the class that has it, or remove it.",),
    example={"learnign_rate": 1e-3},
)
def unknown_argument(run: PlannedRun) -> Iterator[Finding]:
    """The finding says what to write instead of names of other tools, older releases and other classes."""
    values = run.values
    what, why = ("a key that trl grpo knows", _UNKNOWN_KEY) if values.from_yaml else ("an argument of GRPOConfig", "")
    shown = (*values.given, *(name for name in run.unknown if not name.startswith("**") and name != "num_processes"))
    unknown = [name for name in shown if name not in values.hints]
    typos = [name for name in unknown if _is_typo(values, name)]
    if is_for_a_script(values):
        whose = "open-r1's script" if {*unknown} & OF_OPEN_R1 else "a script of your own"
        named = ", ".join(in_trl(name, values.hints) for name in unknown if name not in typos)
        fixes = [f"if trl grpo reads this file, and not {whose}, correct or remove them."]
        if gone := [name for name in unknown if name in REMOVED]:
            fixes.append(f"whatever reads it: GRPOConfig and TRL's parser reject {', '.join(gone)} today.")
        yield found(f"trl grpo does not know the keys {named}.", *fixes, why=_UNKNOWN_KEYS, severity="warning")
        unknown = typos
    for name in unknown:
        guess = did_you_mean(str(name), values.hints, SIMILAR)
        yield found(f"{name!r} is not {what}.", _advice(values, name) or f"correct or remove it.{guess}", why=why)


def _is_typo(values: Values, name: str) -> bool:
    """Whether a name is hardly any but one of TRL's, and none of another script."""
    near = did_you_mean(str(name), values.hints, _CLOSE)
    return bool(near) and name not in OF_OPEN_R1 and name not in REMOVED and not _advice(values, name)


def is_for_a_script(values: Values) -> bool:
    """Whether a config file is for another script than TRL's: open-r1's, or one with several settings of its own."""
    unknown = [name for name in values.given if name not in values.hints]
    strange = [name for name in unknown if not _advice(values, name)]
    of_trl = [name for name in unknown if name in REMOVED or did_you_mean(str(name), values.hints, SIMILAR)]
    several = len(strange) >= _FEWEST_OF_A_SCRIPT or len(unknown) - len(of_trl) > 1
    return values.from_yaml and (several or bool(OF_OPEN_R1 & {*unknown}))


def _advice(given: Values, name: str) -> str:
    """What to do about a name that GRPOConfig does not have, if it is known from elsewhere."""
    if name in _ADVICE:
        return _ADVICE[name]
    meant = SYNONYMS.get(name, "")
    if meant in given.hints:
        return f"write {meant!r}."
    if name in OF_THE_TRAINER or meant in ("dataset_name", "reward_funcs", "model_name_or_path"):
        wanted = {"dataset_name": "train_dataset", "reward_funcs": "reward_funcs", "model_name_or_path": "model"}
        script = " in a script of your own" if given.from_yaml else ""
        return f"pass {wanted.get(meant, name)}=… to GRPOTrainer{script}, whose argument it is."
    return _IN_LORA.get(meant, "")


@rule(
    "error",
    "a value of the wrong type, such as a number written as a string",
    why="GRPOConfig does not check this, so the run fails later with an unrelated TypeError.",
    fixes=("write a value of the type that the finding names, numbers without quotes; or leave the argument out.",),
    example={"learning_rate": "1e-5"},
)
def wrong_type(run: PlannedRun) -> Iterator[Finding]:
    """The other rules do not see such a value. They take the default instead."""
    values = run.values
    for name, number in {} if values.from_yaml else values.numbers.items():
        yield found(f"{name}={values.given[name]!r} is a string.", f"write {name}={_written(number)} instead.")
    for name, value in values.usable.items():
        if isinstance(value, list) and (ends := [one for one in value if isinstance(one, str) and one.endswith(",")]):
            what = f"{name} has {ends[0]!r}, whose comma would be a part of the name."
            yield found(what, "separate the names with blanks alone.", why="there is nothing of this name.")
    for name in values.misfits:
        value, hint = values.known[name], values.hints[name]
        wanted = " or ".join(sorted(one.__name__ if isinstance(one, type) else str(one) for one in kinds_of(hint)))
        fix = f"leave it out (the default is {values.defaults.get(name)!r})."
        if value is False and str in kinds_of(hint):
            fix = f"write {name}: 'no' with quotes, because YAML reads no and off as False."
        elif isinstance(value, str) and list[str] in kinds_of(hint):
            fix = f"write {name}: [{value}] instead."
        yield found(f"{name}={value!r:.80} should be {wanted}.", fix)


@rule(
    "warning",
    "a number or a switch that YAML reads as a string",
    why="YAML reads what has quotes, or an exponent without a dot, as a string. `trl grpo` converts it; "
    "GRPOConfig(**yaml.safe_load(…)) does not, so a number fails with a TypeError, and 'no' counts as true.",
    fixes=("write the value without quotes, and a number with a dot before its exponent: 2.0e-3.",),
    example={"keys": {"learning_rate": "2e-3"}},
)
def text_number(run: PlannedRun) -> Iterator[Finding]:
    """The other rules see the value, because ``trl grpo`` converts it too."""
    for name, number in run.values.numbers.items() if run.values.from_yaml else ():
        yield found(f"{name}={run.values.given[name]!r} is a string.", f"write {name}: {_written(number)} instead.")


def _written(number: int | float | bool) -> str:
    """A number as YAML reads it: 1e-05 only with a dot."""
    text = repr(number)
    return text.replace("e", ".0e") if "e" in text and isinstance(number, float) and "." not in text else text
