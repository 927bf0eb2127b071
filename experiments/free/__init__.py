"""What GRPO adds to what is free: the rooms of experiments/bench_free.py.

| module | what it does |
|---|---|
| `arms` | what each arm trains, and the order of the cells |
| `answering` | answers prompts: computes what all prompts begin with once, and can keep to a JSON schema |
| `cells` | one cell of the table: its run, and where it is stored |
| `clock` | the minutes of a cell, and whether it ran alone |
| `measuring` | greedy accuracy, sampled accuracy and pass@8 of one cell, batch by batch |
| `prompts` | the prompts with examples, and those written with care |
| `table` | the page: rates with intervals, and paired tests between arms |
| `training` | SFT and GRPO that go on where they were stopped |
"""
