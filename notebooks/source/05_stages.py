# %% [markdown]
# # 05 · Multi-stage training
#
# {{badges}}
#
# **You will be able to** train in stages that carry one adapter, find out whether the stages were
# worth it, resume a run that was killed so that nothing is lost, and choose each knob of GRPO
# knowing what it does.
#
# "First teach the form, then the answers" sounds right, and many a tutorial says it. Few of them
# compare it with the same training in one piece. This lesson does.
#
# | | CPU | T4 |
# |---|---|---|
# | time for Run All | about 4 minutes ([measured](../docs/results.md)) | never run |
# | memory | 1.8 GB ([measured](../docs/results.md)) | never run |
# | model | 0.46 million parameters, ships with the course | the same: it trains on the CPU |
#
# The bars below may come from a busier machine.
#
# **While it trains**, write down your bet: will two stages beat one in section 3? By how much?
#
# 1. Settings
# 2. A plan of two stages
# 3. Against one stage, fairly
# 4. Easy prompts first?
# 5. Weights that adapt
# 6. Killed, and resumed
# 7. A Colab that disconnects
# 8. The knobs
# 9. Exercises
#
# You need [lesson 03](03_grpo_lora.ipynb), or these words: GRPO samples a *group* of completions for
# each prompt, scores them with *rewards*, and makes the better ones of the group likelier. What is
# trained is the *adapter* beside a frozen model; both together are the *policy*.

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
STEPS: int = 0  # optimizer steps of one stage of two; 0: the lesson's 10
SEED: int = 0  # everything random follows from it

# %% [markdown]
# It takes some twenty trainings to compare what this lesson compares, so it trains the tiny model, on
# the CPU, whatever else the machine has.

# %%
from grpo_utils import (
    FAMILIES,
    PROFILES,
    check_choice,
    check_count,
    find_profile,
    prepare_machine,
    start_run,
)

find_profile(PROFILE)  # an unknown name is an error now
check_choice("FAMILY", FAMILY, FAMILIES)
check_count("STEPS", STEPS)
profile, steps = PROFILES["cpu"], STEPS or 10
prepare_machine(profile)
folder, said = start_run("outputs/stages")
print(f"{profile.models[FAMILY]}, two stages of {steps} steps, on the CPU")
print(said)

# %% [markdown]
# ## 2. A plan of two stages
#
# The task is that of lesson 03: two-digit additions, answered in the form
# `<reasoning>…</reasoning><answer>…</answer>`. Prompts to judge by are put aside first: 200 of them,
# each question once, none of them trained on.

# %%
from grpo_utils import load_rows

train_rows = load_rows("addition", "train", 2000, SEED)
test_rows = load_rows("addition", "test", 200, SEED)

# %% [markdown]
# A *stage* is a training with rewards, weights, steps and rows of its own. The first of ours pays
# for the form alone, the second for right answers as well. The learning rate is constant and the same
# in both, so that the rewards are all that differs.

# %%
from grpo_utils import Stage, math_rewards

rewards, weights = math_rewards()
correctness, strict_form, tags = rewards
LEVEL = dict(learning_rate=2e-3, lr_scheduler_type="constant")

format_first = Stage(
    "format",
    rewards=[strict_form, tags],
    weights=[0.5, 0.5],
    steps=steps,
    rows=train_rows,
    overrides=LEVEL,
)
then_both = Stage("both", rewards, weights, steps, train_rows, LEVEL)

# %% [markdown]
# A slip in a plan should cost a second, and not the first stage. So plans are checked before anything
# is loaded.

# %% tags=["nbval-check-output"]
from dataclasses import replace

from grpo_utils import CourseError, check_stages

SLIPS = {
    "no stage": [],
    "one name twice": [format_first, format_first],
    "a weight is missing": [replace(then_both, weights=[2.0, 0.5])],
}
for name, plan in SLIPS.items():
    try:
        check_stages(plan)
    except CourseError as error:
        print(f"{name}: {error}")

# %% [markdown]
# `run_stages` trains the stages one after the other. Each has its own folder, its own checkpoints and,
# when it is done, a mark that says so. The `HealthCallback` of [lesson 04](04_reading_a_run.ipynb)
# watches every stage.

# %%
import transformers

from grpo_check import HealthCallback
from grpo_utils import load_policy, run_stages

transformers.logging.set_verbosity_error()


def train(name: str, stages: list[Stage], seed=SEED, rank=16, **how):
    """Train a fresh policy by a plan; the policy and its logs."""
    policy, tokenizer = load_policy(
        profile.models[FAMILY],
        profile=replace(profile, lora_rank=rank, lora_alpha=2 * rank),
        backend="transformers",
        load_in_4bit=False,
        seed=seed,
    )
    how = {"profile": profile, "seed": seed, "save_every": 10, **how}
    logs = run_stages(policy, tokenizer, stages, folder / name, **how)
    return policy, tokenizer, logs


# %%
def watched() -> list:
    return [HealthCallback(test_rows, every=10)]


policy, tokenizer, logs = train(
    "two-stages", [format_first, then_both], callbacks=watched
)

# %% [markdown]
# What lies in the folder now:

# %%
for path in sorted((folder / "two-stages").glob("*/*")):
    print(path.relative_to(folder))

# %% [markdown]
# What is carried from one stage to the next is **the adapter, and nothing else**. We look: the adapter
# with which the second stage began, against the one with which the first had ended.

