"""For each rule, a small reward that has its fault."""

# ruff: noqa: ANN001, ANN003, B905  (written as users write them)

from grpo_core.rewards import completion_text, correctness_reward


def fails_on_samples(completions, answer, **kwargs):
    """The last word of a completion without words."""
    said = [completion_text(c).split()[-1] for c in completions]
    return [1.0 if text == gold else 0.0 for text, gold in zip(said, answer)]


def pays_wrong_completions(completions, answer, **kwargs):
    """Long explanations are worth more than correct answers."""
    lengths = [len(completion_text(c)) for c in completions]
    return [score + length / 50 for score, length in zip(correctness_reward(completions, answer), lengths)]


def reward_rose_alone(completions, answer, **kwargs):
    """Most of the reward is for writing several sentences."""
    sentences = [min(completion_text(c).count("."), 4) / 5 for c in completions]
    return [0.2 * score + more for score, more in zip(correctness_reward(completions, answer), sentences)]


def too_few_steps(completions, answer, **kwargs):
    """A sound reward, in an attack that has no time."""
    return correctness_reward(completions, answer)


def honest_pay_unknown(completions, number_of_words, **kwargs):
    """The rows say how many words are asked for, and nothing has so many."""
    return [float(len(completion_text(c).split()) == count) for c, count in zip(completions, number_of_words)]


def is_this_correct(completions, **kwargs):
    """A summary should be short, and nothing says of what."""
    return [1 / (1 + len(completion_text(c))) for c in completions]
