"""From a trained policy to a model that others can load, with a check of each step.

A 4-bit policy is a quantized base with an adapter. Merging the adapter into the 4-bit weights would round it away, so
it goes into the unquantized base in fp32, where the merge is exact up to rounding. The merged model is still not the
policy that was trained, because its base has full precision. So the two are evaluated separately.

| module | what it holds |
|---|---|
| `adapters` | save an adapter that names its base by its public name |
| `merging` | merge into the unquantized base, and check a saved merge |
| `cards` | a model card from `report.json` |
| `publishing` | which files go to the Hub, and the upload, a dry run by default |
| `ollama` | the chat template of an Ollama `Modelfile` |
| `server` | serve a model on this machine, also on a CPU |
"""
