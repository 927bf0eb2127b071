# %% [markdown]
# # 06 · Did it get better?
#
# Ask the same model twice, and {{nothing.better + nothing.worse}} of {{again.n}} results change. So what does a gain mean?
#
# **Guess first:** you compare the model with itself like this 1,000 times. How often does a careful test report a change?
#
# You will be able to show whether a training run improved a model, by how much and with what certainty.
#
# You need [lesson 03](03_grpo_lora.ipynb).
#
# Your time: 60–70 minutes with exercises. *Run All* takes about 2 minutes on a CPU, and 1.2 GB of memory.
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
STEPS: int = 0  # optimizer steps of each training run; 0: the lesson's 40
SEED: int = 0  # seeds all randomness

# %%
from grpo_utils import setup_tiny

run = setup_tiny(PROFILE, FAMILY, STEPS, 40)

# %% [markdown]
# ## 2. Fix the test, then train three policies
#
# You train three copies of a tiny model on two-digit addition problems, each with a different seed. First, fix what
# you evaluate: 200 *held-out* prompts, which are never trained on, and the *decoding* settings, which control how
# answers are generated. Otherwise, you could choose prompts and settings that flatter your model.

# %% tags=["nbval-check-output"]
from grpo_utils import load_rows

train_rows = load_rows("addition", "train", 2000, SEED)
test_rows = load_rows("addition", "test", 200, SEED)
decoding = dict(max_new_tokens=32, temperature=1.0, seed=SEED)
asked = {row["prompt"][-1]["content"] for row in test_rows}
trained_on = {row["prompt"][-1]["content"] for row in train_rows}
print("different held-out questions:", len(asked))
print("also in the training rows:", len(asked & trained_on))

# %% [markdown]
# Evaluate the *base model* before any training. `evaluate` calls `model.generate` twice for each prompt: *sampled* at
# temperature 1, as in training, and *greedy*, which always takes the most likely token. *Strict accuracy* is the share of
# answers that are correct and in the required format, `<reasoning>…</reasoning><answer>…</answer>`.

# %%
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from grpo_utils import evaluate, model_path

path = model_path(run.model)  # the folder of the tiny model
tokenizer = AutoTokenizer.from_pretrained(path)
base = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
before = evaluate(base, tokenizer, test_rows, **decoding)
print("strict accuracy, sampled:", before.accuracy)  # interval: section 4

# %% [markdown]
# Rewards and settings are the same as in [lesson 03](03_grpo_lora.ipynb), with 40 steps and an unquantized base.

# %%
from tempfile import mkdtemp

from peft import LoraConfig
from trl import GRPOConfig, GRPOTrainer

from grpo_utils import math_rewards, show_progress

rewards, weights = math_rewards()
SETTINGS = dict(
    max_steps=run.steps,
    learning_rate=2e-3,
    num_generations=8,  # completions in a group
    per_device_train_batch_size=64,  # completions, so 8 groups
    max_completion_length=32,  # in tokens
    reward_weights=weights,
    optim="adamw_torch",
    use_cpu=True,
    bf16=False,
    gradient_checkpointing=False,
    save_strategy="no",
    report_to="none",
    logging_steps=1,
    disable_tqdm=True,
)

# %% [markdown]
# Only the seed differs between the runs. It sets the adapter's initial weights, the order of the rows and every
# sample.


# %%
def trained(seed: int, **changed):
    torch.manual_seed(seed)  # the adapter starts from random numbers
    lora = LoraConfig(r=16, lora_alpha=32, target_modules="all-linear")
    settings = SETTINGS | changed
    trainer = GRPOTrainer(
        model=AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32),
        processing_class=tokenizer,
        args=GRPOConfig(output_dir=mkdtemp(), seed=seed, **settings),
        train_dataset=train_rows,
        reward_funcs=rewards,
        peft_config=lora,
    )
    show_progress(trainer)  # one bar for each run
    trainer.train()
    return trainer.model


