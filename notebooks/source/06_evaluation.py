# %% [markdown]
# # 06 · Did it get better?
#
# {{badges}}
#
# **You will be able to** say whether a training made a model better, by how much, and how sure
# you are: with an interval beside every rate, a paired test, pass@k, several seeds, and the words
# "no improvement shown" where that is so.
#
# Many a GRPO notebook ends with one question, put to the model before and after. This lesson
# trains three policies (models in training) and then takes that habit apart.
#
# | | CPU | T4 |
# |---|---|---|
# | time for Run All | about 2 minutes ([measured](../docs/results.md)) | never run |
# | memory | 1.1 GB ([measured](../docs/results.md)) | |
# | model | 0.46 million parameters, ships with the course | the same: it trains on the CPU |
#
# The bars below may come from a busier machine.
#
# **While it trains**, read section 3 and guess: how often would *one* question have shown no
# change, although the policy changed a lot?
#
# 1. Settings
# 2. Three trainings
# 3. Why one sample proves nothing
# 4. An interval
# 5. A paired test
# 6. The A/A test: nothing against nothing
# 7. Format or answers?
# 8. pass@k: new ability, or a sharper one?
# 9. Other prompts, other tasks
# 10. Several seeds, and how not to choose
# 11. Write it down
# 12. Exercises
#
# You need [lesson 03](03_grpo_lora.ipynb), or one sentence of it: GRPO samples answers, scores
# them with a reward, and makes the better ones likelier.

# %% [markdown]
# ## 1. Settings
#
# On Colab and Kaggle, the next cell installs the course and the packages that are missing there (a few
# minutes; never run there so far). A new session needs no restart. If pip reports conflicts with packages
# such as omegaconf, go on: the lessons do not use them. On Kaggle, turn on *Internet* in the settings first.
# Anywhere else the cell does nothing.

# %%
# {{install}}

# %% tags=["parameters"]
PROFILE: str = "auto"  # any profile; this lesson trains on the CPU on all
FAMILY: str = "qwen"  # qwen or gemma: which tiny model
STEPS: int = 0  # optimizer steps of each training; 0: the lesson's 40
SEED: int = 0  # everything random follows from it

# %% [markdown]
# Three trainings of a tiny model take a minute or two on a CPU, so that is where this lesson
# trains, whatever else the machine has.

# %%
from grpo_utils import (
    FAMILIES,
    PROFILES,
    check_choice,
    check_count,
    find_profile,
    prepare_machine,
)

find_profile(PROFILE)  # an unknown name is an error now
check_choice("FAMILY", FAMILY, FAMILIES)
check_count("STEPS", STEPS)
profile, steps = PROFILES["cpu"], STEPS or 40
prepare_machine(profile)
print(f"{profile.models[FAMILY]}, {steps} steps a training, on the CPU")

# %% [markdown]
# ## 2. Three trainings
#
# The task of lesson 03: two-digit additions, answered in the form
# `<reasoning>…</reasoning><answer>…</answer>`. Before anything is trained we fix **what will be
# measured**: 200 held-out prompts, and how they are decoded. Choosing afterwards is how people
# fool themselves.

# %%
from grpo_utils import load_policy, load_rows

train_rows = load_rows("addition", "train", 2000, SEED)
test_rows = load_rows("addition", "test", 200, SEED)
judging = dict(max_new_tokens=32, temperature=1.0, seed=SEED)


def new_policy(seed: int):
    return load_policy(
        profile.models[FAMILY],
        profile=profile,
        backend="transformers",
        load_in_4bit=False,
        seed=seed,
    )


# %% [markdown]
# A held-out question must not be in the training set. And each must stand there once: the same
# question twice is not two prompts, though it would count as two. 15 + 27 and 27 + 15 are the
# same question here. `load_rows` sees to both; we look.

# %% tags=["nbval-check-output"]
import re


def numbers_in(row: dict) -> tuple:
    return tuple(sorted(re.findall(r"\d+", row["prompt"][-1]["content"])))


asked = {numbers_in(row) for row in test_rows}
leaked = asked & {numbers_in(row) for row in train_rows}
print("held-out prompts:", len(test_rows), "different:", len(asked))
print("of these in the training set:", len(leaked))

# %% [markdown]
# **Before.** `evaluate` answers every prompt twice: *sampled* at temperature 1, as GRPO sees the
# policy, and *greedily*, always with the likeliest token. *Strict accuracy*, from here on, is
# the share of prompts whose answer is in form **and** right.

# %%
from grpo_utils import evaluate

base, tokenizer = new_policy(SEED)
before = evaluate(base, tokenizer, test_rows, **judging)
print("in form:          ", before.format)
print("in form and right:", before.accuracy)

