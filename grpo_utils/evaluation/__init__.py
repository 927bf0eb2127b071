"""Before and after, fairly: the same prompts, the same template, the same decoding.

    before = evaluate(policy, tokenizer, rows, max_new_tokens=32)
    …train…
    after = evaluate(policy, tokenizer, rows, max_new_tokens=32)
    print(compare(before, after))

Each prompt is answered twice: once sampled at the training temperature, which is how GRPO
itself sees the policy, and once greedily, which is how most people will use the model.
`evaluate_samples` answers each prompt several times, for pass@k and majority votes.

| room | what it holds |
|---|---|
| `generating` | completions from a model |
| `judging` | which of them are in form, and right |
| `statistics` | rates, intervals, tests; numbers in, numbers out |
| `comparing` | two evaluations, or several seeds, and the sentence that is fair to say |
| `samples` | texts side by side |
"""

from .comparing import (
    Comparison,
    SeedsComparison,
    before_after,
    compare,
    compare_seeds,
    rates_table,
    split_gain,
    verdict,
)
from .generating import generate, generate_samples
from .judging import Evaluation, Samples, evaluate, evaluate_samples, judge, judge_samples, pass_rates
from .samples import side_by_side
from .statistics import (
    Change,
    Estimate,
    Rate,
    majority_right,
    majority_vote,
    mcnemar_p_value,
    mean_interval,
    p_text,
    paired_change,
    paired_interval,
    pass_at_k,
    shown,
    sign_test,
    t_interval,
    wilson_interval,
)
