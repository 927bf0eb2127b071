"""Before and after, fairly: the same prompts, the same template, the same decoding.

    before = evaluate(policy, tokenizer, rows, max_new_tokens=32)
    …train…
    after = evaluate(policy, tokenizer, rows, max_new_tokens=32)
    print(compare(before, after))

Each prompt is answered twice: once sampled at the training temperature, which is how GRPO
itself sees the policy, and once greedily, which is how most people will use the model.
`evaluate_samples` answers each prompt several times, for pass@k and majority votes.

| module | what it holds |
|---|---|
| `judging` | completions for each prompt (by `grpo_utils.run.measuring.generate`); which are in form, and right |
| `statistics` | rates, intervals, tests; numbers in, numbers out |
| `comparing` | two evaluations, or several seeds, the sentence that is fair to say, and texts side by side |
"""