# %% [markdown]
# Each rate comes with its 95 % interval and its counts; section 4 says what the interval is. Now
# the training, as in lesson 03.

# %%
import tempfile

from trl import GRPOConfig, GRPOTrainer

from grpo_utils import (
    keep_trainable_fp32,
    math_rewards,
    show_progress,
    training_arguments,
)

rewards, weights = math_rewards()


# %%
def settings_with(seed: int) -> GRPOConfig:
    arguments = training_arguments(
        profile,
        output_dir=tempfile.mkdtemp(),
        max_steps=steps,
        reward_weights=weights,
        seed=seed,
    )
    return GRPOConfig(**arguments)


# %%
def trained(seed: int):
    """A fresh policy, trained; the seed decides adapter, order and samples."""
    policy, tokenizer = new_policy(seed)
    trainer = GRPOTrainer(
        model=policy,
        processing_class=tokenizer,
        args=settings_with(seed),
        train_dataset=train_rows,
        reward_funcs=rewards,
    )
    keep_trainable_fp32(policy)
    show_progress(trainer)
    trainer.train()
    return policy


# %% [markdown]
# Three times, and only the seed differs.

# %%
seeds = [SEED, SEED + 1, SEED + 2]
policies = [trained(seed) for seed in seeds]

# %% [markdown]
# **After**: the same prompts, the same template, the same decoding, for each.

# %%
afters = [evaluate(p, tokenizer, test_rows, **judging) for p in policies]
policy, after = policies[0], afters[0]
for seed, result in zip(seeds, afters):
    print(f"seed {seed}, in form and right: {result.accuracy}")

# %% [markdown]
# For the sections on chance and on pass@k, sixteen samples of each of 100 prompts, before and
# after.

# %%
from grpo_utils import evaluate_samples

sampling = dict(samples=16, max_new_tokens=32, seed=SEED)
some_rows = test_rows.select(range(100))
samples_before = evaluate_samples(base, tokenizer, some_rows, **sampling)
samples_after = evaluate_samples(policy, tokenizer, some_rows, **sampling)
print(samples_before.n, "prompts,", samples_before.samples, "samples each")

# %% [markdown]
# ## 3. Why one sample proves nothing
#
# First, look. `side_by_side` puts prompt, gold answer (the known right one), both texts and every
# reward into one table.

# %%
import pandas

from grpo_utils import side_by_side

table = side_by_side(test_rows, before, after, rewards)
pandas.set_option("display.max_colwidth", 80)
table.head(3).T  # a column for each prompt

# %% [markdown]
# Reading samples shows *what* changed, and nothing replaces it. It does not show *how much*.
# Suppose you look at one prompt, one sample each. Over all 200 prompts: what would you have seen?

# %%
better = table["right after"] & ~table["right before"]
worse = table["right before"] & ~table["right after"]
print(f"got better: {better.mean():.3f}")
print(f"no change:  {(~better & ~worse).mean():.3f}")
print(f"got worse:  {worse.mean():.3f}")

# %% [markdown]
# The gain is large here, and still the middle line says how often one question would have
# shown *no change*. And five questions? We draw five at random, a thousand times, and note the
# gain that they show.

# %%
import numpy

rng = numpy.random.default_rng(SEED)
gains = numpy.array(after.right, float) - numpy.array(before.right, float)
five = [rng.choice(gains, 5, replace=False).mean() for _ in range(1000)]
low, high = numpy.quantile(five, [0.025, 0.975])
print(f"all 200 prompts:                {gains.mean():+.2f}")
print(f"five prompts, 95 of 100 times: {low:+.2f} to {high:+.2f}")

# %% [markdown]
# Five prompts may show next to nothing or a triumph, and both times it is the same policy. Now the
# usual case, two policies that are close: the second training against the first.

# %%
close = numpy.array(afters[1].right, float) - numpy.array(after.right, float)
five = [rng.choice(close, 5, replace=False).mean() for _ in range(1000)]
print(f"all 200 prompts: {close.mean():+.3f}")
for name, share in (
    ("second better", numpy.greater(five, 0).mean()),
    ("tied", numpy.equal(five, 0).mean()),
    ("second worse", numpy.less(five, 0).mean()),
):
    print(f"five prompts say {name:14}{share:.2f}")

# %% [markdown]
# Often a tie, and otherwise an accident. To see an improvement you only have to try other
# prompts.

# %% [markdown]
# ## 4. An interval
#
# A rate from `n` prompts is a guess at the rate on *all* such prompts. The 95 % interval of Wilson
# (1927) says how far off the guess may be: it holds the true rate in about 95 of 100 such
# experiments.

# %% tags=["nbval-check-output"]
from grpo_utils import Rate

