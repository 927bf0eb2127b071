"""Attack a reward before a training run does.

    >>> from grpo_check import probe
    >>> from grpo_core.rewards import correctness_reward
    >>> probe(correctness_reward, answers=["42"])
    correctness_reward: 104 completions as chat messages, format <reasoning>…</reasoning><answer>…</answer>, judged by the answer (42).
    ok: 0 errors, 0 warnings

`probe` builds a matrix of completions for a few gold answers, each labeled correct, wrong or neutral. It scores
them and applies a few rules to the scores. From a terminal: ``grpo-check probe FILE.py:function``.

| module | contents |
|---|---|
| `forms`, `answers`, `matrix` | the completions |
| `calling` | calling a reward as TRL does |
| `planning` | the answers, the format and the kind of judgment |
| `discovery` | the format that a reward expects, from its own code |
| `growth` | the check that its run time is bounded |
| `collecting`, `trial` | scoring the completions in several ways, and what that showed |
| `rules`, `examples` | the judgment: one rule per fault, and a reward with that fault |
| `probing`, `report` | the whole probe from top to bottom, and its report |
| `targets`, `loading`, `kinds` | a reward from your own file: what a target names, its import, what makes a reward of it |
| `sources`, `syntax`, `candidates`, `parts`, `costs` | a reward from a script or a notebook, which is not run |

The lab finds what is broken on the completions that it tries. It does not know your task: a reward that passes may
still reward the wrong thing.
"""  # noqa: E501
