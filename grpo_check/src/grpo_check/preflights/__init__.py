"""Find in seconds what would make a run fail or waste it, before any weights are loaded.

    >>> from grpo_check import preflight
    >>> preflight({"learning_rate": 1e-5}, gpu="l4").ok
    True

`preflight` checks arguments, tokenizer, rows, rewards and machine. It checks only what you pass, and the report
says what it skipped. From a terminal: ``grpo-check preflight config.yaml``.

| module | contents |
|---|---|
| `planned` | the given arguments and TRL's defaults |
| `values` | the values of a config, sorted by the type hints of its class |
| `models`, `columns` | the model of a name, and the columns that other names mean |
| `misfits`, `arguments`, `machine`, `rows`, `texts`, `lengths`, `rewards`, `thinking`, `memory` | the rules |
| `sizes`, `estimate` | memory and minutes |
| `checking` | the call, ``RULES`` with all rules, and which of them can look |
| `report` | the report |
| `config_file` | your own file: a config, a training script (`scripts`) or a shell script (`shell`) |
| `sections`, `foreign` | configs with sections, and those of other tools |
| `named_rows`, `named_rewards` | the rows and the rewards that a file names |
| `words` | advice in the words of a YAML file |

A rule is a `Rule`. Its example is the smallest change to a sound run in which it finds the problem: arguments of
`GRPOConfig`, settings of `preflight`, attributes of the ``tokenizer``, columns of one ``row``, ``keys`` of a config
file, or the size of the model's ``vocabulary``.
"""