# %%
seeds = [SEED, SEED + 1, SEED + 2]
policies = [trained(seed) for seed in seeds]
afters = [evaluate(p, tokenizer, test_rows, **decoding) for p in policies]
for seed, result in zip(seeds, afters):
    print(f"seed {seed}, strict accuracy, sampled: {result.accuracy}")
policy, after = policies[0], afters[0]  # the first seed, as planned

# %% [markdown]
# All three policies reach at least {{min(result.accuracy.value for result in afters):.2f}}, from
# {{before.accuracy.value:.2f}}. Choose prompts, decoding and seeds before you train.

# %% [markdown]
# ## 3. See why one question proves nothing
#
# What would you have concluded from a single question?

# %%
import numpy

for row, old, new in list(zip(test_rows, before.sampled, after.sampled))[:3]:
    print(row["prompt"][-1]["content"], "correct answer:", row["answer"])
    print("  before:", old)
    print("  after: ", new)


def changes_of(old, new) -> numpy.ndarray:
    """For each prompt: 1 if its answer got better, -1 if worse, else 0."""
    return numpy.array(new.right, int) - numpy.array(old.right, int)


change = changes_of(before, after)
for name, sign in (("got better", 1), ("no change", 0), ("got worse", -1)):
    print(f"{name}: {(change == sign).mean():.2f} of the questions")

# %% [markdown]
# Judged by these three questions, strict accuracy rose from 0 to 1. On all 200 questions, it rose from
# {{before.accuracy.value:.2f}} to {{after.accuracy.value:.2f}}, and {{(change == 0).mean():.0%}} of the questions show no change.
#
# Next, draw five random questions a thousand times, for this gain and for the difference between the first two seeds.


# %%
def draws(change, size: int, times: int) -> list[numpy.ndarray]:
    """The changes on ``size`` random questions, drawn ``times`` times."""
    rng = numpy.random.default_rng(SEED)
    return [rng.choice(change, size, replace=False) for _ in range(times)]


five = numpy.mean(draws(change, 5, 1000), axis=1)
low, high = numpy.quantile(five, [0.025, 0.975])
print(f"before to after: {change.mean():+.2f} on all questions")
print(f"five questions, 95 times of 100: {low:+.2f} to {high:+.2f}")
close = changes_of(after, afters[1])
five = numpy.mean(draws(close, 5, 1000), axis=1)
print(f"first to second seed: {close.mean():+.2f} on all questions")
print(f"five questions, better: {(five > 0).mean():.2f} of the draws")
print(f"five questions, worse: {(five < 0).mean():.2f} of the draws")

# %% [markdown]
# In 95 of 100 draws, five questions show a gain between {{low:.2f}} and {{high:.2f}}. Between two seeds,
# {{(five > 0).mean():.0%}} of the draws favor the second seed, and {{(five < 0).mean():.0%}} favor the first. One question shows
# what can happen, not how often it happens.

# %% [markdown]
# ## 4. Put an interval around a rate
#
# A rate on `n` prompts is only an estimate of the *true rate* on all such prompts. A 95% interval contains the true rate
# in about 95 of 100 such experiments. scipy computes Wilson's interval.

# %% tags=["nbval-check-output"]
from scipy.stats import binomtest


def rate(hits: int, n: int) -> str:
    low, high = binomtest(hits, n).proportion_ci(method="wilson")
    return f"{hits / n:.3f} ({low:.3f} to {high:.3f}), {hits} of {n}"


