"""Tasks with a check and no answers to imitate: the rooms of experiments/bench_checked.py.

| module | what it does |
|---|---|
| `arms` | what answers the prompts: the untrained model, self-training or GRPO |
| `data`, `rewards` | in place of those of `make real`, for GRPO on such a task |
| `measuring` | which answers are right, which parts are, and how alike they are |
| `tasks` | the tasks: what is asked, and the program that checks |
"""