# %% tags=["nbval-check-output"]
from safetensors.torch import load_file


def adapter_in(place) -> dict:
    return load_file(place / "adapter_model.safetensors")


def largest_difference(one: dict, other: dict) -> float:
    return max((one[k] - other[k]).abs().max().item() for k in one)


ended = adapter_in(folder / "two-stages/1-format/adapter")
began = adapter_in(folder / "two-stages/2-both/start")
print("largest difference:", largest_difference(ended, began))

# %% [markdown]
# The **optimizer** starts new: Adam keeps a running mean of every weight's gradient, and the gradients
# of other rewards are other gradients. So does the learning-rate schedule. In the last checkpoint of the
# second stage the optimizer has counted the steps of that stage alone:

# %%
import torch

from grpo_utils import newest_checkpoint

checkpoint = newest_checkpoint(folder / "two-stages/2-both")
optimizer = torch.load(checkpoint / "optimizer.pt")
counted = int(next(iter(optimizer["state"].values()))["step"])
print(f"trained: {2 * steps} steps; counted by the optimizer: {counted}")

# %% [markdown]
# The form (left) was paid in both stages, so its curve has the steps of both. Correctness (right) was not
# paid in the first and so is not in its log: its step 1 is the first of the second stage.

# %%
from grpo_utils import logged, run_curves, show

FORM = "rewards/strict_format_reward/mean"
RIGHT = "rewards/correctness_reward/mean"
curve = {
    name: logged(logs["format"] + logs["both"], key)
    for name, key in (("form", FORM), ("right", RIGHT))
}
told = "; ".join(f"{n}: {c[0]:.2f} to {c[-1]:.2f}" for n, c in curve.items())
show(
    run_curves({"two stages": logs["format"] + logs["both"]}, (FORM, RIGHT)),
    alt=f"Two curves over the steps of the two stages, {told}.",
)

# %% [markdown]
# ## 3. Against one stage, fairly
#
# A rising curve is no argument for stages. The question is what **one** stage, with all rewards from
# the start, makes of the same budget: as many steps, as many completions, the same rows, the same rate.
# For three seeds, which were chosen before, and are all reported.

# %%
from grpo_utils import evaluate

one_stage = Stage("both", rewards, weights, 2 * steps, train_rows, LEVEL)
judging = dict(max_new_tokens=32, temperature=1.0, seed=SEED)
seeds = [SEED, SEED + 1, SEED + 2]  # of the training and of the judging
ones, twos = [], [evaluate(policy, tokenizer, test_rows, **judging)]
for seed in seeds:
    how = judging | dict(seed=seed)
    policy, tokenizer, _ = train(f"one-{seed}", [one_stage], seed)
    ones.append(evaluate(policy, tokenizer, test_rows, **how))
for seed in seeds[1:]:
    how, plan = judging | dict(seed=seed), [format_first, then_both]
    policy, tokenizer, _ = train(f"two-{seed}", plan, seed)
    twos.append(evaluate(policy, tokenizer, test_rows, **how))

# %% [markdown]
# *Strict accuracy* is the share of held-out prompts whose sampled answer is in form **and** right, with
# its 95 % interval.

# %%
for seed, one, two in zip(seeds, ones, twos):
    print(f"seed {seed}, one stage:  {one.accuracy}")
    print(f"seed {seed}, two stages: {two.accuracy}")

# %% [markdown]
# Each pair was asked the same prompts, so prompts are compared with themselves; and the three
# differences say how far their mean over seeds is known ([lesson 06](06_evaluation.ipynb)). Here "before"
# is one stage and "after" is two.

# %%
from grpo_utils import compare, compare_seeds

pairs = [compare(one, two) for one, two in zip(ones, twos)]
for seed, pair in zip(seeds, pairs):
    print(f"seed {seed}: {pair.difference.signed()}, p = {pair.p_value:.2f}")
over_seeds = compare_seeds(pairs)
print(over_seeds)

# %% [markdown]
# The last sentence is the result of this section, and no other sentence about stages follows from it. It holds
# for this task, this model, this budget and these prompts.
#
# - If it says "No improvement shown", the order "form first" bought nothing that three seeds can show; an effect
#   smaller than the interval is not ruled out.
# - If it says that accuracy fell, or rose, more seeds and more prompts tell by how much, chosen before they are
#   looked at. (Three seeds may agree by luck. So the interval is never narrower than the sampling of the prompts alone
#   would make it.)
#
# What differs inside one group:

# %% tags=["nbval-check-output"]
from grpo_utils import group_advantages, weighted_sum

FOUR = [
    "<reasoning>15 + 27 = 42</reasoning><answer>42</answer>",
    "<reasoning>15 + 27 = 41</reasoning><answer>41</answer>",
    "<reasoning>15 + 27 = 42 <answer>42",
    "15 + 27 is 42.",
]
for name, chosen, paid in (
    ("format first", [strict_form, tags], [0.5, 0.5]),
    ("all at once ", rewards, weights),
):
    scores = [reward(FOUR, answer=["42"] * 4) for reward in chosen]
    advantages = group_advantages(weighted_sum(scores, paid), 4)
    print(name, [round(a, 2) for a in advantages])

