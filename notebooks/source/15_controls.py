# %% [markdown]
# # 15 · What a rising reward does not show
#
# A reward that never reads the answer took accuracy from {{results["before"].accuracy.value:.0%}} to
# {{results["format"].accuracy.value:.0%}}. With another seed, accuracy fell below 10%.
#
# **Guess first:** could you tell these two runs apart by their reward curves?
#
# You will be able to say what a gain is due to, with control runs, many tries and a search for leaks.
#
# Read [lesson 06](06_evaluation.ipynb) first. It explains strict accuracy, intervals, paired tests and pass@k.
#
# Your time: 55–65 minutes with exercises. *Run All* takes about 4 minutes on a CPU, and 1.0 GB of memory.
#
# {{badges}}

# %% [markdown]
# ## 1. Set up
#
# <details><summary>On Colab and Kaggle, and where the numbers come from</summary>
#
# {{steps}}
#
# On Colab and Kaggle, the next cell installs the course in a few minutes. On Kaggle, first turn on *Internet* in the
# settings. Elsewhere, the cell does nothing. Numbers in the text come from the stored run on a CPU (seed 0); yours will
# differ with other seeds and machines.
# </details>

# %% cellView="form" jupyter={"source_hidden": true}
# {{install}}

# %% tags=["parameters"]
PROFILE: str = "auto"  # any profile; this lesson always trains on the CPU
FAMILY: str = "qwen"  # qwen or gemma: which tiny model
STEPS: int = 0  # optimizer steps of each GRPO run; 0: the lesson's 40
LEAK_STEPS: int = 150  # steps of SFT on the leaked test
SEED: int = 0  # seeds all randomness

# %%
from grpo_utils import setup_tiny

run = setup_tiny(PROFILE, FAMILY, STEPS, 40)

# %% [markdown]
# ## 2. Choose a reward and two controls
#
# A *control* is a run that differs from yours in one respect. Here, that is the reward. Everything else is the same: the
# model, the prompts, the settings, the number of samples and the seed. If a control gains as much as your run, something
# other than your reward can explain the gain.
#
# - **Correctness** pays 1.0 for a correct answer.
# - **Format** pays for the tags and never reads the answer.
# - **Random** tosses a coin for each completion and reads nothing at all.

# %%
import random

from grpo_utils.rewards import correctness_reward, incremental_format_reward

coin = random.Random(SEED)


def random_reward(completions, **kwargs) -> list[float]:
    """1.0 or 0.0 by a coin toss."""
    return [float(coin.random() < 0.5) for _ in completions]


REWARDS = {
    "correctness": correctness_reward,
    "format": incremental_format_reward,
    "random": random_reward,
}

# %% [markdown]
# A fourth function measures what you really want. Its weight is 0.0, so it does not change training, but TRL logs its
# mean:


# %%
from grpo_utils import completion_text, is_strictly_right


def truth(completions, answer, **kwargs) -> list[float]:
    """1.0 if an answer is correct and correctly formatted."""
    texts = [completion_text(completion) for completion in completions]
    return [float(is_strictly_right(t, a)) for t, a in zip(texts, answer)]


# %% [markdown]
# **Guess first:** which of the three runs will raise accuracy?

# %% [markdown]
# ## 3. Train all three
#
# The settings are those of [lesson 06](06_evaluation.ipynb).

# %%
import tempfile

from trl import GRPOConfig, GRPOTrainer

SETTINGS = dict(
    learning_rate=2e-3,
    optim="adamw_torch",
    use_cpu=True,
    bf16=False,
    gradient_checkpointing=False,
    save_strategy="no",
    report_to="none",
    disable_tqdm=True,  # show_progress draws the bar
)
GRPO = dict(
    max_steps=run.steps,
    num_generations=8,  # completions in a group
    per_device_train_batch_size=64,  # completions per step
    max_completion_length=32,  # in tokens
    reward_weights=[1.0, 0.0],  # the truth is only logged
    logging_steps=1,
)

# %%
from grpo_utils import load_policy, load_rows, show_progress

train_rows = load_rows("addition", "train", 2000, SEED)
test_rows = load_rows("addition", "test", 200)
LOADING = dict(profile=run.profile, backend="transformers", load_in_4bit=False)


