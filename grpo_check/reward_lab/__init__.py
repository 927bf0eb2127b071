"""Attack a reward before a training run does.

    >>> from grpo_check import probe
    >>> from grpo_utils import correctness_reward
    >>> probe(correctness_reward, answers=["42"])
    correctness_reward: 98 completions, chat messages in the form <reasoning>…</reasoning><answer>…</answer>, judged by the answer (42).
    ok: 0 errors, 0 warnings

`probe` builds a matrix of completions for a few gold answers, each labelled right, wrong or neutral, scores
it, and judges the scores by a few rules. From a terminal: ``python -m grpo_check probe FILE.py:function``.

| room | what it holds |
|---|---|
| `forms`, `answers`, `matrix` | the completions |
| `calling` | call a reward as TRL does |
| `planning` | with which answers, in which form, judged by what |
| `discovery` | the form that a reward wants, from its own code |
| `growth` | whether its time is bounded |
| `probing` | gather the evidence |
| `rules` | the judgement |
| `report` | what is said |
| `loading` | a reward from a file of yours |

It finds what is broken on what it tries. It does not know your task: a reward that comes out ok may
still pay the wrong thing.
"""  # noqa: E501

from .probing import probe
from .report import CODES, ProbeReport

__all__ = ["CODES", "ProbeReport", "probe"]