# %% [markdown]
# Four answers of one group, made by hand. The *advantage* is what a completion is made likelier (+) or
# rarer (-) by. Under "format first" right and wrong sums in form are pushed up **alike**: in the first stage
# correctness earns nothing. With all rewards the form is still learned, since a right answer
# counts only inside it; the two goals do not fight. Stages may pay where one goal hides the other: where
# the base is never right, so that correctness is zero for everybody at first, or where a second task would
# undo the first. Whether it does is a comparison such as this one.

# %% [markdown]
# ## 4. Easy prompts first?
#
# A *curriculum* sorts the prompts: easy ones first. Which are easy? To us: sums with a one-digit number, then
# sums of two digits without a carry (from the units to the tens), then those with one. But it is not us who are
# trained. So before anything is sorted, it is **measured**: 50 prompts of each kind, 8 samples of each, by the
# base. (Right is here what ends in the right number, in whatever form.)

# %%
import random
import re

from datasets import Dataset

from grpo_utils import chat_prompt


def numbers_in(row: dict) -> list[int]:
    asked = row["prompt"][-1]["content"]
    return [int(number) for number in re.findall(r"\d+", asked)]


# %%
all_sums = [(a, b) for a in range(1, 10) for b in range(10, 100)]
one_digit = random.Random(SEED).sample(all_sums, k=300)
two_digits = [numbers_in(row) for row in train_rows]
kinds = {"one digit": one_digit[:50]}
for kind in ("no carry", "carry"):
    of = [numbers_in(row) for row in train_rows if row["kind"] == kind]
    kinds[f"two digits, {kind}"] = of[:50]


# %%
from grpo_utils import generate_samples, mean_interval

base, tokenizer = load_policy(
    profile.models[FAMILY],
    profile=profile,
    backend="transformers",
    load_in_4bit=False,
    seed=SEED,
)


def samples_right(asked: list) -> list[list[bool]]:
    """For each sum and each of 8 samples: is the last number right?"""
    prompts = [chat_prompt(f"What is {a} + {b}?") for a, b in asked]
    how = dict(samples=8, max_new_tokens=32, seed=SEED)
    texts = generate_samples(base, tokenizer, prompts, **how)
    last = [[re.findall(r"\d+", t)[-1:] for t in said] for said in texts]
    golds = [[str(a + b)] for a, b in asked]
    return [[n == gold for n in said] for said, gold in zip(last, golds)]


# %%
rights = {kind: samples_right(asked) for kind, asked in kinds.items()}
rates = {k: [sum(r) / 8 for r in rows] for k, rows in rights.items()}
for kind, values in rates.items():
    print(f"{kind:22}{mean_interval(values)}")

# %% tags=["nbval-check-output"]
hardest = min(rates, key=lambda kind: sum(rates[kind]))
print("hardest for the base:", hardest)

# %% [markdown]
# What is easiest for us is hardest for this model, which was never shown a sum with one digit. (An interval from
# 0.000 to 0.000 is the blind spot of the bootstrap, which resamples the prompts: lesson 06. With none of 50 prompts
# right, the true share may still be some 6 %.) And a carry makes a large difference: without one nearly all samples
# are right, with one about three in ten, since the base mostly forgets it.
#
# And among sums of one kind, are some harder than others? If so, a prompt that does well in its first four samples
# does well in the other four, too. So we look at the correlation of the two halves, with its 95 % interval: over
# all sums of two digits, then over those with a carry alone:

# %%
import numpy
from scipy.stats import pearsonr


def halves_alike(names: list) -> str:
    pooled = [row for name in names for row in rights[name]]
    halves = numpy.array(pooled).reshape(-1, 2, 4).mean(axis=2)
    alike = pearsonr(*halves.T)
    low, high = alike.confidence_interval()
    return f"{alike.statistic:+.2f} ({low:+.2f} to {high:+.2f})"


print("correlation of the halves, two digits:", halves_alike(list(kinds)[1:]))
print("correlation of the halves, carry only:", halves_alike(list(kinds)[2:]))

# %% [markdown]
# Over all sums of two digits the halves agree, because of the carry. Within the sums with a carry they agree far
# less: knowing the carry, you know most of what pass rates show. (Where that interval covers 0, no difference between
# single prompts is shown. That is not the same as "there is none": four samples are four coin flips, and two halves
# of them never agree fully.) Sorting by single pass rates inside a kind sorts mostly by luck.
#
# We sort by the largest difference of the table, one digit against two. The same 400 rows in three orders, two stages
# of one length each, the same rewards throughout: shuffled; **one digit first**, as we guessed; **two digits first**,
# as the pass rates say.


# %%
def sums(asked: list) -> Dataset:
    prompts = [chat_prompt(f"What is {a} + {b}?") for a, b in asked]
    answers = [str(a + b) for a, b in asked]
    return Dataset.from_dict({"prompt": prompts, "answer": answers})


SHORT = steps * 3 // 4 or 1
ones_, twos_ = one_digit[:200], two_digits[:200]
shuffled = random.Random(SEED).sample(ones_ + twos_, k=400)
ORDERS = {
    "shuffled": (shuffled[:200], shuffled[200:]),
    "one digit first": (ones_, twos_),
    "two digits first": (twos_, ones_),
}
fixed = dict(rewards=rewards, weights=weights, steps=SHORT, overrides=LEVEL)
results = {}
for name, (early, late) in ORDERS.items():
    plan = [Stage("early", rows=sums(early), **fixed)]
    plan += [Stage("late", rows=sums(late), **fixed)]
    results[name] = train(name.replace(" ", "-"), plan)