def train_on(reward, seed=SEED):
    """Train a new policy on one reward; return it and its log."""
    policy, tokenizer = load_policy(run.model, seed=seed, **LOADING)
    folder = tempfile.mkdtemp()
    trainer = GRPOTrainer(
        model=policy,
        processing_class=tokenizer,
        args=GRPOConfig(folder, seed=seed, **SETTINGS, **GRPO),
        train_dataset=train_rows,
        reward_funcs=[reward, truth],
    )
    show_progress(trainer)
    trainer.train()
    return policy, trainer.state.log_history


# %%
base, tokenizer = load_policy(run.model, seed=SEED, **LOADING)
policies, logs = {"before": base}, {}
for name, reward in REWARDS.items():
    policies[name], logs[name] = train_on(reward)

# %%
from grpo_utils import show_reward_and_truth

show_reward_and_truth(logs)

# %% [markdown]
# The upper row is what you see in a real run: the mean reward. The lower row is the share of completions that were correct
# and correctly formatted. In a real run, you often cannot plot this share.
#
# The correctness reward ends at {{logs["correctness"][-2]["reward"]:.2f}}, and the format reward at
# {{logs["format"][-2]["reward"]:.2f}}. Judged by these curves alone, both runs look like a success. The random reward
# stays near 0.5, because nothing that the policy does can raise it.

# %% [markdown]
# ## 4. Ask the same questions
#
# Each policy answers the same 200 held-out prompts, sampled and greedily. *Sums* is the share of sampled answers whose last
# number is the sum, in any format. It measures the arithmetic without the tags.

# %%
import re

from grpo_utils import compare, evaluate

DECODING = dict(max_new_tokens=32, temperature=1.0, seed=SEED)
results = {
    name: evaluate(policy, tokenizer, test_rows, **DECODING)
    for name, policy in policies.items()
}


def sums(result) -> float:
    """The share of sampled texts whose last number is the gold answer."""
    last = [(re.findall(r"\d+", text) or [""])[-1] for text in result.sampled]
    return sum(a == b for a, b in zip(last, test_rows["answer"])) / result.n


print(f"{'':13}{'formatted':>9}{'sampled':>9}{'greedy':>8}{'sums':>7}")
for name, result in results.items():
    rates = (result.format, result.accuracy, result.greedy_accuracy)
    row = "".join(f"{rate.value:8.3f} " for rate in rates)
    print(f"{name:13}{row}{sums(result):7.3f}")
for name in REWARDS:
    print(f"{name}: {compare(results['before'], results[name]).sentence}")

# %% [markdown]
# <details><summary>After you have guessed</summary>
#
# - The format reward never reads a number, but the share of correct answers went from
#   {{results["before"].accuracy.value:.0%}} to {{results["format"].accuracy.value:.0%}}. If you had trained only
#   this run, you might have concluded that GRPO taught addition.
# - The random reward changed the policy too. Greedy accuracy went from {{results["before"].greedy_accuracy.value:.2f}} to
#   {{results["random"].greedy_accuracy.value:.2f}}. A coin pushes the policy in a random direction, and nothing pulls
#   it back.
# - The base model already adds well. If you ignore the tags, {{sums(results["before"]):.0%}} of its answers are
#   correct. So a run can gain a lot of strict accuracy from the format alone.
# </details>

# %% [markdown]
# With one seed per reward, you cannot tell luck from an effect. So we trained each reward with five seeds. These are the
# sampled accuracies, one per seed:

# %% tags=["nbval-check-output"]
FIVE_SEEDS = {
    "before": (0.25, 0.23, 0.14, 0.20, 0.22),
    "correctness": (1.00, 0.94, 0.98, 0.98, 0.97),
    "format": (0.86, 0.09, 0.51, 0.20, 0.37),
    "random": (0.21, 0.19, 0.13, 0.12, 0.29),
}
for name, rates in FIVE_SEEDS.items():
    print(f"{name:12} {min(rates):.2f} to {max(rates):.2f}")

# %%
from grpo_utils.plots import COLORS, show
from matplotlib.figure import Figure

figure = Figure(figsize=(5.6, 2.4), layout="constrained")
axes = figure.subplots()
for row, rates in enumerate(FIVE_SEEDS.values()):
    axes.plot(rates, [row] * len(rates), "o", color=COLORS[row], alpha=0.7)
axes.set_yticks(range(len(FIVE_SEEDS)), list(FIVE_SEEDS))
axes.invert_yaxis()
axes.set(xlabel="strict accuracy; a dot is a seed", xlim=(-0.04, 1.04))
axes.grid(alpha=0.3, axis="x")
ranges = [f"{n} {min(r):.2f} to {max(r):.2f}" for n, r in FIVE_SEEDS.items()]
show(figure, f"Accuracy of five seeds for each reward: {'; '.join(ranges)}")

