"""The size of a model from its configuration, without loading or downloading weights."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from grpo_core.errors import CourseError

from .models import read_config

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel


@dataclass(frozen=True)
class Sizes:
    """The sizes of a model that determine memory and time. Parameters are counts, the rest are widths.

    Attributes:
        linear: parameters of the linear layers except the output head; these are what 4 bits quantize.
        other: all other parameters (embeddings, output head, norms), tied ones counted once.
        lora_per_rank: parameters of an adapter of rank 1 on every linear layer except the output head.
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


def model_sizes(model: "str | PretrainedConfig") -> Sizes:
    """The sizes of a model, from its configuration alone.

    The architecture is built on torch's meta device, where a parameter has a shape and no memory.

    >>> from transformers import LlamaConfig
    >>> sizes = model_sizes(LlamaConfig(hidden_size=64, intermediate_size=256, num_hidden_layers=2, vocab_size=1000))
    >>> sizes.parameters, sizes.linear, sizes.layers
    (259392, 131072, 2)

    Raises:
        CourseError: the configuration cannot be read, or is of a family whose sizes are not known (GPT-2, T5).
    """
    import torch
    from transformers import AutoModelForCausalLM

    config = read_config(model)
    try:
        with torch.device("meta"):
            return _sizes(config.get_text_config(), AutoModelForCausalLM.from_config(config))
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError, ImportError) as error:
        reason = str(error).splitlines()[0][:120]
        raise CourseError(f"the sizes of a {type(config).__name__} are not known: {reason}") from error


def _sizes(config: "PretrainedConfig", empty: "PreTrainedModel") -> Sizes:
    """The sizes of a model without weights; families that name a width differently map it to the usual name."""
    from torch import nn

    own = vars(config)
    text = {**config.to_dict(), **{usual: own[name] for usual, name in config.attribute_map.items() if name in own}}
    head, embeddings, heads = empty.get_output_embeddings(), empty.get_input_embeddings(), text["num_attention_heads"]
    layers = [module for module in empty.modules() if isinstance(module, nn.Linear) and module is not head]
    linear = sum(module.weight.numel() for module in layers)
    tied = config.tie_word_embeddings and head.weight is not embeddings.weight  # counted once
    every = sum(parameter.numel() for parameter in empty.parameters()) - (head.weight.numel() if tied else 0)
    return Sizes(
        linear=linear,
        other=every - linear,
        lora_per_rank=sum(module.in_features + module.out_features for module in layers),
        layers=text["num_hidden_layers"],
        hidden=text["hidden_size"],
        intermediate=max(max(module.in_features, module.out_features) for module in layers),
        heads=heads,
        kv_heads=text.get("num_key_value_heads") or heads,
        head_dim=text.get("head_dim") or text["hidden_size"] // heads,
        vocabulary=text["vocab_size"],
    )
