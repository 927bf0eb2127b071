"""Fair comparisons of a model before and after training: the same prompts, template and decoding.

    before = evaluate(policy, tokenizer, rows, max_new_tokens=32)
    …train…
    after = evaluate(policy, tokenizer, rows, max_new_tokens=32)
    print(compare(before, after))

`evaluate` generates two completions for each prompt. One is sampled at the training temperature, as GRPO does.
The other is greedy, as most people will use the model.
`evaluate_samples` generates several completions for each prompt, for pass@k and majority votes.

| module | what it holds |
|---|---|
| `judging` | completions of each prompt, and which of them are correctly formatted and correct |
| `statistics` | rates, intervals and tests of plain numbers |
| `comparing` | comparisons of two evaluations or several seeds, with a sentence that claims no more than was shown |
| `elsewhere` | questions that the training run did not ask |
"""
