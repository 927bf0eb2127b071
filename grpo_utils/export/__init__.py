"""From a trained policy to something that others can load, with proof of what it is.

A 4-bit policy is trained as *quantized base + adapter*. Merging the adapter into the 4-bit
weights would round it away, so it goes into the unquantized base. That merge is exact, which
is shown in fp32. It is still not the policy that was trained: the base under the adapter
has changed from 4 bits to full precision. So the two are evaluated separately.

| module | what it holds |
|---|---|
| `adapters` | save an adapter that names its base by a name that others can use |
| `merging` | merge into the unquantized base, prove it, save it; into the 4-bit base, to compare |
| `cards` | a model card from `report.json` |
| `publishing` | which files go to the Hub, and the upload, a dry run by default |
| `ollama` | the chat template of an Ollama `Modelfile` |
| `server` | serve a model on this machine, on a CPU too, and ask it |
"""