for n in (5, 10, 50, 200, 1000):
    print(Rate(hits=n * 4 // 5, n=n))

# %% [markdown]
# Always 80 %, and very different knowledge. With ten prompts, 80 % may be a coin toss (0.49); with
# 200 the interval is eleven points wide. **Four times the prompts halve it.**
#
# Wilson's interval also keeps its head at the ends: 0 of 20 is not "0 % exactly", but up to 16 %.

# %% tags=["nbval-check-output"]
print(Rate(0, 20))
print(Rate(200, 200))

# %% [markdown]
# ## 5. A paired test
#
# Before and after were asked the **same prompts**, so each prompt can be compared with itself.
# What is alike on both sides says nothing about a change. Only those count that changed:

# %% tags=["nbval-check-output"]
from grpo_utils import mcnemar_p_value

SIX_BETTER = [False] * 6 + [True] * 4, [True] * 6 + [True] * 4
FIVE_AND_ONE = [False] * 5 + [True] * 5, [True] * 5 + [False] + [True] * 4
print(f"6 better, 0 worse: p = {mcnemar_p_value(*SIX_BETTER):.3f}")
print(f"5 better, 1 worse: p = {mcnemar_p_value(*FIVE_AND_ONE):.3f}")

# %% [markdown]
# If nothing had changed, each of the six would be as likely to get worse as better: six tosses of
# a coin. All six on one side happens with p = 2/64. That is the exact test of McNemar (1947).
# Five of six is no news.
#
# `compare` does all of it, for our policy:

# %%
from grpo_utils import compare

comparison = compare(before, after)
print(comparison)

# %% [markdown]
# The last line is the one to quote: the gain, its interval (from a *paired bootstrap*: draw 200
# prompts with replacement, both results together, 9,999 times), and p. `compare` claims an improvement
# only if the interval leaves zero out **and** p is below 0.05. It refuses evaluations of different
# prompts.

# %% tags=["nbval-check-output"]
print("improvement shown:", comparison.improved)

# %% [markdown]
# How many prompts does it take? Subsets of the same results, 500 times each: how often is p below
# 0.05? Once for the large gain, once for the two close policies.


# %%
def found(old, new, size: int) -> float:
    """The share of random subsets on which the paired test sees a change."""
    subsets = [rng.choice(200, size, replace=False) for _ in range(500)]
    old, new = numpy.array(old.right), numpy.array(new.right)
    p_values = [mcnemar_p_value(old[s], new[s]) for s in subsets]
    return numpy.less(p_values, 0.05).mean()


print("prompts   before/after   second/first")
for size in (5, 10, 20, 50, 100):
    large, small = found(before, after, size), found(after, afters[1], size)
    print(f"{size:7}{large:15.2f}{small:15.2f}")

# %% [markdown]
# Five prompts can *never* show anything: even 5 of 5 is p = 0.06. A gain as large as ours shows
# with twenty. The difference between two close policies shows in few subsets, if in any. And a
# test that sees nothing is no proof that there is nothing: it may need a thousand prompts
# (exercise 3).
#
# What does pairing buy? Our policies are mostly right, so they share few errors. Take two others,
# made up: 160 of 200 prompts are right with both and 28 wrong with both, 10 got better and 2
# worse. Once paired, once as if each had been asked 200 prompts of its own (Fisher's exact test,
# and the textbook interval).

# %% tags=["nbval-check-output"]
from math import sqrt

from scipy.stats import fisher_exact

from grpo_utils import p_text, paired_change

one = [1] * 160 + [0] * 28 + [0] * 10 + [1] * 2
other = [1] * 160 + [0] * 28 + [1] * 10 + [0] * 2
pair = paired_change(one, other)
a, b = Rate(sum(one), 200), Rate(sum(other), 200)
half = 1.96 * sqrt(sum(r.value * (1 - r.value) / r.n for r in (a, b)))
change = b.value - a.value
apart = fisher_exact([[a.hits, a.n - a.hits], [b.hits, b.n - b.hits]])
print(f"paired:   {pair.estimate.signed()}, {p_text(pair.p_value)}")
alone = f"{change:+.3f} ({change - half:+.3f} to {change + half:+.3f})"
print(f"unpaired: {alone}, {p_text(apart.pvalue)}")

# %% [markdown]
# The same data, and the paired interval is narrower. The two agree on 188 prompts, because some
# prompts are easy for both and some are hard for both, and pairing takes out what they share. It
# is free: ask the same prompts.

# %% [markdown]
# ## 6. The A/A test: nothing against nothing
#
# Does the procedure cry wolf? Compare the base model **with itself**, sampled with another seed
# (with the same one the texts would be the same). Whatever comes out is chance.

# %%
again = evaluate(base, tokenizer, test_rows, **judging | {"seed": SEED + 100})
nothing = compare(before, again)
print(nothing.better, "better,", nothing.worse, "worse")
print(nothing.sentence)

# %%
print("A/A: no improvement shown:", not nothing.changed)

# %% [markdown]
# Dozens of prompts "got better" or "got worse", though nothing happened at all: that is what one
# sample a prompt is worth. Now a thousand such comparisons: for every prompt draw two of its
# sixteen samples, call one "before" and one "after".

# %%
right = numpy.array(samples_before.right)  # (prompts, samples)


def nothing_happened() -> float:
    """The p-value of a comparison in which nothing happened."""
    order = rng.permuted(right, axis=1)
    return mcnemar_p_value(order[:, 0], order[:, 1])


p_values = [nothing_happened() for _ in range(1000)]
alarms = numpy.less(p_values, 0.05).mean()
print(f"false alarms: {alarms:.3f}")

# %% tags=["nbval-check-output"]
print("false alarms at most 1 in 15:", alarms < 1 / 15)

# %% [markdown]
# At most 5 % is the promise, which an exact test keeps, mostly with room to spare. It also says: **of twenty
# comparisons of nothing with nothing, one may look like a success.** If you tried twenty ideas and
# report the one with p = 0.04, you report chance.

# %% [markdown]
# ## 7. Format or answers?
#
# Strict accuracy is a product: the share in form, times the share of those that is right. A gain can
# come from either, and a form is far easier to learn than arithmetic. First the two factors:

# %%
print("in form, before:          ", before.format)
print("in form, after:           ", after.format)
print("right, if in form, before:", before.accuracy_given_format)
print("right, if in form, after: ", after.accuracy_given_format)

# %% [markdown]
# Mind the small n of the third line: only what was in form counts, and its interval is wide. The
# gain is split by Kitagawa's formula (1955): each factor's change, times the mean of the other. The
# parts add up exactly.

# %%
form_part, answer_part = comparison.format_part, comparison.answer_part
print("gain:      ", comparison.difference.signed())
print("by form:   ", form_part.signed() if form_part else "cannot be told")
print("by answers:", answer_part.signed() if answer_part else "cannot be told")

# %% [markdown]
# Most of it is form, and part of it is arithmetic. (The part by answers compares the few answers that were in form
# before with the many that are now, to other prompts.) Ask it the other way round: how often was the sum itself right,
# in any form? Take the **last number** of each text, "15 + 27 is 42." included.


# %%
def last_number(text: str) -> str | None:
    return (re.findall(r"\d+", text) or [None])[-1]


def sum_is_right(result) -> numpy.ndarray:
    golds = test_rows["answer"]
    return numpy.array(
        [last_number(t) == g for t, g in zip(result.sampled, golds)]
    )


sides = {"before": sum_is_right(before), "after": sum_is_right(after)}
kinds = numpy.array(test_rows["kind"])
for kind in ("no carry", "carry"):
    for name, hits in sides.items():
        of_kind = hits[kinds == kind]
        print(f"{kind:9} {name:7}", Rate(int(of_kind.sum()), len(of_kind)))

# %% tags=["nbval-check-output"]
for kind in ("no carry", "carry"):
    change = paired_change(*(hits[kinds == kind] for hits in sides.values()))
    print(f"{kind:9} improvement of the sums shown:", change.verdict == "GAIN")

# %%
sums = paired_change(*sides.values())
print("all sums:", sums)

# %% [markdown]
# The base could do the sums without a carry before we trained it. For these, "GRPO taught it arithmetic" would be
# false; "GRPO taught it to answer in the asked form" is true. With a carry the sums themselves got better: the base
# forgot the carry more often than not, and the policy mostly adds it. But the base was right *sometimes*, and only
# because of that could those answers be rewarded. GRPO makes likely what the model could already do sometimes; it does
# not teach what was never sampled. Section 9 shows the other case.
#
# On a larger model the same happens with `\boxed{}` or `####`: a jump in accuracy that is often mostly a model
# learning where to put its answer. That is a gain if the form is what you need. Report both parts.

# %% [markdown]
# ## 8. pass@k: new ability, or a sharper one?
#
# **pass@k** is the chance that at least one of `k` samples is right. It asks what a policy *can* do
# when it may try often. From 16 samples of which `c` are right it is estimated without bias by
# counting choices (Chen et al. 2021): one minus the share of all choices of `k` that hold no
# right one.

# %% tags=["nbval-check-output"]
from grpo_utils import pass_at_k

for k in (1, 4, 16):
    print(f"3 of 16 right: pass@{k} = {pass_at_k(16, 3, k):.3f}")

# %%
from grpo_utils import pass_at_k_curve, show

sides = {"before": samples_before, "after": samples_after}
ks = (1, 2, 4, 8, 16)
curves = {
    name: {k: samples.pass_at_k(k) for k in ks}
    for name, samples in sides.items()
}
ends = ", ".join(
    f"{name} from {curve[1].value:.2f} at 1 to {curve[16].value:.2f} at 16"
    for name, curve in curves.items()
)
show(pass_at_k_curve(curves), alt=f"pass@k on 100 prompts, {ends}.")

# %% [markdown]
# At k = 1 the curves are far apart; at k = 16 they almost meet. (The bands are 95 % intervals. Where
# every prompt is solved a band does not vanish: 100 of 100 is no proof of 100 %.) With sixteen tries the base
# model already solves nearly everything in form: **what GRPO did is make likely what was possible.**
# Whether it ever adds ability is debated: Yue et al. 2025 (arXiv 2504.13837) find base models
# ahead at large k on mathematics and code. On our task the question cannot be settled, because
# there is almost nothing left to gain at k = 16.

# %% tags=["nbval-check-output"]
once, often = (curves["before"][k].value for k in (1, 16))
print("before, pass@16 more than twice pass@1:", often > 2 * once)
print("before, pass@16 above 0.9:", often > 0.9)

# %% [markdown]
# pass@k needs someone who picks the right one. A **majority vote** over the samples needs nobody
# (self-consistency, Wang et al. 2022). Texts out of form do not vote at first, then the last
# number of every text does; ties are broken by lot.

# %%
print(f"{'':8}{'one sample':25}{'majority of 16':25}any form votes")
for name, samples in sides.items():
    votes = samples.majority(), samples.majority(read=last_number)
    rates = [str(e) for e in (samples.pass_at_k(1), *votes)]
    print(f"{name:8}" + "".join(f"{text:25}" for text in rates))
any_form = [s.majority_of_each(read=last_number) for s in sides.values()]
print("any form votes, change:", paired_change(*any_form))

# %%
for name, samples in sides.items():
    numbers = [{last_number(t) for t in said} for said in samples.texts]
    print(f"different last numbers among 16, {name:7}", end="")
    print(f"{numpy.mean([len(n) for n in numbers]):.2f}")

# %% [markdown]
# The base model's votes are good as long as only texts in form vote. If every text votes they are
# worse, because most of the other texts forget the carry and so have the same wrong sum: where an
# error is the most likely answer, a vote confirms it. The trained policy has passed that vote with
# one sample, at a sixteenth of the price: this is what was bought. Its own votes are better still.
#
# The line of the change says that the votes in any form improved. Mind how it knows: an interval
# that leaves zero out is **not** enough. `paired_change` demands a test, too, the *sign test*: of
# the prompts that changed, how many got worse? It is McNemar's test for scores. Four prompts of a
# hundred, all worse, have an interval below zero and p = 0.125, as four tosses of a coin have:
# nothing is shown.
#
# Last, **greedy against sampled**. Both are honest, if you say which.

# %%
print("greedy, before:", before.greedy_accuracy)
print("greedy, after: ", after.greedy_accuracy)
print("sampled, after:", after.accuracy)
print("base, greedy:  ", before.greedy[0])

# %% [markdown]
# Greedy decoding hides the form that the base model writes in about three of ten samples, so
# the gain looks even larger. Report the decoding that your users will have, and the other one
# beside it.

# %% [markdown]
# ## 9. Other prompts, other tasks
#
# The held-out prompts are of the same kind as the training prompts. What of others? We ask: the same
# sums without the system prompt, in other words, with three digits; and two other tasks that this
# tiny model knows and was **not** trained on now: a name and an age as JSON, and a table of
# thirty facts.

# %%
import random

from grpo_utils import SYSTEM_PROMPT, chat_prompt, is_strictly_right

pairs = [numbers_in(row) for row in some_rows]
draw = random.Random(SEED)
long = [[draw.randint(100, 999) for _ in "ab"] for _ in range(100)]
ASKED = {
    "no system prompt": (None, "What is {} + {}?", pairs),
    "'Compute 1 + 2.'": (SYSTEM_PROMPT, "Compute {} + {}.", pairs),
    "'the sum of'": (SYSTEM_PROMPT, "What is the sum of {} and {}?", pairs),
    "three digits": (SYSTEM_PROMPT, "What is {} + {}?", long),
}
tests = {}  # name: prompts, what is right, how that is judged
for name, (system, words, values) in ASKED.items():
    prompts = [chat_prompt(words.format(*v), system) for v in values]
    golds = [str(sum(map(int, v))) for v in values]
    tests[name] = prompts, golds, is_strictly_right

# %% [markdown]
# Every question once: the same one asked ten times would count as ten prompts and pretend to know
# more than it does. (Facts have no held-out split; here we ask what is remembered.)

# %%
from importlib.resources import files

from grpo_utils import read_table


def is_one_of(text: str, right: list) -> bool:
    return text in right


questions = read_table(files("grpo_utils.tiny") / "questions.jsonl")
for task in ("json", "fact"):
    rows = [row for row in questions if row["task"] == task]
    prompts = [chat_prompt(row["question"], None) for row in rows]
    tests[task] = prompts, [row["right"] for row in rows], is_one_of

# %% [markdown]
# Four samples of each prompt. A prompt's score is the share of them that is right, and the
# bootstrap draws prompts, not samples.

# %%
from grpo_utils import generate_samples


def scores(model, prompts, golds, is_right) -> list[float]:
    how = dict(samples=4, max_new_tokens=40, seed=SEED)
    texts = generate_samples(model, tokenizer, prompts, **how)
    rights = [[is_right(t, g) for t in said] for said, g in zip(texts, golds)]
    return [sum(row) / len(row) for row in rights]


# %%
changes = {}
print(f"{'':18}{'n':>4}{'before':>8}{'after':>8}   change (95 % interval), p")
for name, test in tests.items():
    old, new = scores(base, *test), scores(policy, *test)
    changes[name] = change = paired_change(old, new)
    means = f"{numpy.mean(old):8.3f}{numpy.mean(new):8.3f}"
    told = f"{change.estimate.signed()}, {p_text(change.p_value)}"
    print(f"{name:18}{len(old):4}{means}   {told}")

# %%
from grpo_utils import change_chart

intervals = {name: change.estimate for name, change in changes.items()}
told = "; ".join(f"{name} {e.signed()}" for name, e in intervals.items())
show(
    change_chart(intervals, "Changes elsewhere"),
    alt=f"Changes with their intervals: {told}.",
)

# %% [markdown]
# Where the interval leaves zero out there is a square, elsewhere a circle. The words are stricter:
# they ask the sign test, too.

# %%
for name, change in changes.items():
    counts = f"{change.better} better, {change.worse} worse"
    print(f"{name:18}{change.verdict:18}{counts}")

# %%
from grpo_utils import generate

questions = tests["three digits"][0][:3]
said = generate(policy, tokenizer, questions, max_new_tokens=32, seed=SEED)
for question, text in zip(questions, said):
    print(question[-1]["content"], text)

# %% [markdown]
# - *No system prompt*: compare the rates with those of section 2. Where they are near those with the
#   system prompt before **and** after (with qwen they are), neither the base nor
#   the policy hangs on it: the training did not make it needless, it was so before.
# - *Other words*: how far the gain carries differs between the two families, and so does what the
#   base could do with such words in the first place.
# - *Three digits*: next to nothing before, next to nothing after. What never succeeds in a group
#   earns no reward, so GRPO cannot make it likely. Above you see what it says instead: the form has spread, the skill has not.
# - *JSON and facts*: a GAIN may appear, too; one run does not say why. Look for a LOSS. A training on one task may damage another, and only who asks
#   finds out. "No change shown" with thirty facts is weak comfort: the interval says how weak. A
#   square in the figure beside "no change shown" is a suspicion, for which more questions are due.
#
# And count your looks. These are six tests; if nothing had changed anywhere, about one in four such
# tables would still cry wolf somewhere (1 - 0.95^6, at most). A GAIN or LOSS whose p is near 0.05
# is a reason to ask more questions, not yet a result.

# %% [markdown]
# ## 10. Several seeds, and how not to choose
#
# All so far is about **one policy**. Would the training help with another seed? That is another
# question, with another n: the number of trainings.
#
# Each training needs a *before* of its own. One sampled before for all has been lucky or unlucky
# for all of them alike, and an interval that looks at how the seeds differ does not see it: where
# nothing happened, three such seeds would "show" a change in 16 of 100 cases, and ten in half of
# them. So the base is sampled anew for each training, and `compare_seeds` refuses anything else.

# %%
from grpo_utils import compare_seeds

by_training = [comparison]
for seed, other in zip(seeds[1:], policies[1:]):
    own = judging | {"seed": seed}
    results = [evaluate(m, tokenizer, test_rows, **own) for m in (base, other)]
    by_training.append(compare(*results))
by_seed = compare_seeds(by_training)
print(by_seed)

# %% tags=["nbval-check-output"]
print("several seeds: improvement shown:", by_seed.improved)

# %% [markdown]
# With three seeds the t interval is 4.3 standard errors to either side; it is wide, and it stays
# away from zero. Now compare the policies of section 2 with each other. Nothing differs but the
# training seed:

# %%
for i, j in ((0, 1), (0, 2), (1, 2)):
    pair = compare(afters[i], afters[j])
    name = f"seed {seeds[j]} against seed {seeds[i]}"
    print(f"{name}: {pair.difference.signed()}, {p_text(pair.p_value)}")

# %% [markdown]
# That is the size of differences that *no idea at all* makes. A new learning rate that gains as
# much in one run has shown nothing yet, not even with p below 0.05: the paired test says whether
# these two **policies** differ, and they may well. It does not say that your idea made the
# difference and not the seed.
#
# Nor is the best of several runs, or of several checkpoints, as good as it looks. To see why, take
# sixteen "checkpoints" that are all the same base model, each measured with one sample on the
# same 100 prompts, and choose the best:

# %%
columns = right.mean(axis=0)  # one accuracy for each "checkpoint"
best = int(columns.argmax())
print(f"mean of the sixteen:     {columns.mean():.3f}")
print(f"the best, as it looked:  {columns[best]:.3f}")
others = numpy.delete(columns, best).mean()
print(f"the best, measured anew: {others:.3f} (it is the same model)")

# %% tags=["nbval-check-output"]
print("the chosen one looked better than it is:", columns[best] > others)

# %% [markdown]
# Choosing by a number makes the number too good. So choose (a checkpoint, a learning rate, a seed)
# on one set of prompts, the *validation* rows, and report on others, the *test* rows, which are
# used once (both are held out). We did not choose: the seeds were fixed before, and all three are reported.

# %% [markdown]
# ## 11. Write it down
#
# The checklist for after a training, answered by this run. An item that stays open is no shame;
# leaving it out of the report is.

# %%
verdicts = [change.verdict for change in changes.values()]
CHECKLIST = {
    "no held-out question was trained on": not leaked,
    "every held-out question counts once": len(asked) == before.n,
    "same prompts before and after": before.asked == after.asked,
    "nothing against nothing shows nothing": not nothing.changed,
    "the gain passes interval and paired test": comparison.improved,
    "form and answers can be told apart": answer_part is not None,
    "the sums themselves got better": sums.verdict == "GAIN",
    "no loss shown elsewhere": "LOSS" not in verdicts,
    "at least three seeds": len(by_seed.differences) >= 3,
    "a gain over the seeds, all counted": by_seed.improved,
    "reported: the first policy, not the best": after is afters[0],
}
for item, done in CHECKLIST.items():
    print("[x]" if done else "[ ]", item)

# %% [markdown]
# (That you read samples, only you can tick.) And the paragraph, from the numbers. No number in it is
# typed by hand, so none is forgotten when you run it again.


# %%
def names(verdict: str) -> str:
    found = [n for n, c in changes.items() if c.verdict == verdict]
    return ", ".join(found) or "none"


won, lost, unclear = map(names, ("GAIN", "LOSS", "no change shown"))
split = "cannot be told"
if form_part and answer_part:
    split = f"form {form_part.signed()}, answers {answer_part.signed()}"

# %%
REPORT = f"""
{profile.models[FAMILY]}, GRPO, {steps} steps, {before.n} held-out additions,
one sample each at temperature 1, 95 % intervals.
Strict accuracy before: {before.accuracy};
after: {after.accuracy}.
{comparison.sentence}
Of the gain, {split}.
The last number alone, whatever the form: {sums}.
Greedy: {before.greedy_accuracy}, before;
{after.greedy_accuracy}, after.
pass@16 before: {curves["before"][16]}; after: {curves["after"][16]}.
Elsewhere, gains: {won}; losses: {lost};
no change shown: {unclear}.
Over {len(seeds)} seeds: {by_seed.sentence}
"""
print(REPORT.strip())

# %% [markdown]
# This says less than "accuracy up from a quarter to nine tenths!", and it is worth more: the
# reader knows what was measured, how surely, and where a loss was looked for.

# %% [markdown]
# ## 12. Exercises
#
# ### Exercise 1: pass@k by hand
#
# Write `my_pass_at_k(samples, right, k)` with `math.comb`: one minus the number of ways to choose
# `k` wrong samples, divided by the number of ways to choose any `k`. What is pass@2 if 1 of 4 is
# right? (Count the six pairs.)


# %%
def my_pass_at_k(samples: int, right: int, k: int) -> float | None:
    """Your answer: a number from 0 to 1."""
    return None


# %% tags=["nbval-check-output"]
from grpo_utils import check_exercise

CASES = [((4, 1, 2), 0.5), ((16, 3, 4), 0.607), ((10, 0, 5), 0.0)]
CASES += [((10, 8, 5), 1.0)]
print(check_exercise("Exercise 1", my_pass_at_k, CASES))

# %% [markdown]
# <details><summary>Solution</summary>
#
# The next cell holds it. `math.comb(2, 5)` is 0: of two wrong samples five cannot be chosen, so
# one of five is always right.
# </details>

# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
from math import comb


def pass_at_k_solution(samples: int, right: int, k: int) -> float:
    return 1 - comb(samples - right, k) / comb(samples, k)


print(check_exercise("Exercise 1, solution", pass_at_k_solution, CASES))

# %% [markdown]
# ### Exercise 2: which claims hold?
#
# Four reports. Which of the claims are shown by what is reported? Give the letters as a list.
#
# - **A**: "120 of 200 prompts right before, 126 of 200 others after: accuracy rose."
# - **B**: "The same 500 prompts: 62 got better, 30 got worse: accuracy rose."
# - **C**: "Before, 40 of 200 were in form and 36 of these right; after, 200 were in form and 180
#   right: the model became better at the task itself, not only at its form."
# - **D**: "Three seeds, fixed beforehand, each with a before of its own: +0.05, +0.04, +0.06: the
#   training helps on these prompts."


# %%
def claims_that_hold() -> list[str]:
    """Your answer: for example ["A", "C"]."""
    return []


# %% tags=["nbval-check-output"]
def judged(claims: list[str]) -> list[bool]:
    """For A, B, C and D: is it judged rightly?"""
    return [(c in claims) == (c in "BD") for c in "ABCD"] if claims else []


HOLD = [((), [True] * 4)]
print(check_exercise("Exercise 2", lambda: judged(claims_that_hold()), HOLD))

# %% [markdown]
# <details><summary>Solution</summary>
#
# The next cell computes each. A: Fisher's test gives p = 0.6. B: McNemar gives p = 0.001. C: 36
# of 40 and 180 of 200 are both 0.9, so all of the gain is form. D: the t interval stays above
# zero.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
from grpo_utils import split_gain, t_interval


def claims_solution() -> list[str]:
    pairs = [False] * 62 + [True] * 30, [True] * 62 + [False] * 30
    shown = {
        "A": fisher_exact([[120, 80], [126, 74]]).pvalue < 0.05,
        "B": mcnemar_p_value(*pairs) < 0.05,
        "C": split_gain(40 / 200, 36 / 40, 200 / 200, 180 / 200)[1] > 0,
        "D": t_interval([0.05, 0.04, 0.06]).low > 0,
    }
    return [letter for letter, holds in shown.items() if holds]


name = "Exercise 2, solution"
print(check_exercise(name, lambda: judged(claims_solution()), HOLD))

# %% [markdown]
# ### Exercise 3: how many prompts?
#
# To tell the rates `a` and `b` apart in four of five experiments (at p < 0.05, unpaired), each side
# needs about `7.85 * (a * (1 - a) + b * (1 - b)) / (a - b) ** 2` prompts. (7.85 is the
# square of 1.96 + 0.84, the normal quantiles of 97.5 % and 80 %.) Write
# `prompts_needed(a, b)`, rounded up. How many for 0.80 against 0.85? Did you ever see an evaluation
# that large?


# %%
def prompts_needed(a: float, b: float) -> int | None:
    """Your answer: a whole number."""
    return None


# %% tags=["nbval-check-output"]
NEEDED = [((0.80, 0.85), 903), ((0.5, 0.6), 385), ((0.85, 0.80), 903)]
print(check_exercise("Exercise 3", prompts_needed, NEEDED))

# %% [markdown]
# <details><summary>Solution</summary>
#
# The next cell holds it: 903 prompts a side. A paired test needs fewer, the more both sides agree.
# </details>

# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
from math import ceil


def needed_solution(a: float, b: float) -> int:
    return ceil(7.85 * (a * (1 - a) + b * (1 - b)) / (a - b) ** 2)


print(check_exercise("Exercise 3, solution", needed_solution, NEEDED))

# %% [markdown]
# ## What to take along
#
# - Fix prompts, decoding and seeds **before** the training; report all of them.
# - An interval beside every rate. Four times the prompts halve it.
# - The same prompts before and after, and a paired test. No difference shown is not "the same".
# - Tell form from answers, and pass@1 from pass@k.
# - Ask elsewhere, too: that is where the losses are.
# - One policy is not a training: several seeds, and no choosing on the test prompts.
#
# To read: Chen et al. 2021 (arXiv 2107.03374) on pass@k; Wang et al. 2022 (arXiv 2203.11171) on
# majority votes; Yue et al. 2025 (arXiv 2504.13837) on what reinforcement learning adds;
# Henderson et al. 2017, *Deep reinforcement learning that matters* (arXiv 1709.06560), on seeds.
#
# Next: [lesson 07](07_export.ipynb): take the model home.