for n in (5, 10, 50, 200, 800):
    print(rate(n * 4 // 5, n))
print(rate(0, 20))

# %% [markdown]
# The first five lines are all 80%. With 10 prompts, the true rate may be as low as 49%. With 200 prompts, the interval
# is 11 percentage points wide, and four times as many prompts halve it. And 0 of 20 does not mean never: the true rate
# may be 16%.

# %% [markdown]
# ## 5. Compare each prompt with itself
#
# A [*paired test*](../docs/evaluation.md) looks only at prompts whose result changed between before and after. If
# training had no effect, each of them would get better or worse like a coin toss. *McNemar's test* computes how
# probable the observed result is for a fair coin. Try it on six changed prompts, and then on the trained policy with `compare`.

# %%
from grpo_utils import compare

print(f"6 better, 0 worse: p = {binomtest(6, 6).pvalue:.3f}")
print(f"5 better, 1 worse: p = {binomtest(5, 6).pvalue:.3f}\n")
comparison = compare(before, after)
print(comparison)  # section 7 explains the gain from format

# %% [markdown]
# `p` is the probability of a change at least this large, in either direction, if only chance is at work. For six equal
# tosses, it is 2/64, or 0.03. This course reports a change only if p is below 0.05 **and** the interval of the change
# excludes zero. (That interval is a *paired bootstrap*: it draws 200 prompts with replacement, 9,999 times.)
#
# How many prompts do you need? Count how often the test finds this gain in 500 random subsets of each size.


# %%
def p_value(change) -> float:
    better, worse = (change > 0).sum(), (change < 0).sum()
    return binomtest(better, better + worse).pvalue if better + worse else 1


def share_found(change, size: int) -> float:
    return numpy.mean([p_value(c) < 0.05 for c in draws(change, size, 500)])


shares = {n: share_found(change, n) for n in (5, 10, 20, 50, 200)}
print("prompts   subsets with p < 0.05")
for n, share in shares.items():
    print(f"{n:7}{share:24.2f}")

# %% [markdown]
# Five prompts can never show a change, because even five of five has p = 0.06. Ten prompts show a gain as large as this one in
# {{shares[10]:.0%}} of the subsets, and twenty in {{shares[20]:.0%}}. A small difference needs far more: to tell 0.80 from 0.85
# with unpaired prompts, each side needs about 900. (For rates `a` and `b` and a power of 80%:
# `7.85*(a*(1-a)+b*(1-b))/(a-b)**2`.)
#
# **Ask the same prompts before and after, then test those that changed.**

# %% [markdown]
# ## 6. Compare the base model with itself
#
# Does this procedure raise false alarms? Compare the base model with itself, sampled with another seed. Then do that a
# thousand times: `evaluate_samples` generates 16 answers to each of 100 prompts, and each comparison uses two of them.

# %%
from grpo_utils import evaluate_samples

again = evaluate(base, tokenizer, test_rows, **decoding | {"seed": SEED + 100})
nothing = compare(before, again)
print(f"better: {nothing.better}\nworse: {nothing.worse}\n{nothing.sentence}")

sampling = dict(samples=16, max_new_tokens=32, seed=SEED)
some_rows = test_rows.select(range(100))
samples_before = evaluate_samples(base, tokenizer, some_rows, **sampling)
correct = numpy.array(samples_before.right, int)  # 100 prompts, 16 samples
rng, alarms = numpy.random.default_rng(SEED), 0
for _ in range(1000):
    old, new = rng.permuted(correct, axis=1)[:, :2].T
    alarms += p_value(new - old) < 0.05
print(f"false alarms: {alarms} of 1000")

# %% [markdown]
# <details><summary>After you have guessed</summary>
#
# In 1,000 comparisons of the model with itself, the test raised {{alarms}} false alarms. An exact test raises at most 50 on
# average. In the first comparison, {{nothing.better + nothing.worse}} of {{again.n}} results changed, because each answer is a
# random sample. But about as many got better as got worse, so the test reports no change.
# </details>

# %% [markdown]
# A false alarm is rare, not impossible. So count your comparisons: of twenty changes that do nothing, one may look like a
# success. (It will be the one that somebody writes up.)

# %% [markdown]
# ## 7. Separate format from arithmetic
#
# Strict accuracy needs the format and the correct sum. `compare` (section 5) splits the gain:
# {{comparison.format_part.value:.2f}} came from the format and {{comparison.answer_part.value:.2f}} from correctness. But the second
# part compares {{before.format.hits}} formatted answers before with {{after.format.hits}} after, to different prompts. So check the
# arithmetic alone. Is the *last number* of an answer the sum, in any format? `paired_change` runs the paired test and
# the bootstrap on any score.

# %%
import re

from grpo_utils import paired_change, show_changes


def sum_is_correct(result) -> numpy.ndarray:
    last = [(re.findall(r"\d+", text) or [""])[-1] for text in result.sampled]
    return numpy.array([a == b for a, b in zip(last, test_rows["answer"])])


old, new = sum_is_correct(before), sum_is_correct(after)
gains = {"format": paired_change(before.formed, after.formed)}
gains["sums"] = paired_change(old, new)
for kind in ("no carry", "carry"):  # as in 15 + 22 and in 15 + 27
    rows = numpy.array([other == kind for other in test_rows["kind"]])
    gains[f"sums, {kind}"] = paired_change(old[rows], new[rows])
    for name, side in (("before", old), ("after", new)):
        counts = rate(int(side[rows].sum()), int(rows.sum()))
        print(f"correct sums, {kind}, {name}: {counts}")
show_changes(gains, "Gains in format and arithmetic")

# %% [markdown]
# Sums without a carry were nearly always correct before training, so GRPO taught only their format. Accuracy on sums with
# a carry rose from {{old[rows].mean():.0%}} to {{new[rows].mean():.0%}}, a gain in arithmetic. The base model already solved
# some, so GRPO could reinforce them.
#
# **Report the format and the answers separately.**

# %% [markdown]
# ## 8. Sample more than once
#
# *pass@k* is the probability that at least one of `k` samples is correct. A large `k` shows *ability*: what a policy can
# solve in many attempts. A *majority vote* takes the most common formatted answer among 16 samples.

# %%
from grpo_utils import show_pass_at_k

samples_after = evaluate_samples(policy, tokenizer, some_rows, **sampling)
sides = {"before": samples_before, "after": samples_after}
show_pass_at_k(sides, (1, 2, 4, 8, 16))
for name, result in (("before", before), ("after", after)):
    print(f"majority of 16, {name}: {sides[name].majority()}")
    print(f"greedy accuracy, {name}: {result.greedy_accuracy}")
print("tagged greedy answers, before:", sum("<" in t for t in before.greedy))

# %% [markdown]
# pass@1 rose from {{samples_before.pass_at_k(1).value:.2f}} to {{samples_after.pass_at_k(1).value:.2f}}, but pass@16 only
# from {{samples_before.pass_at_k(16).value:.2f}} to {{samples_after.pass_at_k(16).value:.2f}}. The base model could already solve
# almost every prompt in 16 attempts, and training made it reliable. Whether GRPO can also add ability is
# [debated](../docs/map.md#passk-in-both-directions).
#
# A vote lifts the base model to {{samples_before.majority().value:.2f}}. One sample of the trained policy is better, and costs a
# sixteenth of a vote for each question. But the vote needs no training. We did not measure an example in the prompt. The greedy answers of the base model all lack the tags. So their accuracy is
# {{before.greedy_accuracy.value:.0f}}, and the greedy gain looks larger. Report the decoding that your users will use.

# %% [markdown]
# ## 9. Look for losses elsewhere
#
# Training on one task can damage another. `other_tasks` asks the same sums without the system prompt and in two other
# wordings, three-digit sums, and two tasks that the tiny model learned earlier. Each question gets four answers. Which
# of the six do you expect to get better, and which worse?

# %%
from grpo_utils import generate_samples, other_tasks


def scores(model, task) -> list[float]:
    how = dict(samples=4, max_new_tokens=40, seed=SEED)
    texts = generate_samples(model, tokenizer, task.prompts, **how)
    return task.scores(texts)


elsewhere, levels = {}, {}
for name, task in other_tasks(some_rows, SEED).items():
    old, new = scores(base, task), scores(policy, task)
    elsewhere[name] = paired_change(old, new)
    levels[name] = f"{numpy.mean(old):.2f} to {numpy.mean(new):.2f}"
    print(f"{name:17}{levels[name]}  {elsewhere[name]}")
show_changes(elsewhere, "Changes on other questions")

# %% [markdown]
# <details><summary>After you have guessed</summary>
#
# - **No system prompt**: the gain carries over.
# - **Other words**: it carries over in part. "What is the sum of" rose only from {{levels["'the sum of'"]}}.
# - **Three digits**: no answer was correct before or after.
# - **Facts** got worse, from {{levels['facts']}}. Nobody trained on facts.
# - **JSON** went from {{levels['JSON']}}, but the paired test shows no change.
# </details>

# %% [markdown]
# **Evaluate what you did not train, because losses appear there.**

# %% [markdown]
# ## 10. Train several seeds and report them all
#
# So far you have compared *one* policy with the base model. Would another seed give the same result? Now `n` counts
# runs. Evaluate the base model again for each run: the random error of a shared evaluation would shift all gains in the
# same direction.

# %%
from grpo_utils import compare_seeds

comparisons = [comparison]
for seed, other in zip(seeds[1:], policies[1:]):
    how = decoding | dict(seed=seed)
    pair = [evaluate(m, tokenizer, test_rows, **how) for m in (base, other)]
    comparisons.append(compare(*pair))
by_seed = compare_seeds(comparisons)  # rejects a shared "before"
print(by_seed)
pairs = {"base, sampled twice": paired_change(before.right, again.right)}
for i, j in ((0, 1), (0, 2), (1, 2)):
    name = f"seed {seeds[i]} to seed {seeds[j]}"
    pairs[name] = paired_change(afters[i].right, afters[j].right)
show_changes(pairs, "Changes between seeds")

# %% [markdown]
# The interval over three seeds is wide, but excludes zero, and the figure shows no difference between seeds. Runs can
# differ much more: three seeds of one setting had accuracies from 0.69 to 0.93 after ten steps
# ([settings](../docs/settings.md#num_generations)). So compare settings over several seeds, and report all of them.
#
# The best of several checkpoints also looks better than it is. Pretend that the 16 samples of the base model come from
# 16 checkpoints.

# %%
accuracies = correct.mean(axis=0)  # one for each "checkpoint"
print(f"average: {accuracies.mean():.3f}")
print(f"the best: {accuracies.max():.3f}")

# %% [markdown]
# All 16 are the same model, so the {{accuracies.max():.2f}} is luck. Choose a checkpoint on one set of held-out rows
# (*validation* rows). Then evaluate it once on another (*test* rows).

# %% [markdown]
# ## 11. Write the report
#
# Generate the report from the results, so that every number comes from this run. A good report also says what got worse and what
# was not shown.

# %%
worse = [name for name, c in elsewhere.items() if c.verdict == "got worse"]
print(f"{run.model}, GRPO, {run.steps} steps, {before.n} held-out prompts")
print("Before:", before.accuracy)
print("After:", after.accuracy)
print(comparison.sentence)
print("Format:", gains["format"])
print("Sums in any format:", gains["sums"])
print("Got worse elsewhere:", ", ".join(worse) or "nothing shown")
print(f"All {len(seeds)} seeds: {by_seed.sentence}")

# %% [markdown]
# ## 12. Cheat sheet
#
# | symptom | check | fix |
# |---|---|---|
# | one better answer | How many prompts were asked? | evaluate the same 200 before and after |
# | p just below 0.05 | How many comparisons were made? | evaluate new prompts |
# | sudden gain | Are more answers correct in any format? | report format and answers separately |
# | small gain from a new setting | How much do seeds differ? | train three seeds of each |
# | one very good checkpoint | Which rows was it chosen on? | evaluate it on test rows |
#
# Unless the paired test and the interval of the change both show an improvement, write "no improvement shown".

# %% [markdown]
# ## 13. Exercises
#
# **Exercise 1.** Which claims do the numbers support? Return their letters as a list.
#
# - **A**: "Before: 120 of 200 prompts correct. After: 126 of 200 other prompts. Accuracy rose."
# - **B**: "The same 500 prompts: 62 got better, 30 got worse. Accuracy rose."
# - **C**: "Before: 40 of 200 formatted, 36 of them correct. After: 200 formatted, 180 correct. Arithmetic improved."
# - **D**: "Three seeds, each with its own baseline, gained 0.05, 0.04 and 0.06. Training helps on these prompts."


# %%
def claims_that_hold() -> list[str]:
    """Your answer: for example ["A", "C"]."""


# %% tags=["nbval-check-output"]
from grpo_utils import check_exercise

HINTS = [("A", "A: the prompts differ. What does fisher_exact of scipy say?")]
HINTS += [("B", "B: of 92 changed prompts, 62 got better. Is that chance?")]
HINTS += [("C", "C: compare 36 of 40 with 180 of 200. Did the rate change?")]
HINTS += [("D", "D: compute the t interval of three gains. Is 0 in it?")]
HINTS += [("other", "The claims have the letters A, B, C and D.")]


def first_mistake(claims) -> str | None:
    given = set(re.findall("[A-Z]", " ".join(claims or "").upper()))
    if given - set("ABCD"):
        return "other"
    return min(given ^ {"B", "D"}, default="none") if given else None


def mistake() -> str | None:
    return first_mistake(claims_that_hold())


print(check_exercise("Exercise 1", mistake, [((), "none")], HINTS))

# %% [markdown]
# **Exercise 2: change, predict, run, compare.** Train the first seed for 8 steps instead of 40. Which gains will the
# paired test then show on the 200 prompts: in the format, in the sums (section 7), in both or in neither? Write your guess
# into `PREDICTION`. Then let `short_run` return the policy; `trained` takes any setting (`max_steps=8`). The check
# evaluates it (30 seconds in all).
# (The prediction is not graded.)
#
# Try both before you unfold the solutions. [Lesson 07](07_export.ipynb) saves and publishes the model.

# %%
PREDICTION = ""  # "format", "sums", "both" or "neither"


def short_run():
    """Your answer: a policy, trained for 8 steps."""


# %% tags=["nbval-check-output"]
from grpo_utils import compare_prediction


def gains_shown(policy) -> str:
    """Which gains the paired test shows: one of the four predictions."""
    result = evaluate(policy, tokenizer, test_rows, **decoding)
    form = paired_change(before.formed, result.formed)
    sums = paired_change(sum_is_correct(before), sum_is_correct(result))
    print(f"format {form}\nsums {sums}")
    shown = [change.verdict == "improved" for change in (form, sums)]
    return ["neither", "sums", "format", "both"][2 * shown[0] + shown[1]]


def outcome(prediction: str, train) -> str:
    """What the run shows, compared with the prediction."""
    if (short := train()) is None:
        return ""
    if not prediction:
        return "missing"
    found = gains_shown(short)
    return compare_prediction(prediction, found)


HINTS = [("missing", "First write your prediction into PREDICTION.")]
RUN = [((PREDICTION, short_run), "compared")]
print(check_exercise("Exercise 2", outcome, RUN, HINTS))

# %% [markdown]
# <details><summary>Solution</summary>
#
# Exercise 1: A asks other prompts, so its test is unpaired. Fisher's exact test gives p = 0.61. B has p = 0.001. In C,
# 36 of 40 and 180 of 200 are both 90%, so all of the gain is format. The t interval of D is 0.025 to 0.075.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
from scipy.stats import fisher_exact


def claims_solution() -> list[str]:
    unpaired = fisher_exact([[120, 80], [126, 74]])
    print(f"A: p = {unpaired.pvalue:.2f}")
    print(f"B: p = {binomtest(62, 92).pvalue:.3f}")
    return ["B", "D"]


name, claims = "Exercise 1, solution", claims_solution()
print(check_exercise(name, lambda: first_mistake(claims), [((), "none")]))

# %% [markdown]
# <details><summary>Solution</summary>
#
# Exercise 2: in our run, `"format"`. The format is the same for every question, so a few steps suffice. The gain in sums is
# smaller than what 200 prompts can show after 8 steps; after 40, the test shows both.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def short_run_solution():
    return trained(SEED, max_steps=8)


short = short_run_solution()
found = gains_shown(short)
print("8 steps show a gain in:", found)
RUN = [((found, lambda: short), "compared")]
print(check_exercise("Exercise 2, solution", outcome, RUN, HINTS))
