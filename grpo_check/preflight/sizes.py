"""How large a model is, read from its configuration: no weights are loaded or downloaded."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from grpo_utils.errors import CourseError
from grpo_utils.models import LORA_TARGETS, model_path

if TYPE_CHECKING:
    from torch import nn
    from transformers import PretrainedConfig, PreTrainedModel


@dataclass(frozen=True)
class Sizes:
    """What of a model decides memory and time. Parameters are counts, the rest are widths.

    Attributes:
        linear: parameters of the linear layers but the output head; these are what 4 bits quantize.
        other: all other parameters (embeddings, output head, norms), tied ones counted once.
        lora_per_rank: parameters of an adapter of rank 1 on the course's seven projections.
        layers, hidden, intermediate, heads, kv_heads, head_dim, vocabulary: as in the configuration.
    """

    linear: int
    other: int
    lora_per_rank: int
    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int

    @property
    def parameters(self) -> int:
        """All parameters of the base."""
        return self.linear + self.other


def read_config(model: "str | PretrainedConfig") -> "PretrainedConfig":
    """A model's configuration by the model's name; a configuration is given back as it is.

    Raises:
        CourseError: transformers cannot read it.
    """
    from transformers import AutoConfig

    if not isinstance(model, str):
        return model
    try:
        return AutoConfig.from_pretrained(model_path(model))
    except (ValueError, KeyError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise CourseError(f"model={model!r} has a configuration that cannot be read: {reason}.") from error


def model_sizes(model: "str | PretrainedConfig") -> Sizes:
    """The sizes of a model, from its configuration alone.

    The architecture is built on torch's meta device, where a parameter has a shape and no memory.

    >>> sizes = model_sizes("tiny-qwen3")
    >>> sizes.parameters, sizes.linear, sizes.layers
    (459520, 393216, 2)

    Raises:
        CourseError: the configuration cannot be read, or is of a family whose sizes are not known (GPT-2, T5).
    """
    empty = _empty(read_config(model))
    text, linear = read_config(model).get_text_config(), _linear_layers(empty)
    if not linear:
        raise CourseError(f"the sizes of a {type(empty).__name__} are not known: it has no linear layers of torch.")
    try:
        return _sizes(text, empty, linear)
    except (AttributeError, KeyError, TypeError) as error:
        raise CourseError(f"the sizes of a {type(empty).__name__} are not known: {error}.") from error


def _empty(config: "PretrainedConfig") -> "PreTrainedModel":
    """The architecture without weights."""
    import torch
    from transformers import AutoModelForCausalLM

    try:
        with torch.device("meta"):
            return AutoModelForCausalLM.from_config(config)
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError, ImportError) as error:
        reason = str(error).splitlines()[0][:120]
        raise CourseError(f"the sizes of a {type(config).__name__} are not known: {reason}") from error


def _sizes(config: "PretrainedConfig", empty: "PreTrainedModel", linear: "dict[str, nn.Linear]") -> Sizes:
    """The sizes of an empty model; families that name a width differently map it to the usual name."""
    text = {**config.to_dict(), **{usual: vars(config)[own] for usual, own in config.attribute_map.items()
                                   if own in vars(config)}}  # fmt: skip
    adapted = [m for name, m in linear.items() if name.rpartition(".")[2] in LORA_TARGETS] or list(linear.values())
    heads = text["num_attention_heads"]
    return Sizes(
        linear=sum(module.weight.numel() for module in linear.values()),
        other=_parameters(empty) - sum(module.weight.numel() for module in linear.values()),
        lora_per_rank=sum(module.in_features + module.out_features for module in adapted),
        layers=text["num_hidden_layers"],
        hidden=text["hidden_size"],
        intermediate=max(max(module.in_features, module.out_features) for module in linear.values()),
        heads=heads,
        kv_heads=text.get("num_key_value_heads") or heads,
        head_dim=text.get("head_dim") or text["hidden_size"] // heads,
        vocabulary=text["vocab_size"],
    )


def _linear_layers(model: "PreTrainedModel") -> "dict[str, nn.Linear]":
    """Every linear layer but the output head, which stays unquantized and gets no adapter."""
    from torch import nn

    head = model.get_output_embeddings()
    return {name: m for name, m in model.named_modules() if isinstance(m, nn.Linear) and m is not head}


def _parameters(model: "PreTrainedModel") -> int:
    """All parameters, a head that is tied to the embeddings counted once."""
    total = sum(parameter.numel() for parameter in model.parameters())
    head, embeddings = model.get_output_embeddings(), model.get_input_embeddings()
    tied = model.config.get_text_config().tie_word_embeddings and head.weight is not embeddings.weight
    return total - (head.weight.numel() if tied else 0)
