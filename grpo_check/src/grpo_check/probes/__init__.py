"""Attack a reward before a training run does.

    >>> from grpo_check import probe
    >>> from grpo_core.rewards import correctness_reward
    >>> probe(correctness_reward, answers=["42"])
    ok: correctness_reward, judged by the answer (42), 105 completions as chat messages, format <reasoning>…</reasoning><answer>…</answer>.
      right answers paid too little: 0 of 6.
      wrong answers paid more than a usual wrong one: 0 of 42.

`probe` builds a matrix of completions for a few gold answers, each labeled correct, wrong or neutral. It scores
them and applies a few rules to the scores. From a terminal: ``grpo-check probe FILE.py:function``.

| module | contents |
|---|---|
| `targets`, `loading`, `kinds` | a reward from your own file: what a target names, its import, what makes a reward of it |
| `sources`, `syntax`, `candidates`, `parts`, `costs` | a reward from a script or a notebook, which is not run |
| `forms`, `answers`, `matrix` | the completions |
| `signatures`, `calling`, `limits` | calling a reward as TRL does |
| `trying` | what a reward does with the completions |
| `judging` | what that says about it |
| `probing`, `report` | the whole probe from top to bottom, and its report |

It finds what is broken on the completions that it tries. It does not know your task: a reward that passes may
still reward the wrong thing.
"""  # noqa: E501