# %% [markdown]
# Judged on both kinds: the 200 held-out sums of two digits, and 100 of one digit that were not trained on.

# %%
other_rows = sums(one_digit[200:])
judged = {
    name: [evaluate(*run[:2], r, **judging) for r in (test_rows, other_rows)]
    for name, run in results.items()
}
mixed = judged["shuffled"]
for name, (two, one) in judged.items():
    print(f"{name:17}two digits {two.accuracy}")
    print(f"{'':17}one digit  {one.accuracy}")
for name in list(ORDERS)[1:]:
    print(f"\n{name}, against shuffled, two digits and one digit:")
    for old, new in zip(mixed, judged[name]):
        print(" ", compare(old, new).sentence)

# %% [markdown]
# One seed and four tests: this says whether these **policies** differ, and not whether a curriculum helps. (For that,
# put a loop over three seeds around it, as in section 3.) Two rules hold all the same. Judge by *both* kinds: an
# order may change one and not the other. And where the base is never right, an order helps only through what the
# other prompts teach: a group that is always wrong teaches only form.
#
# What is known about difficulty in GRPO has another shape: a prompt that is always or never right ties its group, so
# such prompts are *dropped* and others sampled instead (Yu et al. 2025, *DAPO*, arXiv 2503.14476, "dynamic
# sampling").

# %% [markdown]
# ## 5. Weights that adapt
#
# Stages change the weights in one jump. `AdaptiveReward` changes them all the time: a reward that is earned
# anyway fades, and the rest gets its share. At every step
#
# `weight = start * (1 - (1 - floor) * mean)`,
#
# where `mean` is the reward's mean over the last `window` logged steps. By hand, for a form that is
# always earned and sums that are right in a fifth:

# %% tags=["nbval-check-output"]
from grpo_utils import AdaptiveReward, adaptive_weights

history = [{"rewards/form/mean": 1.0, "rewards/right/mean": 0.2}] * 5
for floor in (0.25, 0.0, 1.0):
    now = adaptive_weights(
        history, ["right", "form"], [2.0, 1.0], window=5, floor=floor
    )
    share = now[0] / sum(now)
    print(f"floor {floor}: {[round(w, 2) for w in now]}, right {share:.0%}")

# %% [markdown]
# - The **floor** is what a learned reward keeps. With 0 it may vanish, and what is not paid may be
#   forgotten; with 1 nothing adapts.
# - The **window** is how many steps back it looks. A short one follows every noisy batch; a long one goes on
#   paying for what was learned long ago.
#
# Now for real, with a window of 5.

# %%
adaptive = AdaptiveReward(tuple(rewards), tuple(weights), window=5)
fading = Stage("fading", [adaptive], [1.0], 2 * SHORT, train_rows, LEVEL)
policy, tokenizer, logs = train("adaptive", [fading])
faded = evaluate(policy, tokenizer, test_rows, **judging)

# %%
from grpo_utils import weight_curve

names = adaptive.names
columns = [logged(logs["fading"], f"weights/{name}") for name in names]
shares = [[w / sum(row) for w in row] for row in zip(*columns)]
told = "; ".join(
    f"{name} {start:.2f} to {end:.2f}"
    for name, start, end in zip(names, shares[0], shares[-1])
)
show(
    weight_curve(shares, names),
    alt=f"Share of each reward's weight in their sum, over the steps: {told}.",
)
print(told.replace("; ", "\n"))

# %% [markdown]
# The figure shows **proportions**, since only they matter: the group's standard deviation divides any common
# factor out. Whichever reward is learned sooner than the others gives up a share, for a while. When all of
# them are learned alike, the proportions are back where they began.
#
# Was it worth it? Against the same training with the weights held where they started: one stage, as many steps, the
# same seed and rows. (`floor=1.0` is that.) The adaptive reward is summed with faded weights: compare `correct` at the
# end of the two bars, not `reward`. (Nor `tied`: sums such as 0.87 differ by rounding, and TRL takes them for different.)

# %%
still = replace(adaptive, floor=1.0)
held = replace(fading, name="held", rewards=[still])
policy, tokenizer, _ = train("constant", [held])
constant = evaluate(policy, tokenizer, test_rows, **judging)
print("constant:", constant.accuracy)
print("adaptive:", faded.accuracy)
print(compare(constant, faded).sentence)

# %% [markdown]
# Again one seed, and so a statement about two policies.

# %% [markdown]
# ## 6. Killed, and resumed
#
# Machines go away. What is left then, and is what comes out in the end the same? Here is a plan as a
# script, as you would write one for yourself. It says nothing about resuming.

# %%
SCRIPT = """
import sys
from grpo_utils import PROFILES, Stage, load_policy, load_rows
from grpo_utils import math_rewards, prepare_machine, run_stages
prepare_machine(PROFILES["cpu"])

def train(folder, model, seed):
    how = dict(profile=PROFILES["cpu"], seed=seed)
    policy, tokenizer = load_policy(
        model, backend="transformers", load_in_4bit=False, **how)
    rewards, weights = math_rewards()
    rows = load_rows("addition", "train", 500, seed)
    stages = [Stage("format", rewards[1:], weights[1:], 4, rows),
              Stage("both", rewards, weights, 8, rows)]
    return policy, run_stages(
        policy, tokenizer, stages, folder, save_every=2, **how)

if __name__ == "__main__":
    train(sys.argv[1], sys.argv[2], int(sys.argv[3]))
"""
script = folder / "two_stages.py"
_ = script.write_text(SCRIPT)