# %% [markdown]
# With every seed, the format reward rose to nearly 1, its maximum, but accuracy ended anywhere from 0.09 to 0.86. The reward
# curves of the best and the worst run look alike, because this reward does not pay for the difference. With the correctness
# reward, every seed ended above 0.9.
#
# **Credit your reward only with the part of the gain that the controls do not reach.**
#
# <details><summary>Evidence</summary>
#
# `make bench-controls`, [all figures](../docs/results.md#true-reward-and-controls). The random reward raised greedy accuracy with all
# five seeds, but not sampled accuracy. Greedy accuracy was 0.00 before training, so any change could only raise it. If you
# ignore the format, the correctness reward raised the share of correct sums with each seed, by 0.27 on average (95% interval
# 0.22 to 0.32; sampled at temperature 1, so greedy decoding may give a part of it without training). The format reward and the random reward lowered it with four of five seeds each, but the intervals of the two
# means contain 0. So the tags explain a part of the correctness reward's gain, but not all of it.
# </details>

# %% [markdown]
# ## 5. Compare many tries
#
# Accuracy measures a single try. *pass@k* is the chance that at least one of `k` samples is correct. Sample 32 answers to
# each of 50 prompts, before training and after each run.
#
# **Guess first:** after training on the coin toss, will more or fewer prompts be solved in 32 tries?

# %%
from grpo_utils import evaluate_samples, show_pass_at_k

some_rows = test_rows.select(range(50))
sampling = dict(samples=32, max_new_tokens=32, seed=SEED)
tries = {
    name: evaluate_samples(policy, tokenizer, some_rows, **sampling)
    for name, policy in policies.items()
}
KS = (1, 2, 4, 8, 16, 32)
show_pass_at_k(tries, KS)

# %%
print(f"{'':13}" + "".join(f"{f'pass@{k}':>9}" for k in KS))
for name, found in tries.items():
    rates = "".join(f"{found.pass_at_k(k).value:9.2f}" for k in KS)
    print(f"{name:13}{rates}")

# %% [markdown]
# <details><summary>After you have guessed</summary>
#
# Before training, pass@1 is {{tries["before"].pass_at_k(1).value:.2f}} and pass@32 is
# {{tries["before"].pass_at_k(32).value:.2f}}: the base model solves nearly every prompt in 32 tries. With the
# correctness reward, pass@1 is {{tries["correctness"].pass_at_k(1).value:.2f}}, so one try is now about as good as 16
# were before. That is *sharpening*, not a new ability. With the format reward, pass@32 is
# {{tries["format"].pass_at_k(32).value:.2f}}, and with the random reward {{tries["random"].pass_at_k(32).value:.2f}}.
# Other seeds give other values.
#
# So after training on a reward that never reads an answer, a model can fail all 32 tries on prompts that it solved before.
# </details>
#
# **Before you say that a policy learned something new, compare pass@k at a large k.**
#
# <details><summary>Evidence</summary>
#
# Over five seeds, the pass@32 of the random reward fell by 0.11 (95% interval 0.03 to 0.18). With the format reward, it was lower with
# all five seeds (0.98, 0.34, 0.84, 0.76 and 0.64 instead of 1.00); the interval of its mean change contains 0, and so does that
# of pass@1.
#
# Whether GRPO with a true reward can also lose prompts is debated. Yue et al. ([2504.13837](https://arxiv.org/abs/2504.13837)) find
# that base models win at a large `k` on most of their benchmarks. ProRL ([2505.24864](https://arxiv.org/abs/2505.24864))
# reports the opposite after more than 2,000 steps on many tasks. Neither says what your run did, so measure it.
# </details>

# %% [markdown]
# ## 6. Leak a test on purpose
#
# A test is *leaked* (or *contaminated*) if the model was trained on its questions. Cause such a leak: train a new policy
# with SFT on the 200 held-out questions and their answers. Then ask it these questions, and 190 *fresh* ones of the same
# kind.
#
# **Guess first:** by how much will the two accuracies differ?

# %%
from datasets import Dataset, disable_progress_bars
from transformers.trainer_callback import PrinterCallback
from trl import SFTConfig, SFTTrainer

