"""Complete `fake_card.pretend` after Unsloth is imported: its GPU trainer, and kernels that a CPU can run.

Triton's interpreter runs most kernels unchanged. Torch replaces those that a tiny model calls thousands of times
(RMSNorm, RoPE, SwiGLU) for speed, and bitsandbytes' CPU code replaces its CUDA code.
"""

import os
import sys
from types import ModuleType

import torch
from fake_card import Card, become_available


def finish(card: Card) -> None:
    """Patch TRL as Unsloth does on a GPU, and replace the kernels; call it right after ``import unsloth``."""
    import unsloth.models.rl
    from unsloth import FastLanguageModel  # noqa: F401  it completes the import of Unsloth's models
    from unsloth.models.llama import FastLlamaModel

    replace_kernels()
    replace_4bit()
    set_everywhere("ALLOW_BITSANDBYTES", True)  # a CPU build of bitsandbytes counts as missing
    if card.has_bf16:  # without a device, Unsloth returns False
        set_everywhere("SUPPORTS_BFLOAT16", True)
        for name in ("is_bfloat16_supported", "device_is_bf16_supported"):
            set_everywhere(name, lambda *args: True)
    become_available(card)
    os.environ["UNSLOTH_ALLOW_CPU"] = "0"  # while it is 1, Unsloth does not patch TRL's trainer
    unsloth.models.rl.PatchFastRL(FastLanguageModel=FastLlamaModel)


def unsloth_modules() -> list[ModuleType]:
    return [module for name, module in sys.modules.items() if name.startswith("unsloth") and module]


def set_everywhere(name: str, value: object) -> None:
    """Set a name in all of Unsloth's modules that have it, because they import it from each other."""
    for module in unsloth_modules():
        if name in vars(module):
            setattr(module, name, value)


def replace_kernels() -> None:
    import unsloth.kernels.rms_layernorm as rms
    import unsloth.kernels.rope_embedding as rope

    rms.Fast_RMS_Layernorm.apply = staticmethod(rms_norm)
    rope._fast_rope_embedding_eager = rotate
    set_everywhere("swiglu_fg_kernel", swiglu)
    set_everywhere("swiglu_DWf_DW_dfg_kernel", swiglu_backward)


def rms_norm(x, weight, eps, gemma=False, *_):
    normed = x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + eps)
    if gemma:
        return (normed * (weight.float() + 1)).to(x.dtype)
    return normed.to(weight.dtype if weight.dtype == x.dtype else x.dtype) * weight


def rotate(q, k, cos, sin, indices=None):
    """Rotary embeddings: ``q`` and ``k`` of shape (batch, heads, tokens, size)."""
    cos, sin = (rows(table.squeeze(), q, indices) for table in (cos, sin))
    return tuple(x * cos.to(x.dtype) + half_turned(x) * sin.to(x.dtype) for x in (q, k))


def rows(table, q, indices):
    """The table's row for each token, broadcast over the heads."""
    batch, _, tokens, size = q.shape
    if indices is None:
        found = table[:tokens][None]
    else:
        found = table[indices.reshape(-1).long()].view(batch, -1, table.shape[-1])
        found = found if found.shape[1] == tokens else found.expand(batch, tokens, -1)
    found = found[:, None]
    return torch.cat([found, found], -1) if found.shape[-1] == size // 2 else found


def half_turned(x):
    half = x.shape[-1] // 2
    return torch.cat([-x[..., half:], x[..., :half]], -1)


def swiglu(e, g):
    return (e.float() * torch.sigmoid(e.float())).to(e.dtype) * g


def swiglu_backward(dw, e, g):
    """Overwrite the arguments with the three results, as Unsloth's kernel does."""
    sigmoid = torch.sigmoid(e.float())
    f = (sigmoid * e.float()).to(dw.dtype)
    h, df, dg = f * g, dw * f, dw * g
    de = (dg.float() * sigmoid * (1 + e.float() * (1 - sigmoid))).to(dw.dtype)
    dw.copy_(h), e.copy_(df), g.copy_(de)
    return dw, e, g


def replace_4bit() -> None:
    """Use bitsandbytes' CPU code where Unsloth calls its CUDA library by pointer."""
    from bitsandbytes.functional import dequantize_4bit

    def fast_dequantize(weight, quant_state=None, *_, **__):
        return weight if quant_state is None else dequantize_4bit(weight, quant_state)

    def fast_gemv(x, weight, quant_state, out=None):
        full = dequantize_4bit(weight, quant_state)
        return x @ (full if full.shape[0] == x.shape[-1] else full.t())

    set_everywhere("fast_dequantize", fast_dequantize)
    set_everywhere("fast_gemv", fast_gemv)