# %% [markdown]
# First unbroken, in this process.

# %%
import runpy

train_here = runpy.run_path(str(script))["train"]
model = profile.models[FAMILY]
whole, whole_logs = train_here(folder / "unbroken", model, SEED)

# %% [markdown]
# Then in a process of its own, which we **kill** in the middle of the second stage: as soon as the checkpoint
# of step 4 is there. On Linux that is the signal 9 (SIGKILL), which no program can answer. No tidying up, no
# last save.

# %%
import subprocess
import sys
import time

cut = folder / "killed"
command = [sys.executable, str(script), str(cut), model, str(SEED)]
saved = cut / "2-both" / "checkpoint-4" / "trainer_state.json"
with open(folder / "killed.log", "w") as log:
    process = subprocess.Popen(command, stdout=log, stderr=log)
    while process.poll() is None and not saved.exists():
        time.sleep(0.05)
    process.kill()
    process.wait()

# %% tags=["nbval-check-output"]
print("killed:", process.returncode != 0)
for name in ("1-format", "2-both"):
    done = (cut / name / "finished.json").exists()
    print(f"{name}, finished: {done}")

# %% [markdown]
# Worse: let the machine have died *while it was saving*. We cut the newest checkpoint's optimizer file in
# half. transformers would take that checkpoint, because it is the newest, and fail.

# %%
from grpo_utils import checkpoint_problem

