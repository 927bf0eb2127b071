"""From a trained policy to something that others can load, with proof of what it is.

A 4-bit policy is trained as *quantized base + adapter*. Merging the adapter into the 4-bit
weights would round it away, so it goes into the unquantized base. That merge is exact, which
is shown in fp32. It is still not the policy that was trained: the base under the adapter
has changed from 4 bits to full precision. So the two are evaluated apart.

| room | what it holds |
|---|---|
| `adapters` | save an adapter that names its base by a name that others can use |
| `merging` | merge into the unquantized base, prove it, save it; into the 4-bit base, to compare |
| `cards` | a model card from `report.json` |
| `publishing` | which files go to the Hub, and the upload, a dry run by default |
| `serving` | llama.cpp's converter, Ollama's `Modelfile`, vLLM's command |
| `server` | serve a model on this machine, on a CPU too, and ask it |
"""

from .adapters import public_name, save_adapter
from .cards import model_card, write_card
from .merging import (
    LARGEST_DIFFERENCE,
    Merge,
    export_merged,
    logits,
    merge_adapter,
    merge_into_4bit,
    save_merged,
)
from .publishing import push
from .server import ask_server, served, server_command
from .serving import convert_to_gguf, gguf_command, modelfile, ollama_template, vllm_command
