"""Train SmolLM2-135M-Instruct, a real language model, and measure what it gained: ``python -m grpo_utils real``.

| module | what it does |
|---|---|
| `training` | the command: fetches the model, measures it, trains it with the template structured_output, and merges |
| `measuring` | greedy accuracy, sampled accuracy and pass@8 of a model on held-out prompts, before and after |

``project/`` has the three files of the template that this training replaces, as its users do.
"""