disable_progress_bars()  # of datasets
all_rows = load_rows("addition", "test", 390)
leaked, fresh = all_rows.select(range(200)), all_rows.select(range(200, 390))


def demonstration(row) -> dict:
    """A question with its answer, as a row for SFT."""
    a, b = re.findall(r"\d+", row["prompt"][-1]["content"])
    gold = row["answer"]
    text = f"<reasoning>{a} + {b} = {gold}</reasoning><answer>{gold}</answer>"
    said = [{"role": "assistant", "content": text}]
    return {"prompt": row["prompt"], "completion": said}


# %%
cheat, _ = load_policy(run.model, seed=SEED, **LOADING)
config = SFTConfig(
    output_dir=tempfile.mkdtemp(),
    max_steps=LEAK_STEPS,
    lr_scheduler_type="constant",
    per_device_train_batch_size=50,
    max_length=128,
    completion_only_loss=True,
    seed=SEED,
    **SETTINGS,
)
trainer = SFTTrainer(
    model=cheat,
    args=config,
    processing_class=tokenizer,
    train_dataset=Dataset.from_list([demonstration(row) for row in leaked]),
)
trainer.remove_callback(PrinterCallback)  # prints no log
result = trainer.train()

# %%
asked = {"leaked": leaked, "fresh": fresh}
found = {
    name: evaluate(cheat, tokenizer, rows, **DECODING)
    for name, rows in asked.items()
}
for name, result in found.items():
    print(f"{name:7} greedy accuracy: {result.greedy_accuracy}")

# %% [markdown]
# <details><summary>After you have guessed</summary>
#
# On the leaked questions, greedy accuracy is {{found["leaked"].greedy_accuracy.value:.2f}}; on the fresh ones it is
# {{found["fresh"].greedy_accuracy.value:.2f}}. Both sets come from the same generator, and the base model saw neither. So
# the gap between the two is memorization. The gain on the fresh questions is real: the worked answers also taught the format.
# With the leaked test alone, you would have reported the higher number, and no curve would have shown the leak.
# </details>

# %% [markdown]
# You can find a leak in three ways, from cheap to expensive:
#
# - Search the training rows for the test's questions, if you have these rows. [Lesson 01](01_dataset.ipynb) shows how.
# - Write fresh questions of the same kind, and compare your accuracy on them with your accuracy on the test. For GSM8K, the
#   generator `gsm_symbolic` of reasoning-gym makes such questions.
# - Give a model the beginning of a question. If it writes the rest word for word, it has seen the question. Wu
#   et al. ([2507.10532](https://arxiv.org/abs/2507.10532)) gave Qwen2.5-Math-7B the first 60% of the MATH-500
#   questions, and it completed 54.6% of them exactly. On LiveMathBench, which is newer than the model, it completed
#   none.

# %% [markdown]
# ## 7. What this means for Qwen2.5
#
# Many GRPO examples, and the GPU profiles of this course, train Qwen2.5 on mathematics. Two papers explain why such a
# run needs a control:
#
# - *Spurious Rewards* ([2506.10947](https://arxiv.org/abs/2506.10947)) trained Qwen2.5-Math-7B with random rewards, and its
#   MATH-500 accuracy rose by 21.4 points. With the true reward, it rose by 29.1 points. Llama 3 and OLMo 2 gained little or
#   nothing from such rewards. The authors name two causes. Clipping favors tokens that were likely before, even if the reward
#   is noise. And the model already had a good style, reasoning in code, which training made more common.
# - Wu et al. (section 6) repeated such runs on fresh arithmetic problems. There, only correct rewards gave a steady gain.
#
# Our tiny model has such styles too. [Lesson 02](02_rewards.ipynb), section 7, counts them: answers that add column by
# column have the format more often than answers with one equation, and they are correct more often. A reward for tags can
# make any of the well-formatted styles more common, and chance decides which one.

# %% [markdown]
# ## 8. Choose the controls that your claim needs
#
# | you want to say | then also show |
# |---|---|
# | the reward taught it | a run with a random reward, or with the format alone, on the same number of samples |
# | it learned to solve the task | the format and the answers separately ([lesson 06](06_evaluation.ipynb), section 7) |
# | it can now do something new | pass@k at a large `k`, before and after |
# | it solves the benchmark | fresh questions of the same kind, or a test newer than the model |
# | the method works | several seeds, and a model of another family |
#
# Train a control with as many seeds as your own run, because a single seed says little. If you can afford only one control,
# train on the format alone: most real rewards pay for a format as well. (Our runs train one tiny model on one task, so they do
# not show how often a control improves a real model.)

