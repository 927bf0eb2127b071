"""Train a real model against a reward for some minutes, and show what the reward really paid for.

`grpo_check.probe` tries fixed texts. A policy that is trained on the reward may find other faults; docs/results.md has
what it found. From a terminal: ``grpo-check attack FILE.py:function --rows rows.jsonl``.

| module | contents |
|---|---|
| `task` | the rows, and which completions are correct |
| `scoring` | calling the reward, and a memory of everything that it paid |
| `honest` | what a correct completion earns |
| `variations` | cheap changes of what was paid well |
| `demonstrations` | what the model is shown before, so that it knows a form that is paid |
| `training` | supervised steps on that, and GRPO until the time is up |
| `rules`, `report` | the judgment, and how it is printed |
| `running` | the whole attack from top to bottom |

An attack that finds nothing does not show that the reward is sound: a larger model or more steps may find more.
"""