newest = newest_checkpoint(cut / "2-both")
damaged = newest / "optimizer.pt"
content = damaged.read_bytes()
_ = damaged.write_bytes(content[: len(content) // 2])
print(f"{newest.name}: {checkpoint_problem(newest)}")

# %% [markdown]
# Now the same call again, with the same folder. That is all there is to resuming.

# %%
resumed, resumed_logs = train_here(cut, model, SEED)

# %% [markdown]
# Read the three lines about stages: the first stage is skipped, the half-written checkpoint is skipped, and the
# second stage goes on from the whole one before it. Is the result that of the unbroken run? Rewards of every
# step, and every weight of the adapter:


# %% tags=["nbval-check-output"]
def rewards_of(logs: dict) -> list[float]:
    return logged(logs["format"] + logs["both"], "reward")


def adapter_of(policy) -> dict:
    return {n: p for n, p in policy.named_parameters() if p.requires_grad}


steps_of_both = zip(rewards_of(whole_logs), rewards_of(resumed_logs))
apart = max(abs(a - b) for a, b in steps_of_both)
print("steps:", len(rewards_of(resumed_logs)))
print("largest difference of a reward:", apart)
weights_apart = largest_difference(adapter_of(whole), adapter_of(resumed))
print("largest difference of a weight:", weights_apart)

# %% [markdown]
# Nothing at all, to the last bit. It takes everything in a checkpoint for that: the adapter, the optimizer, the
# schedule, the states of all random generators, and the log (from which adaptive weights are read). Therefore:
#
# - `save_only_model=True` saves space and leaves the optimizer out. transformers resumes from such a checkpoint all the
#   same, without a word, with a new optimizer. `newest_checkpoint` passes over it, and `run_stages` refuses the
#   argument, as it does `save_strategy="no"`.
# - A checkpoint holds no completions. Where a batch of them serves several steps (`num_iterations`,
#   `steps_per_generation`), a checkpoint in between resumes with new ones. `run_stages` refuses such a
#   `save_every`.
# - On a **GPU** expect "nearly": many kernels add in an order of their own, so even two unbroken runs differ in
#   the last digits. *Never run* on a GPU here.
# - **With `beta` above zero, plain TRL loses the adapter.** It keeps a copy of the adapter as reference, and
#   transformers 5.17, when it resumes, loads the copy and not the adapter (measured; a test of the course
#   shows it). `run_stages`, and `train_or_resume(trainer)` for a trainer of your own, put it back.
#
# And a folder of another plan is not resumed by accident. Model, adapter, rows, arguments and rewards are compared. A
# reward is known by its name, its weight and its settings (the fields of a dataclass, the arguments of a `partial`);
# its code is not looked at. If you change the code of a reward, take a new folder.

# %%
other = [replace(format_first, weights=[1.0, 0.5]), then_both]
try:
    train("two-stages", other, rank=8, callbacks=watched)
except CourseError as error:
    print(error)

# %% [markdown]
# ## 7. A Colab that disconnects
#
# A free Colab ends without asking, and its disk goes with it. So checkpoints belong elsewhere. **None of the code
# shown as text here was ever run**: it needs Google's machines and your accounts.
#
# **Google Drive.** Mount it, give `run_stages` a folder there, and after a disconnect run the same cells again:
#
# ```python
# from google.colab import drive
#
# drive.mount("/content/drive")
# OUTPUT_DIR = "/content/drive/MyDrive/grpo/stages"
# logs = run_stages(
#     policy, tokenizer, stages, OUTPUT_DIR, profile=profile, save_every=25
# )
# drive.flush_and_unmount()  # wait until all of it has arrived
# ```
#
# A drive is synchronised later and in any order. That is why every file of a checkpoint that a resumed run reads is
# opened before it counts as whole, and why two are kept. The adapter of a finished stage is looked at, too: if it is
# missing or cut off, an error says so.
#
# **The Hub.** `hub_strategy="checkpoint"` pushes each checkpoint into the folder `last-checkpoint` of a (private)
# repository. One repository for each stage:
#
# ```python
# TO_HUB = dict(
#     push_to_hub=True,
#     hub_strategy="checkpoint",
#     hub_model_id="you/additions-format",
#     hub_private_repo=True,
# )
# stage = Stage("format", rewards, weights, 200, rows, overrides=TO_HUB)
# ```
#
# Afterwards, on a new machine, fetch the repository of **every** stage that was begun, and give each checkpoint its
# number back. A stage that is not there is trained again from its beginning:
#
# ```python
# import json
# from pathlib import Path
# from huggingface_hub import snapshot_download
#
# run = Path("outputs/stages/1-format")
# snapshot_download(
#     "you/additions-format",
#     allow_patterns="last-checkpoint/*",
#     local_dir=run,
# )
# last = run / "last-checkpoint"
# state = json.loads((last / "trainer_state.json").read_text())
# last.rename(run / f"checkpoint-{state['global_step']}")
# ```
#
# This brings checkpoints back and nothing else, no `settings.json` either. So on a new machine **the plan is not
# checked**: take care that it is the same.
#
# How much is that to carry about? Not the model, which stays where it was: the adapter, and the optimizer's two
# running means of every weight of it. Here, in fp32, these are twice the adapter's size:

# %%
whole_one = newest_checkpoint(folder / "two-stages/2-both")
for path in sorted(whole_one.iterdir(), key=lambda p: -p.stat().st_size)[:4]:
    print(f"{path.stat().st_size / 1e6:6.2f} MB  {path.name}")

# %% [markdown]
# ## 8. The knobs
#
# Now the settings, one at a time. Each run below differs from the first in one of them. They are **short, with
# one seed**: illustrations of a mechanism, and no proof that one value is better. The last column has its
# interval; look how many of them overlap.

# %%
SMALL = steps * 4 // 5 or 1
TWICE = dict(num_iterations=2)
KNOBS = {
    "as it was": {},
    "group of 4": dict(num_generations=4),
    "group of 16": dict(num_generations=16),
    "temperature 0.7": dict(temperature=0.7),
    "temperature 1.3": dict(temperature=1.3),
    "beta 0.04": dict(beta=0.04),
    "used twice": TWICE,
    "rank 4": {},
}


def try_knob(name: str, changes: dict) -> tuple:
    stage = Stage("knob", rewards, weights, SMALL, train_rows, LEVEL | changes)
    rank = 4 if name == "rank 4" else 16
    place, how = name.replace(" ", "-"), dict(rank=rank, save_every=1000)
    policy, tokenizer, logs = train(place, [stage], say=len, **how)
    after = evaluate(policy, tokenizer, test_rows, **judging)
    return logs["knob"], after, policy.num_parameters(only_trainable=True)


# %%
tried = {name: try_knob(name, changes) for name, changes in KNOBS.items()}

# %% [markdown]
# The number of completions is the same in all of them: 64 a step, so that a group of 4 means 16 prompts a step, and
# a group of 16 means 4. (Only "used twice" samples half as many: each batch serves two steps.) All columns but the last
# are means over the steps: *tied* is the share of groups without any difference; *entropy* is taken at the sampling
# temperature, so the rows 0.7 and 1.3 cannot be compared with the rest; *ratio clipped* is TRL's `clip_ratio` (not
# `completions/clipped_ratio`, which is truncation).


# %%
def mean_of(log: list[dict], key: str) -> float | None:
    values = logged(log, key)
    return sum(values) / len(values) if values else None


KEYS = {
    "tied": "frac_reward_zero_std",
    "entropy": "entropy",
    "ratio clipped": "clip_ratio/region_mean",
    "kl": "kl",
}
wide = [max(len(key), 6) + 2 for key in KEYS]
heads = "".join(f"{key:>{w}}" for key, w in zip(KEYS, wide))
print(f"{'':15}{heads}  accuracy")
for name, (log, after, _) in tried.items():
    values = [mean_of(log, key) for key in KEYS.values()]
    texts = ["-" if v is None else f"{v:.4f}" for v in values]
    cells = "".join(f"{text:>{w}}" for text, w in zip(texts, wide))
    print(f"{name:15}{cells}  {str(after.accuracy).split(',')[0]}")

# %% [markdown]
# The row "beta 0.04" is close to the first in all but `kl`: in so few steps its pull is too small to tell from chance.

# %% tags=["nbval-check-output"]
logs_of = {name: log for name, (log, _, _) in tried.items()}
sizes = {name: count for name, (_, _, count) in tried.items()}
tied4, tied16 = (
    mean_of(logs_of[f"group of {g}"], KEYS["tied"]) for g in (4, 16)
)
cold, hot = (
    logged(logs_of[f"temperature {t}"], "entropy")[0] for t in (0.7, 1.3)
)
once, twice = (
    mean_of(logs_of[name], KEYS["ratio clipped"])
    for name in ("as it was", "used twice")
)
print("groups of 4 tie more often than groups of 16:", tied4 > tied16)
print("hotter sampling has more entropy, at step 1:", hot > cold)
print("clipped, each batch used once:", once)
print("clipped, each batch used twice, above zero:", twice > 0)
print("kl logged with beta 0:", "kl" in logs_of["as it was"][0])
print("rank 16 against rank 4:", sizes["as it was"] / sizes["rank 4"])

# %% [markdown]
# - **Group size**: in a small group it happens more often that all are right or all wrong, and such a group
#   teaches nothing. Against that stand more different prompts a step. The columns of both are honest only because
#   the number of completions is equal.
# - **Temperature**: at 0.7 the answers of a group are more alike; at 1.3 they vary more, and more of them are
#   broken. The policy is judged at 1.0 in the last column, for all alike: a *reward* logged at 0.7 looks
#   better without the policy being better.
# - **Using a batch twice** (`num_iterations=2`): in the second use the policy is no longer the one that sampled.
#   The ratio between the two is clipped at `1 ± epsilon`, and `clip_ratio` says how often that happened. With one
#   use the ratio is 1 and nothing is ever clipped: **`epsilon` has no effect then**.
# - **beta**: with it, a second set of log-probabilities is computed at every step, and `kl` is logged.
# - **Rank**: a quarter of the parameters, with `lora_alpha / r` held at 2. Adam moves every entry by about the
#   learning rate, so an adapter with fewer of them moves less in a step: at the same rate it gets less far in so few
#   steps. That says nothing about where it would end. (With `lora_alpha` itself held, the best rate is reported to
#   depend little on the rank: [Schulman 2025](https://thinkingmachines.ai/blog/lora/).)
#
# What does a batch cost? `per_device_train_batch_size * gradient_accumulation_steps` completions go into one step;
# `per_device_train_batch_size * steps_per_generation` are generated at once. The second must hold whole groups:

# %% tags=["nbval-check-output"]
from grpo_utils import check_batch

for batch, uses, group in ((64, 1, 8), (1, 8, 8), (4, 1, 8)):
    try:
        check_batch(batch, uses, group)
        print(f"{batch} x {uses}: {batch * uses // group} whole groups")
    except CourseError as error:
        print(str(error).split(". ")[0])

# %% [markdown]
# All in one table. *Shown* names the section that shows it; otherwise the source.
#
# | knob | here | what it does | shown, or source |
# |---|---|---|---|
# | `num_generations` | 8 | completions of one prompt; small groups tie more often. DeepSeekMath used 64 | shown above; Shao et al. 2024, arXiv 2402.03300 |
# | `learning_rate` | 2e-3 | the first knob to turn. Too high: collapse, for good. An adapter takes about ten times that of full fine-tuning; the course's T4 profile starts a 1.5B model at 1e-5 (never run) | shown in [lesson 04](04_reading_a_run.ipynb), section 7; Schulman 2025, [*LoRA without regret*](https://thinkingmachines.ai/blog/lora/) |
# | `per_device_train_batch_size` | 64 | **completions** (not prompts) that are learned from at once: memory | shown above; TRL, `GRPOConfig` |
# | `gradient_accumulation_steps` | 1 | such batches for one step: time instead of memory, the same gradient | exercise 2; TRL |
# | `steps_per_generation` | as accumulation | such batches from one generation; it must hold whole groups. Above the accumulation the last batches are off-policy (sampled by an earlier state of the policy) | whole groups: shown above; off-policy: TRL, `GRPOConfig` |
# | `num_iterations` | 1 | uses of each completion; above 1 off-policy, clipped by `epsilon` | shown above; Shao et al. 2024, there called μ |
# | `epsilon`, `epsilon_high` | 0.2, 0.2 | how far the ratio may go before it is clipped; DAPO raises the upper one to 0.28 for exploration | no effect with one use: shown above; Yu et al. 2025, arXiv 2503.14476 |
# | `beta` | 0.0 | pull back to the policy at the start of the stage; `kl` is logged. DeepSeekMath 0.04, DAPO none | shown: `kl` is logged; the pull is too small to tell from chance in 8 steps. More in lesson 04, section 8 |
# | `temperature` | 1.0 | variety of a group. TRL divides the logits by it when it learns as well | variety: shown above; the division: TRL, `trl/trainer/grpo_trainer.py` |
# | `top_p`, `top_k` | 1.0, 0 (off) | cut rare tokens when sampling. TRL does **not** cut them when it learns, so the two differ | TRL, `trl/trainer/grpo_trainer.py`; never run here |
# | `max_completion_length` | 32 | cuts answers off; too short: no reward is ever reached | shown in lesson 04, section 9 |
# | prompt length | 96 | TRL never cuts a prompt: `drop_long_prompts(rows, …)` | TRL; [lesson 03](03_grpo_lora.ipynb) |
# | LoRA `r` | 16 | size of the adapter; for RL small ranks are reported to do | shown above; Schulman 2025 |
# | reward weights | 2, 0.5, 0.5 | only their proportions count, with `scale_rewards="group"` | shown in [lesson 02](02_rewards.ipynb), section 8 |
# | `max_steps` | `2 * steps` | watch the curve, and stop when accuracy on a validation set (not the rows you judge by) no longer rises | not shown here |

# %% [markdown]
# ## 9. Exercises
#
# ### Exercise 1: write a plan
#
# A base model can add, mostly, writes no form, and is long-winded. You want the form, then right sums,
# and at the end short answers, without losing what came before. There are 100 steps: 40, 40, 20. Write
# `my_plan()`: a list of `[name, rewards, steps]`, where `rewards` is a list of the names `"form"`, `"right"` and
# `"short"`. Which rewards does a stage need, so that nothing that was learned goes unpaid?


# %%
def my_plan() -> list:
    """Your answer: for example [["form", ["form", "right"], 100], …]."""
    return []


# %%
from itertools import pairwise

GOALS = ("form", "right", "short")


def judge_plan(plan: list) -> str:
    """What is wrong with a plan, as a sentence."""
    if not plan:
        return ""
    if [length for _, _, length in plan] != [40, 40, 20]:
        return "the steps are not 40, 40, 20"
    for name, paid, _ in plan:
        if set(paid) - set(GOALS):
            return f"in {name!r} a reward is unknown; there are {GOALS}"
    for goal, (_, paid, _) in zip(GOALS, plan):
        if goal not in paid:
            return f"{goal!r} is not paid where it should be learned"
    for (_, paid, _), (name, later, _) in pairwise(plan):
        if set(paid) - set(later):
            return f"in {name!r} something learned goes unpaid"
    return "sound"


# %% tags=["nbval-check-output"]
from grpo_utils import check_exercise

PLAN = [((), "sound")]
print(check_exercise("Exercise 1", lambda: judge_plan(my_plan()), PLAN))

# %% [markdown]
# <details><summary>Solution</summary>
#
# The next cell holds it. Each stage goes on paying for what came before: what is not paid wanders or falls, as
# section 7 of lesson 02 shows. A plan that pays all three throughout passes too.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def plan_solution() -> list:
    return [
        ["form", ["form"], 40],
        ["sums", ["form", "right"], 40],
        ["brevity", ["form", "right", "short"], 20],
    ]


name = "Exercise 1, solution"
print(check_exercise(name, lambda: judge_plan(plan_solution()), PLAN))

# %% [markdown]
# ### Exercise 2: the same training on a smaller card
#
# Write `accumulation(completions, batch, group)`: how many `gradient_accumulation_steps` give `completions`
# completions a step when the card takes `batch` at once? Give 0 where it cannot be: the product has to be exact, and
# whole groups have to fit into a generation (which here spans one step).


# %%
def accumulation(completions: int, batch: int, group: int) -> int | None:
    """Your answer: gradient_accumulation_steps, or 0."""
    return None


# %% tags=["nbval-check-output"]
SIZES = [((64, 64, 8), 1), ((64, 8, 8), 8), ((64, 2, 16), 32)]
SIZES += [((64, 24, 8), 0), ((60, 4, 8), 0), ((32, 1, 8), 32)]
print(check_exercise("Exercise 2", accumulation, SIZES))

# %% [markdown]
# <details><summary>Solution</summary>
#
# The next cell holds it. The group does not have to fit into one batch: 2 completions at a time can make up groups
# of 16.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def accumulation_solution(completions: int, batch: int, group: int) -> int:
    if completions % batch or completions % group:
        return 0
    return completions // batch


print(check_exercise("Exercise 2, solution", accumulation_solution, SIZES))

# %% [markdown]
# ### Exercise 3: where to resume
#
# Write `resume_from(checkpoints, every)`: `checkpoints` is a list of `[step, whole]`, and a batch of completions
# serves `every` steps. From which step does a run resume exactly? 0 if from none.


# %%
def resume_from(checkpoints: list, every: int) -> int | None:
    """Your answer: a step, or 0."""
    return None


# %% tags=["nbval-check-output"]
LEFT = [
    (([[10, True], [20, True]], 1), 20),
    (([[10, True], [20, True], [30, False]], 1), 20),
    (([[9, True], [100, True], [15, False]], 1), 100),
    (([[100, True], [9, True]], 1), 100),
    (([[10, True], [15, True]], 2), 10),
    (([[10, False]], 1), 0),
]
print(check_exercise("Exercise 3", resume_from, LEFT))

# %% [markdown]
# <details><summary>Solution</summary>
#
# The next cell holds it. Sort by number: as text, "checkpoint-9" would come after "checkpoint-100".
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def resume_solution(checkpoints: list, every: int) -> int:
    fit = [step for step, whole in checkpoints if whole and not step % every]
    return max(fit, default=0)


print(check_exercise("Exercise 3, solution", resume_solution, LEFT))

# %% [markdown]
# ## What to take along
#
# - Stages, curricula and adaptive weights are ideas to **compare**: the same budget, the same prompts, several
#   seeds, and one stage as the rival.
# - A stage carries the adapter. Optimizer and schedule start new. What a stage does not pay may be lost.
# - Resuming is exact only from a whole checkpoint, with everything in it, between two batches of completions.
# - Change one knob at a time, at the same number of completions, and judge at the same temperature.
#
# Next: [lesson 06](06_evaluation.ipynb), on the tests used here. To read: Bengio et al. 2009, *Curriculum
# learning* (ICML); Yu et al. 2025, *DAPO* (arXiv 2503.14476); Shao et al. 2024, *DeepSeekMath* (arXiv 2402.03300); TRL's page
# on GRPO.