# %% [markdown]
# ## 9. Cheat sheet
#
# | step | what to do |
# |---|---|
# | controls | the same run with `random_reward`, and with the format alone; the same number of samples, the same seeds |
# | truth | a function with weight 0.0 in `reward_weights`, if you can compute it |
# | tries | `evaluate_samples(policy, tokenizer, rows, samples=32)`, then `pass_at_k(k)`, before and after |
# | leaks | search the training rows; ask fresh questions; let the model complete half a question |
# | report | sampled, greedy, format and pass@k, each before and after, for each seed and each control |
#
# A rising reward shows only that the policy earns more of it. Every other claim needs a control.

# %% [markdown]
# ## 10. Exercises
#
# **Exercise 1: change, predict, run, compare.** Train on the format reward with a seed that section 4 does not have (5 or higher).
# Predict first: will accuracy `"rise"`, `"fall"` or stay `"level"` (within 0.05 of the base model)?
#
# Write `another_seed`: train on `REWARDS["format"]` with your seed (`train_on` takes one), and evaluate as in section 4. Plot the
# log with `show_reward_and_truth`, and return your prediction, the seed and its sampled accuracy. Would the reward curve have
# told you? (The prediction is not graded. A run takes one to two minutes.)


# %%
def another_seed() -> tuple[str, int, float] | None:
    """Your answer: (prediction, seed, sampled accuracy after training)."""


# %% tags=["nbval-check-output"]
from functools import partial

from grpo_utils import check_exercise, compare_prediction


def judged(attempt) -> str | None:
    """Print what was predicted, and what the run did to accuracy."""
    if (found := attempt()) is None:
        return None
    predicted, seed, accuracy = found
    before = results["before"].accuracy.value
    change = accuracy - before
    shown = (
        "level" if abs(change) <= 0.05 else "rise" if change > 0 else "fall"
    )
    print(f"seed {seed}: accuracy {before:.2f} to {accuracy:.2f}")
    return compare_prediction(predicted, shown)


OUTCOME = [((), "compared")]
mine = partial(judged, another_seed)
print(check_exercise("Exercise 1", mine, OUTCOME))

# %% [markdown]
# **Exercise 2.** `before` and `after` have a list for each prompt, with one boolean for each sample. Write
# `lost(before, after)`: the share of prompts that at least one sample solved before training and none solves after it.
#
# Try both before you unfold the solutions.


# %%
def lost(before: list[list[bool]], after: list[list[bool]]) -> float:
    """Your answer: a share from 0 to 1."""


# %% tags=["nbval-check-output"]
BEFORE = [[True, False], [False, False], [False, True], [True, True]]
AFTER = [[True, True], [True, False], [False, False], [True, False]]
CASES = [((BEFORE, AFTER), 0.25), ((BEFORE, BEFORE), 0.0)]
HINTS = [
    (0.0, "One prompt was solved before, and is not solved after."),
    (1 / 3, "Divide by all prompts, not only by those solved before."),
    (0.5, "A prompt that is solved less often is not lost."),
]
print(check_exercise("Exercise 2", lost, CASES, HINTS))

# %% [markdown]
# <details><summary>Solution</summary>
#
# Exercise 1: our example is seed 1, one of the five in section 4. Accuracy falls to {{FIVE_SEEDS["format"][1]:.2f}}, while the
# reward ends at 1, as high as with seed 0. The reward curve does not show the fall.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
policy, log = train_on(REWARDS["format"], seed=1)
other = evaluate(policy, tokenizer, test_rows, **DECODING)
print(f"the reward ends at {log[-2]['reward']:.2f}")

solved = partial(judged, lambda: ("fall", 1, other.accuracy.value))
print(check_exercise("Exercise 1, solution", solved, OUTCOME))

# %% [markdown]
# <details><summary>Solution</summary>
#
# Exercise 2: a prompt counts if any of its samples was correct before and none is after.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def lost_solution(before: list[list[bool]], after: list[list[bool]]) -> float:
    pairs = zip(before, after, strict=True)
    return sum(any(old) and not any(new) for old, new in pairs) / len(before)


CASES = [((BEFORE, AFTER), 0.25), ((BEFORE, BEFORE), 0.0)]
print(check_exercise("Exercise 2, solution", lost_solution, CASES))
