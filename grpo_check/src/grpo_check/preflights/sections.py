"""A config with sections, such as ``training: {learning_rate: 1.0e-5}``, as the flat mapping of TRL's keys.

``trl grpo`` knows no sections, so such a file is for a script of one's own. Its names are read as TRL's keys only where
that is clear: in a section with nothing but TRL's keys, and in one about the training.
"""

from typing import NamedTuple

from .foreign import in_trl

#: Sections about the training, whose other keys are named one by one.
_OF_TRAINING = {"train", "training", "trainer", "grpo", "rl", "grpo_config", "training_args", "training_arguments"}
_OF_TRAINING |= {"args", "hyperparameters", "lora", "peft", "model", "quantization", "vllm", "optimization"}
#: How the names of sections about something else begin; their keys may have TRL's names: ``eval: {temperature: 0}``.
_OF_OTHERS = ("eval", "valid", "test", "infer", "judge", "sft", "dpo", "teacher", "reward")


class Flat(NamedTuple):
    """A config without its sections, and what a reader should know about that.

    Attributes:
        config: the keys that were read.
        notes: which sections were read, and what in them was not; empty if there are no sections.
    """

    config: dict
    notes: tuple[str, ...] = ()


def without_sections(config: dict, names: set[str], others: set[str]) -> Flat:
    """A config as a flat mapping of TRL's keys.

    Args:
        config: the config.
        names: all keys of TRL.
        others: further keys that are no sections.

    >>> flat = without_sections({"lora": {"r": 8, "rank": 8}, "eval": {"seed": 1}}, {"lora_r", "seed"}, set())
    >>> flat.config, flat.notes[1]
    ({'lora_r': 8}, 'did not check what trl grpo has no such key for: lora.rank (lora_r in TRL), eval')
    """
    sections = {name: value for name, value in config.items() if isinstance(value, dict) and name not in names | others}
    flat = {name: value for name, value in config.items() if name not in sections}
    read, unknown, twice, left = [], [], [], list(sections.items())
    while left:
        section, keys = left.pop(0)
        inner = {key: value for key, value in keys.items() if isinstance(value, dict) and key not in names}
        known = {str(key): _meant(section, str(key), names) for key in keys if key not in inner}
        plain = str(section).lower()
        if plain.startswith(_OF_OTHERS) or not (all(known.values()) or plain in _OF_TRAINING):
            unknown.append(str(section))
            continue
        left += inner.items()
        read += [str(section)] if known else []
        unknown += [in_trl(f"{section}.{key}", names) for key in known if not known[key]]
        twice += [name for key, name in known.items() if name and flat.get(name, keys[key]) != keys[key]]
        flat |= {name: keys[key] for key, name in known.items() if name}
    notes = []
    if read:
        notes.append(f"read the keys in {', '.join(read)} as if they were in no section; trl grpo knows no sections")
    if unknown:
        unknown += [in_trl(name, names) for name in flat if name not in names | others]
        notes.append(f"did not check what trl grpo has no such key for: {', '.join(unknown)}")
    if twice:
        notes.append(f"did not check what is set to several values: {', '.join(dict.fromkeys(twice))}")
    kept = {name: value for name, value in flat.items() if name not in twice}
    return Flat({name: value for name, value in kept.items() if not sections or name in names | others}, tuple(notes))


def _meant(section: str, key: str, names: set[str]) -> str:
    """The key of TRL that a key in a section means, "" for none: ``r`` in ``lora`` is ``lora_r``."""
    together = f"{section}_{key}"
    return key if key in names else together if together in names else ""
